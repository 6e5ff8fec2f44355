/** Politeness of eight processes with wrong clocks and kills; polite.long.ts has 200 hosts. needs: redis-server */
import assert from "node:assert/strict";
import { test } from "node:test";
import { skipRedis } from "../../src/store/redis/server-for-tests.ts";
import { checkPolite } from "./polite.ts";

for (const perHost of [1, 2]) {
  test(`40 hosts, 2 crawls, 8 processes minutes apart: delay and --per-host ${perHost} hold by the server's log, with kills (F110, F111)`, {
    skip: skipRedis,
  }, async (t) => {
    const run = await checkPolite({ hosts: 40, perHost, seed: perHost, kills: 3 });
    const { requests, killed, leastSentMs, leastReadMs, longestWayMs, mostTogether } = run;
    t.diagnostic(
      `${requests} requests, ${killed} workers killed; smallest gap ${leastSentMs.toFixed(1)} ms sent, ${leastReadMs.toFixed(1)} ms read (longest way ${longestWayMs.toFixed(1)} ms); ${mostTogether} in flight at most`,
    );
    assert.ok(killed > 0);
  });
}
