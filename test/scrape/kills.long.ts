/** Kill -9 of crawls with a scraper and resume, at random, for as long as the share of test:long allows. */
import assert from "node:assert/strict";
import test from "node:test";
import { checkShopKills } from "./kills.ts";

const minutes = Number(process.env.SKEIN_LONG_MINUTES ?? "1");

test("shops that are scraped, killed at random and resumed give each item once", { timeout: (minutes + 5) * 60_000 }, async () => {
  const until = performance.now() + minutes * 60_000;
  const first = Math.floor(Date.now() / 86_400_000);
  let rounds = 0;
  let kills = 0;
  for (; performance.now() < until; rounds++) {
    kills += (await checkShopKills({ seed: first + rounds, products: 200, offers: 1_500, withinMs: 600, kills: 8 })).kills;
  }
  console.log(`shops from seed ${first}: ${kills} kills, rounds: ${rounds}`);
  assert.ok(kills > 0);
});
