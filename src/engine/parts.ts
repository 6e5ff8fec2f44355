/** What a run is given: every concrete part behind its contract, put together by assemble.ts. Types only. */
import type { Clock } from "../core/clock.ts";
import type { CrawlEvent, FinishReason } from "../core/events.ts";
import type { Frontier, FrontierHooks } from "../core/frontier.ts";
import type { Logger } from "../core/log.ts";
import type { Fetcher } from "../core/outcome.ts";
import type { ExtractPage } from "../core/page.ts";
import type { HostKey, Origin } from "../core/request.ts";
import type { Scraping } from "../core/scraping.ts";
import type { Gate, Sink } from "../core/sink.ts";
import type { CrawlSpec } from "../core/spec.ts";
import type { VisitBook } from "../core/visits.ts";
import type { AdmitRules } from "../rules/admit.ts";
import type { NormalUrl } from "../rules/url.ts";
import type { Loop, LoopInput } from "./run.ts";

/** Called by the run as it goes. What one throws ends the crawl. */
export interface CrawlHooks {
  /** Before each request of a page (robots.txt apart). May return headers to add. */
  readonly beforeRequest?: (request: {
    readonly url: string;
    readonly depth: number;
    readonly attempt: number;
  }) => { readonly headers?: Readonly<Record<string, string>> } | void;
  /** After each answer of a page, also those that will be retried. The body is valid during the call only. */
  readonly afterResponse?: (answer: {
    readonly url: string;
    readonly status: number;
    readonly header: (name: string) => string | null;
    readonly body: Uint8Array;
  }) => void;
  readonly onSkip?: (skipped: {
    readonly url: string;
    readonly referrer: string | null;
    readonly depth: number;
    readonly reason: string;
    readonly rule?: string;
  }) => void;
  readonly onRetry?: (retry: {
    readonly url: string;
    readonly code: string;
    readonly status: number | null;
    readonly attempt: number;
    readonly afterMs: number;
  }) => void;
  /** Each item as it is written, with `_meta` unless that is off. */
  readonly onItem?: (item: Readonly<Record<string, unknown>>, about: { readonly type: string; readonly key: string | null }) => void;
}

/** What parse/sitemap.ts does, as far as the loop knows it. */
export interface SitemapTools {
  /** Hands over what the file lists, in its order; `pause` is awaited now and then. Never throws for what the file is. */
  readonly readSitemap: (
    bytes: Uint8Array,
    options: {
      readonly url: string;
      readonly contentType: string | null;
      readonly onUrl: (loc: NormalUrl) => void;
      readonly onSitemap: (loc: NormalUrl) => void;
    },
    pause: () => Promise<void>,
  ) => Promise<{ readonly kind: string; readonly urls: number; readonly sitemaps: number; readonly error: string | null }>;
  /** May a sitemap list that page (sitemaps.org, cross submits)? `namedBy`: hosts whose robots.txt names it. */
  readonly mayList: (sitemapUrl: string, pageUrl: string, namedBy: readonly string[], siteOf: (host: string) => string) => boolean;
}

/** How a run ended, for the store that keeps it. */
export interface RunEnd {
  readonly reason: FinishReason;
  /** Nothing of it is to be resumed, unless a limit is raised. */
  readonly over: boolean;
  readonly elapsedMs: number;
  /** Requests that are left. */
  readonly left: number;
}

/** A frontier and the sinks that belong to it. */
export interface OpenedStore {
  readonly frontier: Frontier;
  readonly sinks: readonly Sink[];
  /** Closed while a sink has too much to do. */
  readonly gates: readonly Gate[];
  /** What became of an earlier run, in one line. */
  readonly say: string | null;
  /** Rejects when what is written beside the loop cannot be written. */
  readonly broken?: Promise<never>;
  /** Other processes work on the same crawl: what they settle and change is looked at now and then. */
  readonly shared?: true;
  /** It goes on without this process: an interruption leaves it, and stops nothing. */
  readonly goesOn?: true;
  /** This process takes no requests of it. */
  readonly looksOn?: boolean;
  /** One of the sinks; null: no visits are kept. */
  readonly visits: (VisitBook & { whole(): void }) | null;
  readonly elapsedBeforeMs: number;
  /** It goes on where another process ended. */
  readonly resumed: boolean;
  /** Keeps what is to be kept; answers the directory from which the rest can be resumed. Called once, when nothing is in flight. */
  finish(end: RunEnd): Promise<string | null>;
}

/** What a seed changes of what belongs to the crawl (`scope`), and of what its hosts are sent (`seed`). */
export interface SeedGrowth {
  readonly scope: string | null;
  readonly seed: { readonly url: string; readonly host: HostKey; readonly guessed: boolean; readonly credentials: string | null } | null;
}

export interface Parts {
  readonly spec: CrawlSpec;
  /** It goes on with a crawl that has its seeds: none need be given. */
  readonly goesOn?: boolean;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Logger;
  readonly hooks: CrawlHooks;
  /** Loads the user's scraper and starts what runs it; absent: there is none. Throws CrawlError `invalid-options`. */
  readonly openScraping: (() => Promise<Scraping>) | null;
  readonly onEvent: (event: CrawlEvent) => void;
  readonly admit: AdmitRules;
  readonly robotsToken: string;
  /** Decides whether links are extracted and recorded at all, digests computed, … */
  readonly needs: { readonly digest: boolean };
  readonly extract: ExtractPage;
  /** The sitemap parser, loaded when the first sitemap has come. */
  readonly loadSitemaps: () => Promise<SitemapTools>;
  /** Registrable domain of a host, or the host itself. */
  readonly siteOf: (host: string) => string;
  /** Opens frontier and sinks; `hooks` are the engine's, `use` is told of the sinks before anything can be written to them. */
  readonly openStore: (hooks: FrontierHooks, use: (sinks: readonly Sink[]) => void) => Promise<OpenedStore>;
  readonly openFetcher: () => Promise<Fetcher>;
  /** Loads what runs the loop in several threads; null: it runs here. */
  readonly loadLoops: (() => Promise<(input: LoopInput) => Loop>) | null;
  /**
   * Hosts that are seeds' hosts, those of them whose seeds are all https, credentials by host, and origins that were only guessed (a bare host as https):
   * shared with the fetcher, grown by the run.
   */
  readonly identity: {
    readonly seedHosts: Set<string>;
    readonly secureHosts: Set<string>;
    readonly auth: Map<string, string>;
    readonly movedSeeds: string[];
    readonly guessed: Set<Origin>;
    /** Told of each seed, and of each URL that widens the scope: other threads must know them too. */
    onGrowth: ((growth: SeedGrowth) => void) | null;
  };
}
