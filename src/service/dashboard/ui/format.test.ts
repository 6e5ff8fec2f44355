/** The words of the dashboard for what the service tells. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { reasonWords } from "./format.ts";

test("a job that somebody stopped is not said to have met a condition", () => {
  assert.equal(reasonWords({ state: "stopped", finishReason: "stop-condition" }), "It was stopped.");
  assert.equal(reasonWords({ state: "completed", finishReason: "stop-condition" }), "A stop condition was met.");
  assert.equal(reasonWords({ state: "running", finishReason: null }), null);
});
