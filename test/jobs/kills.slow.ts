/** A process that runs jobs is killed and started again: each job ends once, with equal results. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { checkJobKills } from "./kills.ts";

test("five jobs end as undisturbed ones do, although their process is killed twice", { timeout: 160_000 }, async () => {
  const { kills } = await checkJobKills({ pages: 30, jobs: 5, seed: 7, withinMs: 700, kills: 2 });
  assert.ok(kills > 0);
});
