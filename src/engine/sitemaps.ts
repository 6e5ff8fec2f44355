/** Sitemaps as requests of the frontier: where they come from, and what the pages they list become. Parsing is parse/sitemap.ts. */
import { assertNever } from "../core/errors.ts";
import type { Lease, Settled, Settlement } from "../core/frontier.ts";
import type { ExchangeFacts, FetchOutcome } from "../core/outcome.ts";
import type { Output } from "../core/records.ts";
import type { CrawlRequest, Origin, RequestRest } from "../core/request.ts";
import { emptyOutput, MAX_REDIRECTS, makeRequest, makeSkip } from "../rules/admit.ts";
import { retryDecision } from "../rules/retry.ts";
import { hostnameOf, type NormalUrl, parseUrl, resolveLocation } from "../rules/url.ts";
import { RUN_PARTIAL } from "../rules/values.ts";
import { type Concluded, resting } from "./concluded.ts";
import type { Parts } from "./parts.ts";

/** Decoded bytes of one file that are read; the protocol allows 50 MiB. */
const MAX_SITEMAP_BYTES = 100 * 1024 * 1024;
/** Pages added to the frontier in one step while a file is read. */
const BATCH = 500;

export interface SitemapDesk {
  readonly maxBytes: number;
  /** Requests for the sitemaps a robots.txt names; none unless they were asked for. */
  named(urls: readonly string[], origin: Origin): CrawlRequest[];
  /** The request for a sitemap. `namedBy`: the origin whose robots.txt names it; null: the user did. */
  request(url: NormalUrl, namedBy: Origin | null, referrer: string | null): CrawlRequest;
  /** `add` takes the pages as they are read, before the settle that ends the file. */
  conclude(
    lease: Lease,
    outcome: Exclude<FetchOutcome, { kind: "aborted" }>,
    add: (requests: readonly CrawlRequest[]) => Promise<void>,
  ): Concluded | Promise<Concluded>;
  /** The verdict of robots.txt was no, or could not be had. */
  refused(lease: Lease, why: string): Concluded;
}

export function createSitemapDesk(parts: Parts): SitemapDesk {
  const { admit, spec } = parts;

  /** A file is fetched once as a sitemap, whether or not its URL is a page as well: hence a fingerprint of its own. */
  function request(url: NormalUrl, namedBy: Origin | null, referrer: string | null, more: RequestRest = {}): CrawlRequest {
    const rest: RequestRest = { ...more, ...(namedBy === null ? {} : { robotsFor: namedBy }), ...(url.sentAs === null ? {} : { sentAs: url.sentAs }) };
    const made = makeRequest(`sitemap:${url.url}`, admit.seed, { hop: "sitemap", depth: 0, referrer, rest: Object.keys(rest).length > 0 ? rest : null });
    return { ...made, url: url.url, host: makeRequest(url.url, admit.seed, { hop: "sitemap", depth: 0, referrer }).host };
  }

  function settled(lease: Lease, facts: Pick<ExchangeFacts, "sinceStartMs" | "answer" | "host" | "setCookies">, settlement: Settlement, retries = 0): Settled {
    const { sinceStartMs, answer, host, setCookies } = facts;
    return { token: lease.token, settlement, sinceStartMs, answer, host, setCookies, newSeeds: null, tally: retries > 0 ? [["retries", retries]] : [] };
  }

  function given(lease: Lease, facts: ExchangeFacts, why: string): Concluded {
    const { request: from } = lease;
    // /sitemap.xml was only a guess: that there is none is no news.
    const guessed = from.referrer === null && from.rest?.robotsFor !== undefined;
    parts.log(guessed ? "info" : "warn", "sitemap not used", { url: from.url, why });
    return { settled: settled(lease, facts, { kind: "dropped", output: null }), links: [] };
  }

  /** What it lists stays unknown: what the last run knew, and this one does not meet, is not gone for that. */
  function unheard(concluded: Concluded): Concluded {
    if (!spec.incremental) return concluded;
    return { ...concluded, settled: { ...concluded.settled, values: [{ op: "set", key: RUN_PARTIAL, value: "true" }] } };
  }

  function redirected(lease: Lease, outcome: FetchOutcome & { kind: "redirect" }): Concluded {
    const from = lease.request;
    const target = resolveLocation(outcome.location, from.rest?.sentAs ?? from.url);
    const redirects = [...(from.rest?.redirects ?? []), { url: from.url, status: outcome.response.status }];
    if (target === null) return given(lease, outcome, "its redirect leads to no URL");
    if (redirects.length > MAX_REDIRECTS) return given(lease, outcome, `more than ${MAX_REDIRECTS} redirects`);
    const next = request(target, from.rest?.robotsFor ?? null, from.referrer, { redirects });
    return { settled: settled(lease, outcome, { kind: "dropped", output: null }), links: [next] };
  }

  /** A listed page passes scope and patterns like a link; its depth is that of a seed. */
  function admitPage(
    loc: NormalUrl,
    from: CrawlRequest,
    mayList: (page: string) => boolean,
    out: { requests: CrawlRequest[]; skipped: Output["skipped"][number][] },
  ): void {
    const { url } = loc;
    const verdict = admit.scope.verdict(url);
    const reason = verdict?.reason ?? (mayList(url) ? (admit.scope.follows(url) ? null : "not-followed") : "out-of-scope");
    if (reason === null) {
      out.requests.push(makeRequest(url, admit.seed, { hop: "link", depth: 0, referrer: from.url, rest: loc.sentAs === null ? null : { sentAs: loc.sentAs } }));
      return;
    }
    const rule = verdict?.rule ?? (reason === "out-of-scope" ? "a sitemap lists only pages of hosts that name it" : null);
    out.skipped.push(makeSkip(admit.seed, { url, referrer: from.url, depth: 0, reason, ...(rule === null ? {} : { rule }) }));
  }

  async function read(
    lease: Lease,
    outcome: FetchOutcome & { kind: "fetched" },
    add: (requests: readonly CrawlRequest[]) => Promise<void>,
  ): Promise<Concluded> {
    const { request: from } = lease;
    const { response } = outcome;
    if (response.status !== 200) {
      const without = given(lease, outcome, `the answer has status ${response.status}`);
      return response.status === 404 || response.status === 410 ? without : unheard(without);
    }
    const { readSitemap, mayList } = await parts.loadSitemaps();
    const namedBy = from.rest?.robotsFor;
    const allowed = namedBy === undefined ? () => true : (page: string) => mayList(from.url, page, [hostnameOf(`${namedBy}/`)], parts.siteOf);
    const out = { requests: [] as CrawlRequest[], skipped: [] as Output["skipped"][number][] };
    const sitemaps: CrawlRequest[] = [];
    const flush = async () => {
      while (out.requests.length > 0) await add(out.requests.splice(0, BATCH));
    };
    const result = await readSitemap(
      response.body,
      {
        url: from.url,
        contentType: response.contentType,
        onUrl: (loc) => admitPage(loc, from, allowed, out),
        onSitemap: (loc) => sitemaps.push(request(loc, namedBy ?? null, from.url)),
      },
      async () => {
        await flush();
        await new Promise<void>((resolve) => parts.clock.soon(resolve));
      },
    );
    await flush();
    const { kind, urls, error } = result;
    const damaged = kind === "html" || kind === "other" || error !== null || response.truncated;
    if (damaged) {
      parts.log("warn", "sitemap is damaged", { url: from.url, kind, urls, error: error ?? (response.truncated ? "longer than is read" : kind) });
    } else parts.log("info", "sitemap read", { url: from.url, kind, urls, sitemaps: result.sitemaps });
    const output: Output = { ...emptyOutput, skipped: out.skipped };
    const concluded = { settled: settled(lease, outcome, { kind: "done", counted: false, output }), links: sitemaps };
    return damaged ? unheard(concluded) : concluded;
  }

  return {
    maxBytes: MAX_SITEMAP_BYTES,
    request: (url, namedBy, referrer) => request(url, namedBy, referrer),
    named(urls, origin) {
      if (!spec.sitemaps.includes("auto")) return [];
      return urls.flatMap((text) => {
        const parsed = parseUrl(text);
        return "reject" in parsed ? [] : [request(parsed, origin, `${origin}/robots.txt`)];
      });
    },
    refused(lease, why) {
      parts.log("warn", "sitemap not used", { url: lease.request.url, why });
      const untouched = { sinceStartMs: null, answer: null, host: null, setCookies: null };
      return unheard({ settled: settled(lease, untouched, { kind: "dropped", output: null }), links: [] });
    },
    conclude(lease, outcome, add) {
      switch (outcome.kind) {
        case "fetched":
          return read(lease, outcome, add);
        case "redirect":
          return redirected(lease, outcome);
        case "failed": {
          const decision = retryDecision(
            { ...outcome, attempt: lease.attempt, crashes: lease.crashes, maxRetries: spec.retry.max, maxWaitMs: spec.maxWait },
            parts.random,
          );
          if (decision.kind === "retry") return { settled: settled(lease, { ...outcome, host: resting(outcome) }, decision, 1), links: [] };
          return unheard(given(lease, outcome, outcome.message));
        }
        default:
          return assertNever(outcome);
      }
    },
  };
}
