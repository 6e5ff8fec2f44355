/** Crawls that ask only for what changed: what the last run saw of a page, how to ask, and what an unchanged page counts for. Where visits are kept is store/visits. */
import type { ValueChange } from "../core/frontier.ts";
import type { FetchedResponse } from "../core/outcome.ts";
import type { Extraction } from "../core/page.ts";
import type { ItemRecord, Output, PageRecord } from "../core/records.ts";
import type { CrawlRequest, ScrapeRest } from "../core/request.ts";
import type { Scraped, Scraping } from "../core/scraping.ts";
import type { ChangeRecord, LinkFacts, Reading, Visit, VisitBook } from "../core/visits.ts";
import { itemChanges, pageChange } from "../rules/changes.ts";
import { wantsBody } from "../rules/media-type.ts";
import { fingerprintOf, parseUrl } from "../rules/url.ts";
import { MARK, RUN_MARK, RUN_PARTIAL } from "../rules/values.ts";
import type { Parts } from "./parts.ts";
import { digestOf } from "./record.ts";

export interface VisitDesk {
  /** Header fields that ask whether the page changed; null: ask for the page. */
  validators(request: CrawlRequest): Readonly<Record<string, string>> | null;
  /** The last visit, when the answer says that nothing changed since, and the same scraper read it. */
  unchanged(request: CrawlRequest, response: FetchedResponse): Visit | null;
  /** It was there in an earlier run. */
  known(request: CrawlRequest): Visit | null;
  /** The output with what the next run and `--changes` need of it. */
  noted(request: CrawlRequest, output: Output & { readonly page: PageRecord }, extraction: Extraction | null, scraped: Scraped | null): Output;
  /** The output of a page that could not be had. */
  failed(request: CrawlRequest, output: Output & { readonly page: PageRecord }): Output;
}

const NOTHING_READ: Reading = { readBy: null, links: null, follows: [], items: [], badItems: [] };
const PARTIAL: ValueChange = { op: "set", key: RUN_PARTIAL, value: "true" };
const NO_ITEMS: readonly ItemRecord[] = [];

/** What an earlier run read, as if it had been read now; state and marks are of their run. */
export function scrapedOf({ reading }: Visit): Scraped {
  const { links, follows, items, badItems, stop = null, stopSeries = false, partial } = reading;
  return { links, follows, items, badItems, values: partial ? [PARTIAL] : [], stop, stopSeries };
}

export function readingOf(readBy: string, scraped: Scraped | null): Reading {
  if (scraped === null) return { ...NOTHING_READ, readBy };
  const { links, follows, items, badItems, values, stop, stopSeries } = scraped;
  const partial = values.some(({ key }) => key === RUN_PARTIAL);
  return {
    readBy,
    links,
    follows,
    items,
    badItems,
    ...(stopSeries ? { stopSeries } : {}),
    ...(partial ? { partial } : {}),
    ...(stop === null ? {} : { stop }),
  };
}

/** What was read now, with a note if by a watermark or the end of a series it does not tell of everything. `mark`: of the last good run. */
export function readNow(scraped: Scraped, mark: (key: string) => string | null): Scraped {
  const partial = scraped.stopSeries || scraped.values.some(({ key }) => key.startsWith(RUN_MARK) && mark(MARK + key.slice(RUN_MARK.length)) !== null);
  return partial ? { ...scraped, values: [...scraped.values, PARTIAL] } : scraped;
}

export function extractionOf({ page, facts }: Visit): Extraction {
  return {
    charset: page.charset ?? null,
    charsetSource: page.charsetSource ?? null,
    title: page.title ?? null,
    canonical: page.canonical ?? null,
    ...(facts === null || facts.base === null ? {} : { base: facts.base }),
    links: page.links,
    nofollow: facts === null || facts.nofollow.length === 0 ? null : new Set(facts.nofollow),
    sentAs: facts === null || facts.sentAs.length === 0 ? null : new Map(facts.sentAs),
    images: page.images ?? null,
    rejected: facts?.rejected ?? [],
    robots: page.robots ?? [],
  };
}

/** What a page is read by, as text: another text, and it must be read again. `links`: what of the document itself is recorded. */
export function readByOf(links: string, scraping: Pick<Scraping, "kind" | "version" | "first"> | null, scrape: ScrapeRest | null): string {
  return scraping === null ? links : `${links} ${scraping.kind} ${scraping.version} ${scrape?.handler ?? scraping.first ?? ""}`;
}

/** What a handler is given beside the page; JSON text of `data`. */
const givenTo = (scrape: ScrapeRest | null | undefined): string => JSON.stringify([scrape?.data ?? null, scrape?.series ?? null, scrape?.index ?? null]);

/** The note of a request from which nothing was learnt about its page. */
export function failedVisit(request: CrawlRequest, page: PageRecord): Visit {
  return visitOf(request, "failed", page, NOTHING_READ, null);
}

function visitOf(request: CrawlRequest, kind: Visit["kind"], page: PageRecord, reading: Reading, extraction: Extraction | null): Visit {
  const { idHi, idLo, rest } = request;
  return { idHi, idLo, kind, page, reading, facts: factsOf(extraction), scrape: rest?.scrape ?? null, method: rest?.method ?? "GET" };
}

export function factsOf(extraction: Extraction | null): LinkFacts | null {
  if (extraction === null) return null;
  const { base = null, nofollow, sentAs, rejected } = extraction;
  return { base, nofollow: nofollow === null ? [] : [...nofollow], sentAs: sentAs === null ? [] : [...sentAs], rejected };
}

const conditionsOf = ({ page: { etag, lastModified } }: Visit): Readonly<Record<string, string>> | null =>
  etag === undefined && lastModified === undefined
    ? null
    : { ...(etag === undefined ? {} : { "if-none-match": etag }), ...(lastModified === undefined ? {} : { "if-modified-since": lastModified }) };

/** Null: nothing is noted. */
export function createVisitDesk(parts: Parts, book: VisitBook | null, scraping: Scraping | null): VisitDesk | null {
  if (book === null) return null;
  const { spec, admit } = parts;
  const asks = spec.incremental;
  /** Each visit is looked up once for all that is asked about it. */
  const found = new WeakMap<CrawlRequest, Visit | null>();
  const readBy = ({ rest }: CrawlRequest): string => readByOf(spec.images ? "links+images" : "links", scraping, rest?.scrape ?? null);

  function known(request: CrawlRequest): Visit | null {
    if (!asks) return null;
    let visit = found.get(request);
    if (visit === undefined) {
      visit = book?.find(request) ?? null;
      found.set(request, visit);
    }
    return visit;
  }

  /** One that asks for its page by the URL alone, as it stands. With `dontDedupe` a request has a fingerprint of its own. */
  function plain(request: CrawlRequest): boolean {
    const { rest } = request;
    if (rest === null) return true;
    if ((rest.method ?? "GET") !== "GET" || rest.body !== undefined) return false;
    if (rest.headers !== undefined && Object.keys(rest.headers).some((name) => /^(?:if-|range$)/i.test(name))) return false;
    if (rest.scrape === undefined) return true;
    const own = fingerprintOf(request.url, admit.seed);
    return own.idHi === request.idHi && own.idLo === request.idLo;
  }

  /** The last visit, where its reading still stands. A body that was cut, or was not wanted then, is asked for again. */
  function standing(request: CrawlRequest): Visit | null {
    const visit = known(request);
    if (visit === null || !plain(request)) return null;
    const { page, reading, scrape } = visit;
    if (page.truncated === true || (page.bodySkipped === true && wantsBody(page.contentType, spec.types))) return null;
    return reading.readBy === readBy(request) && givenTo(scrape) === givenTo(request.rest?.scrape) ? visit : null;
  }

  function changesOf(before: Visit | null, page: PageRecord | null, items: readonly ItemRecord[]): readonly ChangeRecord[] {
    const url = (page ?? before?.page)?.url ?? "";
    return [pageChange(before?.page ?? null, page), ...itemChanges(url, before?.reading.items ?? NO_ITEMS, items)];
  }

  return {
    known,
    validators(request) {
      const visit = standing(request);
      return visit === null ? null : conditionsOf(visit);
    },
    unchanged(request, { status, bodySkipped, body }) {
      const visit = standing(request);
      if (visit === null) return null;
      // Of a server that was not asked it says nothing.
      if (status === 304) return conditionsOf(visit) === null ? null : visit;
      return status === visit.page.status && !bodySkipped && status >= 200 && status < 300 && digestOf(body) === visit.page.digest ? visit : null;
    },
    noted(request, output, extraction, scraped) {
      const before = known(request);
      const page = output.page.outcome === "unchanged" && before !== null ? answeredBefore(output.page, before.page) : output.page;
      const gone = page.outcome === "gone";
      const good = page.outcome === "unchanged" || (page.status !== null && page.status >= 200 && page.status < 300);
      // What is no page and never was one is of no use to a later run; what was one may be one again.
      if (!good && !gone) return before === null ? output : { ...output, visit: failedVisit(request, page) };
      const visit = visitOf(request, gone ? "gone" : "page", page, readingOf(readBy(request), scraped), extraction);
      if (!asks || spec.changesFile === null) return { ...output, visit };
      return { ...output, visit, changes: changesOf(before, gone ? null : page, scraped?.items ?? NO_ITEMS) };
    },
    failed: (request, output) => ({ ...output, visit: failedVisit(request, output.page) }),
  };
}

/** A record of a page that was not sent again, with what the answer said that sent it. */
function answeredBefore(page: PageRecord, { status, bytes, bytesDecoded }: PageRecord): PageRecord {
  return page.status === 304 ? { ...page, status, bytes, bytesDecoded } : page;
}

/** Requests that a page leads to, by canonical URL, as far as they are GETs. */
function leadsTo({ page, reading, facts }: Visit): string[] {
  const base = facts?.base ?? page.url;
  const more = [...(reading.links ?? []), ...reading.follows.map(({ href }) => href)].map((href) => parseUrl(href, base));
  return [...page.links, ...more.flatMap((parsed) => ("reject" in parsed ? [] : [parsed.url]))];
}

/**
 * What a finished run says of the pages that it did not meet, and that were there before: they are gone, but for those to which a page that failed may still lead:
 * of these nothing was learnt. Handed over one by one.
 */
export function tellMissed(book: Pick<VisitBook, "missed" | "failed">, listed: boolean, tell: (output: Output) => void): void {
  const spared = sparedOf(book);
  for (const visit of book.missed()) {
    if (spared.has(visit.page.url)) tell({ ...NOTHING, visit: { ...visit, kind: "failed" } });
    else if (listed) tell(missedOutput(visit));
  }
}

/** By URL: of what the failed pages lead to, over any number of pages that were not met either. */
function sparedOf(book: Pick<VisitBook, "missed" | "failed">): ReadonlySet<string> {
  const spared = new Set<string>();
  const open: string[] = [];
  for (const visit of book.failed()) open.push(visit.page.url, ...leadsTo(visit));
  if (open.length === 0) return spared;
  const missed = new Map<string, string[]>();
  const foundOn = new Map<string, string[]>();
  for (const visit of book.missed()) {
    const { url, referrer } = visit.page;
    missed.set(url, leadsTo(visit));
    if (referrer === null) continue;
    const others = foundOn.get(referrer);
    if (others === undefined) foundOn.set(referrer, [url]);
    else others.push(url);
  }
  for (let url = open.pop(); url !== undefined; url = open.pop()) {
    open.push(...(foundOn.get(url) ?? []));
    foundOn.delete(url);
    const links = missed.get(url);
    if (links === undefined || spared.has(url)) continue;
    spared.add(url);
    open.push(...links);
  }
  return spared;
}

const NOTHING: Output = { page: null, listed: false, skipped: [], found: [], edges: [] };

/** The lines of `--changes` for a page that a finished run did not meet any more. */
function missedOutput(visit: Visit): Output {
  const changes = [pageChange(visit.page, null), ...itemChanges(visit.page.url, visit.reading.items, NO_ITEMS)];
  return { ...NOTHING, changes };
}
