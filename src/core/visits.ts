/** What the last run saw of each page, for crawls that ask only for what changed, and for reading stored pages again. */

import type { RejectedLink } from "./page.ts";
import type { BadItem, ItemRecord, PageRecord } from "./records.ts";
import type { Fingerprint, ScrapeRest } from "./request.ts";
import type { Follow, Scraped } from "./scraping.ts";
import type { Sink } from "./sink.ts";

/** What came of reading a page, as far as a later run needs it. */
export interface Reading {
  /** Which scraper read it: version and handler; null: none. Another one must read it again. */
  readonly readBy: string | null;
  /** What a plain function added to the page's links. */
  readonly links: readonly string[] | null;
  readonly follows: readonly Follow[];
  readonly items: readonly ItemRecord[];
  readonly badItems: readonly BadItem[];
  /** It ended its series, or the run: so does the same page once more. */
  readonly stopSeries?: true;
  /** It met a watermark or a series that ended: a run with such pages does not look at everything. */
  readonly partial?: true;
  readonly stop?: NonNullable<Scraped["stop"]>;
}

/** What a page's extraction says beyond its record. */
export interface LinkFacts {
  readonly base: string | null;
  readonly nofollow: readonly string[];
  readonly sentAs: readonly (readonly [canonical: string, sent: string])[];
  readonly rejected: readonly RejectedLink[];
}

/** The note of one page, part of its Output and written with it. */
export interface Visit extends Fingerprint {
  /** `page`: it was fetched, with its record. `failed`: nothing was learnt, what was known before stands. `gone`: it was there once, and is not. */
  readonly kind: "page" | "failed" | "gone";
  readonly page: PageRecord;
  readonly reading: Reading;
  readonly facts: LinkFacts | null;
  readonly scrape: ScrapeRest | null;
  readonly method: string;
}

/** A sink that can be asked. One writer; a failure is a CrawlError `state-unwritable`. */
export interface VisitBook extends Sink {
  /** The latest visit of an earlier run in which the page was there. */
  find(id: Fingerprint): Visit | null;
  /** Pages that were there in an earlier run, and were not met in this one. Visits may be written meanwhile. */
  missed(): Iterable<Visit>;
  /** What was known of the pages of which this run learnt nothing. */
  failed(): Iterable<Visit>;
}

/** One line of `--changes`: a page, or an item of one. */
export interface ChangeRecord {
  readonly kind: "page" | "item";
  readonly url: string;
  readonly change: "added" | "changed" | "unchanged" | "gone";
  /** Of items. */
  readonly type?: string;
  readonly key?: string;
  /** Names of the fields that changed, in the order of the record. */
  readonly fields?: readonly string[];
}
