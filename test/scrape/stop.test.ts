/** The ways a scraper ends a run, and what becomes of its watermarks, in virtual time: stop, stop rules, limits. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import type { StopMode, Summary } from "../../src/core/events.ts";
import { type CrawlInput, crawl, INTERRUPTED } from "../../src/crawl.ts";
import { defineScraper, type Scraper } from "../../src/parse/scrape/define.ts";
import { createTestClock, seededRandom } from "../../src/testing/clock.ts";
import { createShop, SHOP_ORIGIN, type Shop, type ShopVisit } from "../../src/testing/shop.ts";
import { listingScraper } from "./listing.ts";

const root = mkdtempSync(join(tmpdir(), "skein-stop-"));
after(() => rmSync(root, { recursive: true, force: true }));

const plan = { style: "chain", perPage: 6, overlap: 0, olderInARow: 1, by: "html" } as const;
const between = (from: number, to: number): number[] => Array.from({ length: to - from + 1 }, (_, i) => from + i);
const sorted = (ids: Iterable<number>): number[] => [...ids].sort((a, b) => a - b);

interface Ended {
  readonly summary: Summary;
  readonly items: readonly Readonly<Record<string, unknown>>[];
  /** Of the items. */
  readonly ids: readonly number[];
  readonly pages: readonly string[];
  readonly visits: readonly ShopVisit[];
  /** Virtual ms at which the stop was told. */
  readonly stoppedAt: number | null;
  readonly warnings: readonly string[];
}

/** Runs over one shop and, unless there is none, one state. */
function bench(shop: Shop, state = true) {
  const clock = createTestClock();
  const random = seededRandom(4_711);
  const dir = !state ? null : mkdtempSync(join(root, "state-"));
  return async (scraper: Scraper | null, spec: Partial<CrawlInput> = {}, interruptAfter: number | null = null): Promise<Ended> => {
    const items: Readonly<Record<string, unknown>>[] = [];
    const pages: string[] = [];
    const warnings: string[] = [];
    let stoppedAt: number | null = null;
    const from = shop.visits.length;
    const run = crawl(
      {
        ...{ seeds: [`${SHOP_ORIGIN}/list/0`], robots: false, concurrency: 16, traps: { all: null } },
        ...{ perHost: { concurrency: 16, delay: 0 }, stateDir: dir, ...spec },
      },
      {
        ...(scraper === null ? {} : { scraper }),
        world: { clock, random, openFetcher: async () => shop.asFetcher(clock, { latency: [20, 900] }) },
        hooks: { onItem: (item) => items.push(item) },
        log: (level, message, fields) => level === "warn" && warnings.push(`${message} ${JSON.stringify(fields)}`),
        onEvent(event) {
          if (event.kind === "stopping") stoppedAt ??= clock.now();
          if (event.kind === "settled" && event.output.page?.outcome === "fetched") pages.push(event.output.page.url.slice(SHOP_ORIGIN.length));
        },
      },
    );
    const stops: Promise<void>[] = [];
    const timer = interruptAfter === null ? null : clock.after(interruptAfter, () => stops.push(run.stop({ mode: "now", reason: INTERRUPTED })));
    const summary = await clock.run(run.done, 3_600_000);
    timer?.cancel();
    await Promise.all(stops);
    const ids = items.flatMap(({ id }) => (id === undefined ? [] : [Number(id)]));
    return { summary, items, ids, pages, visits: shop.visits.slice(from), stoppedAt, warnings };
  };
}

const smallShop = (seed: number, products = 120) => createShop({ seed, products, perPage: 6, pages: "small" });

/** Follows everything and stops at a product. */
function stopping(mode: StopMode, at: number): Scraper {
  return defineScraper({
    handlers: {
      list({ $, follow, followAll }) {
        followAll("tr.item a", { handler: "detail", priority: 5 });
        follow($("a.next").attr("href"), { handler: "list" });
      },
      detail({ url, item, stop, follow }) {
        const id = Number(url.split("/").at(-1));
        item({ id });
        follow(`/item/${id}?more`, { handler: "detail" });
        if (id === at) stop({ mode, reason: `product ${at} is enough` });
      },
    },
  });
}

for (const mode of ["flight", "now", "queue"] as const) {
  test(`stop({ mode: "${mode}" }) of a handler: nothing is begun later, what was fetched is out, the summary says why`, async () => {
    for (let seed = 1; seed <= 8; seed++) {
      const shop = smallShop(seed);
      const { summary, ids, pages, visits, stoppedAt } = await bench(shop, false)(stopping(mode, 100));
      assert.equal(summary.finishReason, "stop-condition");
      assert.equal(summary.detail, "product 100 is enough");
      assert.ok(stoppedAt !== null);
      const late = visits.filter(({ startedAt }) => startedAt > stoppedAt);
      if (mode !== "queue") assert.deepEqual(late, [], `seed ${seed}`);
      const details = pages.filter((url) => /^\/item\/\d+$/.test(url)).map((url) => Number(url.slice(6)));
      assert.deepEqual(sorted(ids), sorted(details), `seed ${seed}`);
      assert.ok(ids.includes(100));
      if (mode === "queue") assert.ok(summary.queued === 0 && late.every(({ target }) => visits.some((other) => other.target === target)));
      if (mode === "flight") assert.equal(pages.length, visits.length, `seed ${seed}: what was in flight is finished`);
    }
  });
}

test("a stop told by a handler survives the end of the process: resuming asks for nothing more", async () => {
  const shop = smallShop(2);
  const run = bench(shop);
  const first = await run(stopping("flight", 100));
  assert.equal(first.summary.finishReason, "stop-condition");
  const again = await run(stopping("flight", 100));
  // A stop is an end: the same command starts a new run, which stops in its turn.
  assert.equal(again.summary.finishReason, "stop-condition");
});

/** Items from the rows alone; `onOld` says what is done at the first old one. */
function rowScraper(onOld: "stop" | "stopSeries", early: { readonly page: number; readonly mode: StopMode } | null = null): Scraper {
  return defineScraper<{ list: { index?: number } }>({
    handlers: {
      list({ $, item, follow, watermark, stop, stopSeries, data }) {
        const index = data.index ?? 0;
        const mark = watermark("date");
        follow($("a.next").attr("href"), { handler: "list", series: "list", index: index + 1, data: { index: index + 1 } });
        for (const row of $("tr.item")) {
          if (mark.old($(row).attr("data-date") ?? "")) return onOld === "stop" ? stop({ reason: "the rest is old" }) : stopSeries();
          item({ id: Number($(row).find("a").attr("href")?.slice(6)) });
        }
        if (early?.page === index) stop({ mode: early.mode, reason: "enough" });
      },
    },
  });
}

test("a scraper that stops at the first old row moves the mark: the next run gives what came since", async () => {
  const shop = smallShop(3, 60);
  const run = bench(shop);
  assert.equal((await run(rowScraper("stop"))).ids.length, 60);
  shop.add(14);
  const second = await run(rowScraper("stop"));
  assert.equal(second.summary.detail, "the rest is old");
  assert.deepEqual(sorted(second.ids), between(61, 74));
  shop.add(3);
  assert.deepEqual(sorted((await run(rowScraper("stop"))).ids), between(75, 77));
});

test("a run that its scraper ended with now does not move the mark", async () => {
  const shop = smallShop(4, 60);
  const run = bench(shop);
  await run(rowScraper("stopSeries"));
  shop.add(20);
  const cut = await run(rowScraper("stopSeries", { page: 1, mode: "now" }));
  assert.equal(cut.summary.finishReason, "stop-condition");
  assert.ok(cut.ids.length <= 12);
  const next = await run(rowScraper("stopSeries"));
  assert.deepEqual(sorted(next.ids), between(61, 80));
});

test("a stop while a page before it waits for its retry holds the mark", async () => {
  const shop = smallShop(12, 90);
  const run = bench(shop);
  const scraper = (last: number): Scraper =>
    defineScraper<{ list: { index?: number } }>({
      handlers: {
        list({ $, item, follow, watermark, stop, data }) {
          const index = data.index ?? 0;
          const mark = watermark("date");
          if (index === 0) for (let i = 1; i < 15; i++) follow(`/list?offset=${i * 6}`, { series: "list", index: i, data: { index: i } });
          for (const row of $("tr.item")) {
            if (!mark.old($(row).attr("data-date") ?? "")) item({ id: Number($(row).find("a").attr("href")?.slice(6)) });
          }
          if (index === last) stop({ reason: "enough" });
        },
      },
    });
  await run(scraper(-1));
  shop.add(30);
  shop.fail("/list?offset=12", null, 2);
  const cut = await run(scraper(3), { concurrency: 1 });
  assert.equal(cut.summary.finishReason, "stop-condition");
  assert.ok(!cut.ids.includes(120 - 12));
  const next = await run(scraper(-1));
  for (const id of between(91, 120)) assert.ok(next.ids.includes(id), `product ${id} of ${next.ids}`);
});

test("an interrupted run, and one that ended at --limit or --max-items, does not move the mark", async () => {
  for (const limits of [{ pages: 2 }, { items: 12 }, null]) {
    const shop = smallShop(5, 60);
    const run = bench(shop);
    await run(rowScraper("stopSeries"));
    shop.add(20);
    const cut = await run(rowScraper("stopSeries"), limits === null ? {} : { limits }, limits === null ? 700 : null);
    assert.notEqual(cut.summary.finishReason, "finished");
    // The run goes on; together they give everything, and the mark is that of the whole run.
    const rest = await run(rowScraper("stopSeries"));
    const both = [...cut.ids, ...rest.ids];
    assert.equal(new Set(both).size, both.length, `${JSON.stringify(limits)}: ${cut.ids} and ${rest.ids}`);
    for (const id of between(61, 80)) assert.ok(both.includes(id), `${JSON.stringify(limits)}: product ${id} of ${both}`);
    shop.add(2);
    assert.deepEqual(sorted((await run(rowScraper("stopSeries"))).ids), [81, 82]);
  }
});

test("under a larger --max-items a run that was cut within a page goes on with the rest of that page", async () => {
  const shop = smallShop(13, 60);
  const run = bench(shop);
  const cut = await run(rowScraper("stopSeries"), { limits: { items: 7 } });
  assert.equal(cut.ids.length, 7);
  const rest = await run(rowScraper("stopSeries"));
  assert.deepEqual(sorted([...cut.ids, ...rest.ids]), between(1, 60));
});

test("a page of the listing that failed before the stop holds the mark, and the run says so; one behind it does not", async () => {
  const shop = smallShop(6, 90);
  const run = bench(shop);
  const all = listingScraper({ ...plan, style: "all" });
  await run(all);
  shop.add(20);
  shop.fail("/list?offset=12", 503);
  const held = await run(all, { retry: { max: 1 } });
  assert.ok(
    held.warnings.some((line) => /watermarks stay.*series list failed/.test(line)),
    held.warnings.join("\n"),
  );
  shop.fail("/list?offset=12", 200, 0);
  const next = await run(all);
  for (const id of between(91, 110)) assert.ok(next.ids.includes(id), `product ${id}`);
  shop.add(10);
  shop.fail("/list?offset=66", 503);
  const fine = await run(all, { retry: { max: 0 } });
  assert.deepEqual(
    fine.warnings.filter((line) => /watermarks stay/.test(line)),
    [],
  );
  shop.fail("/list?offset=66", 200, 0);
  assert.deepEqual((await run(all)).ids, []);
});

test("a page of the listing that was refused holds the mark; one that is not there does not", async () => {
  const shop = smallShop(14, 90);
  const run = bench(shop);
  const all = listingScraper(plan);
  await run(all);
  shop.add(20);
  shop.fail("/list/2", 403);
  const held = await run(all);
  assert.ok(
    held.warnings.some((line) => /watermarks stay/.test(line)),
    held.warnings.join("\n"),
  );
  shop.fail("/list/2", 200, 0);
  assert.deepEqual(sorted((await run(all)).ids), between(91, 110));
  shop.add(12);
  shop.fail("/list/2", 404);
  assert.deepEqual((await run(all)).warnings, []);
  assert.deepEqual((await run(all)).ids, []);
});

test("a first page that failed holds the mark", async () => {
  const shop = smallShop(7, 30);
  const run = bench(shop);
  const all = listingScraper(plan);
  await run(all);
  shop.add(5);
  shop.fail("/list/0", 500);
  await run(all, { retry: { max: 0 } });
  shop.fail("/list/0", 200, 0);
  assert.deepEqual(sorted((await run(all)).ids), between(31, 35));
});

for (const limit of [1, 7, 399]) {
  test(`--max-items ${limit} is exact, over interruptions and resumes`, async () => {
    for (let seed = 1; seed <= 3; seed++) {
      const shop = createShop({ seed, products: 90, perPage: 6, pages: "small", offers: 900 });
      const scraper = defineScraper({
        handlers: {
          list({ $, follow, followAll }) {
            followAll("tr.item a", { handler: "detail", priority: 5 });
            follow($("a.next").attr("href"), { handler: "list" });
          },
          detail({ $, item }) {
            for (const offer of $("li.offer")) item({ id: $(offer).attr("data-sku")?.slice(1) });
          },
        },
      });
      const run = bench(shop);
      const ids: number[] = [];
      let last: Summary | null = null;
      for (let part = 0; part < 6; part++) {
        const ended = await run(scraper, { limits: { items: limit } }, part < 4 ? 300 + 400 * part : null);
        ids.push(...ended.ids);
        last = ended.summary;
        if (last.finishReason !== "interrupted") break;
      }
      assert.equal(last?.finishReason, "limit-items", `seed ${seed}`);
      assert.equal(ids.length, limit, `seed ${seed}`);
      assert.equal(new Set(ids).size, limit, `seed ${seed}`);
      assert.equal(last?.items, limit);
    }
  });
}

const FIELDS = { "rows[]": "tr.item a@href", date: "tr.item@data-date" };

test("--stop-when 'date<=last' with -e fields ends the second run at the first page that is old, the third gives what is new", async () => {
  const shop = smallShop(8, 48);
  const run = bench(shop);
  const spec = { extract: FIELDS, stopWhen: ["date<=last"], follow: ["re:/list/"], concurrency: 1 };
  const first = await run(null, spec);
  assert.equal(first.summary.finishReason, "finished");
  assert.equal(first.items.length, 8);
  shop.add(13);
  const second = await run(null, spec);
  assert.equal(second.summary.finishReason, "stop-condition");
  assert.match(second.summary.detail ?? "", /date<=last/);
  assert.ok(second.visits.length <= 4, `${second.visits.length} requests`);
  const third = await run(null, spec);
  assert.equal(third.visits.length, 1);
});

test("with -e fields a page that failed holds the mark of --stop-when last", async () => {
  const shop = smallShop(9, 48);
  const run = bench(shop);
  const spec = {
    extract: { date: "tr.item@data-date" },
    stopWhen: ["date<=last"],
    follow: ["re:/list/"],
    seeds: between(0, 7).map((i) => `${SHOP_ORIGIN}/list/${i}`),
    concurrency: 1,
  };
  await run(null, spec);
  shop.add(12);
  shop.fail("/list/0", 500);
  const held = await run(null, { ...spec, retry: { max: 0 } });
  assert.equal(held.summary.failed, 1);
  assert.ok(
    held.warnings.some((line) => /watermarks stay/.test(line)),
    held.warnings.join("\n"),
  );
});
