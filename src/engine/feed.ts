/** Reads seeds into the frontier while the crawl runs: in batches, no faster than they are used up, and not at all once the crawl is over. */
import { CrawlError } from "../core/errors.ts";
import type { AddCounts, Frontier } from "../core/frontier.ts";
import type { CrawlRequest } from "../core/request.ts";
import { admitSeed } from "../rules/admit.ts";
import { shownSeed } from "../rules/seeds.ts";
import { hostKeyOf, originOf, parseUrl } from "../rules/url.ts";
import type { Parts, SeedGrowth } from "./parts.ts";
import { createSitemapDesk } from "./sitemaps.ts";

/** Lines of seeds, one URL each; bad ones are logged with their number and skipped. */
export type SeedLines = Iterable<string> | AsyncIterable<string>;

/** Seeds added in one step, and the queue length above which more seeds are not read. */
export const BATCH = 500;
const BACKLOG = 20_000;

export interface FeedInput {
  readonly parts: Parts;
  readonly frontier: Frontier;
  readonly seeds: SeedLines;
  /** Resolves when no seed can matter any more: stopped, or the loop is over. */
  readonly over: Promise<void>;
  readonly isOver: () => boolean;
  /** They are one list: when a stop leaves what is queued to be done, it is read to its end. Of a source what has been read by then counts. */
  readonly listed: boolean;
  /** Over, and what is queued is not to be done. */
  readonly drops: () => boolean;
  readonly added: () => void;
}

export interface SeedTaker {
  readonly good: number;
  readonly bad: number;
  /** Requests that wait to be added. */
  readonly batch: CrawlRequest[];
  /** A good line widens the scope and becomes a request of the batch; a bad one is logged. */
  take(text: string): void;
  /** The URL says what belongs to the crawl, and is no page of it. */
  widen(url: string): void;
  /** Adds the batch, which is then empty; before it what its seeds say of the scope. */
  add(to: Frontier): Promise<AddCounts>;
}

export function createSeedTaker(parts: Parts): SeedTaker {
  const desk = createSitemapDesk(parts);
  const { preset } = parts.spec.scope;
  const told = new Set<string>();
  let batch: CrawlRequest[] = [];
  let scope: string[] = [];
  let good = 0;
  let bad = 0;

  /** One URL of a host is enough to be noted where the host is what counts. */
  function widen(url: string): void {
    parts.admit.scope.addSeed(url);
    if (preset === "any") return;
    const shown = preset === "host" || preset === "domain" ? hostKeyOf(url) : url;
    if (told.has(shown)) return;
    told.add(shown);
    scope.push(url);
    parts.identity.onGrowth?.({ scope: url, seed: null });
  }

  function take(text: string): void {
    const verdict = admitSeed(text, parts.admit.seed, parts.spec.defaultScheme ?? "try-both");
    if (verdict.kind === "bad") {
      bad++;
      parts.log("warn", "bad seed, skipped", { number: good + bad, seed: shownSeed(text), why: verdict.why });
      return;
    }
    good++;
    const { request, credentials } = verdict;
    widen(request.url);
    const { url, host, rest } = request;
    const seed = { url, host, guessed: rest?.fallback !== undefined, credentials };
    noteSeed(parts.identity, seed);
    parts.identity.onGrowth?.({ scope: null, seed });
    batch.push(request);
    if (parts.spec.sitemaps.includes("auto")) sitemapOfOrigin(request);
  }

  const origins = new Set<string>();
  function sitemapOfOrigin({ url }: CrawlRequest): void {
    const origin = originOf(url);
    if (origins.has(origin)) return;
    origins.add(origin);
    batch.push(desk.request({ url: `${origin}/sitemap.xml`, sentAs: null, credentials: null }, origin, null));
  }

  return {
    get good() {
      return good;
    },
    get bad() {
      return bad;
    },
    get batch() {
      return batch;
    },
    take,
    widen,
    async add(to) {
      const requests = batch;
      const seeds = scope;
      batch = [];
      scope = [];
      // First: whoever goes on with it after a death must know what belongs to it.
      if (seeds.length > 0) await to.noteSeeds(seeds);
      return to.add(requests);
    },
  };
}

/** Resolves with the number of good seeds when all are in, or the crawl is over. Throws CrawlError `no-seeds` when none was good. */
export async function feedSeeds(input: FeedInput): Promise<number> {
  const { parts, frontier, over, isOver } = input;
  const taker = createSeedTaker(parts);
  const { take } = taker;
  let listed = 0;
  let badSitemaps = 0;
  const desk = createSitemapDesk(parts);

  async function add(): Promise<void> {
    if (taker.batch.length === 0) return;
    await taker.add(frontier);
    input.added();
    // Others have their turn: seeds that are known already, as on a resume, never fill the queue.
    await new Promise<void>((resolve) => parts.clock.soon(resolve));
    while (!isOver() && (await frontier.counts()).queued > BACKLOG) await new Promise<void>((resolve) => parts.clock.after(50, resolve));
  }

  /** Sitemaps named by the user. Where there is no other seed the crawl is of their hosts. */
  function takeSitemaps(): void {
    for (const text of parts.spec.sitemaps) {
      if (text === "auto") continue;
      const parsed = parseUrl(text);
      if ("reject" in parsed) {
        badSitemaps++;
        parts.log("warn", "bad sitemap URL, skipped", { url: text.slice(0, 200), why: parsed.reject });
        continue;
      }
      if (taker.good === 0) taker.widen(parsed.url);
      taker.batch.push(desk.request(parsed, null, null));
      listed++;
    }
  }

  if (Symbol.iterator in input.seeds) {
    const ends = input.listed ? input.drops : isOver;
    for (const text of input.seeds) {
      if (ends()) break;
      take(text);
      if (taker.batch.length >= BATCH) await add();
    }
  } else {
    const lines = input.seeds[Symbol.asyncIterator]();
    let leave: (() => void) | null = null;
    void over.then(() => leave?.());
    while (!isOver()) {
      const next = lines.next();
      // A source that is slow, such as an open pipe, must not hold back the seeds it has given.
      if (taker.batch.length > 0 && !(await isReady(next, parts))) await add();
      // Not Promise.race: with a promise that lasts for all seeds it would keep a reaction for each.
      const line = await new Promise<IteratorResult<string> | null>((resolve, reject) => {
        leave = () => resolve(null);
        next.then(resolve, reject);
      });
      if (line === null || line.done) break;
      take(line.value);
      if (taker.batch.length >= BATCH) await add();
    }
    // Not awaited: a generator that waits for its source returns only when that gives something.
    if (isOver()) void lines.return?.().then(undefined, () => undefined);
  }
  takeSitemaps();
  await add();
  const { good } = taker;
  const bad = taker.bad + badSitemaps;
  if (good + listed === 0 && !isOver() && parts.goesOn !== true) {
    throw new CrawlError("no-seeds", bad === 0 ? "there is nothing to crawl: no seed URL was given" : `none of the ${bad} seeds is a URL that can be crawled`);
  }
  return good;
}

/** Whether it settles before the loop has handled what is ready now. */
function isReady(promise: Promise<unknown>, parts: Parts): Promise<boolean> {
  return new Promise((resolve) => {
    const ready = () => resolve(true);
    promise.then(ready, ready);
    parts.clock.soon(() => resolve(false));
  });
}

/** One seed over http, or one that may turn to it, makes a host one that is spoken to without encryption. */
export function noteSeed({ seedHosts, secureHosts, auth, guessed }: Parts["identity"], seed: NonNullable<SeedGrowth["seed"]>): void {
  const { host, url } = seed;
  if (!url.startsWith("https:") || seed.guessed) secureHosts.delete(host);
  else if (!seedHosts.has(host)) secureHosts.add(host);
  seedHosts.add(host);
  if (seed.credentials !== null) auth.set(host, seed.credentials);
  if (seed.guessed) guessed.add(originOf(url));
}
