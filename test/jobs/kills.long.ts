/** Kill -9 of a process that runs jobs, at random, for as long as the share of test:long allows. */
import assert from "node:assert/strict";
import test from "node:test";
import { checkJobKills } from "./kills.ts";

const minutes = Number(process.env.SKEIN_LONG_MINUTES ?? "1");

test("jobs whose process is killed at random end as undisturbed ones do", { timeout: (minutes + 5) * 60_000 }, async () => {
  const until = performance.now() + minutes * 60_000;
  const first = Math.floor(Date.now() / 86_400_000);
  let rounds = 0;
  let kills = 0;
  for (; performance.now() < until; rounds++) kills += (await checkJobKills({ pages: 120, jobs: 6, seed: first + rounds, withinMs: 900, kills: 8 })).kills;
  console.log(`job kills from seed ${first}: ${kills} kills, rounds: ${rounds}`);
  assert.ok(kills > 0);
});
