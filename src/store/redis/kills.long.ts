/** Kills of workers and of Redis below a crawl, at random, for as long as the share of test:long allows. needs: redis-server */
import assert from "node:assert/strict";
import { test } from "node:test";
import { killRound } from "./kills-for-tests.ts";
import { skipRedis } from "./server-for-tests.ts";

const minutes = Number(process.env.SKEIN_LONG_MINUTES ?? "1");
const seedGiven = process.env.SKEIN_SEED;

test("rounds of kills on Redis leave every page once", { skip: skipRedis, timeout: (minutes + 5) * 60_000 }, async () => {
  const until = performance.now() + minutes * 60_000;
  const first = seedGiven === undefined ? (Math.floor(Date.now() / 86_400_000) % 10_000) * 1_000 : Number(seedGiven);
  const sum = { workersKilled: 0, serversKilled: 0, frozen: 0 };
  let rounds = 0;
  try {
    for (; performance.now() < until; rounds++) {
      const round = await killRound(first + rounds, 500);
      sum.workersKilled += round.workersKilled;
      sum.serversKilled += round.serversKilled;
      sum.frozen += round.frozen;
    }
  } finally {
    console.log(
      `Redis kills from seed ${first}: ${sum.workersKilled} workers and ${sum.serversKilled} servers killed, ${sum.frozen} workers frozen, rounds: ${rounds}`,
    );
  }
  assert.ok(sum.workersKilled + sum.serversKilled > 0);
});
