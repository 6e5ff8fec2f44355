/** Why a URL was, or was not, crawled: the facts, gathered from a state directory or a shared store. Their words are words.ts. */
import { DEFAULT_USER_AGENT } from "../assemble.ts";
import type { RobotsState } from "../core/frontier.ts";
import type { PageRecord, SkippedRecord } from "../core/records.ts";
import type { CrawlRequest } from "../core/request.ts";
import type { CrawlSpec } from "../core/spec.ts";
import { productToken } from "../rules/robots.ts";
import { loadScope, type Scope } from "../rules/scope.ts";
import { originOf, parseUrl } from "../rules/url.ts";
import type { KnownPlace } from "../store/sqlite/read.ts";
import type { Journal, StateView } from "./inspect.ts";
import { findMention, findRecord, findSeeds } from "./journal.ts";
import { type RobotsVerdictView, verdictOf } from "./probe-verdict.ts";

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
  /** Of a crawl on a shared store; absent: it has a state directory. */
  readonly store?: StoreFacts;
}

/** What only a shared store tells. */
export interface StoreFacts {
  /** Where it is in flight; null: it is not, or its worker has not said so yet. */
  readonly worker: { readonly kind: string; readonly host: string; readonly pid: number } | null;
  /** Whether its record still waits for a writer of the outputs. */
  readonly waits: boolean;
  /** Files that records were written to, and whether they can be read here. */
  readonly files: readonly { readonly path: string; readonly host: string | null; readonly here: boolean }[];
}

type Awaitable<T> = T | Promise<T>;
type SomeIterable<T> = Iterable<T> | AsyncIterable<T>;

/** Records of a crawl, wherever they lie. */
export interface Records {
  /** Of those that begin before a place of the journal, where it has places. */
  page(url: string, before?: number): Promise<{ readonly at?: number; readonly record: PageRecord } | null>;
  skipped(url: string): Promise<SkippedRecord | null>;
  /** The page of the first record in which the URL stands. */
  mention(url: string): Promise<string | null>;
  /** Seeds, and what redirected seeds led to. */
  seeds(): SomeIterable<string>;
}

/** A crawl that can be asked. */
export interface Explainable {
  readonly spec: CrawlSpec;
  readonly counts: Pick<StateView["counts"], "queued" | "delayed" | "done">;
  readonly records: Records;
  readonly noRecords: boolean;
  readonly beganInMemory: boolean;
  lookUp(url: string): Awaitable<KnownPlace | null>;
  wasSkipped(url: string): Awaitable<boolean>;
  /** What waits at a host, oldest first; null: seeds that wait, at whatever host. */
  queue(host: string | null): SomeIterable<{ readonly standing: string; readonly request: CrawlRequest }>;
  robotsOf(origin: string): Awaitable<RobotsState | null>;
}

/** `as`, four times: journals are written by this program, and their lines are whole. */
export function journalRecords(pages: Journal, skipped: Journal): Records {
  return {
    async page(url, before) {
      const found = await findRecord(pages, url, before);
      return found === null ? null : { at: found.at, record: JSON.parse(found.text) as PageRecord };
    },
    async skipped(url) {
      const found = await findRecord(skipped, url);
      return found === null ? null : (JSON.parse(found.text) as SkippedRecord);
    },
    async mention(url) {
      const found = await findMention(pages, url);
      return found === null ? null : (JSON.parse(found.text) as PageRecord).url;
    },
    async *seeds() {
      for await (const { text } of findSeeds(pages)) yield (JSON.parse(text) as PageRecord).url;
    },
  };
}

/** A state directory. */
function explainable(view: StateView): Explainable {
  const { journal, spec, counts } = view;
  return {
    ...{ spec, counts },
    records: journalRecords(journal.pages, journal.skipped),
    noRecords: journal.pages.bytes === 0 && counts.done > 0,
    beganInMemory: view.beganInMemory !== null,
    lookUp: view.lookUp,
    wasSkipped: view.wasSkipped,
    queue: () => view.queue(),
    robotsOf: view.robotsOf,
  };
}

/** Each step of the way is a search of its own. */
const MAX_WAY = 100;

/** The way to a page found on `referrer`. A page is settled before what it links to, so that each search ends where the last one found its record. */
async function wayTo(
  { records }: Explainable,
  referrer: string | null,
  redirects: PageRecord["redirects"] | undefined,
): Promise<{ way: WayStep[]; cut: boolean }> {
  const way: WayStep[] = (redirects ?? []).map(({ url, status }) => ({ url, depth: 0, outcome: "redirected", status }));
  const met = new Set(way.map(({ url }) => url));
  let before: number | undefined;
  for (let from = referrer; from !== null; ) {
    if (met.has(from)) return { way, cut: false };
    if (met.size >= MAX_WAY) return { way, cut: true };
    met.add(from);
    const found = (await records.page(from, before)) ?? (before === undefined ? null : await records.page(from));
    if (found === null) {
      way.unshift({ url: from, depth: 0, outcome: null });
      return { way, cut: false };
    }
    const { record } = found;
    before = found.at;
    way.unshift({ url: from, depth: record.depth, outcome: record.outcome });
    way.unshift(...(record.redirects ?? []).map(({ url, status }): WayStep => ({ url, depth: record.depth, outcome: "redirected", status })));
    from = record.referrer;
  }
  return { way, cut: false };
}

async function queuePlace(view: Explainable, url: string, place: KnownPlace): Promise<QueuePlace> {
  const { standing, depth, attempt, dueEpoch, request } = place;
  const { spec } = view;
  const exact = spec.maxDepth !== null && spec.depthMode === "exact";
  let aheadOnHost = 0;
  let passed = false;
  for await (const other of request === null ? [] : view.queue(request.host)) {
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
async function scopeOf(view: Explainable): Promise<Scope> {
  const seeds = new Set<string>();
  for (const text of Array.isArray(view.spec.seeds) ? view.spec.seeds : []) {
    // Stands for an input file.
    if (text.startsWith("-i ")) continue;
    const hasScheme = /^[a-z][a-z0-9+.-]*:(?!\d+(?:[/?#]|$))/i.test(text.trim());
    const parsed = parseUrl(hasScheme ? text : `https://${text.trim()}`);
    if (!("reject" in parsed)) seeds.add(parsed.url);
  }
  const scope = await loadScope(view.spec.scope, view.spec.follow, [], seeds);
  for await (const { request } of view.queue(null)) if (request.hop === "seed") scope.addSeed(request.url);
  for await (const url of view.records.seeds()) scope.addSeed(url);
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

async function outlookOf(view: Explainable, url: string): Promise<Outlook> {
  const scope = await scopeOf(view);
  const verdict = scope.verdict(url);
  const linkedFrom = await view.records.mention(url);
  let near: string | null = null;
  for (const form of neighbours(url)) if (near === null && (await view.lookUp(form)) !== null) near = form;
  // Sitemaps are known under a name of their own (engine/sitemaps.ts).
  const sitemap = (await view.lookUp(`sitemap:${url}`)) !== null;
  const facts = { sitemap, passedOver: await view.wasSkipped(url), linkedFrom, near };
  if (verdict !== null) return { reason: verdict.reason, rule: verdict.rule, ...facts };
  return { reason: scope.follows(url) ? "in-scope" : "not-followed", rule: null, ...facts };
}

/** Gathers what a crawl knows of a canonical URL, or of a reference as it was written where that is no URL. */
export function explain(view: StateView, url: string): Promise<Explanation> {
  return explainFrom(explainable(view), url);
}

export async function explainFrom(view: Explainable, url: string): Promise<Explanation> {
  const found = await view.records.page(url);
  const skipped = await view.records.skipped(url);
  const isUrl = !("reject" in parseUrl(url));
  const place = isUrl ? await view.lookUp(url) : null;
  const waits = place !== null && place.standing !== "done" && place.standing !== "dropped";
  const kind = found !== null ? "page" : waits ? "waiting" : skipped !== null ? "skipped" : place !== null ? "settled" : "unknown";
  const record = found?.record ?? null;
  const request = waits ? place.request : null;
  const referrer = record?.referrer ?? request?.referrer ?? (kind === "skipped" ? (skipped?.referrer ?? null) : null);
  const { way, cut } = await wayTo(view, referrer, record?.redirects ?? request?.rest?.redirects);
  const robots = isUrl && view.spec.robots ? await view.robotsOf(originOf(url)) : null;
  const agent = view.spec.userAgent ?? DEFAULT_USER_AGENT;
  return {
    url,
    kind,
    record,
    skipped,
    queue: waits && kind === "waiting" ? await queuePlace(view, url, place) : null,
    way,
    wayCut: cut,
    robots: robots === null ? null : verdictOf(url, robots, productToken(agent)),
    outlook: kind === "unknown" && isUrl ? await outlookOf(view, url) : null,
    standing: place?.standing ?? null,
    noRecords: view.noRecords,
    beganInMemory: view.beganInMemory,
  };
}
