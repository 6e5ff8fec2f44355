/** What the frontier holds: one request to make, and the names by which requests are told apart. Not how it is made (fetch) or whether (rules/admit). */

import type { Output } from "./records.ts";

/** Hostname in ASCII, plus ":port" unless the port is 80 or 443: the unit of politeness. http and https of a host share it. */
export type HostKey = string;

/** `scheme://host[:port]` without a trailing slash: the unit of robots.txt (RFC 9309 §2.3). */
export type Origin = string;

/** How a request came to be. `robots` requests are never counted and have no page record. */
export type Hop = "seed" | "link" | "redirect" | "sitemap" | "robots";

/** The two signed 32-bit halves of a 64-bit keyed fingerprint (rules/url.ts `fingerprint`). */
export interface Fingerprint {
  readonly idHi: number;
  readonly idLo: number;
}

/** The 128 random bits that key the fingerprints of one crawl: a hostile site could otherwise make its pages collide. */
export type FingerprintSeed = readonly [number, number, number, number];

/** One request. Never changes after `admit` made it. Plain data: it may be written to a store and read back by another process. */
export interface CrawlRequest extends Fingerprint {
  /** Canonical URL without fragment and credentials: identity, and what records show. */
  readonly url: string;
  readonly host: HostKey;
  readonly hop: Hop;
  /** Links from a seed. A claim hands out the smallest depth known. */
  readonly depth: number;
  /** −99 … 99, larger first within a host. */
  readonly priority: number;
  /** Canonical URL of the page on which it was found; null for seeds. */
  readonly referrer: string | null;
  /** Everything a plain link does not need. */
  readonly rest: RequestRest | null;
}

/** The uncommon parts of a request. Every field may be absent. */
export interface RequestRest {
  /** Default GET. */
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Uint8Array;
  /** Full URL to send where it differs from the canonical `url` (escapes as the page wrote them). */
  readonly sentAs?: string;
  /** `user:password` from the URL, percent-decoded; sent as Basic authorization, never recorded. */
  readonly credentials?: string;
  /** The chain of redirects that led here, oldest first. */
  readonly redirects?: readonly RedirectHop[];
  /** `name=value` of every Set-Cookie in the chain: going back into the chain is allowed once per new cookie. */
  readonly chainCookies?: readonly string[];
  /** A cookie came since the chain last went back into itself. */
  readonly freshCookie?: boolean;
  /** Page records of the chain's hops, written when the chain ends. */
  readonly owed?: readonly Output[];
  /** The chain started at a seed: its target widens the scope. */
  readonly fromSeed?: boolean;
  /** For a bare host given as a seed: the URL to try when this one cannot be reached. */
  readonly fallback?: string;
  /** For hop "robots": whose robots.txt this is (the target of a redirect lies elsewhere). */
  readonly robotsFor?: Origin;
  /** What a scraper asked for with the request (core/scraping.ts). */
  readonly scrape?: ScrapeRest;
  /** Admit this request although its URL was seen (a redirect back into its own chain with a new cookie). */
  readonly reopen?: boolean;
}

/** What `follow` says of a request, as far as it concerns the page's handler and its series. `data`: JSON text. */
export interface ScrapeRest {
  readonly handler?: string;
  readonly data?: string;
  readonly series?: string;
  readonly index?: number;
  readonly oldRuns?: Readonly<Record<string, number>>;
}

/** One answered redirect. */
export interface RedirectHop {
  readonly url: string;
  readonly status: number;
}
