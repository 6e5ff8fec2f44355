/** Crawls that ask only for what changed: what the last run saw of a page, how to ask, and what an unchanged page counts for. Where visits are kept is store/visits. */
import type { FetchedResponse } from "../core/outcome.ts";
import type { Extraction } from "../core/page.ts";
import type { ItemRecord, Output, PageRecord } from "../core/records.ts";
import type { CrawlRequest } from "../core/request.ts";
import type { Scraped, Scraping } from "../core/scraping.ts";
import type { ChangeRecord, Reading, Visit, VisitBook } from "../core/visits.ts";
import { itemChanges, pageChange } from "../rules/changes.ts";
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
const NO_ITEMS: readonly ItemRecord[] = [];

/** What an earlier run read, as if it had been read now; state, marks and stops are of their run. */
export function scrapedOf({ reading }: Visit): Scraped {
  const { links, follows, items, badItems } = reading;
  return { links, follows, items, badItems, values: [], stop: null, stopSeries: false };
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
    rejected: [],
    robots: page.robots ?? [],
  };
}

/** Null: nothing is noted. */
export function createVisitDesk(parts: Parts, book: VisitBook | null, scraping: Scraping | null): VisitDesk | null {
  if (book === null) return null;
  const { spec } = parts;
  const asks = spec.incremental;

  function readBy({ rest }: CrawlRequest): string {
    const own = scraping === null ? "" : ` ${scraping.kind} ${scraping.version} ${rest?.scrape?.handler ?? scraping.first ?? ""}`;
    return `links${spec.images ? "+images" : ""}${own}`;
  }

  const plain = ({ rest }: CrawlRequest): boolean => (rest?.method ?? "GET") === "GET" && rest?.body === undefined;
  const known = (request: CrawlRequest): Visit | null => (asks ? book.find(request) : null);

  /** The last visit, where its reading still stands. */
  function standing(request: CrawlRequest): Visit | null {
    const visit = plain(request) ? known(request) : null;
    return visit !== null && visit.reading.readBy === readBy(request) ? visit : null;
  }

  function visitOf(request: CrawlRequest, kind: Visit["kind"], page: PageRecord, reading: Reading, extraction: Extraction | null): Visit {
    return {
      idHi: request.idHi,
      idLo: request.idLo,
      kind,
      page,
      reading,
      facts:
        extraction === null
          ? null
          : { base: extraction.base ?? null, nofollow: [...(extraction.nofollow ?? [])], sentAs: extraction.sentAs === null ? [] : [...extraction.sentAs] },
      scrape: request.rest?.scrape ?? null,
      method: request.rest?.method ?? "GET",
    };
  }

  function changesOf(before: Visit | null, page: PageRecord | null, items: readonly ItemRecord[]): readonly ChangeRecord[] {
    const url = (page ?? before?.page)?.url ?? "";
    return [pageChange(before?.page ?? null, page), ...itemChanges(url, before?.reading.items ?? NO_ITEMS, items)];
  }

  return {
    known,
    validators(request) {
      const visit = standing(request);
      if (visit === null) return null;
      const { etag, lastModified } = visit.page;
      if (etag === undefined && lastModified === undefined) return null;
      return { ...(etag === undefined ? {} : { "if-none-match": etag }), ...(lastModified === undefined ? {} : { "if-modified-since": lastModified }) };
    },
    unchanged(request, response) {
      const visit = standing(request);
      if (visit === null) return null;
      if (response.status === 304) return visit;
      return response.status >= 200 && response.status < 300 && !response.bodySkipped && digestOf(response.body) === visit.page.digest ? visit : null;
    },
    noted(request, output, extraction, scraped) {
      const { page } = output;
      const before = known(request);
      const gone = page.outcome === "gone";
      const good = page.outcome === "unchanged" || (page.status !== null && page.status >= 200 && page.status < 300);
      const reading: Reading =
        scraped === null
          ? { ...NOTHING_READ, readBy: readBy(request) }
          : { readBy: readBy(request), links: scraped.links, follows: scraped.follows, items: scraped.items, badItems: scraped.badItems };
      // What is no page and never was one is of no use to a later run.
      const visit = good || gone ? visitOf(request, gone ? "gone" : "page", page, reading, extraction) : null;
      const listed = asks && spec.changesFile !== null && (good || gone);
      return {
        ...output,
        ...(visit === null ? {} : { visit }),
        ...(listed ? { changes: changesOf(before, gone ? null : page, scraped?.items ?? NO_ITEMS) } : {}),
      };
    },
    failed: (request, output) => ({ ...output, visit: visitOf(request, "failed", output.page, NOTHING_READ, null) }),
  };
}

/** The lines of `--changes` for a page that a finished run did not meet any more. */
export function missedOutput(visit: Visit): Output {
  const changes = [pageChange(visit.page, null), ...itemChanges(visit.page.url, visit.reading.items, NO_ITEMS)];
  return { page: null, listed: false, skipped: [], found: [], edges: [], changes };
}
