/** Histories of shops by chance for as long as the share of test:long allows, now and then one of 500 list pages; each failure names its seed. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { checkListing } from "./random-listing.ts";

const minutes = Number(process.env.SKEIN_LONG_MINUTES ?? "1");

test("every newer product comes out of every run, whatever shifts, fails, is interrupted or limited", { timeout: (minutes + 5) * 60_000 }, async () => {
  const until = performance.now() + minutes * 60_000;
  const first = 1_000_000 + (Math.floor(Date.now() / 86_400_000) % 10_000) * 10_000;
  let rounds = 0;
  let visits = 0;
  for (; performance.now() < until; rounds++) visits += (await checkListing(first + rounds, rounds % 50 === 49 ? 500 : 30)).visits;
  console.log(`histories of shops from seed ${first}: ${visits} requests, rounds: ${rounds}`);
  assert.ok(rounds > 0);
});
