/** Places as rows of the table `queue`, and back. */
import type { CrawlRequest, Hop, RequestRest } from "../../core/request.ts";
import { hostKeyOf, originOf } from "../../rules/url.ts";
import type { Place } from "../memory/place.ts";

const HOPS: readonly Hop[] = ["seed", "link", "redirect", "sitemap", "robots"];
const RELINK = 8;
const DETACHED = 16;
const PRIORITY_BASE = 128;

/** A row as SQLite gives it. */
export interface QueueRow {
  readonly seq: number;
  readonly hi: number;
  readonly lo: number;
  /** (depth × 256 + priority + 128) × 32 + flags: hop, queued again for its links, a place of its own. */
  readonly facts: number;
  readonly url: string;
  /** Without the origin where it is that of `url`. */
  readonly referrer: string | null;
  readonly rest: string | null;
  /** [attempt, crashes, due as epoch ms or null]; null: a place that has no history. */
  readonly history: string | null;
}

export interface StoredPlace {
  readonly place: Place;
  /** Fetched again for its links only. */
  readonly relink: boolean;
  readonly dueEpoch: number | null;
}

export const ROW_COLUMNS = "seq, hi, lo, facts, url, referrer, rest, history";

export function factsOf(request: CrawlRequest, relink: boolean): number {
  const flags = HOPS.indexOf(request.hop) | (relink ? RELINK : 0) | (request.rest?.reopen === true ? DETACHED : 0);
  return (request.depth * 256 + request.priority + PRIORITY_BASE) * 32 + flags;
}

export const isDetachedRow = (facts: number): boolean => (facts & DETACHED) !== 0;
export const depthOfRow = (facts: number): number => Math.floor(facts / 8192);

/** "/path" instead of the whole URL for a page of the same origin. */
export function shortReferrer(url: string, referrer: string | null): string | null {
  if (referrer === null) return null;
  const slash = url.indexOf("/", 8);
  return slash > 0 && referrer.length > slash && referrer.charCodeAt(slash) === 47 && referrer.startsWith(url.slice(0, slash))
    ? referrer.slice(slash)
    : referrer;
}

const fullReferrer = (url: string, stored: string | null): string | null => (stored?.startsWith("/") ? originOf(url) + stored : stored);

/** JSON, with a body in base64. */
export function restText(rest: RequestRest | null): string | null {
  if (rest === null) return null;
  return JSON.stringify(rest.body === undefined ? rest : { ...rest, body: undefined, bodyBase64: Buffer.from(rest.body).toString("base64") });
}

function readRest(text: string | null): RequestRest | null {
  if (text === null) return null;
  const stored = JSON.parse(text) as RequestRest & { readonly bodyBase64?: string }; // written by restText
  if (stored.bodyBase64 === undefined) return stored;
  const { bodyBase64, ...rest } = stored;
  return { ...rest, body: new Uint8Array(Buffer.from(bodyBase64, "base64")) };
}

export function historyText(place: Place, dueEpoch: number | null): string | null {
  return place.attempt === 0 && place.crashes === 0 && dueEpoch === null ? null : JSON.stringify([place.attempt, place.crashes, dueEpoch]);
}

export function requestOf(row: QueueRow): CrawlRequest {
  const { facts, url } = row;
  return {
    idHi: row.hi,
    idLo: row.lo,
    url,
    host: hostKeyOf(url),
    hop: HOPS[facts & 7] ?? "link",
    depth: depthOfRow(facts),
    priority: (Math.floor(facts / 32) & 255) - PRIORITY_BASE,
    referrer: fullReferrer(url, row.referrer),
    rest: readRest(row.rest),
  };
}

export function storedPlaceOf(row: QueueRow): StoredPlace {
  const [attempt, crashes, dueEpoch] = row.history === null ? [0, 0, null] : (JSON.parse(row.history) as [number, number, number | null]); // written by historyText
  return { place: { request: requestOf(row), attempt, crashes, seq: row.seq }, relink: (row.facts & RELINK) !== 0, dueEpoch };
}
