/**
 * A generated web that is a pure Fetcher on a clock moved by hand: whole crawls without sockets and without waiting, the same from the same seed.
 *
 *     const clock = createTestClock();
 *     const web = createTestWeb({ seed: 7, hosts: 6, pages: 80 }, clock);
 *     const run = crawl({ seeds: web.seeds, scope: { preset: "any" }, … }, { world: { clock, random, openFetcher: async () => web.fetcher } });
 *     await clock.run(run.done);
 *     web.expected({ maxDepth: 3, robots: true })      // URL → depth and outcome of every record there must be
 *     web.complaints({ perHostConcurrency: 8, delayMs: 0 })   // what was impolite; empty when nothing was
 *     web.ledger                                       // every request: host, URL, start, end, what it was answered
 *
 * URLs are `http://hN.test/pM`, some on port 8080, some under /private/ (which robots rules disallow). Bodies are small HTML pages.
 * `retries` of the options must equal the crawl's `retry.max`, so that trouble that passes passes in time.
 */
import type { Clock, Timer } from "../core/clock.ts";
import type { Cookie, HostAnswer, HostTuning } from "../core/frontier.ts";
import type { Exchange, ExchangeFacts, FetchedResponse, Fetcher, FetchOutcome, ResponseHeaders } from "../core/outcome.ts";
import type { ErrorCode } from "../core/records.ts";
import { type Expected, expectedOf, type GraphOptions, generateGraph, type PageKind, type Trouble, type WebGraph, type WebHost } from "./web-graph.ts";

export type { Expected, ExpectedOutcome, GraphOptions, WebGraph } from "./web-graph.ts";

/** One request that reached a host. Times are those of the clock. */
export interface LedgerEntry {
  readonly host: string;
  readonly url: string;
  readonly robots: boolean;
  readonly startedAt: number;
  endedAt: number | null;
  status: number | null;
  /** Retry-After of the answer, ms. */
  retryAfterMs: number | null;
}

export interface PolitenessRules {
  readonly perHostConcurrency: number;
  /** Fixed delay; 0: none. */
  readonly delayMs: number;
  /** Crawl-delay lines were to be obeyed. */
  readonly robots?: boolean;
}

export interface TestWeb {
  readonly seeds: readonly string[];
  readonly graph: WebGraph;
  readonly fetcher: Fetcher;
  readonly ledger: readonly LedgerEntry[];
  /** Most requests that were in flight at one moment. */
  readonly mostInFlight: number;
  expected(options: { readonly maxDepth: number | null; readonly robots: boolean }): ReadonlyMap<string, Expected>;
  complaints(rules: PolitenessRules): string[];
}

const RETRY_AFTER_MS = 2_000;
const TIMEOUT_MS = 3_000;
const encoder = new TextEncoder();

interface Reply {
  readonly status: number | null;
  readonly body: string;
  readonly contentType: string | null;
  readonly location: string | null;
  /** Name of a cookie that is set for the host. */
  readonly cookie: string | null;
  readonly failure: { readonly code: ErrorCode; readonly retryAfterMs: number | null } | null;
  /** Head never comes: ms until it is given up. */
  readonly stallMs: number | null;
}

const replyOf = (status: number, body: string, contentType: string | null, location: string | null = null): Reply => ({
  status,
  body,
  contentType,
  location,
  cookie: null,
  failure: null,
  stallMs: null,
});

function trouble(how: Trouble): Reply {
  const failed = (status: number | null, code: ErrorCode, retryAfterMs: number | null = null): Reply => ({
    ...replyOf(0, "", null),
    status,
    failure: { code, retryAfterMs },
    stallMs: how === "timeout" ? TIMEOUT_MS : null,
  });
  switch (how) {
    case "429":
      return failed(429, "rate-limited", RETRY_AFTER_MS);
    case "503":
    case "500":
      return failed(Number(how), "http");
    case "reset":
    case "timeout":
      return failed(null, how);
  }
}

function pageBody(url: string, links: readonly string[]): string {
  const origin = url.slice(0, url.indexOf("/", 7));
  const anchors = links.map((link, i) => `<a href="${link.startsWith(`${origin}/`) ? link.slice(origin.length) : link}${i % 4 === 1 ? "#part" : ""}">${i}</a>`);
  return `<!doctype html><html><head><title>${url}</title></head><body>${anchors.join("\n")}</body></html>`;
}

function pageReply(url: string, page: PageKind, before: number, cookies: readonly Cookie[]): Reply {
  switch (page.kind) {
    case "page":
      return replyOf(200, pageBody(url, page.links), "text/html; charset=utf-8");
    case "missing":
      return replyOf(404, "<h1>Not found</h1>", "text/html");
    case "redirect":
      return replyOf(page.status, "", null, page.to);
    case "gate":
      if (cookies.some((cookie) => cookie.name === page.cookie)) return replyOf(200, pageBody(url, page.links), "text/html; charset=utf-8");
      return { ...replyOf(302, "", null, url), cookie: page.cookie };
    case "broken":
      return trouble(page.how);
    case "flaky":
      return before < page.times ? trouble(page.how) : replyOf(200, pageBody(url, page.links), "text/html; charset=utf-8");
  }
}

function robotsReply(host: WebHost, before: number): Reply {
  const { robots } = host;
  switch (robots.kind) {
    case "missing":
      return replyOf(404, "", null);
    case "rules":
      return replyOf(200, robots.text, "text/plain");
    case "redirect":
      return replyOf(301, "", null, robots.to);
    case "trouble":
      return before < robots.times ? trouble("503") : replyOf(200, robots.after, "text/plain");
  }
}

function cookieFor(host: string, name: string): Cookie {
  const colon = host.indexOf(":");
  return { name, value: "1", domain: colon < 0 ? host : host.slice(0, colon), hostOnly: true, path: "/", secure: false, expiresAt: null };
}

function headersOf(fields: Readonly<Record<string, string | null>>): ResponseHeaders {
  return {
    get: (name) => fields[name] ?? null,
    all: (name) => (fields[name] == null ? [] : [fields[name]]),
    names: () => Object.keys(fields).filter((name) => fields[name] != null),
  };
}

export function createTestWeb(options: GraphOptions, clock: Clock): TestWeb {
  const graph = generateGraph(options);
  const ledger: LedgerEntry[] = [];
  const asked = new Map<string, number>();
  const running = new Map<Exchange, { timer: Timer; abort: () => void }>();
  let inFlight = 0;
  let mostInFlight = 0;

  function answerFor(url: string, host: WebHost, cookies: readonly Cookie[]): Reply {
    const before = asked.get(url) ?? 0;
    asked.set(url, before + 1);
    if (url.endsWith("/robots.txt")) return robotsReply(host, before);
    const page = graph.pages.get(url);
    return page === undefined ? replyOf(404, "", null) : pageReply(url, page, before, cookies);
  }

  function fetch(exchange: Exchange): Promise<FetchOutcome> {
    const { request } = exchange;
    const host = graph.hosts.get(request.host);
    const begun = { epoch: clock.epoch(), at: clock.now() };
    return new Promise((resolve) => {
      let entry: LedgerEntry | null = null;
      const facts = (answer: HostAnswer | null, tuning: HostTuning | null, cookie: string | null = null): ExchangeFacts => ({
        startedAt: begun.epoch,
        durationMs: clock.now() - begun.at,
        sinceStartMs: entry === null ? null : clock.now() - entry.startedAt,
        answer,
        host: tuning,
        setCookies: cookie === null ? null : [cookieFor(request.host, cookie)],
      });
      const end = (outcome: () => FetchOutcome): void => {
        running.delete(exchange);
        if (entry !== null && entry.endedAt === null) {
          entry.endedAt = clock.now();
          inFlight--;
          exchange.onEnd();
        }
        resolve(outcome());
      };
      const wait = (ms: number, then: () => void): void => {
        running.set(exchange, { timer: clock.after(ms, then), abort: () => end(() => ({ ...facts(null, null), kind: "aborted" })) });
      };
      if (host === undefined || host.dead) {
        wait(5, () => end(() => failedOutcome(facts({ kind: "none", latencyMs: 0 }, null), "connect", "no connection", null, null)));
        return;
      }
      wait(host.connectMs, () => {
        entry = {
          host: host.name,
          url: request.url,
          robots: request.hop === "robots",
          startedAt: clock.now(),
          endedAt: null,
          status: null,
          retryAfterMs: null,
        };
        ledger.push(entry);
        mostInFlight = Math.max(mostInFlight, ++inFlight);
        exchange.onStart();
        const reply = answerFor(request.url, host, exchange.cookies ?? []);
        const spentMs = reply.stallMs ?? host.latencyMs + host.bodyMs;
        wait(spentMs, () =>
          end(() => {
            if (entry !== null) {
              entry.status = reply.status;
              entry.retryAfterMs = reply.failure?.retryAfterMs ?? null;
            }
            return outcomeOf(reply, facts, reply.stallMs ?? host.latencyMs);
          }),
        );
      });
    });
  }

  function abort(exchange: Exchange): void {
    const at = running.get(exchange);
    at?.timer.cancel();
    at?.abort();
  }

  const abortAll = (): void => {
    for (const exchange of [...running.keys()]) abort(exchange);
  };

  return {
    seeds: graph.seeds,
    graph,
    ledger,
    get mostInFlight() {
      return mostInFlight;
    },
    fetcher: { fetch, abort, abortAll, [Symbol.asyncDispose]: async () => abortAll() },
    expected: (wanted) => expectedOf(graph, wanted),
    complaints: (rules) => complaintsOf(graph, ledger, rules),
  };
}

function failedOutcome(facts: ExchangeFacts, code: ErrorCode, message: string, status: number | null, retryAfterMs: number | null): FetchOutcome {
  return { ...facts, kind: "failed", code, message, status, response: null, retryable: true, retryAfterMs };
}

function outcomeOf(
  reply: Reply,
  facts: (answer: HostAnswer, tuning: HostTuning | null, cookie: string | null) => ExchangeFacts,
  latencyMs: number,
): FetchOutcome {
  const { status, failure } = reply;
  if (failure !== null) {
    const pushback = failure.code === "timeout" || status === 429 || status === 503;
    const kind = pushback ? "pushback" : "none";
    const tuning = failure.retryAfterMs === null ? null : { notBeforeMs: failure.retryAfterMs };
    return failedOutcome(facts({ kind, latencyMs }, tuning, null), failure.code, `answered ${status ?? failure.code}`, status, failure.retryAfterMs);
  }
  const body = encoder.encode(reply.body);
  const response: FetchedResponse = {
    status: status ?? 0,
    headers: headersOf({ "content-type": reply.contentType, location: reply.location }),
    contentType: reply.contentType,
    body,
    wireBytes: body.length,
    truncated: false,
    bodySkipped: false,
  };
  const good = facts({ kind: "good", latencyMs }, null, reply.cookie);
  return reply.location === null ? { ...good, kind: "fetched", response } : { ...good, kind: "redirect", response, location: reply.location };
}

/** Judges the ledger alone: gaps between starts, requests in flight, rest after Retry-After, Crawl-delay. */
function complaintsOf(graph: WebGraph, ledger: readonly LedgerEntry[], rules: PolitenessRules): string[] {
  const complaints: string[] = [];
  for (const [name, entries] of Map.groupBy(ledger, (entry) => entry.host)) {
    const robots = graph.hosts.get(name)?.robots;
    const crawlDelay = rules.robots !== false && robots?.kind === "rules" ? robots.crawlDelayMs : 0;
    let restUntil = 0;
    for (const [i, entry] of entries.entries()) {
      const previous = entries[i - 1];
      // The Crawl-delay binds once the answer that brings it has been read: from the first page on.
      const gap = entry.robots ? rules.delayMs : Math.max(rules.delayMs, crawlDelay);
      if (previous !== undefined && entry.startedAt - previous.startedAt < gap - 1e-6)
        complaints.push(`${entry.url} started ${entry.startedAt - previous.startedAt} ms after ${previous.url}, not ${gap}`);
      const open = entries.filter((other, j) => j < i && (other.endedAt === null || other.endedAt > entry.startedAt)).length;
      if (open >= rules.perHostConcurrency) complaints.push(`${entry.url} was request ${open + 1} in flight on ${name}`);
      // A request that was already connecting when the answer came may still start.
      const visitedAt = entry.startedAt - (graph.hosts.get(name)?.connectMs ?? 0);
      const ended = entries.filter((other, j) => j < i && other.retryAfterMs !== null && other.endedAt !== null && other.endedAt < visitedAt);
      restUntil = Math.max(restUntil, ...ended.map((other) => (other.endedAt ?? 0) + (other.retryAfterMs ?? 0)));
      if (entry.startedAt < restUntil - 1e-6)
        complaints.push(`${entry.url} started ${restUntil - entry.startedAt} ms before the Retry-After of ${name} was over`);
    }
  }
  return complaints;
}
