/** One lease's straight line: verdict, fetch, extract, settlement. Waits for nothing but the fetch and the user's callback; writes nothing. */
import { assertNever } from "../core/errors.ts";
import type { Cookie, Lease, RobotsState, Settled, Settlement } from "../core/frontier.ts";
import type { Exchange, ExchangeFacts, FetchedResponse, Fetcher, FetchOutcome } from "../core/outcome.ts";
import type { Extraction } from "../core/page.ts";
import type { ErrorCode, Output, PageRecord } from "../core/records.ts";
import type { CrawlRequest } from "../core/request.ts";
import { admitLinks, admitRedirect, admitSeed, makeSkip } from "../rules/admit.ts";
import { retryDecision } from "../rules/retry.ts";
import { MAX_URL_LENGTH, parseUrl, resolveLocation } from "../rules/url.ts";
import { type Concluded, resting } from "./concluded.ts";
import { isTextual, type Parts } from "./parts.ts";
import { outputOf, pageRecord, skippedOf, tallyOf } from "./record.ts";
import { createRobotsDesk, type RobotsDesk } from "./robots.ts";
import { createSitemapDesk } from "./sitemaps.ts";

export interface Visitor {
  /** The verdict that needs no request (robots), or null: go and fetch. */
  before(lease: Lease): Concluded | null;
  exchange(lease: Lease, onStart: () => void, onEnd: () => void): Exchange;
  fetch(exchange: Exchange): Promise<FetchOutcome>;
  /** Synchronous unless the user's callback is not. */
  after(lease: Lease, outcome: FetchOutcome): Concluded | Promise<Concluded>;
  readonly robots: RobotsDesk;
}

const NO_LINKS: readonly CrawlRequest[] = [];
const NO_SKIPS: Output["skipped"] = [];
const UNTOUCHED = { sinceStartMs: null, answer: null, host: null, setCookies: null } as const;

/** `add` puts requests into the frontier before the settle that ends their page. */
export function createVisitor(parts: Parts, fetcher: Fetcher, add: (requests: readonly CrawlRequest[]) => Promise<void>): Visitor {
  const { spec, clock, admit } = parts;
  const sitemaps = createSitemapDesk(parts);
  const robots = createRobotsDesk(parts, sitemaps.named);
  const extractOptions = { images: spec.images, robotsToken: parts.robotsToken, maxUrlLength: MAX_URL_LENGTH };
  // Reused results: what is listed depends on the URL alone.
  const listed = (url: string) => admit.scope.lists(url);

  function settled(
    lease: Lease,
    facts: Pick<ExchangeFacts, "sinceStartMs" | "answer" | "host" | "setCookies">,
    settlement: Settlement,
    page: PageRecord | null,
  ): Settled {
    return {
      token: lease.token,
      settlement,
      sinceStartMs: facts.sinceStartMs,
      answer: facts.answer,
      host: facts.host,
      setCookies: facts.setCookies,
      newSeeds: null,
      tally: tallyOf(page),
    };
  }

  /** The page's record and those its redirect chain owes, as one settlement. */
  function done(lease: Lease, facts: ExchangeFacts | null, page: PageRecord, output: Output, links = NO_LINKS): Concluded {
    const counted = page.outcome === "fetched" || page.outcome === "unchanged";
    const owed = lease.request.rest?.owed;
    const settlement: Settlement = { kind: "done", counted, output: owed === undefined || owed.length === 0 ? output : { ...output, owed } };
    return { settled: settled(lease, facts ?? UNTOUCHED, settlement, page), links };
  }

  function refused(lease: Lease, outcome: "disallowed" | "failed", error: { code: ErrorCode; message: string } | null, skipped: Output["skipped"]): Concluded {
    const page = pageRecord({
      request: lease.request,
      outcome,
      status: null,
      attempts: lease.attempt,
      facts: { startedAt: clock.epoch(), durationMs: 0 },
      response: null,
      extraction: null,
      error,
      location: null,
      digest: false,
    });
    return done(lease, null, page, outputOf(page, listed(page.url), skipped));
  }

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
  function otherScheme(lease: Lease, facts: Pick<ExchangeFacts, "sinceStartMs" | "answer" | "host" | "setCookies">, code: ErrorCode): Concluded | null {
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

  function failedPage(
    lease: Lease,
    facts: ExchangeFacts,
    response: FetchedResponse | null,
    error: { code: ErrorCode; message: string },
    status: number | null,
  ): Concluded {
    const page = pageRecord({
      request: lease.request,
      outcome: "failed",
      status,
      attempts: lease.attempt + 1,
      facts,
      response,
      extraction: null,
      error,
      location: null,
      digest: false,
    });
    const skipped = error.code === "blocked-address" ? skippedOf(lease.request, "private-address", error.message) : undefined;
    return done(lease, facts, page, outputOf(page, listed(page.url), skipped));
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
    const good = response.status >= 200 && response.status < 300;
    const extraction = good ? parts.extract(response, request.rest?.sentAs ?? request.url, extractOptions) : null;
    if (good && parts.scrape !== null && isTextual(response)) return scraped(lease, outcome, extraction);
    return conclude(lease, outcome, extraction);
  }

  async function scraped(lease: Lease, outcome: FetchOutcome & { kind: "fetched" }, extraction: Extraction | null): Promise<Concluded> {
    const { response } = outcome;
    try {
      const text = parts.decodeText(response.body, response.contentType).text;
      const links = await parts.scrape?.(lease.request.url, text);
      return conclude(lease, outcome, extraction === null || !links ? extraction : withLinks(extraction, links, lease.request.url));
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      parts.log("error", "the scrape function threw", { url: lease.request.url, error: message });
      return failedPage(lease, outcome, response, { code: "scraper", message }, response.status);
    }
  }

  function conclude(lease: Lease, outcome: FetchOutcome & { kind: "fetched" }, extraction: Extraction | null): Concluded {
    const { request } = lease;
    const { response } = outcome;
    const page = pageRecord({
      request,
      outcome: "fetched",
      status: response.status,
      attempts: lease.attempt + 1,
      facts: outcome,
      response,
      extraction,
      error: null,
      location: null,
      digest: parts.needs.digest,
    });
    const inList = listed(page.url);
    if (extraction === null) return done(lease, outcome, page, outputOf(page, inList));
    const nofollow = spec.robots && extraction.robots.includes("nofollow");
    const admitted = admitLinks(admit, request, extraction, nofollow);
    const output: Output = { page, listed: inList, skipped: admitted.skipped, found: admitted.found, edges: admitted.edges };
    return done(lease, outcome, page, output, admitted.requests);
  }

  return {
    robots,
    before(lease) {
      if (lease.robots === null) return null;
      const refusal = robotsRefusal(lease, lease.robots);
      return refusal !== null && lease.request.hop === "sitemap" ? sitemaps.refused(lease, "robots.txt does not allow it") : refusal;
    },
    exchange(lease, onStart, onEnd) {
      const { request } = lease;
      const isRobots = request.hop === "robots";
      const added =
        isRobots || request.hop === "sitemap" ? undefined : parts.hooks.beforeRequest?.({ url: request.url, depth: request.depth, attempt: lease.attempt + 1 });
      return {
        request: added?.headers === undefined ? request : { ...request, rest: { ...request.rest, headers: { ...request.rest?.headers, ...added.headers } } },
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

function cookiePairs(cookies: readonly Cookie[] | null): string[] {
  return cookies === null ? [] : cookies.map((cookie) => `${cookie.domain}${cookie.path} ${cookie.name}=${cookie.value}`);
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
