/** What the calls of a scraper's `follow` become: requests, or a reason why not. Links of a page itself are rules/admit.ts. */
import type { Once, SkippedRecord, SkipReason } from "../core/records.ts";
import type { CrawlRequest, RequestRest, ScrapeRest } from "../core/request.ts";
import type { Follow } from "../core/scraping.ts";
import { type AdmitRules, identityOf, makeSkip } from "./admit.ts";
import { fingerprint, hostKeyOf, type NormalUrl, parseUrl } from "./url.ts";

const scratch = new Int32Array(2);

export interface AdmittedFollows {
  readonly requests: readonly CrawlRequest[];
  readonly skipped: readonly Once<SkippedRecord>[];
  /** Canonical URLs that became requests. */
  readonly followed: ReadonlySet<string>;
}

function scrapeRest(follow: Follow): ScrapeRest {
  return {
    ...(follow.handler === null ? {} : { handler: follow.handler }),
    ...(follow.data === null ? {} : { data: follow.data }),
    ...(follow.series === null ? {} : { series: follow.series, index: follow.index ?? 0 }),
    ...(follow.oldRuns === null || follow.series === null ? {} : { oldRuns: follow.oldRuns }),
  };
}

function restOf(follow: Follow, { sentAs }: NormalUrl): RequestRest | null {
  const scrape = scrapeRest(follow);
  const rest: RequestRest = {
    ...(sentAs === null ? {} : { sentAs }),
    ...(follow.method === null || follow.method === "GET" ? {} : { method: follow.method }),
    ...(follow.body === null ? {} : { body: follow.body }),
    ...(follow.headers === null ? {} : { headers: follow.headers }),
    ...(Object.keys(scrape).length === 0 ? {} : { scrape }),
  };
  return Object.keys(rest).length === 0 ? null : rest;
}

/** Scope, follow patterns, depth and traps hold for what a scraper follows as for any link; nofollow does not, since somebody chose it by hand. */
function refusalOf(rules: AdmitRules, url: string, referrer: string, depth: number): { reason: SkipReason; rule?: string } | null {
  const verdict = rules.scope.verdict(url);
  if (verdict !== null) return verdict;
  if (!rules.scope.follows(url)) return { reason: "not-followed" };
  if (rules.maxDepth !== null && depth > rules.maxDepth) return { reason: "depth", rule: `--depth ${rules.maxDepth}` };
  const trap = rules.traps?.verdict(url, referrer, depth) ?? null;
  return trap === null ? null : { reason: "trap", rule: trap.rule };
}

/** `base`: against what references are resolved. With `dontDedupe` a request is one of its own, the same one whenever its page is read again. */
export function admitFollows(rules: AdmitRules, from: CrawlRequest, follows: readonly Follow[], base: string): AdmittedFollows {
  const requests: CrawlRequest[] = [];
  const skipped: Once<SkippedRecord>[] = [];
  const followed = new Set<string>();
  const depth = from.depth + 1;
  for (const [i, follow] of follows.entries()) {
    const parsed = parseUrl(follow.href, base);
    if ("reject" in parsed) {
      skipped.push(makeSkip(rules.seed, { url: follow.href.slice(0, 2_000), referrer: from.url, depth, reason: parsed.reject }));
      continue;
    }
    const { url } = parsed;
    const refusal = refusalOf(rules, url, from.url, depth);
    if (refusal !== null) {
      skipped.push(makeSkip(rules.seed, { url, referrer: from.url, depth, ...refusal }));
      continue;
    }
    followed.add(url);
    const rest = restOf(follow, parsed);
    const identity = identityOf({ url, rest });
    fingerprint(follow.dontDedupe ? `${identity} #${from.idHi}:${from.idLo}:${i}` : identity, rules.seed, scratch);
    requests.push({
      url,
      idHi: scratch[0]!,
      idLo: scratch[1]!,
      host: hostKeyOf(url),
      hop: "link",
      depth,
      priority: follow.priority,
      referrer: from.url,
      rest,
    });
  }
  return { requests, skipped, followed };
}
