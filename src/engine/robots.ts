/** What the loop does with robots.txt: reads the answers (RFC 9309 §2.3.1) and keeps parsed rules by version. The frontier asks for the file and waits for its host. */
import { assertNever } from "../core/errors.ts";
import type { Lease, RobotsAnswer, RobotsState } from "../core/frontier.ts";
import type { FetchOutcome } from "../core/outcome.ts";
import type { ErrorCode } from "../core/records.ts";
import type { CrawlRequest, HostKey, Origin } from "../core/request.ts";
import { makeRequest } from "../rules/admit.ts";
import { retryDecision } from "../rules/retry.ts";
import { crawlDelayMs, parseRobots, type Robots, verdict as robotsVerdict, sitemaps as sitemapsOf } from "../rules/robots.ts";
import { hostKeyOf, originOf, resolveLocation } from "../rules/url.ts";
import { type Concluded, resting } from "./concluded.ts";
import type { Parts } from "./parts.ts";

/** RFC 9309 §2.5: at least 500 KiB are read. */
const MAX_ROBOTS_BYTES = 500 * 1024;
/** RFC 9309 §2.4: not longer than 24 hours. */
const GOOD_TTL_MS = 24 * 3_600_000;
/** A host whose robots.txt cannot be had is asked again after this. */
const BAD_TTL_MS = 10 * 60_000;
/** RFC 9309 §2.3.1.2: at least five consecutive redirects. */
const MAX_ROBOTS_REDIRECTS = 5;
/** Failures that concern the whole host, not its robots.txt: its pages fail with the same code. So they do when no connection came about in time. */
const HOST_GONE: ReadonlySet<ErrorCode> = new Set(["dns", "connect", "tls", "blocked-address"]);
/** Parsed files kept; the text stays with the frontier. */
const MAX_PARSED = 2_000;

export interface RobotsDesk {
  readonly maxBytes: number;
  verdict(url: string, state: RobotsState & { kind: "rules" }): { readonly allowed: boolean; readonly rule: string | null };
  /** Why the origin's Crawl-delay keeps us away for good, or null. */
  tooSlow(url: string, state: RobotsState & { kind: "rules" }): string | null;
  conclude(lease: Lease, outcome: Exclude<FetchOutcome, { kind: "aborted" }>): Concluded;
  /** Crawl-delays learnt since the last call; told to the frontier before the settle that brought them. */
  takeDelays(): readonly { readonly host: HostKey; readonly crawlDelayMs: number }[];
}

/** `sitemaps`: the requests for what a robots.txt names. */
export function createRobotsDesk(parts: Parts, sitemaps: (urls: readonly string[], origin: Origin) => readonly CrawlRequest[] = () => []): RobotsDesk {
  const parsed = new Map<Origin, { readonly version: number; readonly robots: Robots }>();
  let delays: { host: HostKey; crawlDelayMs: number }[] = [];

  function rulesOf(url: string, state: RobotsState & { kind: "rules" }): Robots {
    const origin = originOf(url);
    const known = parsed.get(origin);
    if (known?.version === state.version) return known.robots;
    const robots = parseRobots(state.text);
    parsed.delete(origin);
    parsed.set(origin, { version: state.version, robots });
    if (parsed.size > MAX_PARSED) {
      const oldest = parsed.keys().next();
      if (!oldest.done) parsed.delete(oldest.value);
    }
    return robots;
  }

  function answered(lease: Lease, outcome: Exclude<FetchOutcome, { kind: "aborted" }>): RobotsAnswer | { readonly kind: "retry"; readonly afterMs: number } {
    switch (outcome.kind) {
      case "fetched": {
        const { status, body } = outcome.response;
        if (status < 200 || status >= 300) return { kind: "allow-all", ttlMs: GOOD_TTL_MS };
        return { kind: "rules", text: new TextDecoder().decode(body), ttlMs: GOOD_TTL_MS };
      }
      case "redirect":
        return redirectTarget(lease.request, outcome.location, outcome.response.status);
      case "failed": {
        // What a redirect led to says nothing of the host that was asked.
        const gone = lease.request.rest?.redirects === undefined && (HOST_GONE.has(outcome.code) || (outcome.status === null && outcome.sinceStartMs === null));
        const unavailable = { kind: "unavailable", code: gone ? outcome.code : "robots-unavailable", why: outcome.message, ttlMs: BAD_TTL_MS } as const;
        // http comes next, so that nothing is gained by waiting for https.
        if (gone && parts.identity.guessed.has(originOf(lease.request.url))) return unavailable;
        const decision = retryDecision(
          { ...outcome, attempt: lease.attempt, crashes: lease.crashes, maxRetries: parts.spec.retry.max, maxWaitMs: parts.spec.maxWait },
          parts.random,
        );
        if (decision.kind === "retry") return decision;
        // RFC 9309 §2.3.1.3: a 4xx says that there are no rules; 429 says that the host wants to be left alone.
        if (outcome.status !== null && outcome.status >= 400 && outcome.status < 500 && outcome.status !== 429)
          return { kind: "allow-all", ttlMs: GOOD_TTL_MS };
        return unavailable;
      }
      default:
        return assertNever(outcome);
    }
  }

  function redirectTarget(request: CrawlRequest, location: string, status: number): RobotsAnswer {
    const chain = request.rest?.redirects ?? [];
    const target = resolveLocation(location, request.rest?.sentAs ?? request.url);
    // RFC 9309 §2.3.1.2: what lies behind too many redirects may be taken as unavailable, that is, as no rules. A loop is one of
    // them, and is not looked for: a site that wants its cookie first redirects to the same URL.
    if (target === null || chain.length >= MAX_ROBOTS_REDIRECTS) return { kind: "allow-all", ttlMs: GOOD_TTL_MS };
    const rest = {
      robotsFor: request.rest?.robotsFor ?? originOf(request.url),
      redirects: [...chain, { url: request.url, status }],
      ...(target.sentAs === null ? {} : { sentAs: target.sentAs }),
    };
    return {
      kind: "redirect",
      request: makeRequest(target.url, parts.admit.seed, { hop: "robots", depth: 0, referrer: null, priority: request.priority, rest }),
    };
  }

  return {
    maxBytes: MAX_ROBOTS_BYTES,
    verdict: (url, state) => robotsVerdict(rulesOf(url, state), parts.robotsToken, url),
    tooSlow(url, state) {
      const delayMs = crawlDelayMs(rulesOf(url, state), parts.robotsToken);
      if (delayMs === null || delayMs <= parts.spec.maxWait) return null;
      return `Crawl-delay of ${delayMs / 1000} s is longer than --max-wait ${parts.spec.maxWait / 1000} s`;
    },
    conclude(lease, outcome) {
      const answer = answered(lease, outcome);
      let links: readonly CrawlRequest[] = [];
      if (answer.kind === "rules") {
        const robots = parseRobots(answer.text);
        const delayMs = crawlDelayMs(robots, parts.robotsToken);
        const origin = lease.request.rest?.robotsFor ?? originOf(lease.request.url);
        links = sitemaps(sitemapsOf(robots, `${origin}/robots.txt`), origin);
        // A longer one fails the pages (`tooSlow`): they must not wait for it first.
        if (delayMs !== null && delayMs <= parts.spec.maxWait) delays.push({ host: hostKeyOf(`${origin}/`), crawlDelayMs: delayMs });
      }
      const { sinceStartMs, setCookies } = outcome;
      return {
        settled: {
          token: lease.token,
          settlement: answer.kind === "retry" ? answer : { kind: "robots", answer },
          sinceStartMs,
          answer: outcome.answer,
          host: answer.kind === "retry" && outcome.kind === "failed" ? resting(outcome) : outcome.host,
          setCookies,
          newSeeds: null,
          tally: answer.kind === "retry" ? [["retries", 1]] : [],
        },
        links,
      };
    },
    takeDelays() {
      const taken = delays;
      delays = [];
      return taken;
    },
  };
}
