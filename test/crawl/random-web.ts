/** One whole crawl of a random web in virtual time, judged against the web's own reference and ledger. Everything follows from the seed. */
import assert from "node:assert/strict";
import type { PageRecord } from "../../src/core/records.ts";
import { type CrawlInput, crawl } from "../../src/crawl.ts";
import { createTestClock, seededRandom } from "../../src/testing/clock.ts";
import { createTestWeb } from "../../src/testing/web.ts";

/** Two hours of clock time: far beyond what any of these webs needs. */
const LONGEST_MS = 2 * 3_600_000;

export interface WebVerdict {
  readonly pages: number;
  readonly clockMs: number;
}

/** Throws an AssertionError that names the seed when anything is wrong. */
export async function checkRandomWeb(seed: number): Promise<WebVerdict> {
  const chance = seededRandom(seed * 7919 + 1);
  const pick = <T>(...choices: readonly T[]): T => choices[Math.floor(chance() * choices.length)]!;
  const retries = pick(0, 1, 2);
  const robots = chance() < 0.6;
  const maxDepth = pick(null, null, 0, 1, 2, 3, 5);
  const limit = chance() < 0.3 ? 1 + Math.floor(chance() * 40) : null;
  const delay = pick<"auto" | number>("auto", "auto", 0, 100, 500);
  const perHost = pick(1, 2, 8);
  const concurrency = pick(1, 4, 64);
  const graph = { seed, hosts: pick(1, 3, 8), pages: pick(10, 60, 150), seeds: pick(1, 3), robots, retries, oddShare: pick(0, 0.3, 0.6) };
  const about = `seed ${seed}: ${JSON.stringify({ ...graph, maxDepth, limit, delay, perHost, concurrency })}`;

  const clock = createTestClock();
  const web = createTestWeb(graph, clock);
  const input: CrawlInput = {
    seeds: [...web.seeds],
    scope: { preset: "any" },
    maxDepth,
    robots,
    concurrency,
    retry: { max: retries },
    limits: { pages: limit },
    perHost: { concurrency: perHost, delay },
    order: pick("bfs", "dfs"),
  };
  const records: PageRecord[] = [];
  const run = crawl(input, {
    world: { clock, random: chance, openFetcher: async () => web.fetcher },
    onEvent: (event) => {
      if (event.kind === "settled" && event.output.page !== null) records.push(event.output.page);
    },
  });
  const summary = await clock.run(run.done, LONGEST_MS);

  const byUrl = new Map(records.map((page) => [page.url, page]));
  assert.equal(byUrl.size, records.length, `${about}: a URL has two records`);
  assert.ok(web.mostInFlight <= concurrency, `${about}: ${web.mostInFlight} in flight`);
  assert.deepEqual(web.complaints({ perHostConcurrency: perHost, delayMs: delay === "auto" ? 0 : delay, robots }), [], about);
  const expected = web.expected({ maxDepth, robots });
  const reachable = [...expected.values()].filter(({ outcome }) => outcome === "fetched").length;
  const fetched = records.filter((page) => page.outcome === "fetched").length;
  assert.equal(summary.pages, fetched, about);
  if (limit !== null && limit <= reachable) {
    // What a limit leaves out is chance; that it is exact is not.
    assert.equal(fetched, limit, about);
    for (const page of records) assert.ok(expected.has(page.url), `${about}: ${page.url} was not to be fetched`);
    return { pages: records.length, clockMs: clock.now() };
  }
  assert.equal(summary.finishReason, "finished", about);
  assert.deepEqual(records.map(({ url, outcome }) => `${url} ${outcome}`).sort(), [...expected].map(([url, { outcome }]) => `${url} ${outcome}`).sort(), about);
  // Without a depth limit a page has the smallest depth known when it was fetched, which no reference can tell.
  if (maxDepth === null) return { pages: records.length, clockMs: clock.now() };
  for (const page of records) {
    const { depth, byRedirect } = expected.get(page.url)!;
    assert.ok(page.depth === depth || (byRedirect && page.depth === depth + 1), `${about}: ${page.url} has depth ${page.depth}, not ${depth}`);
  }
  return { pages: records.length, clockMs: clock.now() };
}
