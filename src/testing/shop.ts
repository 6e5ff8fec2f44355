/**
 * A generated shop, the same from the same seed: a listing, newest first, in pages by offset, and a detail page for each product with its offers.
 * What an answer holds is decided when the request arrives, so that the listing may shift while it is read. For tests and measurements of scrapers.
 *
 *     const shop = createShop({ seed: 7, products: 1_740, perPage: 29 });
 *     shop.asFetcher(clock, { latency: [50, 200] })    // a pure Fetcher in the time of a test clock; its URLs are those of SHOP_ORIGIN
 *     await shop.serve({ latency: [50, 200] })          // or a server on loopback
 *     shop.add(20)                                       // twenty newer products, on top
 *     shop.visits                                        // every request that arrived
 *
 * Paths: `/list/N`, `/list?offset=N`, `/item/ID`; robots.txt is 404. A row of the listing is `tr.item[data-date]`, an offer of a detail page `li.offer`.
 */
import type { Clock } from "../core/clock.ts";
import type { Fetcher } from "../core/outcome.ts";
import { seededRandom } from "./clock.ts";
import { shopFetcher } from "./shop-fetcher.ts";
import { bytesOf, type Filling, itemPage, type Latency, listPage, type Offer, offersOf, type Product, type Row } from "./shop-pages.ts";
import { type ServedShop, serveShop } from "./shop-server.ts";

export type { Latency, Offer, Product } from "./shop-pages.ts";
export type { ServedShop } from "./shop-server.ts";

/** Where a shop lies for its Fetcher. */
export const SHOP_ORIGIN = "http://shop.test";
const REAL_LATENCY: Latency = [50, 200];

export interface ShopOptions {
  readonly seed: number;
  /** At the start. */
  readonly products: number;
  /** Rows of a list page; default 29. */
  readonly perPage?: number;
  /** Offers on all detail pages together, at the start; default one each. */
  readonly offers?: number;
  /** `real` (default): lists of 20 to 30 kB, details of 10 to 20 kB. `small`: no more than what is read. */
  readonly pages?: Filling;
  /** Share of the pages that fail at first, for a while: 503, 429 or a lost connection; default 0. */
  readonly flaky?: number;
  /** Most failures of a flaky page before it answers; default 2. */
  readonly flakyTimes?: number;
}

/** A request that arrived. Times are those of the clock, or monotonic ms at a server. */
export interface ShopVisit {
  readonly target: string;
  readonly kind: "list" | "item" | "other";
  /** Place of its first row in the listing, or the id of its product. */
  readonly number: number;
  readonly startedAt: number;
  readonly arrivedAt: number;
  endedAt: number | null;
  /** Null: the connection was lost. */
  readonly status: number | null;
  /** Id of the newest product at its arrival. */
  readonly newest: number;
}

/** What is sent back; status null: the connection is lost. */
export interface ShopAnswer {
  readonly visit: ShopVisit;
  readonly status: number | null;
  readonly body: string;
}

export interface Shop {
  /** Id of the newest product; the oldest is 1. */
  readonly newest: number;
  readonly listPages: number;
  readonly visits: readonly ShopVisit[];
  product(id: number): Product;
  /** What the detail page of a product offers. */
  offers(id: number): readonly Offer[];
  /** Offers of the products `from` … `to`. */
  offersBetween(from: number, to: number): number;
  /** Newer products, put on top of the listing. */
  add(products: number): void;
  /** Answers to a target from now on: a status, or null for a lost connection, so many times (default: for ever). */
  fail(target: string, status: number | null, times?: number): void;
  /** Decided now. `startedAt`: when the request went out. */
  arrive(target: string, startedAt: number, now: number): ShopAnswer;
  asFetcher(clock: Clock, options: { readonly latency: Latency; readonly seed?: number; readonly onArrival?: (visit: ShopVisit) => void }): Fetcher;
  serve(options?: { readonly latency?: Latency; readonly seed?: number; readonly port?: number }): Promise<ServedShop>;
}

export function createShop(options: ShopOptions): Shop {
  const { seed, perPage = 29, pages = "real", flaky = 0, flakyTimes = 2 } = options;
  const perProduct = (options.offers ?? options.products) / options.products;
  const failures = new Map<string, { readonly status: number | null; left: number }>();
  const asked = new Map<string, number>();
  const visits: ShopVisit[] = [];
  let newest = options.products;

  const offersBefore = (id: number): number => Math.floor((id - 1) * perProduct + 1e-6);
  const offerCount = (id: number): number => offersBefore(id + 1) - offersBefore(id);

  function row(id: number): Row {
    return { id, date: dateOf(id) };
  }

  /** What stands in the way of an answer; undefined: nothing. */
  function troubleOf(target: string): number | null | undefined {
    const told = failures.get(target);
    if (told !== undefined && told.left > 0) {
      told.left--;
      return told.status;
    }
    if (flaky === 0) return undefined;
    const before = asked.get(target) ?? 0;
    asked.set(target, before + 1);
    const chance = seededRandom(seed ^ hash(target));
    if (chance() >= flaky || before >= 1 + Math.floor(chance() * flakyTimes)) return undefined;
    return ([503, 429, null] as const)[Math.floor(chance() * 3)] ?? null;
  }

  function read(target: string): { kind: ShopVisit["kind"]; number: number; status: number; body: () => string } {
    const list = /^\/list(?:\/(\d+)|\?offset=(\d+))$/.exec(target);
    if (list !== null) {
      const offset = list[1] === undefined ? Number(list[2]) : Number(list[1]) * perPage;
      return { kind: "list", number: offset, status: 200, body: () => listBody(offset) };
    }
    const id = Number(/^\/item\/(\d+)$/.exec(target)?.[1] ?? Number.NaN);
    if (id >= 1 && id <= newest) return { kind: "item", number: id, status: 200, body: () => itemPage(product(id), offers(id), pages) };
    return { kind: "other", number: 0, status: 404, body: () => "<!doctype html><p>nothing here" };
  }

  function listBody(offset: number): string {
    const rows: Row[] = [];
    for (let id = newest - offset; id > 0 && id > newest - offset - perPage; id--) rows.push(row(id));
    return listPage({ rows, perPage, offset, total: newest, seed, filling: pages });
  }

  const product = (id: number): Product => ({ ...row(id), title: `Product ${id}`, seed });
  const offers = (id: number): readonly Offer[] => offersOf(product(id), offersBefore(id), offerCount(id));

  const shop: Shop = {
    get newest() {
      return newest;
    },
    get listPages() {
      return Math.ceil(newest / perPage);
    },
    visits,
    product,
    offers,
    offersBetween: (from, to) => offersBefore(to + 1) - offersBefore(from),
    add(products) {
      newest += products;
    },
    fail(target, status, times = Infinity) {
      failures.set(target, { status, left: times });
    },
    arrive(target, startedAt, now) {
      const page = read(target);
      const trouble = troubleOf(target);
      const status = trouble === undefined ? page.status : trouble;
      const visit: ShopVisit = { target, kind: page.kind, number: page.number, startedAt, arrivedAt: now, endedAt: null, status, newest };
      visits.push(visit);
      return { visit, status, body: trouble === undefined ? page.body() : "" };
    },
    asFetcher: (clock, { latency, seed: chance = seed, onArrival }) => shopFetcher(shop, clock, { latency, seed: chance, onArrival: onArrival ?? null }),
    serve: (how = {}) => serveShop(shop, { latency: how.latency ?? REAL_LATENCY, seed: how.seed ?? seed, port: how.port ?? 0 }),
  };
  return shop;
}

/** A minute apart, so that dates are all different and sort as texts. */
function dateOf(id: number): string {
  return new Date(Date.UTC(2026, 0, 1) + id * 60_000).toISOString();
}

/** FNV-1a of a text. */
function hash(text: string): number {
  let mixed = 0x811c9dc5;
  for (const byte of bytesOf(text)) mixed = Math.imul(mixed ^ byte, 0x01000193);
  return mixed;
}
