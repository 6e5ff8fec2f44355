/** Kills at random, and random steps with restarts, for as long as the share of test:long allows; each failure names its seed. */
import assert from "node:assert/strict";
import test from "node:test";
import { modelRestartCase } from "../../testing/frontier/model-cases.ts";
import { caseConfig } from "../../testing/frontier-cases.ts";
import { openSqliteBench } from "./bench-for-tests.ts";
import { crawlWithKills } from "./kills-for-tests.ts";

const minutes = Number(process.env.SKEIN_LONG_MINUTES ?? "1");
const WALKS_PER_CRAWL = 20;

async function walk(seed: number): Promise<void> {
  const one = modelRestartCase(seed);
  const bench = await openSqliteBench({ ...caseConfig, ...one.config });
  try {
    await one.run(bench);
  } finally {
    await bench.close();
  }
}

test("a state is resumed after any kill, and agrees with the model", { timeout: (minutes + 5) * 60_000 }, async () => {
  const until = performance.now() + minutes * 60_000;
  // Another stretch of seeds every day, and always the same on one day.
  const first = 1_000_000 + (Math.floor(Date.now() / 86_400_000) % 10_000) * 100_000;
  let rounds = 0;
  let kills = 0;
  for (; performance.now() < until; rounds++) {
    const seed = first + rounds * WALKS_PER_CRAWL;
    try {
      kills += await crawlWithKills(seed);
      for (let n = 0; n < WALKS_PER_CRAWL; n++) await walk(seed + n);
    } catch (error) {
      throw new Error(`the round of seed ${seed} failed`, { cause: error });
    }
  }
  console.log(`killed crawls and restarted walks from seed ${first}, kills: ${kills}, rounds: ${rounds}`);
  assert.ok(rounds > 0 && kills > 0);
});
