/** Keeps the jobs of a data directory and runs them: which wait, which run, what becomes of their end. What is asked of a job from outside: jobs.ts. */
import { mkdirSync, readdirSync, rmSync } from "node:fs";
import { rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { realClock, type Timer } from "../core/clock.ts";
import { CrawlError } from "../core/errors.ts";
import type { FinishReason } from "../core/events.ts";
import { ENDED_STATES, type JobCounts, type JobState, type JobTable, type JobView } from "../core/jobs.ts";
import { silentLog } from "../core/log.ts";
import type { CrawlSpec } from "../core/spec.ts";
import type { JobBook, JobRow, RowChange } from "../store/jobs/book.ts";
import { readSeeds } from "../store/jobs/seeds.ts";
import { createHostGate } from "../store/memory/gate.ts";
import { committedCounts, endedCounts, waitingCounts } from "./counts.ts";
import { createEventHub, type EventHub } from "./events.ts";
import type { JobHome } from "./home.ts";
import { seedUrls } from "./known.ts";
import { fileOf, wholeLines } from "./lines.ts";
import type { HowEnded, JobKeeper, JobsOptions } from "./parts.ts";
import { withRecorded } from "./recorded.ts";
import { type Ending, failureDetail, isDiskFull, type RunningJob, runJob, SEEDS_FILE, type Totals } from "./run.ts";
import { crawlSpecOf, type JobPolicy, shownSpec } from "./spec.ts";

const TABLES: readonly JobTable[] = ["pages", "items", "skipped", "images"];
/** How long a stop of the service waits for what is in flight, and then for what it aborts. */
const DRAIN_MS = 3_000;
const ABORT_MS = 2_000;
const AGAIN_MS = 1_000;
const SWEEP_MS = 60_000;
const FULL_DISK_MS = 2_000;
/**
 * A page that kills the process is told from all others only while its job runs alone: after so many deaths within a process's first moments jobs are tried
 * one by one. Fewer may have other reasons.
 */
const DEATHS_SUSPECT = 10;
const CALM_MS = 30_000;
/** Files of all jobs together are synced about so often: each time everything waits for the disk. */
const SYNC_MS = 1_000;

export const specOf = (row: JobRow): CrawlSpec => JSON.parse(row.spec) as CrawlSpec; // written by intake.ts
export const hasEnded = (row: JobRow): boolean => ENDED_STATES.has(row.state);
const wordsOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** Of the store itself, or of somebody who still writes the job's outputs: it will pass. */
function isStoreTrouble(error: unknown): boolean {
  if (!(error instanceof CrawlError)) return false;
  return error.code === "store-unreachable" || error.code === "state-held" || error.problems.some(({ option }) => option.startsWith("store"));
}

/** `book` and `home` are its own from now on. */
export function startKeeper(options: JobsOptions, book: JobBook, home: JobHome): JobKeeper {
  const { dir, maxRunning = 16, keepFor = null, log = silentLog } = options;
  const clock = options.world?.clock ?? realClock;
  const policy: JobPolicy = {
    addresses: options.addresses ?? { refusePrivate: true, allow: [] },
    scrapersDir: options.scrapersDir ?? null,
    concurrency: options.concurrency ?? null,
    parseWorkers: options.parseWorkers ?? 1,
  };
  const gate = createHostGate(clock);
  const live = new Map<number, RunningJob>();
  const hubs = new Map<number, EventHub>();
  const totals: Totals = { pages: 0, requests: 0, bytes: 0, items: 0, failed: 0, skipped: 0 };
  /** Ids of queued jobs, ascending. */
  let queue: number[] = [];
  let closing = false;
  let closed: Promise<void> | null = null;
  let sweeper: Timer | null = null;
  /** Jobs are tried one by one. */
  let suspicious = false;
  let calm: Timer | null = null;
  const dirOf = (id: number): string => join(dir, "jobs", String(id));

  /** What was known last of jobs that have not ended. */
  const seen = new Map<number, JobCounts>();

  async function idleCounts(row: JobRow): Promise<JobCounts> {
    if (row.counts !== null) return row.counts;
    // Of the row that is kept: its seeds have been counted.
    const urls = seedUrls(book.get(row.id) ?? row);
    if (row.startedAt === null) return waitingCounts(urls);
    try {
      const committed = await home.committed(row, dirOf(row.id));
      const counts = committed === null ? waitingCounts(urls) : committedCounts(committed, urls);
      seen.set(row.id, counts);
      return counts;
    } catch {
      // It cannot be read: the run, when it starts, says why.
      return seen.get(row.id) ?? waitingCounts(urls);
    }
  }

  async function viewOf(row: JobRow): Promise<JobView> {
    const running = live.get(row.id);
    const counts = await (running === undefined ? idleCounts(row) : running.counts());
    // It may have ended while its counts were looked at.
    const now = book.get(row.id) ?? row;
    const { id, state, seeds, seedsTotal, createdAt, startedAt, endedAt, finishReason, detail, rejected, rejectedTotal } = now;
    const ended = { endedAt, finishReason, detail, counts: now.counts ?? counts };
    return { id, state, spec: shownSpec(specOf(row)), seeds, seedsTotal, createdAt, startedAt, ...ended, rejected, rejectedTotal };
  }

  function hubOf(id: number): EventHub {
    const known = hubs.get(id);
    if (known !== undefined) return known;
    const made = createEventHub(book.nextEvent);
    hubs.set(id, made);
    return made;
  }

  function change(id: number, to: RowChange, waits = true): JobRow {
    const row = book.change(id, to, waits);
    if (to.state !== undefined) hubOf(id).emit({ kind: "state", state: row.state, finishReason: row.finishReason });
    return row;
  }

  function enqueue(id: number): void {
    const at = queue.findIndex((other) => other > id);
    queue.splice(at < 0 ? queue.length : at, 0, id);
  }

  const dequeue = (id: number): void => {
    queue = queue.filter((other) => other !== id);
  };

  /** Paused ones take nobody's place. */
  function runningNow(): number {
    let n = 0;
    for (const id of live.keys()) if (book.get(id)?.state !== "paused") n++;
    return n;
  }

  function pump(): void {
    while (!closing && queue.length > 0 && runningNow() < (suspicious ? 1 : maxRunning)) {
      const id = queue.shift();
      const row = id === undefined ? null : book.get(id);
      if (row === null) continue;
      try {
        start(row);
      } catch (error) {
        // It cannot be noted that it runs: a full disk, most likely.
        log("error", "a job cannot be started", { job: row.id, why: wordsOf(error) });
        enqueue(row.id);
        clock.after(AGAIN_MS, pump);
        return;
      }
    }
  }

  function start(before: JobRow): void {
    const { id } = before;
    const row = change(id, { state: before.wish === null ? "running" : "stopping", startedAt: before.startedAt ?? clock.epoch() }, false);
    const dir = dirOf(id);
    let wanted: CrawlSpec;
    try {
      wanted = crawlSpecOf(specOf(row), policy);
    } catch (error) {
      void idleCounts(row).then((counts) => conclude(id, { kind: "failed", error, detail: failureDetail(error), counts: endedCounts(counts, false) }, null));
      return;
    }
    const current = (): JobRow => book.get(id) ?? row;
    const seeds = () => readSeeds(join(dir, SEEDS_FILE), 0, current().seedsBytes);
    const { spec, options: more } = home.run({
      ...{ row, dir, spec: wanted, begun: before.startedAt !== null, current, seeds, note: (change) => void book.change(id, change) },
      shared: { gate, syncEveryMs: () => SYNC_MS * Math.max(1, live.size), blame: suspicious },
    });
    const run = runJob({
      ...{ row, dir, spec, seeds, hub: hubOf(id), totals, clock, log },
      counts: row.counts ?? seen.get(id) ?? waitingCounts(seedUrls(row)),
      committed: () => home.committed(current(), dir),
      more: { ...more, ...(options.world === undefined ? {} : { world: options.world }) },
    });
    live.set(id, run);
    log("info", "job started", { job: id });
    void run.done.then(async (ending) => {
      const sizes = await sizesOf(id, ending);
      conclude(id, await withRecorded(ending, dir, sizes), sizes);
    });
  }

  /** Of the files of a run that closed them itself; else the state says what of them counts, and where that is a store it is noted, since a store may go. */
  async function sizesOf(id: number, ending: Ending): Promise<JobRow["sizes"]> {
    const row = book.get(id);
    const sizes = { pages: 0, items: 0, skipped: 0, images: 0 };
    if (ending.kind !== "over" || !ending.clean) {
      if (ending.kind === "interrupted" || row === null || row.crawl === null) return null;
      try {
        // Of one that failed nobody takes anything back, and its crawl may be what it lost.
        const sizeOf = (table: JobTable) => (ending.kind === "failed" ? wholeLines(dirOf(id), table) : home.bytesOf(row, dirOf(id), table));
        for (const table of TABLES) sizes[table] = await sizeOf(table);
        return sizes;
      } catch {
        // It is asked when they are.
        return null;
      }
    }
    for (const table of TABLES) sizes[table] = (await stat(join(dirOf(id), fileOf(table))).catch(() => null))?.size ?? 0;
    return sizes;
  }

  /** What was written before is whole: it goes on from there, unless it was paused or came to an end meanwhile. */
  function startAgain(id: number): void {
    // The book is closed with the service, and this may come after it.
    if (closing) return;
    const row = book.get(id);
    if (row === null || live.has(id) || (row.state !== "running" && row.state !== "stopping")) return;
    try {
      start(row);
    } catch (error) {
      log("error", "a job cannot be started", { job: id, why: wordsOf(error) });
      clock.after(FULL_DISK_MS, () => startAgain(id));
    }
  }

  function stateAfter(row: JobRow, ending: Exclude<Ending, { kind: "interrupted" }>): { state: JobState; finishReason: FinishReason } {
    if (ending.kind === "failed") return { state: "failed", finishReason: "failed" };
    const { finishReason } = ending;
    if (row.wish?.kind === "cancel" && finishReason === "cancelled") return { state: "cancelled", finishReason };
    return { state: row.wish?.kind === "stop" && finishReason === "stop-condition" ? "stopped" : "completed", finishReason };
  }

  function conclude(id: number, ending: Ending, sizes: JobRow["sizes"]): void {
    const last = live.get(id)?.latest;
    live.delete(id);
    // The store is left as the service closes, and the jobs with it.
    if (ending.kind === "interrupted" || (closing && ending.kind === "failed" && isStoreTrouble(ending.error))) return;
    const row = book.get(id);
    if (row === null) return;
    if (last !== undefined) seen.set(id, last);
    if (ending.kind === "failed" && isDiskFull(ending.error)) {
      log("error", "the disk is full: a job waits for room", { job: id });
      clock.after(FULL_DISK_MS, () => startAgain(id));
      return;
    }
    if (ending.kind === "failed" && row.crawl !== null && isStoreTrouble(ending.error)) {
      if (row.state === "paused") home.rest(row);
      log("warn", "a job waits for its store", { job: id, why: wordsOf(ending.error) });
      clock.after(FULL_DISK_MS, () => startAgain(id));
      return;
    }
    if (ending.kind === "failed") {
      log("error", "job failed", { job: id, why: wordsOf(ending.error) });
      home.halt(row).catch((error: unknown) => log("warn", "workers could not be told of a job that failed", { job: id, why: wordsOf(error) }));
    }
    try {
      end(row, stateAfter(row, ending), { detail: ending.detail, counts: ending.counts, sizes }, false);
    } catch (error) {
      // A full disk, most likely. Its state says how it ended, should this process die first.
      log("error", "the end of a job cannot be noted", { job: id, why: wordsOf(error) });
      clock.after(AGAIN_MS, () => {
        if (!closing) conclude(id, ending, sizes);
      });
      return;
    }
    pump();
  }

  function end(row: JobRow, how: HowEnded, more: Pick<JobRow, "detail" | "counts" | "sizes">, waits = true): JobRow {
    const spec = JSON.stringify(shownSpec(specOf(row)));
    const hub = hubOf(row.id);
    // The counts go first: who sees the end has seen them.
    if (more.counts !== null) hub.emit({ kind: "counts", counts: more.counts });
    const after = change(row.id, { ...how, ...more, spec, endedAt: clock.epoch(), wish: null }, waits);
    hub.end();
    hubs.delete(row.id);
    seen.delete(row.id);
    const { pages = 0, failed = 0 } = more.counts ?? {};
    if (how.state === "completed" && pages === 0 && failed > 0) log("warn", "job ended, and no page could be fetched", { job: row.id, failed });
    else log("info", "job ended", { job: row.id, state: how.state });
    return after;
  }

  /** The store may lack what it was told last, or what it was to be told by a service that has died: whether a job is paused is what the book says. */
  function tellPauses(): void {
    if (closing) return;
    for (const run of live.values()) run.again();
    for (const id of book.inStates(["paused"])) {
      const row = book.get(id);
      if (row !== null && !live.has(id)) home.rest(row);
    }
  }

  async function remove(id: number): Promise<void> {
    const row = book.get(id);
    // First: a job that is listed still can be removed again.
    if (row !== null) await home.remove(row);
    book.remove(id);
    hubs.get(id)?.end();
    hubs.delete(id);
    await rm(dirOf(id), { recursive: true, force: true }).catch((error: unknown) =>
      log("warn", "a job's files could not be removed", { job: id, why: String(error) }),
    );
  }

  async function sweep(): Promise<void> {
    if (keepFor === null || closing) return;
    try {
      for (const id of book.endedBefore(clock.epoch() - keepFor)) await remove(id);
    } catch (error) {
      log("error", "jobs that are over cannot be removed", { why: wordsOf(error) });
    }
    if (!closing) sweeper = clock.after(Math.max(100, Math.min(SWEEP_MS, keepFor / 4)), () => void sweep());
  }

  /** Whatever killed the processes before did not kill this one. */
  function grown(): void {
    suspicious = false;
    try {
      book.lives();
    } catch (error) {
      log("warn", "that the service lives cannot be noted", { why: wordsOf(error) });
    }
    pump();
  }

  /** What was left by uploads that were cut off, and by jobs whose removal was. */
  function tidy(): void {
    rmSync(join(dir, "incoming"), { recursive: true, force: true });
    for (const name of ["jobs", "incoming"]) mkdirSync(join(dir, name), { recursive: true, mode: 0o700 });
    for (const name of readdirSync(join(dir, "jobs")))
      if (!/^\d+$/.test(name) || book.get(Number(name)) === null) rmSync(join(dir, "jobs", name), { recursive: true, force: true });
  }

  /** Until no job runs any more, or so long. */
  async function finished(patienceMs: number): Promise<void> {
    if (live.size === 0) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = clock.after(patienceMs, resolve);
    await Promise.race([Promise.all([...live.values()].map((run) => run.done)), promise]);
    timer.cancel();
    // What they came to is noted in the same turn of the loop.
    await new Promise<void>((next) => clock.soon(next));
  }

  async function shut(): Promise<void> {
    closing = true;
    sweeper?.cancel();
    calm?.cancel();
    for (const [mode, patience] of [
      ["flight", DRAIN_MS],
      ["now", ABORT_MS],
    ] as const) {
      for (const run of live.values()) run.interrupt(mode);
      await finished(patience);
    }
    await home.close();
    // Whatever still waited for the store is told so.
    await finished(ABORT_MS);
    for (const hub of hubs.values()) hub.end();
    try {
      book.lives();
    } catch (error) {
      log("warn", "the end of the service cannot be noted", { why: wordsOf(error) });
    }
    book.close();
  }

  try {
    tidy();
  } catch (error) {
    throw new CrawlError("state-unwritable", `cannot use the data directory ${dir}: ${wordsOf(error)}`, { cause: error });
  }
  queue = [...book.inStates(["queued"])];
  const before = book.inStates(["running", "stopping"]);
  suspicious = book.deaths() >= DEATHS_SUSPECT;
  if (suspicious) log("warn", "the service has died again and again: its jobs are tried one by one");
  calm = clock.after(CALM_MS, grown);
  for (const id of before) {
    const row = book.get(id);
    if (suspicious) enqueue(id);
    else if (row !== null) start(row);
  }
  tellPauses();
  home.onBack(tellPauses);
  pump();
  void sweep();

  return {
    ...{ book, home, policy, clock, log, totals, dirOf, viewOf, idleCounts, hubOf, change, enqueue, dequeue, pump, start, end, remove },
    get closing() {
      return closing;
    },
    get busy() {
      return live.size + queue.length;
    },
    runOf: (id) => live.get(id),
    close() {
      closed ??= shut();
      return closed;
    },
  };
}
