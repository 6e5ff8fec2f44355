/** Contracts between the loop and the user's scraper code, which may run inline or in another thread: what it is given, what it says. Plain data that can be posted. */
import type { StopMode } from "./events.ts";
import type { ValueChange } from "./frontier.ts";
import type { LogLevel } from "./log.ts";
import type { BadItem, ItemRecord } from "./records.ts";

/** The textbook's callback: what it returns is added to the page's own links. */
export type Scrape = (url: string, html: string) => Iterable<string> | void | Promise<Iterable<string> | void>;

/** A fetched page on its way to the scraper. */
export interface ScrapeTask {
  /** Canonical URL of the page, without fragment. */
  readonly url: string;
  /** The URL as it was sent, against which references are resolved where the document has no base. */
  readonly sentAs: string;
  readonly status: number;
  /** In the order of the answer, names in lower case. */
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly contentType: string | null;
  /** Decoded and bounded. The task owns it: it may be transferred to another thread. */
  readonly body: Uint8Array;
  readonly depth: number;
  readonly referrer: string | null;
  readonly method: string;
  readonly priority: number;
  /** Tries before this one. */
  readonly attempt: number;
  /** Null: the handler of seeds. */
  readonly handler: string | null;
  /** JSON text; null: `{}`. */
  readonly data: string | null;
  readonly series: string | null;
  readonly index: number | null;
  /** By watermark key: how many values in a row were old at the end of the page of this series that led here. */
  readonly oldRuns: Readonly<Record<string, number>> | null;
}

/** One call of `follow`, checked but for the reference itself. */
export interface Follow {
  /** As the handler gave it. */
  readonly href: string;
  readonly handler: string | null;
  readonly priority: number;
  /** JSON text. */
  readonly data: string | null;
  readonly series: string | null;
  readonly index: number | null;
  /** Upper case; null: GET. */
  readonly method: string | null;
  readonly body: Uint8Array | null;
  readonly headers: Readonly<Record<string, string>> | null;
  readonly dontDedupe: boolean;
  readonly oldRuns: Readonly<Record<string, number>> | null;
}

/** Everything that a scraper said of one page. Nothing of it is true before the page is settled. */
export interface Scraped {
  /** What a plain function returned, to be added to the page's own links; null: nothing. */
  readonly links: readonly string[] | null;
  readonly follows: readonly Follow[];
  readonly items: readonly ItemRecord[];
  readonly badItems: readonly BadItem[];
  /** State and watermarks. */
  readonly values: readonly ValueChange[];
  readonly stop: { readonly mode: StopMode; readonly reason: string | null } | null;
  readonly stopSeries: boolean;
}

export type ScrapeOutcome =
  | { readonly kind: "scraped"; readonly scraped: Scraped }
  /** The user's code threw: `message` for the record, `stack` for the log. */
  | { readonly kind: "threw"; readonly message: string; readonly stack: string | null }
  /** It hung, ran out of memory or ended its thread, twice with this page. */
  | { readonly kind: "crashed"; readonly message: string }
  /** Given up by us. */
  | { readonly kind: "aborted" };

export interface ScrapingView {
  /** Threads; 0: the loop's own. */
  readonly workers: number;
  readonly busy: number;
  /** Pages fetched and not yet begun with, and their bytes. */
  readonly waiting: number;
  readonly waitingBytes: number;
  /** Share of one core that each thread used on average since the start, 0 … 1; 0 inline. */
  readonly cpuShare: number;
}

/** The user's scraper as the loop sees it. */
export interface Scraping {
  /**
   * `links`: a plain function, whose links are added to the page's own. `handlers`: only what it follows is crawled.
   * `items`: it gives items and leaves the links alone.
   */
  readonly kind: "links" | "handlers" | "items";
  /** Changes whenever a page might be understood differently: the module's version, the fields of `-e`. */
  readonly version: string;
  /** The handler that a request without one gets; null where there are none. */
  readonly first: string | null;
  /** Never rejects for what the user's code does. Pages of higher priority first, then by arrival. */
  run(task: ScrapeTask): Promise<ScrapeOutcome>;
  /** The buffer before the parse workers is full: nothing more should be fetched. */
  full(): boolean;
  /** Calls back once when a full buffer has room. */
  onSpace(callback: () => void): void;
  /** Values that handlers may read, as they were settled: JSON text, null for deleted. */
  learn(values: Iterable<readonly [key: string, value: string | null]>): void;
  view(): ScrapingView;
  /** Ends what runs and waits, as `aborted`. */
  abort(): void;
  [Symbol.asyncDispose](): Promise<void>;
}

/** What a scraper's code tells while it runs. */
export type ScrapeLog = (level: LogLevel, message: string, fields: Readonly<Record<string, unknown>>) => void;
