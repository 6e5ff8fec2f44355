/** What a pause is to the time of a crawl: no part of it, wherever the crawl lives, and over a restart. On a clock moved by hand. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { crawl, INTERRUPTED } from "../../src/crawl.ts";
import { openStateView } from "../../src/inspect/inspect.ts";
import { createTestClock, seededRandom } from "../../src/testing/clock.ts";
import { createTestWeb } from "../../src/testing/web.ts";

const HOUR = 3_600_000;
const LIMIT = 20_000;

/** More than a minute of work: a page a second. */
function parts(stateDir: string | null) {
  const clock = createTestClock();
  const web = createTestWeb({ seed: 3, hosts: 1, pages: 100, seeds: 1, links: 6 }, clock);
  const spec = { seeds: [...web.seeds], scope: { preset: "any" }, perHost: { delay: 1_000 }, limits: { time: LIMIT }, stateDir } as const;
  return { clock, web, start: () => crawl(spec, { world: { clock, random: seededRandom(1), openFetcher: async () => web.fetcher } }) };
}

async function inDirectory(run: (dir: string) => Promise<void>): Promise<void> {
  const dir = mkdtempSync(join(tmpdir(), "skein-paused-"));
  try {
    await run(join(dir, "state"));
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

async function pausedOnTheWay(stateDir: string | null): Promise<void> {
  const { clock, start } = parts(stateDir);
  const run = start();
  const { done } = run;
  await clock.advance(5_000);
  await run.pause();
  const { elapsedMs, pages } = await run.stats();
  assert.deepEqual([elapsedMs, pages > 0], [5_000, true]);
  await clock.advance(HOUR);
  const still = await run.stats();
  assert.equal(still.elapsedMs, 5_000);
  await run.resume();
  await clock.advance(4_000);
  assert.equal((await run.stats()).elapsedMs, 9_000);
  const summary = await clock.run(done, HOUR);
  assert.equal(summary.finishReason, "limit-time");
  assert.ok(summary.elapsedMs >= LIMIT && summary.elapsedMs < LIMIT + 5_000, String(summary.elapsedMs));
  assert.ok(clock.now() >= HOUR + LIMIT);
}

test("a pause is no part of the time of a crawl in memory, and does not use up its limit", () => pausedOnTheWay(null));

test("a pause is no part of the time of a crawl in a directory, and does not use up its limit", () => inDirectory(pausedOnTheWay));

test("a stop lifts a pause, and from then on time counts again", async () => {
  const { clock, start } = parts(null);
  const run = start();
  const { done } = run;
  await clock.advance(5_000);
  await run.pause();
  await clock.advance(HOUR);
  await run.stop({ mode: "queue" });
  const summary = await clock.run(done, HOUR);
  assert.equal(summary.finishReason, "stop-condition");
  assert.ok(summary.elapsedMs > 5_000 && summary.elapsedMs <= LIMIT + 5_000, String(summary.elapsedMs));
});

test("what a directory keeps of the time of work is without its pauses, and the next process goes on from there", () =>
  inDirectory(async (dir) => {
    const { clock, start } = parts(dir);
    const first = start();
    const { done } = first;
    await clock.advance(5_000);
    await first.pause();
    await clock.advance(HOUR);
    await Promise.all([first.stop({ mode: "flight", reason: INTERRUPTED }), clock.run(done, HOUR)]);
    assert.equal((await done).finishReason, "interrupted");
    using view = openStateView(dir);
    assert.ok(view.elapsedMs >= 5_000 && view.elapsedMs < 10_000, String(view.elapsedMs));
    const second = start();
    const ended = second.done;
    await clock.advance(0);
    assert.ok((await second.stats()).elapsedMs < 10_000);
    const summary = await clock.run(ended, HOUR);
    assert.equal(summary.finishReason, "limit-time");
    assert.ok(summary.elapsedMs >= LIMIT && summary.elapsedMs < LIMIT + 5_000, String(summary.elapsedMs));
  }));
