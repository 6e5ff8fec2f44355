/** Random webs for as long as the share of test:long allows; each failure names its seed. */
import assert from "node:assert/strict";
import test from "node:test";
import { checkRandomStop } from "./random-stop.ts";
import { checkRandomWeb } from "./random-web.ts";

const minutes = Number(process.env.SKEIN_LONG_MINUTES ?? "1");

test("crawls of random webs find exactly what there is, politely", { timeout: (minutes + 5) * 60_000 }, async () => {
  const until = performance.now() + minutes * 60_000;
  // Another stretch of seeds every day, and always the same on one day.
  const first = 1_000_000 + (Math.floor(Date.now() / 86_400_000) % 10_000) * 100_000;
  let rounds = 0;
  for (; performance.now() < until; rounds++) await (rounds % 2 === 0 ? checkRandomWeb : checkRandomStop)(first + rounds);
  console.log(`random webs from seed ${first}, rounds: ${rounds}`);
  assert.ok(rounds > 0);
});
