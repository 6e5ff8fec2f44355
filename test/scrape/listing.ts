/** Several runs over a shop whose listing shifts, in virtual time, judged by what the shop saw. Everything follows from the seed. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Summary } from "../../src/core/events.ts";
import { crawl, INTERRUPTED } from "../../src/crawl.ts";
import { defineScraper } from "../../src/parse/scrape/define.ts";
import { createTestClock, seededRandom } from "../../src/testing/clock.ts";
import { createShop, SHOP_ORIGIN, type Shop, type ShopVisit } from "../../src/testing/shop.ts";

const LONGEST_MS = 24 * 3_600_000;

/** `chain`: each page follows its next one. `all`: the first page follows all others at once, each overlapping the one before by `overlap` rows. */
export type Style = "chain" | "all";

export interface ListingPlan {
  readonly style: Style;
  readonly perPage: number;
  readonly overlap: number;
  readonly olderInARow: number;
  /** How pages are read: both are used by authors. */
  readonly by: "$" | "html";
}

interface Row {
  readonly id: number;
  readonly date: string;
}

interface PageData {
  readonly index?: number;
}

/** The scraper of the product contract, section 6, in both styles. */
export function listingScraper({ style, perPage, overlap, olderInARow, by }: ListingPlan) {
  return defineScraper<{ list: PageData; detail: { id: number } }>({
    version: 1,
    handlers: {
      list({ $, html, follow, stopSeries, watermark, data, item, request }) {
        const index = data.index ?? 0;
        const mark = watermark("date", { olderInARow });
        item({ page: index, mark: mark.value ?? null }, "page");
        const rows: Row[] =
          by === "$"
            ? $("tr.item")
                .toArray()
                .map((row) => ({ id: Number($(row).find("a").attr("href")?.slice(6)), date: $(row).attr("data-date") ?? "" }))
            : [...html.matchAll(/data-date="([^"]+)"><td><a href="\/item\/(\d+)"/g)].map((match) => ({ id: Number(match[2]), date: match[1] ?? "" }));
        if (style === "all" && index === 0 && request.series === null) {
          const total = Number(/data-total="(\d+)"/.exec(html)?.[1]);
          const step = perPage - overlap;
          for (let i = 1; i * step < total + overlap; i++)
            follow(`/list?offset=${i * step}`, { handler: "list", series: "list", index: i, data: { index: i } });
        }
        for (const { id, date } of rows) {
          if (mark.old(date)) return stopSeries();
          follow(`/item/${id}`, { handler: "detail", priority: 5, data: { id } });
        }
        if (style === "chain") {
          const next = /class="next" href="([^"]+)"/.exec(html)?.[1];
          follow(next, { handler: "list", series: "list", index: index + 1, data: { index: index + 1 } });
        }
      },
      detail({ html, item, data }) {
        item({ id: data.id, title: /<h1>([^<]+)/.exec(html)?.[1] }, "product");
      },
    },
  });
}

export interface RunOutcome {
  readonly summary: Summary;
  /** Ids of the products that came out, in order. */
  readonly out: readonly number[];
  /** Watermark that the first page met. */
  readonly mark: string | null;
  readonly visits: readonly ShopVisit[];
  /** Id of the newest product when the run began, and the greatest that its listing met. */
  readonly begun: number;
  readonly met: number;
  /** What was left out, with the reason and the rule. */
  readonly skipped: readonly string[];
  readonly parts: number;
}

export interface RunPlan {
  /** Chance of a new product whenever a request arrives, and how many there may be. */
  readonly shift?: { readonly chance: number; readonly most: number };
  /** Interrupted so many virtual ms after each start, then resumed. */
  readonly interruptAfter?: readonly number[];
  /** In the first part only. */
  readonly limitPages?: number;
}

export interface Listing extends Disposable {
  readonly shop: Shop;
  readonly plan: ListingPlan;
  run(how?: RunPlan): Promise<RunOutcome>;
}

export interface ListingOptions extends ListingPlan {
  readonly seed: number;
  readonly products: number;
  readonly flaky: number;
  readonly concurrency: number;
  readonly latency: readonly [number, number];
  readonly scraper?: ReturnType<typeof defineScraper>;
}

export function openListing(options: ListingOptions): Listing {
  const { seed, products, perPage, flaky, concurrency, latency } = options;
  const dir = mkdtempSync(join(tmpdir(), "skein-listing-"));
  const shop = createShop({ seed, products, perPage, pages: "small", flaky, flakyTimes: 2 });
  const random = seededRandom(seed * 65_537 + 11);
  const clock = createTestClock();
  let runs = 0;

  async function run({ shift, interruptAfter = [], limitPages }: RunPlan = {}): Promise<RunOutcome> {
    runs++;
    const begun = shop.newest;
    const from = shop.visits.length;
    const out: number[] = [];
    const skipped: string[] = [];
    let mark: string | null = null;
    let added = 0;
    const onArrival = (): void => {
      if (shift === undefined || added >= shift.most || random() >= shift.chance) return;
      added++;
      shop.add(1);
    };
    for (let part = 0; ; part++) {
      const crawling = crawl(
        {
          seeds: [`${SHOP_ORIGIN}/list/0`],
          stateDir: join(dir, "state"),
          robots: false,
          concurrency,
          perHost: { concurrency, delay: 0 },
          traps: { all: null },
          retry: { max: 2 },
          limits: { pages: part === 0 ? (limitPages ?? null) : null },
        },
        {
          scraper: options.scraper ?? listingScraper(options),
          world: { clock, random, openFetcher: async () => shop.asFetcher(clock, { latency, seed: seed * 31 + runs * 7 + part, onArrival }) },
          hooks: {
            onSkip: ({ url, reason, rule }) => skipped.push(`${url.slice(SHOP_ORIGIN.length)} ${reason} ${rule ?? ""}`),
            onItem(item, { type }) {
              if (type === "product") out.push(Number(item["id"]));
              else if (item["page"] === 0) mark = typeof item["mark"] === "string" ? item["mark"] : null;
            },
          },
        },
      );
      const { done } = crawling;
      const after = interruptAfter[part];
      const stops: Promise<void>[] = [];
      const timer = after === undefined ? null : clock.after(after, () => stops.push(crawling.stop({ mode: "now", reason: INTERRUPTED })));
      const summary = await clock.run(done, LONGEST_MS);
      timer?.cancel();
      await Promise.all(stops);
      const goesOn = summary.finishReason === "interrupted" || (part === 0 && summary.finishReason === "limit-pages");
      if (goesOn) continue;
      const visits = shop.visits.slice(from);
      // Later pages may show newer rows than the first one did, if enough came on top meanwhile.
      const met = visits
        .filter((visit) => visit.kind === "list" && visit.status === 200 && visit.endedAt !== null)
        .map(({ newest, number }) => newest - number);
      return { summary, out, mark, visits, begun, met: Math.max(0, ...met), skipped, parts: part + 1 };
    }
  }

  return {
    shop,
    plan: options,
    run,
    [Symbol.dispose]: () => rmSync(dir, { recursive: true, force: true }),
  };
}

/** Index of a list page in its series. */
export function indexOf({ perPage, overlap, style }: ListingPlan, visit: ShopVisit): number {
  return visit.number / (style === "all" ? perPage - overlap : perPage);
}

/**
 * What may have been asked for although it is old. `mark`: id of the newest product that the last good run met.
 * A page of the listing that shows `olderInARow` old rows ends it behind itself: once it is settled (which takes no time here), no page with a greater
 * index is begun, and no detail of an old product that such a page would have followed. Each page that was begun before may follow
 * `olderInARow` − 1 old rows, those that a chain of pages counts through once for all of them.
 */
export function checkBounds(plan: ListingPlan, run: RunOutcome, mark: number, about: string): void {
  const lists = run.visits.filter((visit) => visit.kind === "list" && visit.status === 200 && visit.endedAt !== null);
  const rows = (visit: ShopVisit): number => Math.max(0, Math.min(plan.perPage, visit.newest - visit.number));
  const oldRows = (visit: ShopVisit): number => Math.min(rows(visit), Math.max(0, visit.number + rows(visit) - (visit.newest - mark)));
  const stoppers = lists.filter((visit) => oldRows(visit) >= plan.olderInARow);
  for (const visit of run.visits) {
    if (visit.kind !== "list") continue;
    const before = stoppers.find((other) => indexOf(plan, other) < indexOf(plan, visit) && (other.endedAt ?? Infinity) < visit.startedAt);
    assert.equal(before?.target, undefined, `${about}: ${visit.target} was asked for at ${visit.startedAt}, after ${before?.target} had ended the series`);
  }
  const old = new Set(run.visits.filter((visit) => visit.kind === "item" && visit.number <= mark).map(({ number }) => number));
  const pages = plan.style === "chain" ? 1 : lists.filter((visit) => oldRows(visit) > 0).length;
  const most = pages * (plan.olderInARow - 1);
  assert.ok(old.size <= most, `${about}: ${old.size} details of old products were fetched, ${most} can be explained`);
}

/** Each product once. Answers them in order. */
export function distinct(ids: readonly number[], about: string): ReadonlySet<number> {
  const set = new Set(ids);
  assert.equal(set.size, ids.length, `${about}: a product came out twice`);
  return set;
}
