/** A worker of a store: takes URLs of every crawl that is live there, as many as it has room for, until it is told to leave. */
import { existsSync } from "node:fs";
import { basename, join } from "node:path";
import { assemble } from "../assemble.ts";
import { type Clock, realClock } from "../core/clock.ts";
import { CrawlError, LostCrawl } from "../core/errors.ts";
import type { Logger } from "../core/log.ts";
import { type CrawlSpec, parseSpec } from "../core/spec.ts";
import { noteSeed } from "../engine/feed.ts";
import { startWorker, type WorkerRun } from "../engine/worker.ts";
import { admitSeed } from "../rules/admit.ts";
import { connectRedis, type Link } from "../store/redis/connect.ts";
import { type Crawls, createCrawls, KEPT_DAYS } from "../store/redis/crawls.ts";
import { FULL_OUTBOX, openRedisFrontier } from "../store/redis/frontier.ts";
import { type Glance, glance } from "../store/redis/look.ts";
import { SHARED_LEASES } from "./cluster.ts";
import { followTime } from "./crawl-time.ts";
import { type Pulse, startPulse } from "./pulse.ts";
import { minding, reachesFurther } from "./refused-address.ts";

export interface WorkOptions {
  readonly url: string;
  /** Requests in flight over all crawls. */
  readonly concurrency: number;
  /** One batch of leases of each crawl that has something to do, which is waited for; then the end. Where none has: the end at once. */
  readonly once: boolean;
  /** Ends when no crawl had work for so long; null: never. */
  readonly exitWhenIdleMs: number | null;
  readonly scrapersDir: string | null;
  /** What is the operator's: addresses, proxy, certificates, parse workers. */
  readonly operator: Pick<CrawlSpec, "addresses" | "proxy" | "insecure" | "parseWorkers" | "parseTimeout">;
  readonly log: Logger;
  readonly clock?: Clock;
  /** How long a store that is not there yet is waited for; 60,000 ms. */
  readonly startWithinMs?: number;
}

export interface WorkSummary {
  readonly crawls: number;
  readonly requests: number;
  /** Of the crawls. */
  readonly ids: readonly number[];
}

export interface WorkRun {
  /** Rejects with CrawlError `store-unreachable`, also where the store does not answer a worker that was told to leave. */
  readonly done: Promise<WorkSummary>;
  /** What is in flight is finished, unless the store does not answer for some seconds. */
  leave(): void;
}

const LOOK_MS = 500;
/** How often crawls are looked for that ended long ago. */
const TIDY_MS = 3_600_000;

interface Joined {
  readonly run: WorkerRun;
  over: boolean;
}

/** The spec as its creator stored it, under this worker's own rules. */
function specOf(spec: CrawlSpec, scraper: string | null, { operator, url }: WorkOptions): CrawlSpec {
  const nothing = {
    stateDir: null,
    // Where the cache lies.
    store: url,
    outputs: [],
    pagesFile: null,
    skippedFile: null,
    changesFile: null,
    cookies: null,
  };
  return { ...spec, ...nothing, ...operator, scraper, incremental: false };
}

/** Whether a worker gets something there, now or once a host has rested: URLs wait, nobody has paused it, and there is room for what comes of them. */
function mayGive(at: Glance | null): boolean {
  if (at === null || at.over || at.control === "pause" || at.control === "drain" || at.control === "now") return false;
  return at.queued + at.delayed > 0 && at.waiting < FULL_OUTBOX.most && at.waitingBytes < FULL_OUTBOX.bytes;
}

export function work(options: WorkOptions): WorkRun {
  const { log } = options;
  const clock = options.clock ?? realClock;
  const joined = new Map<number, Joined>();
  const passedOver = new Set<number>();
  /** When the crawls that were looked at were created: in a store that was emptied their numbers are given again. */
  const created = new Map<number, number>();
  let leaving = false;
  const departing = Promise.withResolvers<void>();
  /** The store did not answer while what was in flight was to be settled. */
  let lost: CrawlError | null = null;
  let requests = 0;
  const crawls = new Set<number>();
  let wake: () => void = () => undefined;

  const active = (): number => [...joined.values()].filter(({ over }) => !over).length;
  const share = (): number => Math.max(1, Math.floor(options.concurrency / Math.max(1, active())));

  async function joinCrawl({ link, pulse }: { link: Link; pulse: Pulse }, id: number, info: ReadonlyMap<string, string>): Promise<void> {
    const named = info.get("scraper");
    const scraper = named === undefined ? null : join(options.scrapersDir ?? "", basename(named));
    if (scraper !== null && (options.scrapersDir === null || !existsSync(scraper))) {
      passedOver.add(id);
      log("warn", "a crawl needs a scraper that this worker has not (--scrapers DIR)", { crawl: id, scraper: basename(scraper) });
      return;
    }
    const asked = parseSpec(JSON.parse(info.get("spec") ?? "{}"));
    const spec = specOf(asked, scraper, options);
    const refusing = {
      crawl: id,
      log,
      further: reachesFurther(asked.addresses, spec.addresses),
      leave() {
        passedOver.add(id);
        joined.get(id)?.run.leave();
      },
    };
    const parts = assemble(spec, {
      log,
      async joins(config, siteOf) {
        const frontier = await openRedisFrontier({ ...config, ...SHARED_LEASES }, { link, id, siteOf, onControl: () => joined.get(id)?.run.wake() });
        return pulse.watch(id, minding(frontier, refusing), share);
      },
    });
    for (const seed of Array.isArray(spec.seeds) ? spec.seeds : []) {
      const verdict = admitSeed(String(seed), [0, 0, 0, 0], spec.defaultScheme ?? "try-both");
      if (verdict.kind === "bad") continue;
      const { url, host, rest } = verdict.request;
      parts.admit.scope.addSeed(url);
      noteSeed(parts.identity, { url, host, guessed: rest?.fallback !== undefined, credentials: verdict.credentials });
    }
    const run = await startWorker(parts, { concurrency: share, once: options.once, elapsedMs: followTime(link, id, clock) });
    const entry: Joined = { run, over: false };
    joined.set(id, entry);
    crawls.add(id);
    log("info", "working on a crawl", { crawl: id });
    run.done.then(
      () => ended(id, entry),
      (error: unknown) => {
        passOver(id, error);
        ended(id, entry);
      },
    );
    if (leaving) run.leave();
  }

  /** What is wrong with one crawl, such as a scraper that cannot be loaded here, is no reason to leave the others. */
  function passOver(id: number, error: unknown): void {
    if (leaving && error instanceof CrawlError && error.code === "store-unreachable") {
      lost ??= error;
      return;
    }
    // Another one may get its number, in a store that was emptied.
    if (error instanceof LostCrawl) {
      log("warn", "a crawl is no longer in the store", { crawl: id });
      return;
    }
    passedOver.add(id);
    log("error", "a crawl cannot be worked on", { crawl: id, error: error instanceof Error ? error.message : String(error) });
  }

  /** What is held of the one before is nobody's; the other one is joined with the next look. */
  async function leaveReplaced(book: Crawls, id: number): Promise<void> {
    const known = created.get(id);
    if (known === undefined) return;
    const now = await book.read(id, "created");
    if (now === null || Number(now) === known) return;
    created.delete(id);
    passedOver.delete(id);
    if (!joined.has(id)) return;
    log("warn", "a crawl is no longer in the store, another has its number", { crawl: id });
    joined.get(id)?.run.leave();
  }

  function ended(id: number, entry: Joined): void {
    entry.over = true;
    requests += entry.run.view().requests;
    joined.delete(id);
    wake();
  }

  async function run(): Promise<WorkSummary> {
    const link = await connectRedis(options.url, { log, writes: true, startWithinMs: options.startWithinMs ?? 60_000, leaving: departing.promise });
    const pulse = startPulse(link, { kind: "work", clock });
    try {
      const book = createCrawls(link);
      let idleSince = clock.now();
      let tidiedAt = -Infinity;
      while (!leaving) {
        if (clock.now() - tidiedAt >= TIDY_MS) {
          tidiedAt = clock.now();
          await book.retire(KEPT_DAYS);
        }
        // With `once` crawls are joined in one round; afterwards it is only seen to that none waits for what is not there any more.
        const joins = !options.once || crawls.size === 0;
        for (const id of await book.live()) {
          if (options.once && !mayGive(await glance(link, id))) {
            joined.get(id)?.run.leave();
            continue;
          }
          await leaveReplaced(book, id);
          if (!joins || joined.has(id) || passedOver.has(id) || leaving) continue;
          const crawl = await book.get(id);
          if (crawl === null || crawl.completed) continue;
          created.set(id, crawl.createdAt);
          await joinCrawl({ link, pulse }, id, crawl.info).catch((error: unknown) => passOver(id, error));
        }
        if (options.once && joined.size === 0) break;
        if (active() > 0) idleSince = clock.now();
        else if (options.exitWhenIdleMs !== null && clock.now() - idleSince >= options.exitWhenIdleMs) break;
        await new Promise<void>((resolve) => {
          const timer = clock.after(LOOK_MS, resolve);
          wake = () => {
            timer.cancel();
            resolve();
          };
        });
      }
      await Promise.allSettled([...joined.values()].map(({ run: one }) => one.done));
      if (lost !== null) throw lost;
      return { crawls: crawls.size, requests, ids: [...crawls] };
    } finally {
      await pulse.close();
      await link.close();
    }
  }

  return {
    done: run(),
    leave() {
      leaving = true;
      departing.resolve();
      for (const { run: one } of joined.values()) one.leave();
      wake();
    },
  };
}
