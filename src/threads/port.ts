/** The frontier as a thread of a crawl sees it: what it settles goes to the thread that keeps the real one, and leases come from there. Nothing here is waited for but seeds of sitemaps. */
import type { Clock } from "../core/clock.ts";
import { CrawlError } from "../core/errors.ts";
import type { StopMode } from "../core/events.ts";
import { type AddCounts, type Frontier, type HostTuning, type Lease, type RobotsState, returned, type Settled, type Token } from "../core/frontier.ts";
import type { Once, Output, SkippedRecord, SkipReason } from "../core/records.ts";
import type { CrawlRequest, FingerprintSeed, HostKey, Origin } from "../core/request.ts";
import { createKnownLinks, type KnownLinks } from "../rules/known-links.ts";
import { originOf } from "../rules/url.ts";
import type { Answer, Batch, Call, FromThread, News } from "./messages.ts";

export interface PortOptions {
  readonly seed: FingerprintSeed;
  /** Every link is sent, for the list of duplicates. */
  readonly allLinks: boolean;
  readonly clock: Clock;
  readonly tell: (message: FromThread) => void;
  readonly view: () => Batch["view"];
}

export interface PortFrontier extends Frontier {
  hear(news: News): void;
  hearAnswer(id: number, answer: Answer): void;
  /** Leases that nobody has begun with go back, unless what is queued is still to be done. */
  stop(mode: StopMode): void;
  over(): void;
  /** What is still to be said is said now. */
  flush(): void;
}

/** Reasons that speak of one link, not of its URL: another reason may still be told of it (store/memory/once.ts). */
const OF_THE_LINK: ReadonlySet<SkipReason> = new Set(["depth", "nofollow", "not-followed"]);
const NO_COUNTS: AddCounts = { added: 0, known: 0, lowered: 0 };

export function createPortFrontier({ seed, allLinks, clock, tell, view }: PortOptions): PortFrontier {
  const known = createKnownLinks();
  const said = { skipped: createKnownLinks(15), ofLinks: createKnownLinks(15), found: createKnownLinks(15) };
  const robots = new Map<Origin, RobotsState>();
  const calls = new Map<number, (answer: Answer) => void>();
  let callId = 0;
  let buffer: Lease[] = [];
  let claimedAt = 0;
  let seeds: string[] = [];
  let outstanding = 0;
  let isOver = false;
  /** Links of batches that are under way, oldest first. */
  let unsure: (readonly CrawlRequest[])[] = [];
  let out = emptyBatch();
  let scheduled = false;

  function flush(): void {
    const { started, ended, tunes, settled, links, asked, startedAt } = out;
    if (asked === 0 && started.length + ended.length + tunes.length + settled.length + links.length === 0) return;
    const now = clock.now();
    out = emptyBatch();
    unsure.push(links);
    const begun = started.map((token, i) => ({ token, sinceMs: now - startedAt[i]! }));
    tell({ kind: "batch", batch: { started: begun, ended, tunes, settled, links, asked, view: view() } });
  }

  function soon(): void {
    if (scheduled) return;
    scheduled = true;
    clock.soon(() => {
      scheduled = false;
      flush();
    });
  }

  function call(what: Call): Promise<Answer> {
    const id = ++callId;
    tell({ kind: "call", id, call: what });
    return new Promise((resolve) => calls.set(id, resolve));
  }

  /** Most links of a page have been sent before, or were found before at the same depth. */
  function takeLinks(links: readonly CrawlRequest[]): number {
    let left = 0;
    for (let i = 0; i < links.length; i++) {
      const link = links[i]!;
      if (link.rest === null && !allLinks && known.has(link, link.depth)) left++;
      else out.links.push(link);
    }
    return left;
  }

  function learn(taken: number, refused: News["refused"]): void {
    if (taken === 0) return;
    const not = refused.length === 0 ? null : new Set(refused.map(({ idHi, idLo }) => `${idHi}:${idLo}`));
    for (const links of unsure.slice(0, taken)) {
      for (const link of links) if (link.rest === null && !not?.has(`${link.idHi}:${link.idLo}`)) known.note(link, link.depth);
    }
    unsure = unsure.slice(taken);
  }

  function saidOf({ value }: Once<SkippedRecord>): KnownLinks {
    return OF_THE_LINK.has(value.reason) ? said.ofLinks : said.skipped;
  }

  /** The frontier lets each skipped URL and each found link of a run pass once: what was said is not sent again. */
  function unsaid(page: Settled): Settled {
    const { settlement } = page;
    if ((settlement.kind !== "done" && settlement.kind !== "dropped") || settlement.output === null || allLinks) return page;
    const { output } = settlement;
    if (output.skipped.length + output.found.length === 0) return page;
    const skipped = fresh(output.skipped, (entry) => said.skipped.has(entry, 0) || saidOf(entry).has(entry, 0));
    const found = fresh(output.found, (entry) => said.found.has(entry, 0));
    for (const entry of skipped) saidOf(entry).note(entry, 0);
    for (const entry of found) said.found.note(entry, 0);
    const less: Output = { ...output, skipped, found };
    return { ...page, settlement: { ...settlement, output: less } };
  }

  function leaseOf({ robots: state, ...lease }: News["leases"][number]): Lease {
    if (state === null) return { ...lease, robots: null };
    const origin = originOf(lease.request.url);
    if (state !== true) robots.set(origin, state);
    const told = robots.get(origin);
    if (told === undefined) throw new CrawlError("internal", `nothing was told of ${origin}/robots.txt`);
    return { ...lease, robots: told };
  }

  return {
    seed,
    hear(news) {
      learn(news.taken, news.refused);
      if (news.forgetRobots) robots.clear();
      for (const url of news.seeds) seeds.push(url);
      if (news.leases.length === 0) return;
      outstanding -= news.leases.length;
      claimedAt = news.claimedAt;
      for (const lease of news.leases) buffer.push(leaseOf(lease));
    },
    hearAnswer(id, answer) {
      const resolve = calls.get(id);
      calls.delete(id);
      resolve?.(answer);
    },
    stop(mode) {
      if (mode === "queue") return;
      for (const { token } of buffer) out.settled.push(returned(token));
      buffer = [];
      soon();
    },
    over() {
      isOver = true;
    },
    flush,
    async claim(max) {
      if (buffer.length > 0) {
        const leases = buffer.length <= max ? buffer : buffer.slice(0, max);
        buffer = buffer.slice(leases.length);
        const age = leases[0]!.startWithinMs === Infinity ? 0 : clock.epoch() - claimedAt;
        const given = seeds;
        seeds = [];
        return { kind: "leases", leases: age <= 0 ? leases : leases.map((lease) => ({ ...lease, startWithinMs: lease.startWithinMs - age })), seeds: given };
      }
      if (isOver) return { kind: "drained" };
      if (max > outstanding) {
        out.asked += max - outstanding;
        outstanding = max;
        soon();
      }
      return { kind: "wait", waitMs: Infinity, cause: "leased" };
    },
    async progress(started, ended) {
      const now = clock.now();
      for (const { token, sinceMs } of started) {
        out.started.push(token);
        out.startedAt.push(now - sinceMs);
      }
      for (const token of ended) out.ended.push(token);
      soon();
    },
    async settle(pages, links) {
      const duplicates = takeLinks(links);
      for (const [i, page] of pages.entries()) {
        const sent = unsaid(page);
        // Links that are not sent count as those that are, and were known.
        out.settled.push(i === 0 && duplicates > 0 ? { ...sent, tally: [...sent.tally, ["duplicates", duplicates]] } : sent);
      }
      soon();
      // A lease is lost only when the crawl is stopped at once, or with the thread.
      return pages.map(() => "applied");
    },
    async tune(host: HostKey, tuning: HostTuning) {
      out.tunes.push([host, tuning]);
      soon();
    },
    add: async (requests) => (requests.length === 0 ? NO_COUNTS : ((await call({ name: "add", requests })) as AddCounts)), // the answer to `add`
    renew: async (held) => (await call({ name: "renew", held })) as Awaited<ReturnType<Frontier["renew"]>>, // the answer to `renew`
    values: async () => (await call({ name: "values" })) as ReadonlyMap<string, string>, // the answer to `values`
    // Who keeps the frontier is told of a stop with the page that asked for it.
    control: async () => undefined,
    noteSeeds: notHere,
    seedsComplete: notHere,
    addCookies: notHere,
    setPageLimit: notHere,
    setItemLimit: notHere,
    setValues: notHere,
    counts: notHere,
    hosts: notHere,
    robotsOf: notHere,
    remaining: () => {
      throw new CrawlError("internal", "a thread does not know what is queued");
    },
    async [Symbol.asyncDispose]() {
      flush();
    },
  };
}

function emptyBatch() {
  return {
    started: [] as Token[],
    startedAt: [] as number[],
    ended: [] as Token[],
    tunes: [] as (readonly [HostKey, HostTuning])[],
    settled: [] as Settled[],
    links: [] as CrawlRequest[],
    asked: 0,
  };
}

/** Those that were not told yet; the list itself when there is nothing to leave out. */
function fresh<T>(entries: readonly Once<T>[], isTold: (entry: Once<T>) => boolean): readonly Once<T>[] {
  return entries.some(isTold) ? entries.filter((entry) => !isTold(entry)) : entries;
}

async function notHere(): Promise<never> {
  throw new CrawlError("internal", "this is for the thread that keeps the frontier");
}
