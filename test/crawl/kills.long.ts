/** Kill -9 and resume, at random, for as long as the share of test:long allows. */
import assert from "node:assert/strict";
import test from "node:test";
import { checkKills } from "./kills.ts";

const minutes = Number(process.env.SKEIN_LONG_MINUTES ?? "1");

test("crawls that are killed at random and resumed end as the undisturbed one did", { timeout: (minutes + 5) * 60_000 }, async () => {
  const until = performance.now() + minutes * 60_000;
  const first = Math.floor(Date.now() / 86_400_000);
  let rounds = 0;
  let kills = 0;
  for (; performance.now() < until; rounds++) kills += (await checkKills({ pages: 250, seed: first + rounds, withinMs: 500, kills: 8 })).kills;
  console.log(`kills from seed ${first}: ${kills} kills, rounds: ${rounds}`);
  assert.ok(kills > 0);
});
