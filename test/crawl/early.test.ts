/** What is asked of a crawl before it has begun, and after it has ended. On a clock moved by hand. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { type CrawlInput, type CrawlRun, crawl } from "../../src/crawl.ts";
import { createTestClock, seededRandom } from "../../src/testing/clock.ts";
import { createTestWeb } from "../../src/testing/web.ts";

const HOUR = 3_600_000;

function web(input: Partial<CrawlInput> = {}) {
  const clock = createTestClock();
  const pages = createTestWeb({ seed: 3, hosts: 1, pages: 60, seeds: 12, links: 6 }, clock);
  const seeds = [...pages.seeds];
  const start = (): CrawlRun =>
    crawl({ seeds, scope: { preset: "any" }, ...input }, { world: { clock, random: seededRandom(1), openFetcher: async () => pages.fetcher } });
  return { clock, seeds, start };
}

async function inDirectory(run: (stateDir: string) => Promise<void>): Promise<void> {
  const dir = mkdtempSync(join(tmpdir(), "skein-early-"));
  try {
    await run(join(dir, "state"));
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

async function pausedFromTheStart(stateDir: string | null, begin: (run: CrawlRun) => void): Promise<void> {
  const { clock, start } = web({ stateDir });
  const run = start();
  begin(run);
  await run.pause();
  await clock.advance(HOUR);
  const before = await run.stats();
  assert.deepEqual([before.pages, before.requests, before.elapsedMs], [0, 0, 0]);
  await run.resume();
  const summary = await clock.run(run.done, HOUR);
  assert.equal(summary.finishReason, "finished");
  assert.ok(summary.pages > 12, String(summary.pages));
}

test("a pause that is asked for before a crawl has begun holds until it is lifted", () => pausedFromTheStart(null, () => undefined));

test("so does one that is asked for just after the first page was", () => pausedFromTheStart(null, (run) => void run[Symbol.asyncIterator]().next()));

test("so does one of a crawl in a directory", () => inDirectory((dir) => pausedFromTheStart(dir, () => undefined)));

test("a pause that was lifted before a crawl had begun holds nothing", async () => {
  const { clock, start } = web();
  const run = start();
  await Promise.all([run.pause(), run.resume()]);
  assert.equal((await clock.run(run.done, HOUR)).finishReason, "finished");
});

test("once a crawl is over, a pause, its end and a stop do nothing", async () => {
  const { clock, start } = web();
  const run = start();
  const summary = await clock.run(run.done, HOUR);
  await run.pause();
  await run.resume();
  await run.stop({ mode: "queue" });
  await run.stop();
  const { elapsedMs, pages } = await run.stats();
  assert.deepEqual([elapsedMs, pages, await run.done], [summary.elapsedMs, summary.pages, summary]);
});

test("after a crawl that failed they do nothing either", async () => {
  const run = crawl({ seeds: ["not a url at all://"] });
  await assert.rejects(run.done);
  await run.pause();
  await run.resume();
  await run.stop({ mode: "queue" });
});

async function stoppedFromTheStart(stateDir: string | null): Promise<void> {
  const { clock, seeds, start } = web({ stateDir });
  const run = start();
  const visited: string[] = [];
  const reading = (async () => {
    for await (const page of run)
      if (page.depth === 0) visited.push(page.url);
      else assert.fail(`${page.url} was found, not given`);
  })();
  await run.stop({ mode: "queue", reason: "enough" });
  const summary = await clock.run(run.done, HOUR);
  await reading;
  assert.deepEqual([summary.finishReason, summary.detail, summary.seeds, summary.queued], ["stop-condition", "enough", seeds.length, 0]);
  assert.ok(new Set(visited).size >= seeds.length, `${visited.length} of ${seeds.length}`);
}

test("a list of seeds is queued: a stop of mode queue before the crawl has begun leaves them to be done, and no link", () => stoppedFromTheStart(null));

test("so it is in a directory", () => inDirectory(stoppedFromTheStart));

test("of a source what was read before a stop of mode queue is done, and no more is read", async () => {
  const { clock, seeds } = web();
  const { fetcher } = createTestWeb({ seed: 3, hosts: 1, pages: 60, seeds: 12, links: 6 }, clock);
  let asked = 0;
  async function* source() {
    for (const seed of seeds.slice(0, 3)) {
      asked++;
      yield seed;
    }
    await new Promise(() => undefined);
  }
  const run = crawl({ seeds: source(), scope: { preset: "any" } }, { world: { clock, random: seededRandom(1), openFetcher: async () => fetcher } });
  const first = run[Symbol.asyncIterator]();
  await clock.run(first.next(), HOUR);
  await run.stop({ mode: "queue" });
  const summary = await clock.run(run.done, HOUR);
  assert.deepEqual([summary.finishReason, summary.seeds, asked, summary.queued], ["stop-condition", 3, 3, 0]);
});

test("a list of several batches that is being read is read to its end, and no link is taken any more", async () => {
  const clock = createTestClock();
  const { fetcher, seeds } = createTestWeb({ seed: 5, hosts: 40, pages: 2_400, seeds: 1_800, links: 6 }, clock);
  const run = crawl({ seeds: [...seeds], scope: { preset: "any" } }, { world: { clock, random: seededRandom(1), openFetcher: async () => fetcher } });
  const depths = new Set<number>();
  let stopped: Promise<void> | null = null;
  const reading = (async () => {
    for await (const page of run) {
      depths.add(page.depth);
      stopped ??= run.stop({ mode: "queue" });
    }
  })();
  const summary = await clock.run(run.done, HOUR);
  await Promise.all([reading, stopped]);
  assert.deepEqual([summary.finishReason, summary.seeds, summary.queued], ["stop-condition", seeds.length, 0]);
  // Pages that had been found by then are done, and what they link to is not.
  assert.ok(Math.max(...depths) <= 1, String([...depths]));
});

test("seeds that are being added when a stop of mode queue comes do not keep the crawl from its end", async () => {
  const { clock, start } = web();
  const run = start();
  await clock.advance(1);
  const next = Promise.withResolvers<void>();
  async function* slowly() {
    await next.promise;
    yield "http://late.example/";
  }
  const adding = run.add(slowly());
  await clock.advance(1);
  await run.stop({ mode: "queue" });
  next.resolve();
  assert.equal((await clock.run(run.done, HOUR)).finishReason, "stop-condition");
  assert.equal(await adding, null);
});
