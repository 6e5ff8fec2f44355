/** The generated web: it repeats itself, its answers have their times, its judge sees what is impolite. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Exchange, FetchOutcome } from "../core/outcome.ts";
import { makeRequest } from "../rules/admit.ts";
import { createTestClock, type TestClock } from "./clock.ts";
import { createTestWeb, type TestWeb } from "./web.ts";
import { expectedOf, type PageKind, type WebGraph } from "./web-graph.ts";

const plain = { seed: 4, hosts: 3, pages: 30, oddShare: 0, deadShare: 0, robots: false } as const;

function exchangeOf(url: string): Exchange & { readonly times: number[] } {
  const times: number[] = [];
  const request = makeRequest(url, [1, 2, 3, 4], { hop: "link", depth: 0, referrer: null });
  return { request, cookies: null, maxBytes: null, times, onStart: () => void times.push(1), onEnd: () => void times.push(2) };
}

async function ask(web: TestWeb, clock: TestClock, url: string): Promise<FetchOutcome> {
  return clock.run(web.fetcher.fetch(exchangeOf(url)));
}

test("the same seed gives the same web, another seed another", () => {
  const urls = (seed: number) => [...createTestWeb({ seed }, createTestClock()).graph.pages];
  assert.deepEqual(urls(1), urls(1));
  assert.notDeepEqual(urls(1), urls(2));
});

test("a page answers with its links after its host's times; start and end are told", async () => {
  const clock = createTestClock();
  const web = createTestWeb(plain, clock);
  const exchange = exchangeOf(web.seeds[0]!);
  const outcome = await clock.run(web.fetcher.fetch(exchange));
  const host = web.graph.hosts.get(exchange.request.host)!;
  assert.equal(outcome.kind, "fetched");
  assert.deepEqual(exchange.times, [1, 2]);
  assert.equal(clock.now(), host.connectMs + host.latencyMs + host.bodyMs);
  assert.equal(outcome.sinceStartMs, host.latencyMs + host.bodyMs);
  const page = web.graph.pages.get(web.seeds[0]!);
  assert.ok(outcome.kind === "fetched" && page?.kind === "page");
  const hrefs = [...new TextDecoder().decode(outcome.response.body).matchAll(/href="([^"#]+)/g)].map((match) => new URL(match[1]!, web.seeds[0]).href);
  assert.deepEqual(hrefs, page.links);
});

test("an exchange can be aborted at any moment, once", async () => {
  const clock = createTestClock();
  const web = createTestWeb(plain, clock);
  const exchange = exchangeOf(web.seeds[0]!);
  const outcome = web.fetcher.fetch(exchange);
  await clock.advance(web.graph.hosts.get(exchange.request.host)!.connectMs);
  web.fetcher.abort(exchange);
  web.fetcher.abort(exchange);
  assert.equal((await outcome).kind, "aborted");
  assert.deepEqual(exchange.times, [1, 2]);
  assert.equal(clock.pending, 0);
});

test("dead hosts and passing trouble answer as failures", async () => {
  const clock = createTestClock();
  const web = createTestWeb({ seed: 11, pages: 200, oddShare: 1, retries: 2, deadShare: 0.9 }, clock);
  const kinds = new Set<string>();
  for (const [url, page] of web.graph.pages) {
    const outcome = await ask(web, clock, url);
    const dead = web.graph.hosts.get(outcome.kind === "failed" && outcome.code === "connect" ? url.split("/")[2]! : "")?.dead === true;
    kinds.add(dead ? "dead" : page.kind === "flaky" || page.kind === "broken" ? `${page.kind} ${outcome.kind}` : outcome.kind);
    if (!dead && page.kind === "flaky") {
      for (let i = 1; i < page.times; i++) await ask(web, clock, url);
      assert.equal((await ask(web, clock, url)).kind, "fetched");
    }
  }
  assert.deepEqual([...kinds].sort(), ["broken failed", "dead", "fetched", "flaky failed", "redirect"]);
});

test("the judge sees crowding, hurry and starts before Retry-After is over", async () => {
  const clock = createTestClock();
  const web = createTestWeb({ ...plain, hosts: 1 }, clock);
  const [first, second] = [...web.graph.pages.keys()];
  await Promise.all([ask(web, clock, first!), web.fetcher.fetch(exchangeOf(second!))]);
  await clock.advance(1_000);
  assert.deepEqual(web.complaints({ perHostConcurrency: 2, delayMs: 0 }), []);
  assert.equal(web.complaints({ perHostConcurrency: 1, delayMs: 0 }).length, 1);
  assert.equal(web.complaints({ perHostConcurrency: 2, delayMs: 50 }).length, 1);
  const entry = web.ledger[0]!;
  entry.retryAfterMs = 5_000;
  await ask(web, clock, first!);
  assert.equal(web.complaints({ perHostConcurrency: 2, delayMs: 0 }).length, 1);
  assert.equal(web.mostInFlight, 2);
});

test("the reference finds the shortest ways, through redirects without a step", () => {
  const host = {
    name: "a.test",
    dead: false,
    connectMs: 0,
    latencyMs: 1,
    bodyMs: 0,
    robots: { kind: "rules", text: "Disallow: /private/", crawlDelayMs: 0 },
  } as const;
  const page = (...links: string[]) => ({ kind: "page", links: links.map((link) => `http://a.test/${link}`) }) as const;
  const pages = new Map<string, PageKind>([
    ["0", page("1", "r", "private/x")],
    ["1", page("2")],
    ["2", page("3")],
    ["r", { kind: "redirect", status: 301, to: "http://a.test/3" } as const],
    ["3", page("4")],
    ["4", page()],
    ["private/x", page("5")],
    ["5", page()],
  ]);
  const graph: WebGraph = {
    hosts: new Map([["a.test", host]]),
    pages: new Map([...pages].map(([path, one]) => [`http://a.test/${path}`, one])),
    seeds: ["http://a.test/0"],
  };
  const found = (maxDepth: number | null, robots: boolean) =>
    [...expectedOf(graph, { maxDepth, robots })].map(([url, { depth, outcome }]) => `${url.slice(14)} ${depth} ${outcome}`).sort();
  assert.deepEqual(found(1, true), ["0 0 fetched", "1 1 fetched", "3 1 fetched", "private/x 1 disallowed", "r 1 redirected"]);
  assert.deepEqual(
    found(null, false).filter((line) => /^[45]/.test(line)),
    ["4 2 fetched", "5 2 fetched"],
  );
});
