/** Random webs under a clock moved by hand: complete, exact in limits and depths, polite, never early, never hanging. Thousands more run in test:long. */
import test from "node:test";
import { checkRandomStop } from "./random-stop.ts";
import { checkRandomWeb } from "./random-web.ts";

const WEBS = 250;

test(`${WEBS} crawls of random webs find exactly what there is, politely`, async (t) => {
  let pages = 0;
  for (let seed = 1; seed <= WEBS; seed++) pages += (await checkRandomWeb(seed)).pages;
  t.diagnostic(`${WEBS} webs, ${pages} records`);
});

const STOPS = 200;

test(`${STOPS} crawls that are paused, stopped or held to a rate obey at once and record nothing twice`, async () => {
  for (let seed = 1; seed <= STOPS; seed++) await checkRandomStop(seed);
});
