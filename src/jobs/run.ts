/** One job while it runs: a durable crawl, wherever it lives, with what the service watches and steers of it. What becomes of its end is keeper.ts's affair. */
import { join } from "node:path";
import type { AssembleOptions } from "../assemble.ts";
import type { Clock, Timer } from "../core/clock.ts";
import { CrawlError, LostCrawl } from "../core/errors.ts";
import type { CrawlEvent, FinishReason, StopMode } from "../core/events.ts";
import type { HostPatch, HostView } from "../core/frontier.ts";
import type { JobCounts } from "../core/jobs.ts";
import type { Logger } from "../core/log.ts";
import type { PageRecord } from "../core/records.ts";
import type { HostKey } from "../core/request.ts";
import type { CrawlSpec } from "../core/spec.ts";
import { type CrawlRun, crawl, INTERRUPTED, sessionOf } from "../crawl.ts";
import type { AddedSeeds } from "../engine/adding.ts";
import type { JobRow, Wish } from "../store/jobs/book.ts";
import type { Committed } from "../store/jobs/committed.ts";
import { committedCounts, endedCounts, runningCounts } from "./counts.ts";
import type { EventHub } from "./events.ts";
import { IMAGES_SINK, type ImagesSink, openImages } from "./images.ts";
import { seedUrls } from "./known.ts";
import { fileOf } from "./lines.ts";

/** A name that may lie in a state directory before there is a state. */
export const SEEDS_FILE = ".seeds";

/** What the service has done since it started. */
export interface Totals {
  pages: number;
  requests: number;
  bytes: number;
  items: number;
  failed: number;
  skipped: number;
}

export type Ending =
  | { readonly kind: "over"; readonly finishReason: FinishReason; readonly detail: string | null; readonly counts: JobCounts; readonly clean: boolean }
  /** By the end of the service: it is to be resumed. */
  | { readonly kind: "interrupted" }
  | { readonly kind: "failed"; readonly error: unknown; readonly detail: string; readonly counts: JobCounts };

export interface RunningJob {
  /** At most half a second old, unless the store does not answer. */
  counts(): Promise<JobCounts>;
  /** As they were looked at last. */
  readonly latest: JobCounts;
  stop(wish: Wish): void;
  pause(): void;
  resume(): void;
  /** Its crawl may lack what it was told last: whether it is paused is said again. */
  again(): void;
  /** The service ends. */
  interrupt(mode: StopMode): void;
  add(lines: Iterable<string>): Promise<AddedSeeds | null>;
  hosts(most: number): Promise<readonly HostView[]>;
  patchHost(host: HostKey, patch: HostPatch): Promise<void>;
  /** Never rejects. */
  readonly done: Promise<Ending>;
}

export interface RunInput {
  readonly row: JobRow;
  readonly dir: string;
  /** As the crawl gets it: with what the operator decides. */
  readonly spec: CrawlSpec;
  /** As far as they are known. */
  readonly counts: JobCounts;
  /** What was committed of it before; null: it has not begun. */
  readonly committed: () => Promise<Committed | null>;
  /** Of the seeds file, what is whole. */
  readonly seeds: () => Iterable<string>;
  readonly hub: EventHub;
  readonly totals: Totals;
  readonly clock: Clock;
  readonly log: Logger;
  readonly more: AssembleOptions;
}

const TICK_MS = 500;
/** Figures are waited for so long; then those that are known must do. */
const LOOK_MOST_MS = 1_000;
/** Page events of a tick: the newest. */
const PAGES_A_TICK = 10;
/** The rate spans so many ticks. */
const RATE_TICKS = 10;

/** A page as watchers get it: without what may be long. */
function shortPage({ links, images, itemErrors: _errors, ...page }: PageRecord): Readonly<Record<string, unknown>> {
  return { ...page, linksFound: links.length, ...(images === undefined ? {} : { imagesFound: images.length }) };
}

/** What the user of a job is told of a failure of ours: no path, no address. */
export function failureDetail(error: unknown): string {
  if (error instanceof LostCrawl) return "its crawl is no longer in the store";
  if (!(error instanceof CrawlError)) return "an internal error";
  switch (error.code) {
    case "no-seeds":
      return error.message;
    case "invalid-options": {
      const names = [...new Set(error.problems.map(({ option }) => option))].join(", ");
      return names === "" ? "its options cannot be used" : `these options cannot be used: ${names}`;
    }
    case "output-unwritable":
    case "state-unwritable":
      return "the service cannot write its files";
    default:
      return "an internal error";
  }
}

const asStats = (counts: JobCounts): string => JSON.stringify([counts.total, counts.completed, counts.inProgress, counts.pages, counts.skipped, counts.bytes]);

/** An error of a full disk or quota, or one that comes of it. */
export function isDiskFull(error: unknown): boolean {
  for (let at = error; at instanceof Error; at = at.cause) {
    if ("code" in at && (at.code === "ENOSPC" || at.code === "EDQUOT")) return true;
    // SQLite's code (sqlite.org/rescode.html#full).
    if ("errcode" in at && at.errcode === 13) return true;
  }
  return false;
}

/** Starts it at once. */
export function runJob(input: RunInput): RunningJob {
  const { row, dir, spec, hub, totals, clock, log } = input;
  const aborting = new AbortController();
  let run: CrawlRun | null = null;
  let images: ImagesSink | null = null;
  let latest: JobCounts = input.counts;
  let lookedAt = -Infinity;
  let looking: Promise<JobCounts> | null = null;
  let seedsToCome = seedUrls(row);
  let paused = false;
  let wish = row.wish;
  let interrupted: StopMode | null = null;
  let pages: PageRecord[] = [];
  let samples: { readonly at: number; readonly pages: number }[] = [];
  let requests = 0;
  let timer: Timer | null = null;
  let over = false;
  let opened = false;
  const begun = Promise.withResolvers<void>();
  const patches = new Map(Object.entries(row.patches));
  /** The last of what hosts were told: one after the other, however long the first may take. */
  let patching: Promise<unknown> = Promise.resolve();

  function onEvent(event: CrawlEvent): void {
    if (event.kind === "settled") {
      const { page, items, skipped } = event.output;
      totals.items += items?.length ?? 0;
      totals.skipped += skipped.length;
      if (page === null) return;
      totals.bytes += page.bytes;
      if (page.outcome === "failed") totals.failed++;
      if (page.outcome === "fetched" || page.outcome === "unchanged") totals.pages++;
      if (pages.length >= PAGES_A_TICK) pages.shift();
      pages.push(page);
    } else if (event.kind === "started") seedsToCome = 0;
    else if (event.kind === "opened") {
      opened = true;
      void settleIn();
    }
  }

  /** What was asked for before there was a crawl to ask. */
  async function settleIn(): Promise<void> {
    try {
      for (const [host, patch] of patches) if (run !== null) await sessionOf(run).patchHost(host, patch);
      if (paused) await run?.pause();
    } catch (error) {
      log("warn", "a job could not be steered", { job: row.id, why: String(error) });
    }
  }

  /** A call that fails does so because the crawl fails or ends, which `done` tells. */
  function steer(call: (running: CrawlRun) => Promise<unknown>): void {
    if (run !== null) void call(run).catch((error: unknown) => log("warn", "a job could not be steered", { job: row.id, why: String(error) }));
  }

  function applyStop(): void {
    if (interrupted !== null) steer((running) => running.stop({ mode: interrupted ?? "now", reason: INTERRUPTED }));
    else if (wish?.kind === "cancel") aborting.abort("cancelled");
    else if (wish !== null) {
      const { mode, reason } = wish;
      steer((running) => running.stop(reason === null ? { mode } : { mode, reason }));
    }
  }

  function rateOf(now: number, pagesSoFar: number, average: number): number {
    samples = [...samples, { at: now, pages: pagesSoFar }].slice(-RATE_TICKS);
    const first = samples[0];
    return first === undefined || now - first.at < TICK_MS ? average : (pagesSoFar - first.pages) / ((now - first.at) / 1_000);
  }

  async function look(): Promise<JobCounts> {
    if (run === null) return latest;
    const stats = await run.stats();
    const balance = await sessionOf(run).counts();
    totals.requests += stats.requests - requests;
    requests = stats.requests;
    // Before it is open there is nothing to see.
    if (balance === null) return latest;
    const now = clock.now();
    lookedAt = now;
    const counts = runningCounts(stats, balance, { images: images?.count ?? 0, seedsToCome, pagesPerSecond: rateOf(now, stats.pages, stats.pagesPerSecond) });
    latest = paused ? { ...counts, pagesPerSecond: 0, bottleneck: null } : counts;
    return latest;
  }

  function lookOnce(): Promise<JobCounts> {
    looking ??= look().finally(() => {
      looking = null;
    });
    return looking;
  }

  function tell(): void {
    for (const page of pages) hub.emit({ kind: "page", page: shortPage(page) });
    pages = [];
  }

  /** Not longer than is waited for. */
  async function lookInTime(): Promise<JobCounts> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const late = clock.after(LOOK_MOST_MS, resolve);
    try {
      await Promise.race([lookOnce(), promise]);
    } catch {
      // It is ending, and `done` says how.
    } finally {
      late.cancel();
    }
    return latest;
  }

  async function tick(): Promise<void> {
    const before = asStats(latest);
    try {
      if (asStats(await lookOnce()) !== before) hub.emit({ kind: "counts", counts: latest });
    } catch {
      // It is ending, and `done` says how.
    }
    tell();
    if (!over) timer = clock.after(TICK_MS, () => void tick());
  }

  async function start(): Promise<Ending> {
    const found = await input.committed();
    if (found !== null) latest = committedCounts(found, seedUrls(row));
    // Killed between its end and the note of it.
    if (found?.run.finishReason != null) {
      const finishReason = found.run.finishReason as FinishReason; // written by a run
      return {
        kind: "over",
        finishReason,
        detail: wish?.kind === "stop" ? wish.reason : null,
        counts: endedCounts(committedCounts(found, 0), true),
        clean: false,
      };
    }
    if (spec.images) images = await openImages(join(dir, fileOf("images")), found?.sinks.get(IMAGES_SINK) ?? null);
    const seeds = { [Symbol.iterator]: () => input.seeds()[Symbol.iterator]() };
    run = crawl({ ...spec, seeds }, { ...input.more, sinks: images === null ? [] : [images], onEvent, log, signal: aborting.signal, seedNames: ["-i seeds"] });
    const { done } = run;
    begun.resolve();
    applyStop();
    timer = clock.after(TICK_MS, () => void tick());
    const summary = await done;
    tell();
    if (summary.finishReason === "interrupted") return { kind: "interrupted" };
    const counts = endedCounts(await lookOnce().then(look), summary.finishReason !== "cancelled");
    return { kind: "over", finishReason: summary.finishReason, detail: summary.detail, counts, clean: true };
  }

  async function whole(): Promise<Ending> {
    try {
      return await start();
    } catch (error) {
      return { kind: "failed", error, detail: failureDetail(error), counts: endedCounts(latest, false) };
    } finally {
      over = true;
      begun.resolve();
      timer?.cancel();
      // Where the crawl never began, nobody else closes it.
      await images?.close().catch(() => undefined);
    }
  }

  return {
    done: whole(),
    get latest() {
      return latest;
    },
    counts: async () => (over || clock.now() - lookedAt < TICK_MS ? latest : lookInTime()),
    stop(wanted) {
      wish = wanted;
      paused = false;
      applyStop();
    },
    pause() {
      paused = true;
      if (opened) steer((running) => running.pause());
    },
    resume() {
      paused = false;
      if (opened) steer((running) => running.resume());
    },
    again() {
      if (opened) steer((running) => (paused ? running.pause() : running.resume()));
    },
    interrupt(mode) {
      interrupted = mode;
      applyStop();
    },
    async add(lines) {
      await begun.promise;
      return run === null || over ? null : run.add(lines);
    },
    hosts: async (most) => (run === null || over ? [] : sessionOf(run).hosts(most)),
    async patchHost(host, patch) {
      patches.set(host, { ...patches.get(host), ...patch });
      const mine = patching.then(async () => {
        if (opened && run !== null && !over) await sessionOf(run).patchHost(host, patch);
      });
      patching = mine.catch(() => undefined); // told to whoever asked for it
      await mine;
    },
  };
}
