/** The words of the dashboard for what the service tells. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { reasonWords } from "./format.ts";

const counts = { pages: 3, failed: 1 };

test("a job that somebody stopped is not said to have met a condition", () => {
  assert.equal(reasonWords({ state: "stopped", finishReason: "stop-condition", counts }), "It was stopped.");
  assert.equal(reasonWords({ state: "completed", finishReason: "stop-condition", counts }), "A stop condition was met.");
  assert.equal(reasonWords({ state: "running", finishReason: null, counts }), null);
});

test("a job that fetched nothing is not said to have done everything", () => {
  assert.equal(reasonWords({ state: "completed", finishReason: "finished", counts }), "Everything that belongs to the crawl was done.");
  assert.match(reasonWords({ state: "completed", finishReason: "finished", counts: { pages: 0, failed: 1 } }) ?? "", /^No page could be fetched/);
});
