/** Page records and counters from what came of a request. Pure: no I/O, no decisions about the crawl. */
import { hash } from "node:crypto";
import type { ExchangeFacts, FetchedResponse } from "../core/outcome.ts";
import type { Extraction } from "../core/page.ts";
import { type ErrorCode, type Outcome, type Output, PAGE_FIELDS, type PageRecord, type SkippedRecord } from "../core/records.ts";
import type { CrawlRequest } from "../core/request.ts";

/** A page record while it is put together. */
type Draft = { -readonly [K in keyof PageRecord]: PageRecord[K] };

const NO_LINKS: readonly string[] = [];
const NO_HOPS: PageRecord["redirects"] = [];

/** What a record is made of; parts that did not happen are null. */
export interface RecordParts {
  readonly request: CrawlRequest;
  readonly outcome: Outcome;
  readonly status: number | null;
  readonly attempts: number;
  readonly facts: Pick<ExchangeFacts, "startedAt" | "durationMs">;
  readonly response: FetchedResponse | null;
  readonly extraction: Extraction | null;
  readonly error: { readonly code: ErrorCode; readonly message: string } | null;
  readonly location: string | null;
  /** False leaves the digest out (nobody reads it). */
  readonly digest: boolean;
}

/** Fields in the order of the contract, so that lines look alike. */
export function pageRecord(parts: RecordParts): PageRecord {
  const { request, response, extraction } = parts;
  const draft = {
    url: request.url,
    status: parts.status,
    outcome: parts.outcome,
    depth: request.depth,
    referrer: request.referrer,
  } as Draft; // the fields that are not optional all follow below
  if (parts.location !== null) draft.location = parts.location;
  draft.redirects = request.rest?.redirects ?? NO_HOPS;
  draft.contentType = response === null ? null : response.contentType;
  if (extraction !== null && extraction.charset !== null) {
    draft.charset = extraction.charset;
    if (extraction.charsetSource !== null) draft.charsetSource = extraction.charsetSource;
  }
  draft.bytes = response === null ? 0 : response.wireBytes;
  draft.bytesDecoded = response === null ? 0 : response.body.byteLength;
  if (response !== null) addResponse(draft, response, parts.digest);
  if (extraction !== null) {
    if (extraction.title !== null) draft.title = extraction.title;
    if (extraction.canonical !== null) draft.canonical = extraction.canonical;
    if (extraction.robots.length > 0) draft.robots = extraction.robots;
  }
  draft.links = extraction === null ? NO_LINKS : extraction.links;
  if (extraction !== null && extraction.images !== null) draft.images = extraction.images;
  draft.attempts = parts.attempts;
  if (response?.fromCache === true) draft.fromCache = true;
  if (parts.error !== null) draft.error = parts.error;
  draft.fetchedAt = isoTime(parts.facts.startedAt);
  draft.durationMs = Math.round(parts.facts.durationMs);
  return draft;
}

/** The same record, its fields in the order of the contract. */
export function inOrder(page: PageRecord): PageRecord {
  const fields = PAGE_FIELDS.flatMap((name) => (page[name] === undefined ? [] : [[name, page[name]] as const]));
  return Object.fromEntries(fields) as unknown as PageRecord; // every field that it has
}

export const digestOf = (body: Uint8Array): string => `sha256:${hash("sha256", body, "hex")}`;

function addResponse(draft: Draft, response: FetchedResponse, digest: boolean): void {
  if (response.truncated) draft.truncated = true;
  if (response.bodySkipped) draft.bodySkipped = true;
  else if (digest && draft.outcome !== "redirected") draft.digest = digestOf(response.body);
  const etag = response.headers.get("etag");
  if (etag !== null) draft.etag = etag;
  const lastModified = response.headers.get("last-modified");
  if (lastModified !== null) draft.lastModified = lastModified;
}

let isoSecond = -1;
let isoPrefix = "";

/** `new Date(ms).toISOString()`, the part before the milliseconds kept from call to call. */
export function isoTime(ms: number): string {
  const whole = Math.floor(ms);
  const second = Math.floor(whole / 1000);
  if (second !== isoSecond) {
    isoSecond = second;
    isoPrefix = new Date(second * 1000).toISOString().slice(0, 20);
  }
  return `${isoPrefix}${String(whole - second * 1000).padStart(3, "0")}Z`;
}

/** The counters an output raises: `outcome:…`, `status:…`, `error:…`, `bytes`, `bytesDecoded`. Skips are counted by the store, which writes each once. */
export function tallyOf(page: PageRecord | null): (readonly [string, number])[] {
  if (page === null) return [];
  const tally: [string, number][] = [
    [`outcome:${page.outcome}`, 1],
    ["bytes", page.bytes],
    ["bytesDecoded", page.bytesDecoded],
  ];
  if (page.status !== null) tally.push([`status:${page.status}`, 1]);
  // For the exit status: a seed that answered, whatever it answered.
  if (page.depth === 0 && (page.outcome !== "failed" || page.status !== null)) tally.push(["seedsReached", 1]);
  if (page.error !== undefined) tally.push([`error:${page.error.code}`, 1]);
  return tally;
}

const NONE: readonly never[] = [];

/** An output that holds a page record and at most one skipped line. */
export function outputOf(page: PageRecord | null, listed: boolean, skipped: Output["skipped"] = NONE): Output {
  return { page, listed, skipped, found: NONE, edges: NONE };
}

/** The skipped line for what was decided about a request after its claim. */
export function skippedOf(request: CrawlRequest, reason: SkippedRecord["reason"], rule: string | null): Output["skipped"] {
  const base = { url: request.url, referrer: request.referrer, depth: request.depth, reason };
  return [{ idHi: request.idHi, idLo: request.idLo, value: rule === null ? base : { ...base, rule } }];
}
