/**
 * What may be stored of an answer, for how long it is fresh, what a conditional request says, and what a 304 changes (RFC 9111).
 * Pure; where responses lie is store/cache/, who asks is fetch/cache-layer.ts.
 *
 * By `auto` the rules are those of a shared cache: what one crawl stored serves others, whoever starts them in that directory and with whatever credentials.
 */
import type { StoredResponse } from "../core/cache.ts";
import type { EpochMs } from "../core/clock.ts";
import { ageMs, cacheDate, type Directives, deltaMs, directivesOf, type Fields, fieldOf, linesOf, normalField, variedNames } from "./caching-fields.ts";

/** How long answers serve: so many ms after they came, whatever they say; as long as they say; or never without asking (null). */
export type CacheMode = number | "auto" | null;

/** What caching goes by in a request. Names of fields in lower case; null: the request does not have it. */
export interface AskedRequest {
  readonly method: string;
  field(name: string): string | null;
}

export type Use =
  | { readonly kind: "serve" }
  /** Ask whether it still holds, with these fields in the request. */
  | { readonly kind: "validate"; readonly headers: Readonly<Record<string, string>> }
  /** It does not help. */
  | { readonly kind: "none" };

/** Fresh by default for a tenth of their age (RFC 9110 §15.1, RFC 9111 §4.2.2). */
const HEURISTIC: ReadonlySet<number> = new Set([200, 203, 204, 300, 301, 308, 404, 405, 410, 414]);
const HEURISTIC_SHARE = 0.1;
const MAX_HEURISTIC_MS = 24 * 3_600_000;
/** Whose meaning for caches is known; only these may be stored in spite of no-store, with must-understand (RFC 9111 §5.2.2.3). */
const UNDERSTOOD: ReadonlySet<number> = new Set([...HEURISTIC, 302, 303, 307, 400, 401, 403]);
const HOP_BY_HOP: ReadonlySet<string> = new Set([
  ...["connection", "keep-alive", "proxy-authenticate", "proxy-authentication-info", "proxy-authorization", "proxy-connection"],
  ...["te", "trailer", "transfer-encoding", "upgrade"],
]);
/** They describe the stored body, which a 304 does not bring (RFC 9111 §3.2). */
const OF_THE_BODY: ReadonlySet<string> = new Set(["content-length", "content-encoding", "content-range"]);
/** A request with one of these asks for something else than the stored answer. */
const OTHER_WISHES = ["if-match", "if-unmodified-since", "if-range", "range"];

/** Whether the cache has a say in it at all: a plain GET or HEAD, which may ask for what changed. */
export function isCacheable({ method, field }: AskedRequest): boolean {
  return (method === "GET" || method === "HEAD") && !OTHER_WISHES.some((name) => field(name) !== null);
}

/** It asks for what changed since an answer of its own: the question is passed on as it is. */
export function isConditional({ field }: AskedRequest): boolean {
  return field("if-none-match") !== null || field("if-modified-since") !== null;
}

/** Whether a 304 to the request's own question tells that the stored answer holds: it asked for the same. */
export function asksFor(stored: Pick<StoredResponse, "headers">, { field }: AskedRequest): boolean {
  const conditions = conditionsFor(stored);
  return conditions !== null && Object.entries(conditions).every(([name, value]) => field(name.toLowerCase()) === value);
}

/** RFC 9111 §4.4: a method that is not known to be safe. */
export function isUnsafe(method: string): boolean {
  return !["GET", "HEAD", "OPTIONS", "TRACE"].includes(method);
}

function askedDirectives(asked: AskedRequest): Directives {
  const own = asked.field("cache-control");
  if (own !== null) return directivesOf(own);
  // RFC 9111 §5.4.
  return directivesOf(asked.field("pragma"));
}

export interface Answered {
  readonly status: number;
  readonly headers: Fields;
}

/** Whether this answer is kept. Errors that pass (5xx, 408, 425, 429) never reach this; parts (206) and empty confirmations (304) are no pages. */
export function isStorable(answer: Answered, asked: AskedRequest, mode: CacheMode): boolean {
  const { status, headers } = answer;
  if (status < 200 || status === 206 || status === 304 || status >= 500) return false;
  const moved = status >= 300 && status < 400;
  // Going round by way of a cookie: served again without the cookie, it would be a loop.
  if (moved && fieldOf(headers, "set-cookie") !== null) return false;
  return mode === "auto" ? isStorableByRules(answer, asked) : status < 400 || status === 404 || status === 410;
}

/** RFC 9111 §3, for a shared cache. */
function isStorableByRules({ status, headers }: Answered, asked: AskedRequest): boolean {
  const said = directivesOf(fieldOf(headers, "cache-control"));
  if (askedDirectives(asked).has("no-store")) return false;
  const understood = UNDERSTOOD.has(status);
  if (said.has("must-understand") ? !understood : said.has("no-store")) return false;
  if (said.has("private")) return false;
  // RFC 9111 §3.5.
  if (asked.field("authorization") !== null && !["public", "s-maxage", "must-revalidate"].some((name) => said.has(name))) return false;
  return ["public", "max-age", "s-maxage"].some((name) => said.has(name)) || fieldOf(headers, "expires") !== null || HEURISTIC.has(status);
}

/** In ms (RFC 9111 §4.2.3). A clock set back does not make it younger than it came. */
export function currentAge(stored: Pick<StoredResponse, "headers" | "requestedAt" | "respondedAt">, now: EpochMs): number {
  const date = cacheDate(linesOf(stored.headers, "date")[0], now) ?? stored.respondedAt;
  const apparent = Math.max(0, stored.respondedAt - date);
  const corrected = ageMs(stored.headers) + Math.max(0, stored.respondedAt - stored.requestedAt);
  return Math.max(apparent, corrected) + Math.max(0, now - stored.respondedAt);
}

/** In ms (RFC 9111 §4.2.1, §4.2.2), for a shared cache. What cannot be read means stale. */
export function freshnessLifetime({ status, headers, respondedAt }: Pick<StoredResponse, "status" | "headers" | "respondedAt">, now: EpochMs): number {
  const said = directivesOf(fieldOf(headers, "cache-control"));
  for (const name of ["s-maxage", "max-age"]) {
    const value = said.get(name);
    if (value !== undefined) return deltaMs(value) ?? 0;
  }
  const date = cacheDate(linesOf(headers, "date")[0], now) ?? respondedAt;
  const expires = linesOf(headers, "expires")[0];
  if (expires !== undefined) return Math.max(0, (cacheDate(expires, now) ?? date) - date);
  const modified = cacheDate(linesOf(headers, "last-modified")[0], now);
  if (modified === null || !(HEURISTIC.has(status) || said.has("public"))) return 0;
  return Math.min(Math.max(0, date - modified) * HEURISTIC_SHARE, MAX_HEURISTIC_MS);
}

/** What the request said in the fields in which later ones must equal it: those of Vary and, but by the rules of `auto`, which let pass only what is for all, Authorization. */
export function variedFields(headers: Fields, asked: AskedRequest, mode: CacheMode, digest: (text: string) => string): Record<string, string | null> {
  const names = new Set(variedNames(headers) ?? []);
  if (mode !== "auto" && asked.field("authorization") !== null) names.add("authorization");
  return Object.fromEntries([...names].map((name) => [name, keptField(name, asked, digest)]));
}

/** As it is kept: secrets are told apart by their digest and stand nowhere. */
function keptField(name: string, asked: AskedRequest, digest: (text: string) => string): string | null {
  const value = asked.field(name);
  if (value === null) return null;
  return name === "cookie" || name === "authorization" || name === "proxy-authorization" ? digest(value) : normalField(value);
}

/** RFC 9111 §4.1. Where the user set the duration, `*` and Cookie do not count: they would keep most sites out. Without a network only Authorization does. */
function matches(stored: StoredResponse, asked: AskedRequest, rules: UseRules): boolean {
  const { offline } = rules;
  const byRules = rules.mode === "auto" && !offline;
  if (byRules && variedNames(stored.headers) === null) return false;
  // Stored without credentials: whoever has some may see another page.
  if (!byRules && !offline && !("authorization" in stored.varied) && asked.field("authorization") !== null) return false;
  const counts = (name: string) => name === "authorization" || (!offline && (byRules || name !== "cookie"));
  return Object.entries(stored.varied).every(([name, value]) => !counts(name) || keptField(name, asked, rules.digest) === value);
}

export interface UseRules {
  readonly mode: CacheMode;
  /** There is no network: whatever is stored serves. */
  readonly offline: boolean;
  readonly now: EpochMs;
  readonly digest: (text: string) => string;
}

/** What a stored answer is good for. A stale one never serves unasked, so that must-revalidate and proxy-revalidate are kept always. */
export function useOf(stored: StoredResponse, asked: AskedRequest, rules: UseRules): Use {
  const { mode, offline, now } = rules;
  if (!matches(stored, asked, rules)) return { kind: "none" };
  if (offline) return { kind: "serve" };
  if (mode === "auto" ? isFresh(stored, asked, now) : mode !== null && isWithin(stored, mode, now)) return { kind: "serve" };
  const headers = conditionsFor(stored);
  return headers === null ? { kind: "none" } : { kind: "validate", headers };
}

/** An answer from the future came before the clock was set back: it does not serve for ever. */
function isWithin({ respondedAt }: StoredResponse, durationMs: number, now: EpochMs): boolean {
  return Math.abs(now - respondedAt) < durationMs;
}

function isFresh(stored: StoredResponse, asked: AskedRequest, now: EpochMs): boolean {
  const wanted = askedDirectives(asked);
  // It may have been stored for a duration, without these rules.
  if (!isStorableByRules(stored, asked)) return false;
  if (wanted.has("no-cache") || directivesOf(fieldOf(stored.headers, "cache-control")).has("no-cache")) return false;
  const age = currentAge(stored, now);
  const left = freshnessLifetime(stored, now) - age;
  const oldest = wanted.get("max-age");
  if (oldest !== undefined && age > (deltaMs(oldest) ?? 0)) return false;
  const longer = wanted.get("min-fresh");
  return left > 0 && (longer === undefined || left >= (deltaMs(longer) ?? Infinity));
}

/** The validators as the server wrote them (RFC 9111 §4.3.1); null: it gave none. */
export function conditionsFor({ headers }: Pick<StoredResponse, "headers">): Readonly<Record<string, string>> | null {
  const etag = linesOf(headers, "etag")[0];
  const modified = linesOf(headers, "last-modified")[0];
  if (etag === undefined && modified === undefined) return null;
  return { ...(etag === undefined ? {} : { "If-None-Match": etag }), ...(modified === undefined ? {} : { "If-Modified-Since": modified }) };
}

/** What is kept of the head of an answer: all but the fields of the connection (RFC 9111 §3.1). */
export function keptHeaders(headers: Fields): Fields {
  const named = linesOf(headers, "connection").flatMap((line) => line.split(",").map((name) => name.trim().toLowerCase()));
  return headers.filter(([name]) => !HOP_BY_HOP.has(name) && !named.includes(name));
}

/** The stored head brought up to date by that of a 304 (RFC 9111 §3.2, §4.3.4). */
export function mergedHeaders(stored: Fields, confirmed: Fields): Fields {
  const fresh = keptHeaders(confirmed).filter(([name]) => !OF_THE_BODY.has(name));
  const replaced = new Set(fresh.map(([name]) => name));
  // An Age and a Date that the 304 does not repeat would make it older than it is.
  return [...stored.filter(([name]) => !replaced.has(name) && name !== "age" && name !== "date"), ...fresh];
}

/** Whether a 304 speaks of the stored answer: it may name the entity tag, weak or strong (RFC 9111 §4.3.4). */
export function confirms(stored: Fields, confirmed: Fields): boolean {
  const opaque = (fields: Fields) => linesOf(fields, "etag")[0]?.replace(/^W\//, "");
  const named = opaque(confirmed);
  return named === undefined || opaque(stored) === undefined || named === opaque(stored);
}

/** The head with which a stored answer serves: its Age is that of now (RFC 9111 §5.1). */
export function servedHeaders(stored: StoredResponse, now: EpochMs): Fields {
  return [...stored.headers.filter(([name]) => name !== "age"), ["age", String(Math.floor(currentAge(stored, now) / 1_000))]];
}
