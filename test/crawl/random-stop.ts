/** One crawl of a random web that is paused, stopped or held to a rate on the way, judged from the ledger. Everything follows from the seed. */
import assert from "node:assert/strict";
import type { StopMode } from "../../src/core/events.ts";
import type { PageRecord } from "../../src/core/records.ts";
import { crawl } from "../../src/crawl.ts";
import { createTestClock, seededRandom } from "../../src/testing/clock.ts";
import { createTestWeb } from "../../src/testing/web.ts";

const LONGEST_MS = 5 * 3_600_000;
const PAUSE_MS = 5_000;
/** A request that was connecting when the word came may still start; the generated hosts connect in at most this. */
const CONNECT_MS = 22;

export async function checkRandomStop(seed: number): Promise<void> {
  const random = seededRandom(seed * 104_729);
  const below = (n: number) => Math.floor(random() * n);
  const clock = createTestClock();
  const web = createTestWeb({ seed, hosts: 1 + below(8), pages: 10 + below(120), seeds: 1 + below(3), links: 1 + below(6) }, clock);
  const stop = random() < 0.6 ? (["queue", "flight", "now"] as const)[below(3)]! : null;
  const plan = {
    maxDepth: random() < 0.3 ? null : below(7),
    delay: ([200, 0, "auto"] as const)[below(3)]!,
    perHost: 1 + below(6),
    limit: random() < 0.3 ? 1 + below(40) : null,
    rate: random() < 0.2 ? 600 : null,
    stop: stop as StopMode | null,
    stopAt: random() * 3_000,
    pauseAt: random() < 0.4 ? random() * 2_000 : null,
  };
  const about = `seed ${seed}: ${JSON.stringify(plan)}`;
  const pages: PageRecord[] = [];
  const run = crawl(
    {
      seeds: [...web.seeds],
      maxDepth: plan.maxDepth,
      scope: { preset: "any" },
      concurrency: 1 + below(30),
      perHost: { concurrency: plan.perHost, delay: plan.delay },
      order: random() < 0.5 ? "bfs" : "dfs",
      limits: { pages: plan.limit },
      maxRequestsPerMinute: plan.rate,
    },
    {
      world: { clock, random, openFetcher: async () => web.fetcher },
      onEvent: (event) => event.kind === "settled" && event.output.page !== null && pages.push(event.output.page),
    },
  );
  const done = run.done;
  const calls: Promise<void>[] = [];
  let stoppedAt: number | null = null;
  let pausedAt: number | null = null;
  if (stop !== null) {
    clock.after(plan.stopAt, () => {
      stoppedAt = clock.now();
      calls.push(run.stop({ mode: stop }));
    });
  }
  if (plan.pauseAt !== null) {
    clock.after(plan.pauseAt, () => {
      pausedAt = clock.now();
      calls.push(run.pause());
      clock.after(PAUSE_MS, () => calls.push(run.resume()));
    });
  }
  await clock.run(done, LONGEST_MS);
  await Promise.all(calls);

  const expected = web.expected({ maxDepth: plan.maxDepth, robots: true });
  assert.equal(new Set(pages.map(({ url }) => url)).size, pages.length, `${about}: a URL has two records`);
  for (const { url, outcome } of pages) assert.equal(outcome, expected.get(url)?.outcome, `${about}: ${url}`);
  const starts = web.ledger.map(({ startedAt }) => startedAt).sort((a, b) => a - b);
  const { stoppedFrom, pausedFrom } = { stoppedFrom: stoppedAt as number | null, pausedFrom: pausedAt as number | null }; // set in callbacks, which the compiler does not follow
  if (stoppedFrom !== null && stop !== "queue") {
    const late = starts.filter((at) => at > stoppedFrom + CONNECT_MS);
    assert.deepEqual(late, [], `${about}: requests after the stop`);
  }
  if (pausedFrom !== null) {
    // A stop lifts the pause.
    const until = Math.min(pausedFrom + PAUSE_MS, stoppedFrom ?? Infinity);
    const early = starts.filter((at) => at > pausedFrom + CONNECT_MS && at < until);
    assert.deepEqual(early, [], `${about}: requests during the pause`);
  }
  if (stop === null && plan.limit === null) assert.equal(pages.length, expected.size, `${about}: pages are missing`);
  if (plan.limit !== null) assert.ok(pages.filter(({ outcome }) => outcome === "fetched").length <= plan.limit, about);
  assert.deepEqual(web.complaints({ perHostConcurrency: plan.perHost, delayMs: plan.delay === "auto" ? 0 : plan.delay }), [], about);
}
