/** One stored page as the scraper gets it again, and its visit with what was read of it. Pure: what is stored where is reparse.ts. */
import type { StoredResponse } from "./core/cache.ts";
import type { FetchedResponse, ResponseHeaders } from "./core/outcome.ts";
import type { PageRecord } from "./core/records.ts";
import type { ScrapeTask } from "./core/scraping.ts";
import type { CrawlSpec } from "./core/spec.ts";
import type { Reading, Visit } from "./core/visits.ts";
import { inOrder, isoTime } from "./engine/record.ts";
import { factsOf } from "./engine/visits.ts";
import { extractPage } from "./parse/extract.ts";
import { productToken } from "./rules/robots.ts";
import { MAX_URL_LENGTH, parseUrl } from "./rules/url.ts";
import { VERSION } from "./version.ts";

export interface StoredPage {
  readonly response: FetchedResponse;
  readonly fields: StoredResponse["headers"];
  readonly digest: string;
  readonly requestedAt: number;
}

export function storedPage(stored: StoredResponse, digest: string): StoredPage {
  const { status, headers: fields, body, wireBytes, truncated, requestedAt } = stored;
  const headers = headersOf(fields);
  return {
    response: { status, headers, contentType: headers.get("content-type"), body, wireBytes, truncated, bodySkipped: false, fromCache: true },
    fields,
    digest,
    requestedAt,
  };
}

function headersOf(fields: StoredResponse["headers"]): ResponseHeaders {
  const all = (name: string): string[] => fields.filter(([known]) => known === name).map(([, value]) => value);
  return {
    all,
    get(name) {
      const values = all(name);
      return values.length === 0 ? null : values.join(", ");
    },
    names: () => [...new Set(fields.map(([name]) => name))],
  };
}

/** The body is a copy of its own: it may be given away. */
export function taskOf({ page, scrape, method }: Visit, { response, fields }: StoredPage): ScrapeTask {
  const { url, depth, referrer } = page;
  return {
    ...{ url, sentAs: url, depth, referrer, method, priority: 0, attempt: 0, oldRuns: null },
    ...{ status: response.status, headers: fields, contentType: response.contentType, body: response.body.slice() },
    ...{ handler: scrape?.handler ?? null, data: scrape?.data ?? null, series: scrape?.series ?? null, index: scrape?.index ?? null },
  };
}

/** The visit as if the page had been read so when it was fetched. Where its record tells of other bytes, or of a failure, it is made anew. */
export function withPage(visit: Visit, page: StoredPage, spec: CrawlSpec, reading: Reading): Visit {
  if (visit.kind === "page" && visit.page.digest === page.digest) return { ...visit, reading };
  const { response, digest, requestedAt } = page;
  const { url } = visit.page;
  const robotsToken = productToken(spec.userAgent ?? `skein/${VERSION}`);
  const extraction = extractPage(response, url, { images: spec.images, robotsToken, maxUrlLength: MAX_URL_LENGTH });
  const {
    error: _1,
    truncated: _2,
    etag: _3,
    lastModified: _4,
    title: _5,
    canonical: _6,
    robots: _7,
    images: _8,
    charset: _9,
    charsetSource: _10,
    ...rest
  } = visit.page;
  const etag = response.headers.get("etag");
  const lastModified = response.headers.get("last-modified");
  const record: PageRecord = {
    ...rest,
    // A visit of an older version may lack it.
    redirects: rest.redirects ?? [],
    ...{ outcome: "fetched", status: response.status, contentType: response.contentType, digest },
    ...{ bytes: response.wireBytes, bytesDecoded: response.body.byteLength, fetchedAt: isoTime(requestedAt), links: extraction.links },
    ...(response.truncated ? { truncated: true } : {}),
    ...(etag === null ? {} : { etag }),
    ...(lastModified === null ? {} : { lastModified }),
    ...(extraction.charset === null ? {} : { charset: extraction.charset }),
    ...(extraction.charsetSource === null ? {} : { charsetSource: extraction.charsetSource }),
    ...(extraction.title === null ? {} : { title: extraction.title }),
    ...(extraction.canonical === null ? {} : { canonical: extraction.canonical }),
    ...(extraction.robots.length === 0 ? {} : { robots: extraction.robots }),
    ...(extraction.images === null ? {} : { images: extraction.images }),
  };
  return { ...visit, kind: "page", page: inOrder(record), facts: factsOf(extraction), reading };
}

/** What its handler follows, as far as these are GETs. */
export function canonicalFollows({ page, facts, reading }: Visit): string[] {
  const base = facts?.base ?? page.url;
  return reading.follows.flatMap(({ href, method }) => {
    const parsed = (method ?? "GET") === "GET" ? parseUrl(href, base) : null;
    return parsed === null || "reject" in parsed ? [] : [parsed.url];
  });
}
