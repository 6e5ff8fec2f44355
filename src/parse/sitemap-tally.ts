/** What one sitemap came to so far: addresses resolved, counted and handed over, limits and faults; and the readers of its two forms, lines and XML. */
import type { EpochMs } from "../core/clock.ts";
import { MAX_URL_LENGTH, type NormalUrl, parseUrl } from "../rules/url.ts";
import { createEntryReader, type EntryReader, type RawEntry, type XmlKind } from "./sitemap-entries.ts";
import { parseSitemapDate } from "./sitemap-rules.ts";

const FREQUENCIES = ["always", "hourly", "daily", "weekly", "monthly", "yearly", "never"] as const;
export type ChangeFrequency = (typeof FREQUENCIES)[number];

/** What the file says of one page or sitemap; null where it says nothing that can be read. */
export interface SitemapFacts {
  readonly lastmod: EpochMs | null;
  readonly changefreq: ChangeFrequency | null;
  /** 0 … 1. */
  readonly priority: number | null;
}

export interface SitemapOptions {
  /** Where the bytes came from; relative addresses are resolved against it. */
  readonly url: string;
  /** Only its charset counts: the bytes say what kind of file it is. */
  readonly contentType: string | null;
  /** Each page in file order, as often as it is named. */
  readonly onUrl: (loc: NormalUrl, facts: SitemapFacts) => void;
  /** Each sitemap of an index. */
  readonly onSitemap: (loc: NormalUrl, facts: SitemapFacts) => void;
  /** Each `xhtml:link rel=alternate` of a page. Default: they are not reported. */
  readonly onAlternate?: (loc: NormalUrl) => void;
  /** Pages and sitemaps taken from one file. Default 1,000,000; the protocol allows 50,000. */
  readonly maxUrls?: number;
  /** Bytes read after decompression. Default 512 MiB; the protocol allows 50 MiB. */
  readonly maxBytes?: number;
  /** Layers of gzip around the file. Default 3. */
  readonly maxLayers?: number;
  /** Longest canonical URL. */
  readonly maxUrlLength?: number;
}

export interface SitemapResult {
  /** `other`: neither a sitemap nor a list of URLs; nothing was taken. `empty`: only white space. */
  readonly kind: XmlKind | "text" | "html" | "other" | "empty";
  readonly urls: number;
  readonly sitemaps: number;
  /** Addresses that are not URLs to crawl; empty ones are not counted. */
  readonly rejected: number;
  /** After decompression. */
  readonly bytes: number;
  /** The first thing that is wrong with the file, in words, or null. All that could be read was taken all the same. */
  readonly error: string | null;
  /** Which limit ended the reading; null: the file was read to its end. */
  readonly limit: "urls" | "bytes" | "layers" | null;
}

const MAX_URLS = 1_000_000;
/** Lines or faults without a single URL after which a file is not what it claims to be. */
const MAX_IDLE = 1000;
/** A longer line is no URL. Characters. */
const MAX_LINE = 65_536;

/** A relative address is one only when it looks like one: `www.example.com/a` and prose are mistakes. */
function isRelative(loc: string): boolean {
  return /^(?:\.{0,2}\/|\?)/.test(loc) || (/^[^\s:/?#&]+(?:[/?#]|$)/.test(loc) && !/^[^/?#]*\.[^/?#]*\/|^www\.|\s/.test(loc));
}

function frequencyOf(text: string): ChangeFrequency | null {
  const lower = text.toLowerCase();
  return FREQUENCIES.find((word) => word === lower) ?? null;
}

function priorityOf(text: string): number | null {
  const value = /^(?:\d+(?:\.\d*)?|\.\d+)$/.test(text) ? Number(text) : Number.NaN;
  return value >= 0 && value <= 1 ? value : null;
}

const NO_FACTS: SitemapFacts = { lastmod: null, changefreq: null, priority: null };

function factsOf(entry: RawEntry): SitemapFacts {
  if (entry.lastmod === "" && entry.changefreq === "" && entry.priority === "") return NO_FACTS;
  return { lastmod: parseSitemapDate(entry.lastmod), changefreq: frequencyOf(entry.changefreq), priority: priorityOf(entry.priority) };
}

/** What one file came to so far, and the limit on URLs. */
export function createTally(options: SitemapOptions) {
  const maxUrls = options.maxUrls ?? MAX_URLS;
  const maxLength = options.maxUrlLength ?? MAX_URL_LENGTH;
  const tally = {
    urls: 0,
    sitemaps: 0,
    rejected: 0,
    faults: 0,
    error: null as string | null, // widened: set by `fault`
    limit: null as SitemapResult["limit"], // widened: set where a limit is met
    done: false,
    fault(what: string): void {
      tally.error ??= what;
      tally.faults++;
      if (tally.faults > MAX_IDLE + 20 * (tally.urls + tally.sitemaps)) tally.done = true;
    },
    /** Null when the address is not a URL to crawl. */
    resolve(loc: string, base: string | null): NormalUrl | null {
      const from = base ?? options.url;
      const hasScheme = /^[a-z][a-z0-9+.-]*:/i.test(loc);
      const parsed = hasScheme ? parseUrl(loc, undefined, maxLength) : isRelative(loc) || loc.startsWith("//") ? parseUrl(loc, from, maxLength) : null;
      if (parsed !== null && !("reject" in parsed)) return parsed;
      tally.rejected++;
      return null;
    },
    take(kind: "page" | "sitemap", loc: NormalUrl, facts: SitemapFacts): void {
      if (tally.done) return;
      if (tally.urls + tally.sitemaps >= maxUrls) {
        tally.limit = "urls";
        tally.done = true;
        return;
      }
      if (kind === "page") {
        tally.urls++;
        options.onUrl(loc, facts);
      } else {
        tally.sitemaps++;
        options.onSitemap(loc, facts);
      }
    },
  };
  return tally;
}
export type Tally = ReturnType<typeof createTally>;

/** Takes the decoded text of a file. */
export interface TextTaker {
  write(text: string): void;
  end(complete: boolean): void;
  readonly kind: () => SitemapResult["kind"];
}

const NO_LIST = "neither XML nor a list of URLs";

/** Text form: one absolute URL a line (sitemaps.org, "text file"). */
export function createLineReader(tally: Tally): TextTaker {
  let rest = "";
  let skipping = false; // the rest of a line that is too long

  function giveUp(): void {
    tally.fault(NO_LIST);
    tally.done = true;
  }

  function line(text: string): void {
    const trimmed = text.trim();
    if (trimmed === "") return;
    const parsed = /^https?:/i.test(trimmed) ? tally.resolve(trimmed, null) : null;
    if (parsed !== null) tally.take("page", parsed, NO_FACTS);
    else {
      if (!/^https?:/i.test(trimmed)) tally.rejected++;
      if (tally.urls === 0 && tally.rejected > MAX_IDLE) giveUp();
    }
  }

  return {
    write(piece) {
      const lines = (rest + piece).split(/\r\n?|\n/);
      rest = lines.pop() ?? "";
      for (const text of lines) {
        if (tally.done) return;
        if (skipping) skipping = false;
        else line(text);
      }
      if (rest.length > MAX_LINE) {
        if (!skipping) tally.rejected++;
        skipping = true;
        rest = "";
        if (tally.urls === 0) giveUp();
      }
    },
    end(complete) {
      if (complete && !skipping && !tally.done) line(rest);
      if (tally.urls === 0 && tally.rejected > 0) tally.fault(NO_LIST);
    },
    kind: () => (tally.urls > 0 ? "text" : tally.rejected > 0 ? "other" : "empty"),
  };
}

export function createXmlReader(tally: Tally, options: SitemapOptions): TextTaker {
  const reader: EntryReader = createEntryReader(options.url, {
    entry(entry) {
      const facts = factsOf(entry);
      for (const loc of entry.locs) {
        const parsed = tally.resolve(loc, entry.base);
        if (parsed !== null) tally.take(entry.kind, parsed, facts);
      }
      if (options.onAlternate === undefined) return;
      for (const loc of entry.alternates) {
        const parsed = tally.done ? null : tally.resolve(loc, entry.base);
        if (parsed !== null) options.onAlternate(parsed);
      }
    },
    fault: tally.fault,
    get done() {
      return tally.done;
    },
  });

  function judge(): void {
    if (reader.kind !== "html" && reader.kind !== "foreign") return;
    tally.error = reader.kind === "html" ? "an HTML page, not a sitemap" : "XML, but not a sitemap";
    tally.done = true;
  }

  return {
    write(text) {
      reader.write(text);
      judge();
    },
    end(complete) {
      reader.end(complete);
      judge();
      if (reader.kind === null) tally.fault("XML without a root element");
    },
    kind: () => (reader.kind === null || reader.kind === "foreign" ? "other" : reader.kind),
  };
}
