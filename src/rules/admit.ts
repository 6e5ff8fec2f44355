/** The only door into the frontier: which links, redirect targets and seeds become requests, and why the others do not. Does not fetch, wait or remember. */
import { hash } from "node:crypto";
import type { Extraction } from "../core/page.ts";
import type { EdgeRecord, Once, Output, SkippedRecord, SkipReason } from "../core/records.ts";
import type { CrawlRequest, FingerprintSeed, Hop, RequestRest } from "../core/request.ts";
import type { Scope } from "./scope.ts";
import type { Traps } from "./traps.ts";
import { fingerprint, fingerprintOf, hostKeyOf, type NormalUrl, originOf, parseUrl } from "./url.ts";

/** What admission depends on. One per run. */
export interface AdmitRules {
  readonly scope: Scope;
  readonly seed: FingerprintSeed;
  readonly maxDepth: number | null;
  /** Obey nofollow. */
  readonly robots: boolean;
  /** Collect `found` and `edges` for outputs that ask for them. */
  readonly found: boolean;
  readonly edges: boolean;
  /** Null: no rule is on. */
  readonly traps: Traps | null;
  /** Links that the trap rules let pass lately: most links of a page have been asked about before. */
  readonly passed: RecentIds;
  /** Collect skipped records; counting needs them too. */
  readonly skipped: boolean;
}

/** A small lossy set of fingerprints: a new one may push out another. */
export interface RecentIds {
  has(hi: number, lo: number): boolean;
  add(hi: number, lo: number): void;
}

const RECENT = 1 << 15;

export function createRecentIds(): RecentIds {
  const ids = new Int32Array(RECENT * 2);
  return {
    has(hi, lo) {
      const at = (lo & (RECENT - 1)) * 2;
      return ids[at] === hi && ids[at + 1] === lo;
    },
    add(hi, lo) {
      const at = (lo & (RECENT - 1)) * 2;
      ids[at] = hi;
      ids[at + 1] = lo;
    },
  };
}

/** What came of a page's links. */
export interface Admitted {
  readonly requests: CrawlRequest[];
  readonly skipped: Once<SkippedRecord>[];
  readonly found: Once<string>[];
  readonly edges: EdgeRecord[];
}

const scratch = new Int32Array(2);
const NONE: readonly never[] = [];

/** An Output that says nothing. */
export const emptyOutput: Output = { page: null, listed: false, skipped: NONE, found: NONE, edges: NONE };

/** The request for a canonical URL. */
export function makeRequest(
  url: string,
  seed: FingerprintSeed,
  about: { hop: Hop; depth: number; referrer: string | null; priority?: number; rest?: RequestRest | null },
): CrawlRequest {
  fingerprint(url, seed, scratch);
  return {
    url,
    idHi: scratch[0]!,
    idLo: scratch[1]!,
    host: hostKeyOf(url),
    hop: about.hop,
    depth: about.depth,
    priority: about.priority ?? 0,
    referrer: about.referrer,
    rest: about.rest ?? null,
  };
}

/** A skipped record under the fingerprint of its URL. */
export function makeSkip(seed: FingerprintSeed, skipped: SkippedRecord): Once<SkippedRecord> {
  fingerprint(skipped.url, seed, scratch);
  return { idHi: scratch[0]!, idLo: scratch[1]!, value: skipped };
}

/**
 * The links of a page: those that become requests, and a reason for every other one.
 * The order of the checks decides which reason is given: nofollow, scope, exclude, follow, what the scraper chose, depth, trap.
 */
export function admitLinks(
  rules: AdmitRules,
  from: CrawlRequest,
  extraction: Extraction,
  pageNofollow: boolean,
  /** A scraper chose what is followed: these URLs, and nothing else. */
  chosen: ReadonlySet<string> | null = null,
): Admitted {
  const out: Admitted = { requests: [], skipped: [], found: [], edges: [] };
  const { scope, seed, maxDepth, robots, traps, passed } = rules;
  const depth = from.depth + 1;
  const referrer = from.url;
  const ownPrefix = `${originOf(from.url)}/`;
  const tooDeep = maxDepth !== null && depth > maxDepth;
  const { links, nofollow, sentAs } = extraction;
  for (let i = 0; i < links.length; i++) {
    const url = links[i]!;
    fingerprint(url, seed, scratch);
    const idHi = scratch[0]!;
    const idLo = scratch[1]!;
    const marked = nofollow?.has(url) === true;
    if (rules.found && scope.lists(url)) out.found.push({ idHi, idLo, value: url });
    if (rules.edges) out.edges.push(marked ? { from: referrer, to: url, nofollow: true } : { from: referrer, to: url });
    if (chosen?.has(url)) continue;
    let reason: SkipReason | null = null;
    let rule: string | undefined;
    if (robots && (pageNofollow || marked)) {
      reason = "nofollow";
      rule = marked ? "rel=nofollow" : "robots: nofollow";
    } else {
      const verdict = scope.verdict(url);
      if (verdict !== null) {
        reason = verdict.reason;
        rule = verdict.rule;
      } else if (!scope.follows(url)) reason = "not-followed";
      else if (chosen !== null) {
        reason = "not-followed";
        rule = "the scraper did not follow it";
      } else if (tooDeep) {
        reason = "depth";
        rule = `--depth ${maxDepth}`;
      } else if (traps !== null && !passed.has(idHi, idLo)) {
        const trap = traps.verdict(url, referrer, depth);
        if (trap === null) passed.add(idHi, idLo);
        else {
          reason = "trap";
          rule = trap.rule;
        }
      }
    }
    if (reason !== null) {
      if (rules.skipped)
        out.skipped.push({ idHi, idLo, value: rule === undefined ? { url, referrer, depth, reason } : { url, referrer, depth, reason, rule } });
      continue;
    }
    const sent = sentAs?.get(url);
    const host = url.startsWith(ownPrefix) ? from.host : hostKeyOf(url);
    out.requests.push({ url, idHi, idLo, host, hop: "link", depth, priority: 0, referrer, rest: sent === undefined ? null : { sentAs: sent } });
  }
  if (rules.skipped) {
    for (const { href, reason } of extraction.rejected) out.skipped.push(makeSkip(seed, { url: href, referrer, depth, reason }));
  }
  return out;
}

/** A seed as a user writes it: with a scheme, or a bare host. */
export type SeedVerdict =
  | { readonly kind: "seed"; readonly request: CrawlRequest; readonly credentials: string | null }
  | { readonly kind: "bad"; readonly why: string };

/**
 * One seed line → its request. A bare host ("example.com/path") is tried as https, then http, unless `bareScheme` says which;
 * `bareScheme` "refuse" makes it bad (input files).
 */
export function admitSeed(text: string, seed: FingerprintSeed, bareScheme: "try-both" | "http" | "https" | "refuse"): SeedVerdict {
  const trimmed = text.trim();
  if (trimmed === "") return { kind: "bad", why: "empty line" };
  const hasScheme = /^[a-z][a-z0-9+.-]*:(?!\d+(?:[/?#]|$))/i.test(trimmed);
  if (!hasScheme && bareScheme === "refuse") return { kind: "bad", why: "no scheme; write http:// or https://, or give --default-scheme" };
  const scheme = bareScheme === "http" ? "http" : "https";
  const parsed = parseUrl(hasScheme ? trimmed : `${scheme}://${trimmed.replace(/^\/\//, "")}`);
  if ("reject" in parsed) return { kind: "bad", why: seedProblem(parsed.reject) };
  const rest: { sentAs?: string; fallback?: string } = {};
  if (parsed.sentAs !== null) rest.sentAs = parsed.sentAs;
  if (!hasScheme && bareScheme === "try-both") rest.fallback = parsed.url.replace(/^https:/, "http:");
  const request = makeRequest(parsed.url, seed, { hop: "seed", depth: 0, referrer: null, rest: Object.keys(rest).length > 0 ? rest : null });
  return { kind: "seed", request, credentials: parsed.credentials };
}

function seedProblem(reject: "scheme" | "invalid-url" | "url-too-long"): string {
  switch (reject) {
    case "scheme":
      return "only http:// and https:// are crawled";
    case "invalid-url":
      return "not a URL";
    case "url-too-long":
      return "longer than a URL may be";
  }
}

/** What a redirect leads to. */
export type RedirectVerdict =
  | { readonly kind: "follow"; readonly request: CrawlRequest; readonly newSeed: string | null }
  /** The chain ends here with the record `redirected`. */
  | { readonly kind: "outside"; readonly url: string; readonly reason: SkipReason; readonly rule: string }
  /** The chain ends here with the record `failed`, code `redirect`. */
  | { readonly kind: "broken"; readonly why: string };

/** What a redirect takes along of a request made by a scraper: RFC 9110 §15.4. Credentials stay with the origin that they were meant for. */
function carriedBy({ url, rest }: CrawlRequest, target: string, status: number): RequestRest {
  if (rest === null) return NOTHING;
  const { method = "GET", body, headers, scrape } = rest;
  const keeps = method === "HEAD" || status === 307 || status === 308 || (method !== "POST" && status !== 303);
  const gone = (name: string): boolean =>
    (originOf(url) !== originOf(target) && /^(?:authorization|cookie|proxy-authorization)$/i.test(name)) || (!keeps && /^content-/i.test(name));
  const kept = headers === undefined ? undefined : Object.fromEntries(Object.entries(headers).filter(([name]) => !gone(name)));
  return {
    ...(keeps && method !== "GET" ? { method } : {}),
    ...(keeps && body !== undefined ? { body } : {}),
    ...(kept !== undefined && Object.keys(kept).length > 0 ? { headers: kept } : {}),
    ...(scrape === undefined ? {} : { scrape }),
  };
}

const NOTHING: RequestRest = {};

/** What tells requests apart: the URL alone for a plain GET, else method, URL and digest of the body (product contract, section 6). */
export function identityOf({ url, rest }: Pick<CrawlRequest, "url" | "rest">): string {
  const { method = "GET", body } = rest ?? NOTHING;
  return method === "GET" && body === undefined ? url : `${method} ${url} ${body === undefined ? "" : hash("sha256", body, "hex")}`;
}

/** Redirects followed before the next one fails. */
export const MAX_REDIRECTS = 20;

/**
 * The request for the target of a redirect, or why there is none. `owed` are the outputs of the chain so far, this hop included, in case it goes on.
 * A target inside the chain is followed only with a cookie that is new since the chain last went back into itself.
 */
export function admitRedirect(
  rules: AdmitRules,
  from: CrawlRequest,
  to: { target: NormalUrl | null; status: number; cookies: readonly string[]; owed: readonly Output[] },
): RedirectVerdict {
  const { target } = to;
  if (target === null) return { kind: "broken", why: "the Location cannot be parsed as a URL" };
  const chain = from.rest?.redirects ?? NONE;
  if (chain.length >= MAX_REDIRECTS) return { kind: "broken", why: `more than ${MAX_REDIRECTS} redirects` };
  const before = from.rest?.chainCookies ?? NONE;
  const fresh = to.cookies.filter((cookie) => !before.includes(cookie));
  const anyFresh = fresh.length > 0 || from.rest?.freshCookie === true;
  // A form that was sent, and the page that is shown next at the same URL: another request.
  const carried = carriedBy(from, target.url, to.status);
  const sent = from.rest?.method !== undefined && carried.method === undefined;
  const back = (target.url === from.url && !sent) || chain.some((hop) => hop.url === target.url);
  if (back && !anyFresh) return { kind: "broken", why: target.url === from.url ? "redirects to itself" : `redirect loop back to ${target.url}` };
  const fromSeed = from.hop === "seed" || from.rest?.fromSeed === true;
  const verdict = rules.scope.verdict(target.url);
  if (verdict !== null && !(fromSeed && verdict.reason === "out-of-scope")) {
    return { kind: "outside", url: target.url, reason: verdict.reason === "out-of-scope" ? "redirect-out-of-scope" : verdict.reason, rule: verdict.rule };
  }
  const rest: RequestRest = {
    redirects: [...chain, { url: from.url, status: to.status }],
    // The URL it goes back to gets its own record: what was owed for it is void.
    owed: to.owed.filter((output) => output.page?.url !== target.url),
    ...(target.sentAs === null ? {} : { sentAs: target.sentAs }),
    ...(fresh.length + before.length > 0 ? { chainCookies: [...before, ...fresh] } : {}),
    ...(anyFresh && !back ? { freshCookie: true } : {}),
    ...(fromSeed ? { fromSeed: true } : {}),
    ...(back ? { reopen: true } : {}),
    ...carried,
  };
  const made = makeRequest(target.url, rules.seed, { hop: "redirect", depth: from.depth, referrer: from.referrer, priority: from.priority, rest });
  const request = rest.method === undefined && rest.body === undefined ? made : { ...made, ...fingerprintOf(identityOf(made), rules.seed) };
  // A trap may lead on by redirects as well as by links.
  const trap = rules.traps?.verdict(target.url, from.referrer, from.depth) ?? null;
  if (trap !== null) return { kind: "outside", url: target.url, reason: "trap", rule: trap.rule };
  return { kind: "follow", request, newSeed: fromSeed && verdict !== null ? target.url : null };
}
