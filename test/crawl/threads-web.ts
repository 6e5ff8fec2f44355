/** One crawl in several threads of a random web over sockets, judged as random-web.ts judges those in virtual time. Everything but the timing follows from the seed. */
import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import type { PageRecord } from "../../src/core/records.ts";
import { type CrawlInput, crawl } from "../../src/crawl.ts";
import { seededRandom } from "../../src/testing/clock.ts";
import { serveWeb } from "./web-by-proxy.ts";

/** `state`: a folder that is not there yet; null: in memory. */
export async function checkThreadedWeb(seed: number, threads: number, state: string | null): Promise<{ readonly pages: number }> {
  const chance = seededRandom(seed * 7919 + 1);
  const pick = <T>(...choices: readonly T[]): T => choices[Math.floor(chance() * choices.length)]!;
  const retries = pick(0, 1);
  const robots = chance() < 0.6;
  const maxDepth = pick(null, 0, 1, 2, 3, 5);
  const limit = chance() < 0.3 ? 1 + Math.floor(chance() * 40) : null;
  const perHost = pick(1, 2, 8);
  const concurrency = pick(1, 4, 64);
  const graph = { seed, hosts: pick(1, 3, 8), pages: pick(10, 60, 150), seeds: pick(1, 3), robots, retries, oddShare: pick(0, 0.3, 0.6) };
  const about = `seed ${seed}: ${JSON.stringify({ ...graph, maxDepth, limit, perHost, concurrency, threads })}`;
  await using server = await serveWeb(graph);
  const { web } = server;
  const input: CrawlInput = {
    seeds: [...web.seeds],
    proxy: [server.proxy],
    threads,
    scope: { preset: "any" },
    maxDepth,
    robots,
    concurrency,
    retry: { max: retries },
    limits: { pages: limit },
    perHost: { concurrency: perHost, delay: 0 },
    order: pick("bfs", "dfs"),
    stateDir: state,
  };
  const records: PageRecord[] = [];
  const run = crawl(input, {
    onEvent: (event) => {
      if (event.kind === "settled" && event.output.page !== null) records.push(event.output.page);
    },
  });
  const summary = await run.done;
  if (state !== null) rmSync(state, { recursive: true, force: true });

  assert.equal(new Set(records.map(({ url }) => url)).size, records.length, `${about}: a URL has two records`);
  assert.ok(web.mostInFlight <= concurrency, `${about}: ${web.mostInFlight} in flight`);
  // Over sockets an answer takes its time to arrive, in which requests start that cannot know of it; polite.test.ts has the rest after a Retry-After.
  const complaints = web.complaints({ perHostConcurrency: perHost, delayMs: 0, robots }).filter((complaint) => !complaint.includes("Retry-After"));
  assert.deepEqual(complaints, [], about);
  const expected = web.expected({ maxDepth, robots });
  const reachable = [...expected.values()].filter(({ outcome }) => outcome === "fetched").length;
  const fetched = records.filter((page) => page.outcome === "fetched").length;
  assert.equal(summary.pages, fetched, about);
  if (limit !== null && limit <= reachable) {
    assert.equal(fetched, limit, about);
    for (const page of records) assert.ok(expected.has(page.url), `${about}: ${page.url} was not to be fetched`);
    return { pages: records.length };
  }
  assert.equal(summary.finishReason, "finished", about);
  assert.deepEqual(records.map(({ url, outcome }) => `${url} ${outcome}`).sort(), [...expected].map(([url, { outcome }]) => `${url} ${outcome}`).sort(), about);
  if (maxDepth === null) return { pages: records.length };
  for (const page of records) {
    const { depth, byRedirect } = expected.get(page.url)!;
    assert.ok(page.depth === depth || (byRedirect && page.depth === depth + 1), `${about}: ${page.url} has depth ${page.depth}, not ${depth}`);
  }
  return { pages: records.length };
}
