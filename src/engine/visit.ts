/** One lease's straight line: verdict, fetch, extract, settlement. Waits for nothing but the fetch and the user's callback; writes nothing. */
import { assertNever } from "../core/errors.ts";
import type { Cookie, Lease, RobotsState } from "../core/frontier.ts";
import type { Exchange, FetchedResponse, Fetcher, FetchOutcome } from "../core/outcome.ts";
import type { ErrorCode, PageRecord } from "../core/records.ts";
import type { CrawlRequest } from "../core/request.ts";
import type { Scraping } from "../core/scraping.ts";
import type { Visit, VisitBook } from "../core/visits.ts";
import { admitRedirect, admitSeed, makeSkip } from "../rules/admit.ts";
import { pageChange } from "../rules/changes.ts";
import { retryDecision } from "../rules/retry.ts";
import { MAX_URL_LENGTH, resolveLocation } from "../rules/url.ts";
import { type Concluded, resting } from "./concluded.ts";
import type { Parts } from "./parts.ts";
import { inOrder, outputOf, pageRecord, type RecordParts, skippedOf, tallyOf } from "./record.ts";
import { createRobotsDesk, type RobotsDesk } from "./robots.ts";
import { createScrapeDesk, factsOf } from "./scrape.ts";
import { createSettling, type Facts, NO_LINKS, NO_SKIPS, UNTOUCHED } from "./settling.ts";
import { createSitemapDesk } from "./sitemaps.ts";
import type { Values } from "./values.ts";
import { createVisitDesk, extractionOf, scrapedOf } from "./visits.ts";

export interface Visitor {
  /** The verdict that needs no request (robots), or null: go and fetch. */
  before(lease: Lease): Concluded | null;
  exchange(lease: Lease, onStart: () => void, onEnd: () => void): Exchange;
  fetch(exchange: Exchange): Promise<FetchOutcome>;
  /** Synchronous unless the user's callback is not. */
  after(lease: Lease, outcome: FetchOutcome): Concluded | Promise<Concluded>;
  readonly robots: RobotsDesk;
}

export interface VisitorInput {
  readonly parts: Parts;
  readonly fetcher: Fetcher;
  /** Null: nobody reads the pages. */
  readonly scraping: Scraping | null;
  readonly values: Values;
  /** Null: no visits are kept. */
  readonly book: VisitBook | null;
  /** Puts requests into the frontier before the settle that ends their page. */
  readonly add: (requests: readonly CrawlRequest[]) => Promise<void>;
}

export function createVisitor({ parts, fetcher, scraping, values, book, add }: VisitorInput): Visitor {
  const { spec, admit } = parts;
  const visits = createVisitDesk(parts, book, scraping);
  const settling = createSettling(parts, scraping?.first ?? null, visits);
  const { settled, done, refused, failedPage, listed } = settling;
  const desk = createScrapeDesk({ parts, scraping, values, settling, visits });
  const sitemaps = createSitemapDesk(parts);
  const robots = createRobotsDesk(parts, sitemaps.named);
  const extractOptions = { images: spec.images, robotsToken: parts.robotsToken, maxUrlLength: MAX_URL_LENGTH };

  function robotsRefusal(lease: Lease, state: RobotsState): Concluded | null {
    switch (state.kind) {
      case "allow-all":
        return null;
      case "unavailable":
        return unavailable(lease, state);
      case "rules": {
        const verdict = robots.verdict(lease.request.url, state);
        if (verdict.allowed) {
          const tooSlow = robots.tooSlow(lease.request.url, state);
          return tooSlow === null ? null : refused(lease, "failed", { code: "rate-limited", message: tooSlow }, NO_SKIPS);
        }
        return refused(lease, "disallowed", null, skippedOf(lease.request, "robots", verdict.rule));
      }
      default:
        return assertNever(state);
    }
  }

  function unavailable(lease: Lease, state: RobotsState & { kind: "unavailable" }): Concluded {
    const { code } = state;
    if (code === "robots-unavailable")
      return refused(
        lease,
        "failed",
        { code, message: `robots.txt cannot be had: ${state.why}` },
        skippedOf(lease.request, "robots", "robots.txt unavailable"),
      );
    const fallback = otherScheme(lease, UNTOUCHED, code);
    if (fallback !== null) return fallback;
    return refused(
      lease,
      "failed",
      { code, message: state.why },
      code === "blocked-address" ? skippedOf(lease.request, "private-address", state.why) : NO_SKIPS,
    );
  }

  /** A bare host was tried as https first: this is how http follows. */
  function otherScheme(lease: Lease, facts: Facts, code: ErrorCode): Concluded | null {
    const fallback = lease.request.rest?.fallback;
    if (fallback === undefined || code === "blocked-address") return null;
    const next = admitSeed(fallback, admit.seed, "refuse");
    if (next.kind === "bad") return null;
    parts.log("info", "trying http instead of https", { url: lease.request.url, code });
    return { settled: settled(lease, facts, { kind: "dropped", output: null }, null), links: [next.request] };
  }

  function failed(lease: Lease, outcome: FetchOutcome & { kind: "failed" }): Concluded {
    const { request } = lease;
    const fallback = outcome.status === null ? otherScheme(lease, outcome, outcome.code) : null;
    if (fallback !== null) return fallback;
    const decision = retryDecision(
      { ...outcome, attempt: lease.attempt, crashes: lease.crashes, maxRetries: spec.retry.max, maxWaitMs: spec.maxWait },
      parts.random,
    );
    if (decision.kind === "retry") {
      const news = { url: request.url, code: outcome.code, status: outcome.status, attempt: lease.attempt + 1, afterMs: decision.afterMs };
      parts.hooks.onRetry?.(news);
      parts.onEvent({ kind: "retry", ...news });
      const base = settled(lease, outcome, { kind: "retry", afterMs: decision.afterMs }, null);
      return { settled: { ...base, host: resting(outcome), tally: [["retries", 1]] }, links: NO_LINKS };
    }
    const message = outcome.retryable ? `${outcome.message}; ${decision.why}` : outcome.message;
    return failedPage(lease, outcome, outcome.response, { code: outcome.code, message }, outcome.status);
  }

  function redirected(lease: Lease, outcome: FetchOutcome & { kind: "redirect" }): Concluded {
    const { request } = lease;
    const { response } = outcome;
    const target = resolveLocation(outcome.location, request.rest?.sentAs ?? request.url);
    const page = pageRecord({
      request,
      outcome: "redirected",
      status: response.status,
      attempts: lease.attempt + 1,
      facts: outcome,
      response,
      extraction: null,
      error: null,
      location: target?.url ?? outcome.location,
      digest: false,
    });
    const own = outputOf(page, listed(page.url));
    const owed = [...(request.rest?.owed ?? []), own];
    const verdict = admitRedirect(admit, request, { target, status: response.status, cookies: cookiePairs(outcome.setCookies), owed });
    switch (verdict.kind) {
      case "broken":
        return failedPage(lease, outcome, response, { code: "redirect", message: verdict.why }, response.status);
      case "outside": {
        if (request.hop === "seed" || request.rest?.fromSeed === true)
          parts.log("warn", "a seed leads to a URL that may not be crawled", { url: request.url, to: verdict.url, rule: verdict.rule });
        const skip = makeSkip(admit.seed, { url: verdict.url, referrer: request.url, depth: request.depth, reason: verdict.reason, rule: verdict.rule });
        return done(lease, outcome, page, { ...own, skipped: [skip] });
      }
      case "follow": {
        // The hop's own record waits in `owed` until the chain has ended; its counters are raised now.
        const { newSeed } = verdict;
        if (newSeed !== null) {
          admit.scope.addSeed(newSeed);
          parts.identity.movedSeeds.push(newSeed);
          parts.onEvent({ kind: "seed-moved", from: request.url, to: newSeed });
        }
        const base = settled(lease, outcome, { kind: "done", counted: false, output: outputOf(null, false) }, page);
        // A URL that is opened again gets its one record later: what was counted for it is taken back.
        const voided = owed
          .filter((output) => output.page?.url === verdict.request.url)
          .flatMap(({ page: hop }) => tallyOf(hop).map(([name, n]) => [name, -n] as const));
        return { settled: { ...base, newSeeds: newSeed === null ? null : [newSeed], tally: [...base.tally, ...voided] }, links: [verdict.request] };
      }
      default:
        return assertNever(verdict);
    }
  }

  function fetched(lease: Lease, outcome: FetchOutcome & { kind: "fetched" }): Concluded | Promise<Concluded> {
    const { request } = lease;
    const { response } = outcome;
    const before = visits?.unchanged(request, response) ?? null;
    if (before !== null) return unchanged(lease, outcome, before);
    const good = response.status >= 200 && response.status < 300;
    const known = spec.incremental ? (visits?.known(request) ?? null) : null;
    const gone = known !== null && (response.status === 404 || response.status === 410);
    const extraction = good ? parts.extract(response, request.rest?.sentAs ?? request.url, extractOptions) : null;
    const fresh = recordOf(lease, outcome, { outcome: gone ? "gone" : "fetched", extraction, digest: parts.needs.digest });
    const page = spec.incremental && (good || gone) ? inOrder({ ...fresh, change: gone ? "gone" : changeOf(known, fresh) }) : fresh;
    const whole = { lease, facts: factsOf(outcome), page, extraction };
    return good && scraping !== null && isRead(scraping, response) ? desk.scrape(whole, outcome) : desk.conclude(whole, null);
  }

  /** Not read again: what an earlier run read of it still counts. */
  function unchanged(lease: Lease, outcome: FetchOutcome & { kind: "fetched" }, before: Visit): Concluded {
    const extraction = extractionOf(before);
    const record = recordOf(lease, outcome, { outcome: "unchanged", extraction, digest: false });
    const { contentType, digest, etag, lastModified, bodySkipped } = before.page;
    const page = inOrder({
      ...record,
      contentType: record.contentType ?? contentType,
      ...(bodySkipped === undefined ? {} : { bodySkipped }),
      ...(digest === undefined ? {} : { digest }),
      ...(record.etag !== undefined || etag === undefined ? {} : { etag }),
      ...(record.lastModified !== undefined || lastModified === undefined ? {} : { lastModified }),
      change: "unchanged",
    });
    return desk.conclude({ lease, facts: factsOf(outcome), page, extraction }, scraping === null ? null : scrapedOf(before));
  }

  return {
    robots,
    before(lease) {
      const stopped = desk.behindStop(lease, UNTOUCHED);
      if (stopped !== null) return stopped;
      if (lease.robots === null) return null;
      const refusal = robotsRefusal(lease, lease.robots);
      return refusal !== null && lease.request.hop === "sitemap" ? sitemaps.refused(lease, "robots.txt does not allow it") : refusal;
    },
    exchange(lease, onStart, onEnd) {
      const { request } = lease;
      const isRobots = request.hop === "robots";
      const isPage = !isRobots && request.hop !== "sitemap";
      const added = isPage ? parts.hooks.beforeRequest?.({ url: request.url, depth: request.depth, attempt: lease.attempt + 1 }) : undefined;
      const validators = isPage ? (visits?.validators(request) ?? null) : null;
      const plain = added?.headers === undefined ? request : { ...request, rest: { ...request.rest, headers: { ...request.rest?.headers, ...added.headers } } };
      return {
        request: validators === null ? plain : { ...plain, rest: { ...plain.rest, headers: { ...validators, ...plain.rest?.headers } } },
        ...(validators === null ? {} : { unconditional: plain }),
        cookies: lease.cookies,
        maxBytes: isRobots ? robots.maxBytes : request.hop === "sitemap" ? sitemaps.maxBytes : null,
        onStart,
        onEnd,
      };
    },
    fetch: (exchange) => fetcher.fetch(exchange),
    after(lease, outcome) {
      if (outcome.kind === "aborted") return { settled: settled(lease, outcome, { kind: "returned" }, null), links: NO_LINKS };
      if (lease.request.hop === "robots") return robots.conclude(lease, outcome);
      if (lease.request.hop === "sitemap") return sitemaps.conclude(lease, outcome, add);
      const { afterResponse } = parts.hooks;
      if (afterResponse !== undefined && outcome.response !== null) {
        const { response } = outcome;
        afterResponse({ url: lease.request.url, status: response.status, header: (name) => response.headers.get(name), body: response.body });
      }
      switch (outcome.kind) {
        case "fetched":
          return fetched(lease, outcome);
        case "redirect":
          return redirected(lease, outcome);
        case "failed":
          return failed(lease, outcome);
        default:
          return assertNever(outcome);
      }
    },
  };
}

/** A page that was read again without having changed, since something else reads it now, is unchanged too. */
function changeOf(known: Visit | null, page: PageRecord): "new" | "changed" | "unchanged" {
  return known === null ? "new" : pageChange(known.page, page).change === "unchanged" ? "unchanged" : "changed";
}

function cookiePairs(cookies: readonly Cookie[] | null): string[] {
  return cookies === null ? [] : cookies.map((cookie) => `${cookie.domain}${cookie.path} ${cookie.name}=${cookie.value}`);
}

/** The record of an answer that came whole. */
function recordOf(
  { request, attempt }: Lease,
  facts: FetchOutcome & { kind: "fetched" },
  about: Pick<RecordParts, "outcome" | "extraction" | "digest">,
): PageRecord {
  const { response } = facts;
  return pageRecord({ request, status: response.status, attempts: attempt + 1, facts, response, error: null, location: null, ...about });
}

/** Plain functions and selectors read text; a handler decides for itself. */
function isRead(scraping: Scraping, response: FetchedResponse): boolean {
  return !response.bodySkipped && (scraping.kind === "handlers" || response.body.byteLength > 0);
}
