/** Politeness over 200 hosts of eight processes with wrong clocks and kills, again and again. needs: redis-server */
import assert from "node:assert/strict";
import { test } from "node:test";
import { skipRedis } from "../../src/store/redis/server-for-tests.ts";
import { checkPolite } from "./polite.ts";

const minutes = Number(process.env.SKEIN_LONG_MINUTES ?? "1");

test("200 hosts, 2 crawls, 8 processes minutes apart: nobody is hurried", { skip: skipRedis, timeout: (minutes + 5) * 60_000 }, async () => {
  const until = performance.now() + minutes * 60_000;
  const first = Math.floor(Date.now() / 86_400_000);
  let rounds = 0;
  let requests = 0;
  let killed = 0;
  let least = Infinity;
  let way = 0;
  for (; performance.now() < until; rounds++) {
    const run = await checkPolite({ hosts: 200, perHost: 1 + (rounds % 2), seed: first + rounds, kills: 8 });
    requests += run.requests;
    killed += run.killed;
    least = Math.min(least, run.leastReadMs);
    way = Math.max(way, run.longestWayMs);
  }
  console.log(
    `polite from seed ${first}: ${requests} requests, ${killed} workers killed, smallest gap read ${least.toFixed(1)} ms (longest way ${way.toFixed(1)} ms), rounds: ${rounds}`,
  );
  assert.ok(killed > 0);
});
