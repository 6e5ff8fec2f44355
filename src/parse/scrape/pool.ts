/** The user's scraper in parse workers: a bounded buffer in order of priority before N threads, each with one page that runs and one that is ready. */
import { CrawlError } from "../../core/errors.ts";
import type { ScrapeLog, ScrapeOutcome, Scraping, ScrapingView } from "../../core/scraping.ts";
import { spellDuration } from "../../core/units.ts";
import { learnValues } from "./inline.ts";
import type { ModuleFacts } from "./module.ts";
import type { OwnFiles } from "./own-files.ts";
import { type LearntValues, type ScraperSource, SLOTS } from "./protocol.ts";
import { type Job, startThread, type Thread } from "./thread.ts";
import { createWaiting } from "./waiting.ts";

export interface PoolOptions {
  readonly source: ScraperSource;
  readonly own: OwnFiles;
  /** Threads, 1 or more. */
  readonly workers: number;
  /** Longest time for one page. */
  readonly parseTimeoutMs: number;
  /** Old-generation heap of each thread. */
  readonly memoryMb: number;
  /** The buffer is full at so many pages, or so many bytes of bodies. */
  readonly buffer: { readonly pages: number; readonly bytes: number };
  readonly log: ScrapeLog;
}

export interface OpenedPool {
  readonly scraping: Scraping;
  readonly facts: ModuleFacts;
}

/** Tries of a page that loses its worker, and starts of a worker that does not come up. */
const MAX_LOSSES = 2;
const MAX_STARTS = 3;
/** A module takes its time to load, whatever its pages may take. */
const MIN_LOAD_MS = 60_000;

/** A place for a thread, which may be replaced. */
interface Seat {
  thread: Thread;
  /** Changes that the thread has not been told of. */
  untold: Map<string, string | null>;
  failedStarts: number;
}

/** Threads are started when pages wait for one, the first at once. Resolves once it has loaded the scraper; rejects with CrawlError `invalid-options` if it cannot. */
export async function openPool(options: PoolOptions): Promise<OpenedPool> {
  const waiting = createWaiting<Job>();
  const values = new Map<string, string>();
  const seats = new Set<Seat>();
  const open = new Set<Job>();
  const opening = Promise.withResolvers<ModuleFacts>();
  let opened = false;
  let disposed = false;
  let broken: string | null = null;
  let callbacks: (() => void)[] = [];
  let arrivals = 0;
  /** Threads that there may be. */
  let places = options.workers;
  let openedAt = performance.now();
  let activeBeforeMs = 0;
  let lastShare: number | null = null;

  function addSeat(): void {
    const seat: Seat = { thread: start(() => seat), untold: new Map(values), failedStarts: 0 };
    seats.add(seat);
  }

  function start(seat: () => Seat): Thread {
    return startThread(options, {
      ready(facts) {
        seat().failedStarts = 0;
        opening.resolve(facts);
        dispatch();
      },
      unusable(refusal) {
        opening.reject(new CrawlError("invalid-options", refusal.message, { problems: refusal.problems }));
        void seat().thread.dispose();
        replace(seat(), refusal.message);
      },
      ended(job, outcome) {
        finish(job, outcome);
        dispatch();
      },
      lost(why, running, others) {
        for (const job of others) if (!job.over) waiting.push(job);
        if (running !== null) lose(running, why);
        // Without effect once a thread has come up.
        opening.reject(notLoaded(options.source, why));
        replace(seat(), why);
      },
    });
  }

  /** The page that was begun with is tried once more, before its equals. */
  function lose(job: Job, why: string): void {
    job.losses++;
    if (job.over) return;
    if (job.losses >= MAX_LOSSES) finish(job, { kind: "crashed", message: `the parse worker ${why}, at the second try with this page` });
    else waiting.push(job);
    if (!job.over) options.log("warn", "a parse worker was replaced; its page is tried once more", { url: job.task.url, why });
  }

  function replace(seat: Seat, why: string): void {
    activeBeforeMs += seat.thread.activeMs();
    if (disposed || !opened) return;
    seat.failedStarts++;
    if (seat.failedStarts > MAX_STARTS) giveUp(seat, why);
    else {
      seat.thread = start(() => seat);
      seat.untold = new Map(values);
    }
    dispatch();
  }

  function giveUp(seat: Seat, why: string): void {
    seats.delete(seat);
    places--;
    if (seats.size > 0) return;
    broken = `no parse worker can be started: ${why}`;
    waiting.clear();
    for (const job of [...open]) finish(job, { kind: "crashed", message: broken });
  }

  function finish(job: Job, outcome: ScrapeOutcome): void {
    if (job.over) return;
    job.over = true;
    open.delete(job);
    job.resolve(outcome);
  }

  /** Nobody is idle while something waits, be it before another worker. */
  function dispatch(): void {
    for (let seat = freest(); seat !== null; seat = freest()) {
      const job = waiting.pop() ?? (seat.thread.jobs.length === 0 ? takeOver() : null);
      if (job === null) break;
      seat.thread.post(job, told(seat));
    }
    grow();
    tellOfSpace();
  }

  /** One thread more, where a page waits for a thread and none is on its way. */
  function grow(): void {
    if (disposed || seats.size >= places) return;
    let queued = waiting.size > 0;
    for (const { thread } of seats) {
      if (!thread.ready) return;
      queued ||= thread.jobs.length > 1;
    }
    if (queued) addSeat();
  }

  function freest(): Seat | null {
    let best: Seat | null = null;
    for (const seat of seats) {
      if (seat.thread.ready && seat.thread.jobs.length < SLOTS && seat.thread.jobs.length < (best?.thread.jobs.length ?? SLOTS)) best = seat;
    }
    return best;
  }

  function takeOver(): Job | null {
    for (const { thread } of seats) {
      const job = thread.jobs.length === SLOTS ? thread.takeBack() : null;
      if (job !== null) return job;
    }
    return null;
  }

  function told(seat: Seat): LearntValues | null {
    if (seat.untold.size === 0) return null;
    const changes = [...seat.untold];
    seat.untold.clear();
    return changes;
  }

  function buffered(): { readonly pages: number; readonly bytes: number } {
    let pages = waiting.size;
    let bytes = waiting.bytes;
    for (const { thread } of seats) {
      for (let i = 1; i < thread.jobs.length; i++) {
        pages++;
        bytes += thread.jobs[i]!.bytes;
      }
    }
    return { pages, bytes };
  }

  function full(): boolean {
    const { pages, bytes } = buffered();
    return pages >= options.buffer.pages || bytes >= options.buffer.bytes;
  }

  function tellOfSpace(): void {
    if (callbacks.length === 0 || full()) return;
    const told = callbacks;
    callbacks = [];
    for (const callback of told) callback();
  }

  /** What a thread said is heard before it is judged: the loop may have been busy itself. */
  function watch(): void {
    for (const seat of seats) if (overdue(seat.thread) !== null) setImmediate(() => judge(seat.thread));
  }

  function judge(thread: Thread): void {
    const why = overdue(thread);
    if (why !== null) thread.kill(why);
  }

  function overdue(thread: Thread): string | null {
    const busy = thread.busyFor();
    if (busy === null) return null;
    const limit = thread.ready ? options.parseTimeoutMs : Math.max(MIN_LOAD_MS, options.parseTimeoutMs);
    return busy.ms < limit ? null : `took longer than ${spellDuration(limit)}`;
  }

  function view(): ScrapingView {
    const { pages, bytes } = buffered();
    const busy = [...seats].filter(({ thread }) => thread.jobs.length > 0).length;
    return { workers: options.workers, busy, waiting: pages, waitingBytes: bytes, cpuShare: lastShare ?? cpuShare() };
  }

  function cpuShare(): number {
    let active = activeBeforeMs;
    for (const { thread } of seats) active += thread.activeMs();
    const elapsed = (performance.now() - openedAt) * options.workers;
    return elapsed <= 0 ? 0 : Math.min(1, active / elapsed);
  }

  function abort(): void {
    for (const job of [...open]) finish(job, { kind: "aborted" });
    waiting.clear();
    for (const { thread } of seats) {
      while (thread.takeBack() !== null);
      thread.abort();
    }
    tellOfSpace();
  }

  async function dispose(): Promise<void> {
    lastShare ??= cpuShare();
    disposed = true;
    clearInterval(watching);
    abort();
    await Promise.all([...seats].map(({ thread }) => thread.dispose()));
  }

  // It must not keep the process from ending; threads that are at work do.
  const watching = setInterval(watch, Math.min(1000, Math.max(10, options.parseTimeoutMs / 4))).unref();
  addSeat();
  let facts: ModuleFacts;
  try {
    facts = await opening.promise;
  } catch (error) {
    await dispose();
    throw error;
  }
  opened = true;
  openedAt = performance.now();

  const scraping: Scraping = {
    kind: facts.kind,
    version: facts.version,
    first: facts.first,
    run(task) {
      if (disposed) return Promise.resolve({ kind: "aborted" });
      if (broken !== null) return Promise.resolve({ kind: "crashed", message: broken });
      const { promise, resolve } = Promise.withResolvers<ScrapeOutcome>();
      const order = ++arrivals;
      // A number that fits a slot of 32 bits, and is not 0.
      const job: Job = { id: (order % 0x7ffffffe) + 1, task, priority: task.priority, order, bytes: task.body.byteLength, losses: 0, over: false, resolve };
      open.add(job);
      waiting.push(job);
      dispatch();
      return promise;
    },
    full,
    onSpace(callback) {
      callbacks.push(callback);
      if (!full()) queueMicrotask(tellOfSpace);
    },
    learn(changes) {
      const list = [...changes];
      learnValues(values, list);
      for (const seat of seats) for (const [key, value] of list) seat.untold.set(key, value);
    },
    view,
    abort,
    [Symbol.asyncDispose]: dispose,
  };
  return { scraping, facts };
}

function notLoaded(source: ScraperSource, why: string): CrawlError {
  const [option, name] = source.kind === "file" ? ["scraper", source.file] : ["extract", "its fields"];
  const message = `${name}: cannot be loaded: its thread ${why}`;
  return new CrawlError("invalid-options", `${option}: ${message}`, { problems: [{ option, message }] });
}
