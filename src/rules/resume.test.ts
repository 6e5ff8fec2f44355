import assert from "node:assert/strict";
import test from "node:test";
import { parseSpec } from "../core/spec.ts";
import { decideResume, type FoundRun, forbiddenChanges } from "./resume.ts";

const spec = (input: object = {}) => parseSpec({ seeds: ["http://a.test/"], ...input });
const found = (more: Partial<FoundRun> = {}): FoundRun => ({
  spec: spec(),
  completed: false,
  left: 7,
  counted: 3,
  elapsedMs: 5_000,
  bytes: 9_000,
  failed: 2,
  items: 40,
  seedsRead: true,
  finishReason: null,
  ...more,
});

test("limits, concurrency, politeness and the place of the state may change; everything else may not", () => {
  const free = {
    limits: { pages: 5, time: "1h", bytes: "1GB", errors: 3 },
    concurrency: 3,
    perHost: { concurrency: 1, delay: "2s", jitter: 0.5 },
    maxRequestsPerMinute: 60,
  };
  assert.deepEqual(
    forbiddenChanges(
      spec(),
      spec({ ...free, maxWait: "9m", hosts: { "a.test": { delay: "1s" } }, stateDir: "x", durability: "strict", parseWorkers: 1, cacheSize: 5_000_000 }),
    ),
    [],
  );
  const bound = { seeds: ["http://b.test/"], maxDepth: 2, robots: false, outputs: ["o.jsonl"], userAgent: "x", retry: { max: 9 }, timeout: "5s" };
  assert.deepEqual(forbiddenChanges(spec(), spec(bound)).sort(), ["maxDepth", "outputs", "retry.max", "robots", "seeds", "timeout", "userAgent"]);
});

test("an unfinished run is resumed, with the same options only", () => {
  assert.equal(decideResume(found(), spec(), "d").kind, "resume");
  const other = decideResume(found(), spec({ maxDepth: 1 }), "d");
  assert.equal(other.kind, "refuse");
  assert.match(other.say, /--depth.*--fresh/);
});

test("a run ended by a limit goes on when the limit is larger or gone; with the same one it is over", () => {
  const ended = found({ completed: true, finishReason: "limit-pages", counted: 10, spec: spec({ limits: { pages: 10 } }) });
  assert.equal(decideResume(ended, spec({ limits: { pages: 20 } }), "d").kind, "resume");
  assert.equal(decideResume(ended, spec(), "d").kind, "resume");
  assert.equal(decideResume(ended, spec({ limits: { pages: 10 } }), "d").kind, "new-run");
  assert.equal(decideResume(ended, spec({ limits: { pages: 20 }, maxDepth: 1 }), "d").kind, "refuse");
  const others = [
    ["limit-time", { time: 6_000 }, { time: 5_000 }],
    ["limit-bytes", { bytes: 9_001 }, { bytes: 9_000 }],
    ["limit-errors", { errors: 2 }, { errors: 1 }],
    ["limit-items", { items: 41 }, { items: 40 }],
  ] as const;
  for (const [finishReason, larger, same] of others) {
    const run = found({ completed: true, finishReason });
    assert.equal(decideResume(run, spec(), "d").kind, "resume");
    assert.equal(decideResume(run, spec({ limits: larger }), "d").kind, "resume");
    assert.equal(decideResume(run, spec({ limits: same }), "d").kind, "new-run");
  }
});

test("a run that is past its larger limit already goes on, to end at once: it says so, and is not begun anew", () => {
  const ended = [
    ["limit-bytes", { bytes: 1_500 }, { bytes: 3_000 }, { bytes: 3_000 }, "--max-bytes 3KB"],
    ["limit-errors", { errors: 0 }, { errors: 1 }, { failed: 2 }, "--max-errors 1"],
    ["limit-time", { time: "1s" }, { time: "2s" }, { elapsedMs: 2_500 }, "--time-limit 2s"],
    ["limit-items", { items: 10 }, { items: 30 }, { items: 40 }, "--max-items 30"],
  ] as const;
  for (const [finishReason, before, now, spent, words] of ended) {
    const run = found({ completed: true, finishReason, spec: spec({ limits: before }), ...spent });
    const past = decideResume(run, spec({ limits: now }), "d");
    assert.equal(past.kind, "resume", finishReason);
    assert.match(past.say, new RegExp(`has passed ${words} already: nothing is fetched, and nothing is dropped`));
    assert.match(decideResume(run, spec(), "d").say, /: going on \(/);
    assert.equal(decideResume(run, spec({ limits: before }), "d").kind, "new-run");
  }
});

test("a run ended by a limit before all its seeds were read goes on even if nothing is queued", () => {
  const ended = found({ completed: true, left: 0, finishReason: "limit-bytes", spec: spec({ limits: { bytes: 1_500 } }) });
  assert.equal(decideResume({ ...ended, seedsRead: false }, spec({ limits: { bytes: 90_000 } }), "d").kind, "resume");
  assert.equal(decideResume(ended, spec({ limits: { bytes: 90_000 } }), "d").kind, "new-run");
});

test("a finished run is followed by a new one, whatever the options", () => {
  const over = found({ completed: true, left: 0, finishReason: "finished" });
  assert.equal(decideResume(over, spec({ maxDepth: 9 }), "d").kind, "new-run");
  assert.equal(decideResume({ ...over, finishReason: "stop-condition", left: 4 }, spec(), "d").kind, "new-run");
});
