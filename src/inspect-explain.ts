/** Why a URL was, or was not, crawled: the facts, gathered from a state directory. Their words are inspect-words.ts. */
import { DEFAULT_USER_AGENT } from "./assemble.ts";
import type { PageRecord, SkippedRecord } from "./core/records.ts";
import type { StateView } from "./inspect.ts";
import { findMention, findRecord, findSeeds } from "./inspect-journal.ts";
import { type RobotsVerdictView, verdictOf } from "./probe-verdict.ts";
import { productToken } from "./rules/robots.ts";
import { loadScope, type Scope } from "./rules/scope.ts";
import { originOf, parseUrl } from "./rules/url.ts";
import type { KnownPlace } from "./store/sqlite/read.ts";

/** One page of the way from a seed. */
export interface WayStep {
  readonly url: string;
  readonly depth: number;
  /** What became of it; null when it has no record (a sitemap). */
  readonly outcome: PageRecord["outcome"] | null;
  /** Set where a redirect led on, instead of a link. */
  readonly status?: number;
}

/** What the rules of the crawl say of a URL that it has not met. */
export interface Outlook {
  readonly reason: "in-scope" | "out-of-scope" | "excluded" | "not-followed";
  readonly rule: string | null;
  /** It was read as a sitemap. */
  readonly sitemap: boolean;
  /** It was passed over, and the line that says why is not here. */
  readonly passedOver: boolean;
  /** A page that was read and links to it all the same. */
  readonly linkedFrom: string | null;
  /** The same page under a slightly different URL that the crawl has met. */
  readonly near: string | null;
}

/** Where it stands in the queue. */
export interface QueuePlace {
  readonly standing: "queued" | "delayed" | "leased";
  readonly depth: number;
  /** Tries that failed in passing. */
  readonly attempt: number;
  /** Epoch ms of the next try. */
  readonly dueAt: number | null;
  /** Of those that wait: all, and those that its host has to be asked for first. */
  readonly waiting: number;
  readonly aheadOnHost: number;
}

export interface Explanation {
  readonly url: string;
  readonly kind: "page" | "skipped" | "waiting" | "settled" | "unknown";
  readonly record: PageRecord | null;
  readonly skipped: SkippedRecord | null;
  readonly queue: QueuePlace | null;
  /** From a seed to the page on which it was found; the URL itself is not in it. Empty for seeds, and where nothing is known. */
  readonly way: readonly WayStep[];
  /** More steps than are followed. */
  readonly wayCut: boolean;
  /** As far as the crawl knows the robots.txt of its origin. */
  readonly robots: RobotsVerdictView | null;
  readonly outlook: Outlook | null;
  readonly standing: KnownPlace["standing"] | null;
  /** There is no record of any page here: the crawl ran in memory until it was interrupted. */
  readonly noRecords: boolean;
  /** It did so at first: pages settled then have no record here. */
  readonly beganInMemory: boolean;
}

/** Each step of the way is a search of its own. */
const MAX_WAY = 100;

async function recordOf(view: StateView, url: string, before?: number): Promise<{ readonly at: number; readonly record: PageRecord } | null> {
  const found = await findRecord(view.journal.pages, url, before);
  // `as`: the journal is written by this program, and the line is whole.
  return found === null ? null : { at: found.at, record: JSON.parse(found.text) as PageRecord };
}

async function skippedOf(view: StateView, url: string): Promise<SkippedRecord | null> {
  const found = await findRecord(view.journal.skipped, url);
  return found === null ? null : (JSON.parse(found.text) as SkippedRecord); // `as`: written by this program
}

/** The way to a page found on `referrer`. A page is settled before what it links to, so that each search ends where the last one found its record. */
async function wayTo(view: StateView, referrer: string | null, redirects: PageRecord["redirects"]): Promise<{ way: WayStep[]; cut: boolean }> {
  const way: WayStep[] = (redirects ?? []).map(({ url, status }) => ({ url, depth: 0, outcome: "redirected", status }));
  const met = new Set(way.map(({ url }) => url));
  let before: number | undefined;
  for (let from = referrer; from !== null; ) {
    if (met.has(from)) return { way, cut: false };
    if (met.size >= MAX_WAY) return { way, cut: true };
    met.add(from);
    const found = (await recordOf(view, from, before)) ?? (before === undefined ? null : await recordOf(view, from));
    if (found === null) {
      way.unshift({ url: from, depth: 0, outcome: null });
      return { way, cut: false };
    }
    const { record, at } = found;
    before = at;
    way.unshift({ url: from, depth: record.depth, outcome: record.outcome });
    way.unshift(...(record.redirects ?? []).map(({ url, status }): WayStep => ({ url, depth: record.depth, outcome: "redirected", status })));
    from = record.referrer;
  }
  return { way, cut: false };
}

function queuePlace(view: StateView, url: string, place: KnownPlace): QueuePlace {
  const { standing, depth, attempt, dueEpoch, request } = place;
  const { spec } = view;
  const exact = spec.maxDepth !== null && spec.depthMode === "exact";
  let aheadOnHost = 0;
  let passed = false;
  for (const other of view.queue()) {
    if (other.request.url === url) {
      passed = true;
      continue;
    }
    if (request === null || other.standing !== "queued" || other.request.host !== request.host) continue;
    if (exact && other.request.depth !== request.depth) aheadOnHost += other.request.depth < request.depth ? 1 : 0;
    else if (other.request.priority !== request.priority) aheadOnHost += other.request.priority > request.priority ? 1 : 0;
    else if (spec.order === "dfs" ? passed : !passed) aheadOnHost++;
  }
  const waiting = view.counts.queued + view.counts.delayed;
  // `as`: only what waits is given here.
  return { standing: standing as QueuePlace["standing"], depth, attempt, dueAt: dueEpoch, waiting, aheadOnHost };
}

/** The scope as the run has it: seeds of the spec, and those that have a record (from input files, and targets of redirected seeds). */
async function scopeOf(view: StateView): Promise<Scope> {
  const seeds = new Set<string>();
  for (const text of Array.isArray(view.spec.seeds) ? view.spec.seeds : []) {
    // Stands for an input file.
    if (text.startsWith("-i ")) continue;
    const hasScheme = /^[a-z][a-z0-9+.-]*:(?!\d+(?:[/?#]|$))/i.test(text.trim());
    const parsed = parseUrl(hasScheme ? text : `https://${text.trim()}`);
    if (!("reject" in parsed)) seeds.add(parsed.url);
  }
  const scope = await loadScope(view.spec.scope, view.spec.follow, [], seeds);
  for (const { request } of view.queue()) if (request.hop === "seed") scope.addSeed(request.url);
  // `as`: written by this program
  for await (const { text } of findSeeds(view.journal.pages)) scope.addSeed((JSON.parse(text) as PageRecord).url);
  return scope;
}

/** Spellings of one page that are different URLs: another scheme, or a slash at the end. */
function neighbours(url: string): string[] {
  const other = url.startsWith("https:") ? `http:${url.slice(6)}` : `https:${url.slice(5)}`;
  const slash = (text: string) => (text.includes("?") ? null : text.endsWith("/") ? text.slice(0, -1) : `${text}/`);
  const forms = [other, slash(url), slash(other)].flatMap((text) => {
    const parsed = text === null ? null : parseUrl(text);
    return parsed === null || "reject" in parsed || parsed.url === url ? [] : [parsed.url];
  });
  return [...new Set(forms)];
}

async function outlookOf(view: StateView, url: string): Promise<Outlook> {
  const scope = await scopeOf(view);
  const verdict = scope.verdict(url);
  const mention = await findMention(view.journal.pages, url);
  // `as`: written by this program
  const linkedFrom = mention === null ? null : (JSON.parse(mention.text) as PageRecord).url;
  const near = neighbours(url).find((form) => view.lookUp(form) !== null) ?? null;
  // Sitemaps are known under a name of their own (engine/sitemaps.ts).
  const facts = { sitemap: view.lookUp(`sitemap:${url}`) !== null, passedOver: view.wasSkipped(url), linkedFrom, near };
  if (verdict !== null) return { reason: verdict.reason, rule: verdict.rule, ...facts };
  return { reason: scope.follows(url) ? "in-scope" : "not-followed", rule: null, ...facts };
}

/** Gathers what a crawl knows of a canonical URL, or of a reference as it was written where that is no URL. */
export async function explain(view: StateView, url: string): Promise<Explanation> {
  const found = await recordOf(view, url);
  const skipped = await skippedOf(view, url);
  const isUrl = !("reject" in parseUrl(url));
  const place = isUrl ? view.lookUp(url) : null;
  const waits = place !== null && place.standing !== "done" && place.standing !== "dropped";
  const kind = found !== null ? "page" : waits ? "waiting" : skipped !== null ? "skipped" : place !== null ? "settled" : "unknown";
  const record = found?.record ?? null;
  const request = waits ? place.request : null;
  const referrer = record?.referrer ?? request?.referrer ?? (kind === "skipped" ? (skipped?.referrer ?? null) : null);
  const { way, cut } = await wayTo(view, referrer, record?.redirects ?? request?.rest?.redirects);
  const robots = isUrl && view.spec.robots ? view.robotsOf(originOf(url)) : null;
  const agent = view.spec.userAgent ?? DEFAULT_USER_AGENT;
  return {
    url,
    kind,
    record,
    skipped,
    queue: waits && kind === "waiting" ? queuePlace(view, url, place) : null,
    way,
    wayCut: cut,
    robots: robots === null ? null : verdictOf(url, robots, productToken(agent)),
    outlook: kind === "unknown" && isUrl ? await outlookOf(view, url) : null,
    standing: place?.standing ?? null,
    noRecords: view.journal.pages.bytes === 0 && view.counts.done > 0,
    beganInMemory: view.beganInMemory !== null,
  };
}
