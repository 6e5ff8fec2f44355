/** Rounds of everything that may die below a crawl on Redis, for as long as the share of test:long allows. needs: redis-server */
import assert from "node:assert/strict";
import { test } from "node:test";
import { skipRedis } from "../../src/store/redis/server-for-tests.ts";
import { openRounds } from "./rounds.ts";

const minutes = Number(process.env.SKEIN_LONG_MINUTES ?? "1");

test("crawls on Redis whose parts die at random end as the undisturbed one does", { skip: skipRedis, timeout: (minutes + 5) * 60_000 }, async () => {
  await using all = await openRounds();
  const until = performance.now() + minutes * 60_000;
  const first = Number(process.env.SKEIN_SEED ?? (Math.floor(Date.now() / 86_400_000) % 10_000) * 1_000);
  const sum = new Map<string, number>();
  let rounds = 0;
  let givenUp = 0;
  try {
    for (; performance.now() < until; rounds++) {
      const round = await all.run(first + rounds);
      if (round.givenUp > 0) givenUp++;
      for (const [what, times] of round.troubles) sum.set(what, (sum.get(what) ?? 0) + times);
    }
  } finally {
    const told = [...sum].map(([what, times]) => `${times} × ${what}`).join(", ");
    console.log(`cluster from seed ${first}: ${told}; ${givenUp} with a page that took three workers down; rounds: ${rounds}`);
  }
  assert.ok(sum.size > 0);
  // A page that is given up makes a round worthless: that must stay the exception.
  assert.ok(givenUp <= 1 + rounds / 4, `${givenUp} of ${rounds} rounds could not be judged`);
});
