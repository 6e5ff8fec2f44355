/** A crawl's process is killed at named steps and at random, and its state is resumed until it ends. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { makeDirectory, removeDirectory } from "./bench-for-tests.ts";
import type { FaultPoint } from "./frontier.ts";
import { checkWhole, crawlWithKills, untilItEnds } from "./kills-for-tests.ts";

const POINTS: readonly FaultPoint[] = ["during-start", "after-claim", "after-append", "inside-commit", "after-commit"];

for (const point of POINTS) {
  test(`killed ${point}, a crawl ends with every record once`, async () => {
    const dir = makeDirectory();
    try {
      // Later each time, so that every run gets somewhere.
      const times = point === "during-start" ? [1] : [2, 7];
      const killed = await untilItEnds(dir, null, (run) => (times[run] === undefined ? null : { env: { SKEIN_FAULT: `${point}:${times[run]}` } }));
      assert.equal(killed, times.length);
      checkWhole(dir, null);
    } finally {
      removeDirectory(dir);
    }
  });
}

test("killed at random moments, crawls end with every record once, and limits are exact", async (context) => {
  let killed = 0;
  for (let seed = 1; seed <= 2 || killed === 0; seed++) killed += await crawlWithKills(seed);
  context.diagnostic(`${killed} kills`);
});
