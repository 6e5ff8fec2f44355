/** Scrapers in whole crawls of a fake site: what becomes of errors, bad items, priorities, redirects, and of everything asked for, over restarts. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import * as z from "zod";
import type { Summary } from "../../src/core/events.ts";
import type { PageRecord } from "../../src/core/records.ts";
import { type CrawlInput, crawl, INTERRUPTED } from "../../src/crawl.ts";
import { defineScraper, type Scraper } from "../../src/parse/scrape/define.ts";
import { createTestClock, seededRandom } from "../../src/testing/clock.ts";
import { createShop, SHOP_ORIGIN } from "../../src/testing/shop.ts";
import { type FakeSite, fakeSite } from "../../src/testing/site.ts";

const root = mkdtempSync(join(tmpdir(), "skein-handlers-"));
after(() => rmSync(root, { recursive: true, force: true }));

interface Scraped {
  readonly summary: Summary;
  readonly items: readonly Readonly<Record<string, unknown>>[];
  readonly pages: ReadonlyMap<string, PageRecord>;
  readonly skipped: readonly string[];
}

async function scrape(site: FakeSite, scraper: Scraper, spec: Partial<CrawlInput> = {}, cutAt: ((items: number) => boolean) | null = null): Promise<Scraped> {
  const items: Readonly<Record<string, unknown>>[] = [];
  const pages = new Map<string, PageRecord>();
  const skipped: string[] = [];
  const path = (url: string) => url.replace(site.url, "/");
  const run = crawl(
    { seeds: [site.url], robots: false, meta: false, retry: { max: 1 }, ...spec },
    {
      scraper,
      hooks: {
        onItem(item) {
          items.push(item);
          if (cutAt?.(items.length)) void run.stop({ mode: "now", reason: INTERRUPTED });
        },
        onSkip: ({ url, reason, rule }) => skipped.push(`${path(url)} ${reason}: ${rule ?? ""}`),
      },
      onEvent: (event) => event.kind === "settled" && event.output.page !== null && pages.set(path(event.output.page.url), event.output.page),
    },
  );
  return { summary: await run.done, items, pages, skipped };
}

test("a handler that throws is tried again, and nothing that it said before it threw counts", async () => {
  await using site = await fakeSite({ "/": "<a href=/a>a</a>", "/a": "a", "/lost": "never", "/b": "b" });
  let tries = 0;
  const scraper = defineScraper({
    handlers: {
      home({ follow }) {
        follow("/a", { handler: "a" });
      },
      a({ item, follow, state, request }) {
        tries++;
        item({ tries, before: state.get("tries") ?? null });
        state.set("tries", tries);
        if (request.attempt === 0) {
          follow("/lost", { handler: "leaf" });
          throw new Error("not yet");
        }
        follow("/b", { handler: "leaf" });
      },
      leaf({ item, url }) {
        item({ leaf: url.at(-1) });
      },
    },
  });
  const { items, pages, summary } = await scrape(site, scraper);
  assert.deepEqual(items, [{ tries: 2, before: null }, { leaf: "b" }]);
  assert.equal(pages.get("/a")?.attempts, 2);
  assert.equal(pages.has("/lost"), false);
  assert.equal(summary.retries, 1);
});

test("a handler that always throws leaves a record failed with code scraper; other pages go on", async () => {
  await using site = await fakeSite({ "/": "", "/bad": "<a href=/x>x</a>", "/good": "g" });
  const scraper = defineScraper({
    handlers: {
      home({ follow, followAll }) {
        follow("/bad", { handler: "bad" });
        followAll(["/good"], { handler: "good" });
      },
      bad({ item, follow, state }) {
        item({ bad: true });
        follow("/x", { handler: "good" });
        state.set("bad", true);
        throw new TypeError("cannot read the price");
      },
      good({ item, state }) {
        item({ good: true, bad: state.get("bad") ?? null });
      },
    },
  });
  const { items, pages, summary } = await scrape(site, scraper);
  assert.deepEqual(items, [{ good: true, bad: null }]);
  const bad = pages.get("/bad");
  assert.equal(bad?.outcome, "failed");
  assert.equal(bad?.error?.code, "scraper");
  assert.match(bad?.error?.message ?? "", /cannot read the price/);
  assert.equal(bad?.attempts, 2);
  assert.equal(bad?.status, 200);
  assert.deepEqual([summary.failed, summary.byError, summary.pages, pages.has("/x")], [1, { scraper: 1 }, 2, false]);
});

test("a bad item is an error of its page that names the field; the good ones of that page are out", async () => {
  await using site = await fakeSite({ "/": "" });
  const scraper = defineScraper({
    items: { book: { schema: z.object({ title: z.string(), price: z.number() }), key: "title" } },
    handlers: {
      home({ item }) {
        item({ title: "A", price: 1 });
        item({ title: "B", price: "dear" });
        item({ title: "C", price: 3 });
      },
    },
  });
  const { items, pages, summary } = await scrape(site, scraper);
  assert.deepEqual(
    items.map(({ title }) => title),
    ["A", "C"],
  );
  assert.equal(summary.badItems, 1);
  const [error] = pages.get("/")?.itemErrors ?? [];
  assert.equal(error?.field, "price");
  assert.equal(pages.get("/")?.outcome, "fetched");
});

test("pages that the end of their series drops are listed as stopped, with the rule", async () => {
  await using site = await fakeSite({ "/": "", "/p/1": "", "/p/2": "", "/p/3": "", "/p/4": "" });
  const scraper = defineScraper<{ home: object; list: { index: number } }>({
    handlers: {
      home({ follow }) {
        for (let index = 1; index <= 4; index++) follow(`/p/${index}`, { handler: "list", series: "pages", index, data: { index } });
      },
      list({ data, stopSeries, item }) {
        item({ index: data.index });
        if (data.index === 2) stopSeries();
      },
    },
  });
  const { items, skipped, summary } = await scrape(site, scraper, { concurrency: 1 });
  assert.deepEqual(items, [{ index: 1 }, { index: 2 }]);
  assert.deepEqual(
    skipped,
    [3, 4].map((i) => `/p/${i} stopped: the series pages ended with page 2`),
  );
  assert.deepEqual(summary.bySkipReason, { stopped: 2 });
  assert.equal(summary.finishReason, "finished");
});

test("larger priorities are fetched first, ties in the order in which they were followed", async () => {
  const order = ["c", "a", "e", "b", "d"];
  await using site = await fakeSite({ "/": "", ...Object.fromEntries(order.map((name) => [`/${name}`, name])) });
  const scraper = defineScraper({
    handlers: {
      default({ follow }) {
        for (const [name, priority] of [
          ["e", -99],
          ["b", 5],
          ["a", 99],
          ["c", 5],
          ["d", 0],
        ] as const)
          follow(`/${name}`, { handler: "leaf", priority });
      },
      leaf() {},
    },
  });
  await scrape(site, scraper, { concurrency: 1 });
  assert.deepEqual(
    site.requests.map(({ path }) => path),
    ["/", "/a", "/b", "/c", "/d", "/e"],
  );
});

test("handler, data, priority, method, body, headers and dontDedupe outlive the process", async () => {
  await using site = await fakeSite({ "/": "", "/search": ({ method, body }) => `${method} ${body}`, "/again": "again" });
  const scraper = defineScraper<{ home: object; result: { q: string }; again: { n: number } }>({
    handlers: {
      home({ follow, item }) {
        item({ home: true });
        for (const q of ["x", "y", "z"])
          follow("/search", { handler: "result", body: { q }, headers: { "x-q": q }, data: { q, deep: { list: [1, "two", null] } } });
        for (const n of [1, 2]) follow("/again", { handler: "again", dontDedupe: true, data: { n }, priority: -3 });
        follow("/again", { handler: "again", data: { n: 3 }, priority: -3 });
        follow("/again", { handler: "again", data: { n: 4 }, priority: -3 });
      },
      result({ data, html, item, request }) {
        item({ data, html, method: request.method, handler: request.handler });
      },
      again({ data, item, request }) {
        item({ again: data.n, priority: request.priority });
      },
    },
  });
  const stateDir = join(root, "outlive");
  const parts: Readonly<Record<string, unknown>>[] = [];
  // Cut at every item in turn, so that each request has lain in the state at least once.
  for (let part = 0; ; part++) {
    const { items, summary } = await scrape(site, scraper, { stateDir, concurrency: 1 }, part < 5 ? () => true : null);
    parts.push(...items);
    if (summary.finishReason === "finished") break;
    assert.equal(summary.finishReason, "interrupted");
  }
  const results = parts.filter(({ html }) => html !== undefined);
  assert.deepEqual(
    results.map(({ data, html, method, handler }) => ({ data, html, method, handler })),
    ["x", "y", "z"].map((q) => ({ data: { q, deep: { list: [1, "two", null] } }, html: `POST {"q":"${q}"}`, method: "POST", handler: "result" })),
  );
  assert.deepEqual(
    parts.flatMap(({ again }) => (again === undefined ? [] : [again])),
    [1, 2, 3],
  );
  assert.ok(parts.every(({ again, priority }) => again === undefined || priority === -3));
  for (const request of site.requests.filter(({ path }) => path === "/search")) {
    assert.equal(request.headers["x-q"], JSON.parse(request.body).q);
    assert.equal(request.headers["content-type"], "application/json");
  }
});

test("a redirect takes handler, data and place in the series along", async () => {
  await using site = await fakeSite({
    "/": "",
    "/old": { status: 301, headers: { location: "/older" } },
    "/older": { status: 302, headers: { location: "/new" } },
    "/new": "here",
  });
  const scraper = defineScraper<{ home: object; detail: { id: number } }>({
    handlers: {
      home({ follow }) {
        follow("/old", { handler: "detail", data: { id: 7 }, series: "s", index: 4, priority: 9 });
      },
      detail({ data, url, request, item }) {
        item({ id: data.id, path: new URL(url).pathname, series: request.series, index: request.index, priority: request.priority });
      },
    },
  });
  const { items, pages } = await scrape(site, scraper);
  assert.deepEqual(items, [{ id: 7, path: "/new", series: "s", index: 4, priority: 9 }]);
  assert.equal(pages.get("/old")?.outcome, "redirected");
});

test("a count kept in the state is exact, whenever the run is interrupted", async () => {
  for (let seed = 1; seed <= 6; seed++) {
    const random = seededRandom(seed);
    const clock = createTestClock();
    const shop = createShop({ seed, products: 120, perPage: 6, pages: "small", flaky: 0.1 });
    const stateDir = mkdtempSync(join(root, "count-"));
    const scraper = defineScraper<{ list: object }>({
      handlers: {
        list({ $, follow, state }) {
          const count = Number(state.get("count") ?? 0) + 1;
          state.set("count", count);
          if (random() < 0.15) throw new Error("by chance");
          follow($("a.next").attr("href"), { handler: "list" });
        },
      },
    });
    const read = defineScraper({ handlers: { list: ({ state, item }) => item({ count: state.get("count") }) } });
    const run = async (by: Scraper, interruptAfter: number | null, pages: number | null): Promise<{ summary: Summary; count: unknown }> => {
      let count: unknown = null;
      const crawling = crawl(
        { seeds: [`${SHOP_ORIGIN}/list/0`], stateDir, robots: false, traps: { all: null }, retry: { max: 20 }, limits: { pages } },
        {
          scraper: by,
          hooks: { onItem: (item) => void (count = item["count"]) },
          world: { clock, random, openFetcher: async () => shop.asFetcher(clock, { latency: [10, 80] }) },
        },
      );
      const { done } = crawling;
      const timer = interruptAfter === null ? null : clock.after(interruptAfter, () => void crawling.stop({ mode: "now", reason: INTERRUPTED }));
      const summary = await clock.run(done, 24 * 3_600_000);
      timer?.cancel();
      return { summary, count };
    };
    for (let part = 0; ; part++) {
      const { summary } = await run(scraper, part < 6 ? random() * 900 : null, null);
      if (summary.finishReason === "finished") break;
    }
    assert.equal((await run(read, null, null)).count, 20, `seed ${seed}`);
  }
});
