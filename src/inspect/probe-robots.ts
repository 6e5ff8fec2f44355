/** robots.txt of one or many origins, fetched by the crawl's own rules (redirects, 4xx, 5xx, retries), and its verdicts: what `skein robots` shows. */
import { assemble, DEFAULT_USER_AGENT } from "../assemble.ts";
import { CrawlError } from "../core/errors.ts";
import type { Lease, RobotsState } from "../core/frontier.ts";
import type { Fetcher } from "../core/outcome.ts";
import type { CrawlRequest, Origin } from "../core/request.ts";
import type { CrawlSpec } from "../core/spec.ts";
import type { Parts } from "../engine/parts.ts";
import { createRobotsDesk, type RobotsDesk } from "../engine/robots.ts";
import { makeRequest } from "../rules/admit.ts";
import { parseRobots, productToken, sitemaps } from "../rules/robots.ts";
import { hostKeyOf, originOf } from "../rules/url.ts";
import { exchangeView, type ProbeExchange, type ProbeOptions } from "./probe.ts";
import { type RobotsVerdictView, verdictOf, verdictOfFile } from "./probe-verdict.ts";

export interface RobotsProbe extends RobotsVerdictView {
  /** The name that was looked up. */
  readonly agent: string;
  readonly sitemaps: readonly string[];
  /** Requests made for the file; empty for a file of this machine, and when an earlier URL of the same origin brought it. */
  readonly exchanges: readonly ProbeExchange[];
}

/** A URL to judge; for a bare host, the one to take when this origin cannot be reached. */
export interface RobotsQuestion {
  readonly url: string;
  readonly fallback: string | null;
}

interface Found {
  readonly state: RobotsState;
  readonly exchanges: readonly ProbeExchange[];
}

function leaseOf(request: CrawlRequest, attempt: number): Lease {
  return { request, token: "probe", attempt, crashes: 0, startWithinMs: Infinity, expiresInMs: Infinity, robots: null, cookies: null };
}

/** The loop of the frontier for one file: ask, follow, try again, until there is an answer. */
async function fetchRobots(origin: Origin, parts: Parts, fetcher: Fetcher, desk: RobotsDesk): Promise<Found> {
  const exchanges: ProbeExchange[] = [];
  let request = makeRequest(`${origin}/robots.txt`, parts.admit.seed, { hop: "robots", depth: 0, referrer: null, rest: { robotsFor: origin } });
  let attempt = 0;
  for (;;) {
    const lease = leaseOf(request, attempt);
    const exchange = { request, cookies: null, maxBytes: desk.maxBytes, onStart: () => undefined, onEnd: () => undefined };
    const outcome = await fetcher.fetch(exchange);
    if (outcome.kind === "aborted") throw new CrawlError("internal", `the fetch of ${request.url} was aborted`);
    exchanges.push(exchangeView(exchange, outcome));
    const { settlement } = desk.conclude(lease, outcome).settled;
    if (settlement.kind === "retry") {
      attempt++;
      const { afterMs } = settlement;
      await new Promise<void>((resolve) => parts.clock.after(afterMs, resolve));
      continue;
    }
    if (settlement.kind !== "robots") throw new CrawlError("internal", `robots.txt was settled as ${settlement.kind}`);
    const { answer } = settlement;
    if (answer.kind !== "redirect") return { state: { version: 1, ...answer }, exchanges };
    request = answer.request;
    attempt = 0;
  }
}

/** The host is what cannot be reached, not its robots.txt alone. */
function isUnreachable(state: RobotsState): boolean {
  return state.kind === "unavailable" && state.code !== "robots-unavailable" && state.code !== "blocked-address";
}

/** Verdicts in the order of the questions, whose URLs are canonical; each origin is asked once. `agent`: the name to look up, else the user agent's product token. */
export async function* probeRobots(
  spec: CrawlSpec,
  questions: readonly RobotsQuestion[],
  agent: string | null,
  options: ProbeOptions = {},
): AsyncGenerator<RobotsProbe> {
  const own = {
    ...spec,
    ...{ cache: null, offline: false, incremental: false, sitemaps: [], scraper: null, outputs: [], pagesFile: null, skippedFile: null, linksFile: null },
  };
  const parts = assemble(own, options);
  const token = agent === null ? parts.robotsToken : productToken(agent);
  const desk = createRobotsDesk(parts);
  for (const { url } of questions) parts.identity.seedHosts.add(hostKeyOf(url));
  const fetcher = await parts.openFetcher();
  const known = new Map<Origin, RobotsState>();
  const ask = async (origin: Origin): Promise<Found> => {
    const kept = known.get(origin);
    if (kept !== undefined) return { state: kept, exchanges: [] };
    const found = await fetchRobots(origin, parts, fetcher, desk);
    known.set(origin, found.state);
    return found;
  };
  try {
    for (const { url, fallback } of questions) {
      const first = await ask(originOf(url));
      const second = fallback !== null && isUnreachable(first.state) ? await ask(originOf(fallback)) : null;
      const { state, exchanges } = second === null ? first : { state: second.state, exchanges: [...first.exchanges, ...second.exchanges] };
      const judged = second === null ? url : (fallback ?? url);
      const named = state.kind === "rules" ? sitemaps(parseRobots(state.text), `${originOf(judged)}/robots.txt`) : [];
      yield { ...verdictOf(judged, state, token), agent: token, sitemaps: named, exchanges };
    }
  } finally {
    await fetcher[Symbol.asyncDispose]();
  }
}

/** Verdicts of a robots.txt given as text. `name` stands for its URL in the answers; `agent` null is the one that a crawl sends by itself. */
export function judgeRobots(text: string, name: string, urls: readonly string[], agent: string | null): RobotsProbe[] {
  const robots = parseRobots(text);
  const token = productToken(agent ?? DEFAULT_USER_AGENT);
  return urls.map((url) => ({
    ...verdictOfFile(url, name, robots, token),
    agent: token,
    sitemaps: sitemaps(robots, `${originOf(url)}/robots.txt`),
    exchanges: [],
  }));
}
