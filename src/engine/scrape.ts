/** A fetched page's way through the user's scraper, and what becomes of what it said. Running the code is parse/scrape; nothing here waits for a host. */
import type { Lease, Settled, ValueChange } from "../core/frontier.ts";
import type { ExchangeFacts, FetchOutcome } from "../core/outcome.ts";
import type { Extraction } from "../core/page.ts";
import type { Output, PageRecord } from "../core/records.ts";
import type { CrawlRequest, ScrapeRest } from "../core/request.ts";
import type { Follow, Scraped, ScrapeOutcome, ScrapeTask, Scraping } from "../core/scraping.ts";
import { admitLinks } from "../rules/admit.ts";
import { admitFollows } from "../rules/follow.ts";
import { retryDecision } from "../rules/retry.ts";
import { compileStopRules } from "../rules/stop.ts";
import { parseUrl } from "../rules/url.ts";
import { NO_HANDLER, RUN_MARK, RUN_MARKING, RUN_SERIES, RUN_STOP, type StopAsked } from "../rules/values.ts";
import type { Concluded } from "./concluded.ts";
import type { Parts } from "./parts.ts";
import { skippedOf } from "./record.ts";
import { type Facts, NO_LINKS, type Settling } from "./settling.ts";
import type { Values } from "./values.ts";
import { readNow, type VisitDesk } from "./visits.ts";

/** A page that was fetched and has its record, as far as it goes without the scraper. */
export interface FetchedPage {
  readonly lease: Lease;
  readonly facts: Facts;
  readonly page: PageRecord;
  /** Null: the body is not one that links are read from. */
  readonly extraction: Extraction | null;
}

export interface ScrapeDesk {
  /**
   * A page that lies behind the stop of its series; null: go on. What such a page led to before the stop was known stays: pages before the stop may
   * have led to it as well, and it is queued once only.
   */
  behindStop(lease: Lease, facts: Facts): Concluded | null;
  /** Does not keep the response's body: what the scraper needs of it is copied before this returns. */
  scrape(fetched: FetchedPage, outcome: FetchOutcome & { kind: "fetched" }): Promise<Concluded>;
  /** The settlement of a page with what was said of it, now or in an earlier run. */
  conclude(fetched: FetchedPage, scraped: Scraped | null): Concluded;
}

export interface ScrapeDeskInput {
  readonly parts: Parts;
  readonly scraping: Scraping | null;
  readonly values: Values;
  readonly settling: Settling;
  readonly visits: VisitDesk | null;
}

export function createScrapeDesk({ parts, scraping, values, settling, visits }: ScrapeDeskInput): ScrapeDesk {
  const { admit, clock, spec } = parts;
  const stopRules = compileStopRules(spec.stopWhen);

  function behindStop(lease: Lease, facts: Facts): Concluded | null {
    const { series, index = 0 } = lease.request.rest?.scrape ?? {};
    if (series === undefined || index <= values.stopOf(series)) return null;
    const rule = `the series ${series} ended with page ${values.stopOf(series)}`;
    return settling.dropped(lease, facts, skippedOf(lease.request, "stopped", rule));
  }

  /** With the time that passed since the exchange ended. */
  function later(facts: Facts, since: number): Facts {
    return facts.sinceStartMs === null ? facts : { ...facts, sinceStartMs: facts.sinceStartMs + clock.now() - since };
  }

  function after(fetched: FetchedPage, result: ScrapeOutcome, since: number): Concluded {
    const { lease } = fetched;
    const facts = later(fetched.facts, since);
    switch (result.kind) {
      case "aborted":
        return { settled: settling.settled(lease, facts, { kind: "returned" }, null), links: NO_LINKS };
      case "scraped":
        return behindStop(lease, facts) ?? conclude({ ...fetched, facts }, visits === null ? result.scraped : readNow(result.scraped, values.get));
      case "threw":
        return threw({ ...fetched, facts }, result.message, result.stack);
      case "crashed":
        parts.log("error", "the scraper's thread was lost", { url: lease.request.url, why: result.message });
        return settling.failedLater(lease, facts, fetched.page, { code: "scraper", message: result.message });
    }
  }

  function threw({ lease, facts, page }: FetchedPage, message: string, stack: string | null): Concluded {
    const { request, attempt, crashes } = lease;
    parts.log("error", "the scraper threw", { url: request.url, error: stack ?? message });
    const failed = { code: "scraper" as const, status: page.status, retryable: true, retryAfterMs: null, attempt, crashes };
    const decision = retryDecision({ ...failed, maxRetries: spec.retry.max, maxWaitMs: spec.maxWait }, parts.random);
    if (decision.kind === "give-up") return settling.failedLater(lease, facts, page, { code: "scraper", message: `${message}; ${decision.why}` });
    const news = { url: request.url, code: "scraper" as const, status: page.status, attempt: attempt + 1, afterMs: decision.afterMs };
    parts.hooks.onRetry?.(news);
    parts.onEvent({ kind: "retry", ...news });
    const settled = settling.settled(lease, facts, { kind: "retry", afterMs: decision.afterMs }, null);
    return { settled: { ...settled, tally: [["retries", 1]] }, links: NO_LINKS };
  }

  /** What changes with the page: state and marks, and the end of its series or of the run. */
  function valuesOf({ rest }: CrawlRequest, scraped: Scraped): ValueChange[] {
    const changes = [...scraped.values];
    const scrape = rest?.scrape;
    if (scraped.stopSeries) changes.push(...seriesStops(scrape, scraped.follows));
    const verdict = stopRules?.judge(scraped.items, values.get) ?? null;
    if (verdict !== null) changes.push(...verdict.values);
    const handler = scrape?.handler ?? scraping?.first ?? NO_HANDLER;
    if (changes.some(({ key }) => key.startsWith(RUN_MARK))) changes.push({ op: "set", key: RUN_MARKING + handler, value: "true" });
    const met = verdict?.met ?? null;
    const stop = scraped.stop ?? (met === null ? null : { mode: "flight" as const, reason: `--stop-when '${met}'` });
    const at = scrape?.series === undefined ? null : { series: scrape.series, index: scrape.index ?? 0 };
    if (stop !== null) changes.push({ op: "set", key: RUN_STOP, value: JSON.stringify({ ...stop, at } satisfies StopAsked) });
    return changes;
  }

  function conclude(fetched: FetchedPage, scraped: Scraped | null): Concluded {
    const { lease, facts } = fetched;
    const { request } = lease;
    const bad = scraped?.badItems ?? [];
    const more = scraped?.links ?? null;
    const extraction = more === null || fetched.extraction === null ? fetched.extraction : withLinks(fetched.extraction, more, request.url);
    const links = extraction === fetched.extraction ? {} : { links: extraction?.links ?? [] };
    const page: PageRecord = bad.length === 0 ? { ...fetched.page, ...links } : { ...fetched.page, ...links, itemErrors: bad };
    const { requests, output } = linksOf(request, extraction, scraped);
    const items = scraped === null || scraped.items.length === 0 ? null : scraped.items;
    const whole = { ...output, page, listed: settling.listed(page.url), ...(items === null ? {} : { items }) };
    const concluded = settling.done(lease, facts, page, visits === null ? whole : visits.noted(request, whole, extraction, scraped), requests);
    if (scraped === null) return concluded;
    for (const { field, message, type } of bad) parts.log("warn", "bad item", { url: page.url, type, field, why: message });
    return { ...concluded, settled: withScraped(concluded.settled, request, scraped) };
  }

  function withScraped(settled: Settled, request: CrawlRequest, scraped: Scraped): Settled {
    const changes = valuesOf(request, scraped);
    const bad = scraped.badItems.length;
    const tally = bad === 0 ? settled.tally : [...settled.tally, ["badItems", bad] as const];
    return changes.length === 0 ? { ...settled, tally } : { ...settled, tally, values: changes };
  }

  function linksOf(
    request: CrawlRequest,
    extraction: Extraction | null,
    scraped: Scraped | null,
  ): { requests: readonly CrawlRequest[]; output: Pick<Output, "skipped" | "found" | "edges"> } {
    const byScraper = scraping?.kind === "handlers";
    const base = extraction?.base ?? request.rest?.sentAs ?? request.url;
    const follows = byScraper && scraped !== null ? admitFollows(admit, request, scraped.follows, base) : null;
    if (extraction === null) return { requests: follows?.requests ?? NO_LINKS, output: { skipped: follows?.skipped ?? [], found: [], edges: [] } };
    const nofollow = spec.robots && extraction.robots.includes("nofollow");
    const chosen = byScraper ? (follows?.followed ?? new Set<string>()) : null;
    const { requests, skipped, found, edges } = admitLinks(admit, request, extraction, nofollow, chosen);
    if (follows === null) return { requests, output: { skipped, found, edges } };
    return { requests: follows.requests, output: { skipped: follows.skipped.length === 0 ? skipped : [...follows.skipped, ...skipped], found, edges } };
  }

  return {
    behindStop,
    conclude,
    scrape(fetched, outcome) {
      const since = clock.now();
      return scraping === null
        ? Promise.resolve(conclude(fetched, null))
        : scraping.run(taskOf(fetched.lease, outcome)).then((result) => after(fetched, result, since));
    },
  };
}

/** A page of a series ends it behind itself. One that is in none, as a seed, is where its series begin: they end before the pages that it asked for. */
function seriesStops(scrape: ScrapeRest | undefined, follows: readonly Follow[]): ValueChange[] {
  if (scrape?.series !== undefined) return [{ op: "min", key: RUN_SERIES + scrape.series, value: String(scrape.index ?? 0) }];
  return follows.flatMap(({ series, index }) => (series === null ? [] : [{ op: "min" as const, key: RUN_SERIES + series, value: String((index ?? 0) - 1) }]));
}

const NO_HEADERS: readonly (readonly [string, string])[] = [];

function taskOf({ request, attempt }: Lease, { response }: FetchOutcome & { kind: "fetched" }): ScrapeTask {
  const { headers } = response;
  const scrape = request.rest?.scrape;
  return {
    url: request.url,
    sentAs: request.rest?.sentAs ?? request.url,
    status: response.status,
    headers: headers.names().length === 0 ? NO_HEADERS : headers.names().flatMap((name) => headers.all(name).map((value) => [name, value] as const)),
    contentType: response.contentType,
    body: response.body.slice(),
    depth: request.depth,
    referrer: request.referrer,
    method: request.rest?.method ?? "GET",
    priority: request.priority,
    attempt,
    handler: scrape?.handler ?? null,
    data: scrape?.data ?? null,
    series: scrape?.series ?? null,
    index: scrape?.index ?? null,
    oldRuns: scrape?.oldRuns ?? null,
  };
}

/** What the settle step needs of an exchange, without the body that came with it. */
export function factsOf({ sinceStartMs, answer, host, setCookies }: ExchangeFacts): Facts {
  return { sinceStartMs, answer, host, setCookies };
}

/** Adds the links a scrape callback returned, resolved against the page; what is no URL is a rejected link like any other. */
function withLinks(extraction: Extraction, more: Iterable<string>, pageUrl: string): Extraction {
  const links = new Set(extraction.links);
  const rejected = [...extraction.rejected];
  const sentAs = new Map(extraction.sentAs ?? []);
  for (const href of more) {
    const parsed = parseUrl(String(href), pageUrl);
    if ("reject" in parsed) rejected.push({ href: String(href).slice(0, 2_000), reason: parsed.reject });
    else {
      links.add(parsed.url);
      if (parsed.sentAs !== null) sentAs.set(parsed.url, parsed.sentAs);
    }
  }
  return { ...extraction, links: [...links], rejected, sentAs: sentAs.size > 0 ? sentAs : null };
}
