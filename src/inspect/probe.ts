/** One page through the very parts of a crawl, watched on its way: what `skein fetch` shows. Robots.txt alone is probe-robots.ts; nothing is written to files. */
import { type AssembleOptions, assemble } from "../assemble.ts";
import { CrawlError } from "../core/errors.ts";
import type { Frontier, RobotsState } from "../core/frontier.ts";
import type { Logger } from "../core/log.ts";
import type { Exchange, Fetcher, FetchOutcome, ResponseHeaders } from "../core/outcome.ts";
import type { Extraction } from "../core/page.ts";
import type { BadItem, ErrorCode, PageRecord } from "../core/records.ts";
import type { Scraped, Scraping } from "../core/scraping.ts";
import type { CrawlSpec } from "../core/spec.ts";
import type { Parts } from "../engine/parts.ts";
import { startSession } from "../engine/session.ts";
import { parseUrl } from "../rules/url.ts";
import { type RobotsVerdictView, verdictOf } from "./probe-verdict.ts";

export type HeaderLine = readonly [name: string, value: string];

/** One request and what came of it, in the order in which they were made. */
export interface ProbeExchange {
  readonly url: string;
  /** A fetch of robots.txt, not of the page. */
  readonly robots: boolean;
  /** Null when no answer came. */
  readonly status: number | null;
  /** Where a redirect led, as the server wrote it. */
  readonly location: string | null;
  readonly headers: readonly HeaderLine[];
  readonly startedAt: string;
  readonly durationMs: number;
  /** Head sent to head received; null when no answer came. */
  readonly latencyMs: number | null;
  readonly error: { readonly code: ErrorCode; readonly message: string } | null;
}

/** A link of the page. */
export interface ProbeLink {
  readonly url: string;
  readonly nofollow?: true;
}

export interface PageProbe {
  /** What was asked for, in canonical form. */
  readonly url: string;
  readonly exchanges: readonly ProbeExchange[];
  /** Every URL's verdict that was needed on the way, in order; empty when robots are not obeyed. */
  readonly robots: readonly RobotsVerdictView[];
  /** The record a crawl would write of the last page of the chain. */
  readonly record: PageRecord | null;
  /** Against what the page's references were resolved; null when the body was not read. */
  readonly base: string | null;
  readonly links: readonly ProbeLink[];
  /** References that are no URLs a crawl could ask for, as written. */
  readonly rejected: readonly { readonly href: string; readonly reason: string }[];
  /** What the scraper said of the page; null without a scraper, or when it failed. */
  readonly scraped: ScrapedView | null;
  readonly retries: number;
}

/** References are resolved where they are URLs. */
export interface ScrapedView {
  readonly links: readonly string[];
  readonly follows: readonly { readonly url: string; readonly handler: string | null; readonly series?: string; readonly index?: number }[];
  readonly items: readonly { readonly type: string; readonly item: unknown }[];
  readonly badItems: readonly BadItem[];
  readonly stop: Scraped["stop"];
  readonly stopSeries: boolean;
}

export interface ProbeOptions extends Pick<AssembleOptions, "log" | "world" | "scrape" | "scraper" | "cwd"> {
  /** The handler that the page goes to; by default that of seeds. */
  readonly handler?: string | null;
}

/** What a probe notes while the crawl of one page goes by. */
interface Notes {
  readonly exchanges: ProbeExchange[];
  readonly robots: Map<string, RobotsState>;
  extraction: Extraction | null;
  scraped: Scraped | null;
  record: PageRecord | null;
  retries: number;
}

/** The options that concern one page; nothing is written, nothing followed but redirects. */
function onePage(spec: CrawlSpec): CrawlSpec {
  return {
    ...spec,
    seeds: [],
    maxDepth: 0,
    scope: { ...spec.scope, include: [], exclude: [] },
    follow: [],
    list: [],
    limits: { ...spec.limits, pages: null, items: null, time: null, bytes: null, errors: null },
    ...{
      stateDir: null,
      cache: null,
      offline: false,
      incremental: false,
      sitemaps: [],
      outputs: [],
      pagesFile: null,
      skippedFile: null,
      linksFile: null,
      fields: null,
      print: "pages",
    },
  };
}

export function headerLines(headers: ResponseHeaders): HeaderLine[] {
  return headers.names().flatMap((name) => headers.all(name).map((value): HeaderLine => [name, value]));
}

/** An outcome as it is shown. */
export function exchangeView(exchange: Exchange, outcome: Exclude<FetchOutcome, { kind: "aborted" }>): ProbeExchange {
  const { request } = exchange;
  return {
    url: request.url,
    robots: request.hop === "robots",
    status: outcome.kind === "failed" ? outcome.status : outcome.response.status,
    location: outcome.kind === "redirect" ? outcome.location : null,
    headers: outcome.response === null ? [] : headerLines(outcome.response.headers),
    startedAt: new Date(outcome.startedAt).toISOString(),
    durationMs: Math.round(outcome.durationMs * 10) / 10,
    latencyMs: outcome.response === null || outcome.answer === null ? null : Math.round(outcome.answer.latencyMs * 10) / 10,
    error: outcome.kind === "failed" ? { code: outcome.code, message: outcome.message } : null,
  };
}

function watchedFetcher(fetcher: Fetcher, notes: Notes): Fetcher {
  return {
    ...fetcher,
    async fetch(exchange) {
      const outcome = await fetcher.fetch(exchange);
      if (outcome.kind !== "aborted") notes.exchanges.push(exchangeView(exchange, outcome));
      return outcome;
    },
  };
}

/** Waits that are worth a word. */
const LONG_WAIT_MS = 1_500;

/** A lease brings what the crawler knows of the origin's robots.txt. */
function watchedFrontier(frontier: Frontier, notes: Notes, log: Logger): Frontier {
  return {
    ...frontier,
    async claim(max) {
      const claim = await frontier.claim(max);
      if (claim.kind === "wait" && claim.waitMs > LONG_WAIT_MS && Number.isFinite(claim.waitMs))
        log("info", "waiting, as a crawl would", { seconds: Math.ceil(claim.waitMs / 1_000), for: claim.cause });
      if (claim.kind === "leases") for (const { request, robots } of claim.leases) if (robots !== null) notes.robots.set(request.url, robots);
      return claim;
    },
  };
}

function watchedScraping(scraping: Scraping, notes: Notes, handler: string | null): Scraping {
  if (handler !== null && scraping.kind !== "handlers") {
    const message = "the scraper is a plain function and has no handlers";
    throw new CrawlError("invalid-options", `--handler: ${message}`, { problems: [{ option: "--handler", message }] });
  }
  return {
    ...scraping,
    async run(task) {
      const outcome = await scraping.run(handler === null ? task : { ...task, handler });
      if (outcome.kind === "scraped") notes.scraped = outcome.scraped;
      return outcome;
    },
  };
}

function scrapedView(scraped: Scraped, base: string): ScrapedView {
  const resolved = (href: string): string => {
    const parsed = parseUrl(href, base);
    return "reject" in parsed ? href : parsed.url;
  };
  return {
    links: (scraped.links ?? []).map(resolved),
    follows: scraped.follows.map(({ href, handler, series, index }) => ({
      url: resolved(href),
      handler,
      ...(series === null ? {} : { series, index: index ?? 0 }),
    })),
    items: scraped.items.map(({ type, json }) => ({ type, item: JSON.parse(json) })),
    badItems: scraped.badItems,
    stop: scraped.stop,
    stopSeries: scraped.stopSeries,
  };
}

function watchedParts(parts: Parts, notes: Notes, handler: string | null): Parts {
  const { openScraping } = parts;
  return {
    ...parts,
    openScraping: openScraping === null ? null : async () => watchedScraping(await openScraping(), notes, handler),
    openFetcher: async () => watchedFetcher(await parts.openFetcher(), notes),
    async openStore(hooks, use) {
      const opened = await parts.openStore(hooks, use);
      return { ...opened, frontier: watchedFrontier(opened.frontier, notes, parts.log) };
    },
    extract(response, url, options) {
      notes.extraction = parts.extract(response, url, options);
      return notes.extraction;
    },
    onEvent(event) {
      if (event.kind === "retry") notes.retries++;
      else if (event.kind === "settled" && event.output.page !== null) notes.record = event.output.page;
    },
  };
}

/**
 * Fetches one page as a crawl with this spec would: robots.txt first, redirects wherever they lead, retries as the spec allows.
 * What the web does is in the answer. Throws CrawlError `no-seeds` when `url` is none.
 */
export async function probePage(spec: CrawlSpec, url: string, options: ProbeOptions = {}): Promise<PageProbe> {
  const notes: Notes = { exchanges: [], robots: new Map(), extraction: null, scraped: null, record: null, retries: 0 };
  const own = onePage(spec);
  const parts = watchedParts(assemble(own, options), notes, options.handler ?? null);
  await startSession(parts, [url]).done;
  const { record, extraction } = notes;
  const good = record?.outcome === "fetched" && extraction !== null;
  return {
    url: notes.exchanges.find((exchange) => !exchange.robots)?.url ?? record?.url ?? url,
    exchanges: notes.exchanges,
    robots: [...notes.robots].map(([asked, state]) => verdictOf(asked, state, parts.robotsToken)),
    record,
    base: good ? (extraction.base ?? record.url) : null,
    links: (record?.links ?? []).map((link) => (extraction?.nofollow?.has(link) ? { url: link, nofollow: true } : { url: link })),
    rejected: good ? extraction.rejected : [],
    scraped: notes.scraped === null ? null : scrapedView(notes.scraped, extraction?.base ?? record?.url ?? url),
    retries: notes.retries,
  };
}
