/** The service itself killed below its clients: each job ends once, with equal results, and readers got each record once. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { openArena } from "./kills-service.ts";

test("clients post, upload, steer and read while the service is killed twice", { timeout: 240_000 }, async () => {
  await using arena = await openArena();
  const { kills } = await arena.round({ seed: 5, kills: 2, withinAnswers: 40 });
  assert.equal(kills, 2);
});
