/** Jobs of a service on the embedded store: crawls in one data directory, many side by side, gone on with after a restart. Speaks no HTTP. */
import { mkdirSync, readdirSync, renameSync, rmSync } from "node:fs";
import { rm, stat } from "node:fs/promises";
import { join } from "node:path";
import type { AssembleOptions } from "./assemble.ts";
import { realClock, type Timer } from "./core/clock.ts";
import { CrawlError } from "./core/errors.ts";
import type { FinishReason } from "./core/events.ts";
import {
  type ControlAnswer,
  type Created,
  ENDED_STATES,
  JOB_STATES,
  type JobCounts,
  type JobEvent,
  type JobService,
  type JobState,
  type JobTable,
  type JobView,
  type NewJob,
} from "./core/jobs.ts";
import { type Logger, silentLog } from "./core/log.ts";
import type { CrawlSpec } from "./core/spec.ts";
import { committedCounts, endedCounts, waitingCounts } from "./jobs-counts.ts";
import { createEventHub, type EventHub, type Happening } from "./jobs-events.ts";
import { explainJob, hostsOf } from "./jobs-inspect.ts";
import { countKnown } from "./jobs-known.ts";
import { fileOf, jobLines } from "./jobs-lines.ts";
import { type Ending, failureDetail, type RunningJob, runJob, SEEDS_FILE, type Totals } from "./jobs-run.ts";
import { crawlSpecOf, type JobPolicy, jobOptions, scraperFile, shownSpec } from "./jobs-spec.ts";
import { type JobRow, openBook, type RowChange, type Wish } from "./store/jobs/book.ts";
import { committedOf } from "./store/jobs/committed.ts";
import { readSeeds, takeSeeds } from "./store/jobs/seeds.ts";
import { createHostGate } from "./store/memory/gate.ts";

export interface JobsOptions {
  /** The data directory; made when it is not there. */
  readonly dir: string;
  /** Jobs that run at a time; others wait, oldest first. */
  readonly maxRunning?: number;
  /** Jobs that have not ended, waiting ones included. */
  readonly maxJobs?: number;
  /** Seeds of one job. */
  readonly maxUrls?: number;
  /** Most requests in flight of one job; null: as the job says. */
  readonly concurrency?: number | null;
  /** Addresses that may be reached; default: none but public ones. */
  readonly addresses?: CrawlSpec["addresses"];
  /** Where scrapers lie that jobs may name; null: there are none. */
  readonly scrapersDir?: string | null;
  /** Threads for the scraper of one job. */
  readonly parseWorkers?: number;
  /** Ms after which a job that has ended is deleted; null: never. */
  readonly keepFor?: number | null;
  readonly log?: Logger;
  /** Tests replace the world. */
  readonly world?: AssembleOptions["world"];
}

const TABLES: readonly JobTable[] = ["pages", "items", "skipped", "images"];
/** How long a stop of the service waits for what is in flight, and then for what it aborts. */
const DRAIN_MS = 3_000;
const ABORT_MS = 2_000;
const AGAIN_MS = 1_000;
const SWEEP_MS = 60_000;
const STRENGTH = { queue: 1, flight: 2, now: 3 } as const;

/** Takes the directory for this process alone and goes on with its jobs. Throws CrawlError `state-held` or `state-unwritable`. */
export async function openJobs(options: JobsOptions): Promise<JobService> {
  const { dir, maxRunning = 16, maxJobs = 10_000, maxUrls = 10_000_000, keepFor = null, log = silentLog } = options;
  const clock = options.world?.clock ?? realClock;
  const policy: JobPolicy = {
    addresses: options.addresses ?? { refusePrivate: true, allow: [] },
    scrapersDir: options.scrapersDir ?? null,
    concurrency: options.concurrency ?? null,
    parseWorkers: options.parseWorkers ?? 1,
  };
  const book = openBook(dir);
  const gate = createHostGate(clock);
  const live = new Map<number, RunningJob>();
  const hubs = new Map<number, EventHub>();
  const totals: Totals = { pages: 0, requests: 0, bytes: 0, items: 0, failed: 0, skipped: 0 };
  const turns = createTurns();
  /** Ids of queued jobs, ascending. */
  let queue: number[] = [];
  let closing = false;
  let sweeper: Timer | null = null;

  const dirOf = (id: number): string => join(dir, "jobs", String(id));
  const specOf = (row: JobRow): CrawlSpec => JSON.parse(row.spec) as CrawlSpec; // written by `create`
  const hasEnded = (row: JobRow): boolean => ENDED_STATES.has(row.state);

  // --- what a job looks like ---

  function idleCounts(row: JobRow): JobCounts {
    if (row.counts !== null) return row.counts;
    const committed = row.startedAt === null ? null : committedOf(dirOf(row.id));
    return committed === null ? waitingCounts(row.seedsTotal) : committedCounts(committed, row.seedsTotal);
  }

  async function viewOf(row: JobRow): Promise<JobView> {
    const running = live.get(row.id);
    const counts = running === undefined ? idleCounts(row) : await running.counts();
    // It may have ended while its counts were looked at.
    const { id, state, seeds, seedsTotal, createdAt, startedAt, endedAt, finishReason, detail, counts: final } = book.get(row.id) ?? row;
    return { id, state, spec: shownSpec(specOf(row)), seeds, seedsTotal, counts: final ?? counts, createdAt, startedAt, endedAt, finishReason, detail };
  }

  const done = async (row: JobRow): Promise<ControlAnswer> => ({ kind: "done", job: await viewOf(row) });
  const conflict = async (row: JobRow, why: string) => ({ kind: "conflict" as const, job: await viewOf(row), why });
  const UNKNOWN = { kind: "unknown" as const };
  const ended = (row: JobRow) => conflict(row, `the job has ended (${row.state})`);

  function hubOf(id: number): EventHub {
    const known = hubs.get(id);
    if (known !== undefined) return known;
    const made = createEventHub(book.nextEvent);
    hubs.set(id, made);
    return made;
  }

  function change(id: number, to: RowChange): JobRow {
    const row = book.change(id, to);
    if (to.state !== undefined) hubOf(id).emit({ kind: "state", state: row.state, finishReason: row.finishReason });
    return row;
  }

  // --- running ---

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
    while (!closing && queue.length > 0 && runningNow() < maxRunning) {
      const id = queue.shift();
      const row = id === undefined ? null : book.get(id);
      if (row !== null) start(row);
    }
  }

  function start(before: JobRow): void {
    const { id } = before;
    const row = change(id, { state: before.wish === null ? "running" : "stopping", startedAt: before.startedAt ?? clock.epoch() });
    let spec: CrawlSpec;
    try {
      spec = crawlSpecOf(specOf(row), dirOf(id), policy);
    } catch (error) {
      conclude(id, { kind: "failed", error, detail: failureDetail(error), counts: endedCounts(idleCounts(row), false) }, null);
      return;
    }
    const run = runJob({
      ...{ row, dir: dirOf(id), spec, paused: false, hub: hubOf(id), totals, clock, log },
      seedsBytes: () => book.get(id)?.seedsBytes ?? 0,
      more: { shared: { gate }, ...(options.world === undefined ? {} : { world: options.world }) },
    });
    live.set(id, run);
    log("info", "job started", { job: id });
    void run.done.then(async (ending) => conclude(id, ending, await sizesOf(id, ending)));
  }

  /** Of the files of a run that closed them itself; else the state says what of them counts. */
  async function sizesOf(id: number, ending: Ending): Promise<JobRow["sizes"]> {
    if (ending.kind !== "over" || !ending.clean) return null;
    const sizes = { pages: 0, items: 0, skipped: 0, images: 0 };
    for (const table of TABLES) sizes[table] = (await stat(join(dirOf(id), fileOf(table))).catch(() => null))?.size ?? 0;
    return sizes;
  }

  function stateAfter(row: JobRow, ending: Exclude<Ending, { kind: "interrupted" }>): { state: JobState; finishReason: FinishReason } {
    if (ending.kind === "failed") return { state: "failed", finishReason: "failed" };
    const { finishReason } = ending;
    if (row.wish?.kind === "cancel" && finishReason === "cancelled") return { state: "cancelled", finishReason };
    return { state: row.wish?.kind === "stop" && finishReason === "stop-condition" ? "stopped" : "completed", finishReason };
  }

  function conclude(id: number, ending: Ending, sizes: JobRow["sizes"]): void {
    live.delete(id);
    const row = book.get(id);
    if (row === null || ending.kind === "interrupted") return;
    if (ending.kind === "failed") log("error", "job failed", { job: id, why: ending.error instanceof Error ? ending.error.message : String(ending.error) });
    try {
      end(row, stateAfter(row, ending), { detail: ending.detail, counts: ending.counts, sizes });
    } catch (error) {
      // A full disk, most likely. Its state says how it ended, should this process die first.
      log("error", "the end of a job cannot be noted", { job: id, why: error instanceof Error ? error.message : String(error) });
      if (!closing) clock.after(AGAIN_MS, () => conclude(id, ending, sizes));
      return;
    }
    pump();
  }

  function end(row: JobRow, how: { state: JobState; finishReason: FinishReason | null }, more: Pick<JobRow, "detail" | "counts" | "sizes">): JobRow {
    const spec = JSON.stringify(shownSpec(specOf(row)));
    const hub = hubOf(row.id);
    // The counts go first: who sees the end has seen them.
    if (more.counts !== null) hub.emit({ kind: "counts", counts: more.counts });
    const after = change(row.id, { ...how, ...more, spec, endedAt: clock.epoch(), wish: null });
    hub.end();
    hubs.delete(row.id);
    log("info", "job ended", { job: row.id, state: how.state });
    return after;
  }

  // --- creating ---

  async function create(job: NewJob): Promise<Created> {
    const { idempotency } = job;
    return idempotency === null ? createOnce(job) : turns.take(`key ${idempotency.key}`, () => createOnce(job));
  }

  async function createOnce({ spec: given, lines, idempotency, emptyLines = "skip" }: NewJob): Promise<Created> {
    if (closing) throw new CrawlError("state-unwritable", "the service is about to stop");
    const known = idempotency === null ? null : book.keyed(idempotency.key);
    if (idempotency !== null && known !== null) {
      const row = book.get(known.id);
      for await (const _ of lines); // the fingerprint is known at their end
      if (row !== null) {
        const { rejected, rejectedTotal } = row;
        const same = idempotency.fingerprint === known.fingerprint;
        return same ? { kind: "repeated", job: await viewOf(row), rejected, rejectedTotal } : { kind: "conflict", job: await viewOf(row) };
      }
    }
    const spec = jobOptions(given);
    if (spec.scraper !== null) scraperFile(spec.scraper, policy);
    if (live.size + queue.length >= maxJobs) return { kind: "too-many", what: "jobs", limit: maxJobs };
    const folder = join(dir, "incoming", crypto.randomUUID());
    mkdirSync(folder, { mode: 0o700 });
    try {
      const intake = { bytes: 0, total: 0, bareScheme: spec.defaultScheme ?? "refuse", emptyLines, most: maxUrls } as const;
      const { first, bytes, total, rejected, rejectedTotal, tooMany } = await takeSeeds(join(folder, SEEDS_FILE), lines, intake);
      if (tooMany) return { kind: "too-many", what: "urls", limit: maxUrls };
      if (total === 0 && !spec.sitemaps.some((url) => url !== "auto")) return { kind: "no-seeds", rejected, rejectedTotal };
      const nonce = crypto.randomUUID().slice(0, 8);
      const row = book.add(
        { spec: JSON.stringify(spec), nonce, seeds: first, seedsTotal: total, seedsBytes: bytes, createdAt: clock.epoch(), rejected, rejectedTotal },
        idempotency === null ? null : { key: idempotency.key, fingerprint: idempotency.fingerprint },
        (id) => renameSync(folder, dirOf(id)),
      );
      enqueue(row.id);
      hubOf(row.id).emit({ kind: "state", state: "queued", finishReason: null });
      // The answer says what was made; it starts when others have had their turn.
      const view = await viewOf(row);
      clock.soon(pump);
      return { kind: "created", job: view, rejected, rejectedTotal };
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  }

  async function addUrls(id: number, lines: AsyncIterable<string> | Iterable<string>): ReturnType<JobService["addUrls"]> {
    const before = book.get(id);
    if (before === null) return UNKNOWN;
    if (hasEnded(before)) return ended(before);
    if (before.state === "stopping") return conflict(before, "the job is stopping");
    const path = join(dirOf(id), SEEDS_FILE);
    const intake = { bytes: before.seedsBytes, total: before.seedsTotal, emptyLines: "skip", most: maxUrls } as const;
    const taken = await takeSeeds(path, lines, { ...intake, bareScheme: specOf(before).defaultScheme ?? "refuse" });
    const row = book.get(id);
    if (row === null) return UNKNOWN;
    if (hasEnded(row)) return ended(row);
    const { rejected, rejectedTotal, tooMany, bytes, total, first } = taken;
    if (tooMany) return conflict(row, `a job takes at most ${maxUrls} URLs`);
    const fresh = () => readSeeds(path, before.seedsBytes, bytes);
    const run = live.get(id);
    // From here on a restart reads them too.
    change(id, { seedsBytes: bytes, seedsTotal: total, seeds: [...row.seeds, ...first].slice(0, 1_000) });
    if (run === undefined) return { ...countKnown(readSeeds(path, 0, before.seedsBytes), fresh()), rejected, rejectedTotal };
    const counts = await run.add(fresh());
    if (counts !== null) return { added: counts.added, known: counts.known, rejected, rejectedTotal };
    const now = book.get(id);
    if (now === null) return UNKNOWN;
    change(id, { seedsBytes: before.seedsBytes, seedsTotal: before.seedsTotal, seeds: before.seeds });
    return conflict(book.get(id) ?? now, "the job came to its end");
  }

  // --- steering ---

  function stronger(row: JobRow, wish: Wish): boolean {
    if (row.wish === null || wish.kind === "cancel") return true;
    return row.wish.kind === "stop" && STRENGTH[wish.mode] > STRENGTH[row.wish.mode];
  }

  async function halt(row: JobRow, wish: Wish): Promise<ControlAnswer> {
    const { id } = row;
    if (!stronger(row, wish)) return done(row);
    const run = live.get(id);
    dequeue(id);
    if (run !== undefined) {
      const after = change(id, { state: "stopping", wish });
      run.stop(wish);
      return done(after);
    }
    const detail = wish.kind === "stop" ? wish.reason : null;
    if (wish.kind === "cancel" || row.startedAt === null) {
      const how =
        wish.kind === "cancel" ? ({ state: "cancelled", finishReason: "cancelled" } as const) : ({ state: "stopped", finishReason: "stop-condition" } as const);
      return done(end(row, how, { detail, counts: endedCounts(idleCounts(row), wish.kind === "stop"), sizes: null }));
    }
    // It has begun: what it leaves out is to be listed, and in mode `queue` what is queued is to be done.
    start(book.change(id, { wish }));
    return done(book.get(id) ?? row);
  }

  async function remove(id: number): Promise<void> {
    book.remove(id);
    hubs.get(id)?.end();
    hubs.delete(id);
    await rm(dirOf(id), { recursive: true, force: true }).catch((error: unknown) =>
      log("warn", "a job's files could not be removed", { job: id, why: String(error) }),
    );
  }

  async function sweep(): Promise<void> {
    if (keepFor === null || closing) return;
    for (const id of book.endedBefore(clock.epoch() - keepFor)) await remove(id);
    if (!closing) sweeper = clock.after(Math.max(100, Math.min(SWEEP_MS, keepFor / 4)), () => void sweep());
  }

  /** What was left by uploads that were cut off, and by jobs whose removal was. */
  function tidy(): void {
    rmSync(join(dir, "incoming"), { recursive: true, force: true });
    for (const name of ["jobs", "incoming"]) mkdirSync(join(dir, name), { recursive: true, mode: 0o700 });
    for (const name of readdirSync(join(dir, "jobs")))
      if (!/^\d+$/.test(name) || book.get(Number(name)) === null) rmSync(join(dir, "jobs", name), { recursive: true, force: true });
  }

  function happeningsOf(row: JobRow): readonly Happening[] {
    const { state, finishReason } = book.get(row.id) ?? row;
    return [
      { kind: "state", state, finishReason },
      { kind: "counts", counts: live.get(row.id)?.latest ?? idleCounts(row) },
    ];
  }

  async function* onlyNow(row: JobRow): AsyncGenerator<JobEvent> {
    for (const happening of happeningsOf(row)) yield { id: String(book.nextEvent()), ...happening };
  }

  let probed = { at: -Infinity, why: null as string | null };
  function trouble(): string | null {
    if (closing) return "the service is about to stop";
    if (clock.now() - probed.at < AGAIN_MS) return probed.why;
    try {
      book.probe();
      probed = { at: clock.now(), why: null };
    } catch (error) {
      log("error", "the data directory cannot be written", { why: error instanceof Error ? error.message : String(error) });
      probed = { at: clock.now(), why: "the data directory cannot be written" };
    }
    return probed.why;
  }

  let closed: Promise<void> | null = null;
  async function shut(): Promise<void> {
    closing = true;
    sweeper?.cancel();
    for (const [mode, patience] of [
      ["flight", DRAIN_MS],
      ["now", ABORT_MS],
    ] as const) {
      const runs = [...live.values()];
      if (runs.length === 0) break;
      for (const run of runs) run.interrupt(mode);
      const { promise, resolve } = Promise.withResolvers<void>();
      const timer = clock.after(patience, resolve);
      await Promise.race([Promise.all(runs.map((run) => run.done)), promise]);
      timer.cancel();
      // What they came to is noted in the same turn of the loop.
      await new Promise<void>((next) => clock.soon(next));
    }
    for (const hub of hubs.values()) hub.end();
    book.close();
  }

  try {
    tidy();
  } catch (error) {
    book.close();
    throw new CrawlError("state-unwritable", `cannot use the data directory ${dir}: ${error instanceof Error ? error.message : String(error)}`, {
      cause: error,
    });
  }
  queue = [...book.inStates(["queued"])];
  for (const id of book.inStates(["running", "stopping"])) {
    const row = book.get(id);
    if (row !== null) start(row);
  }
  pump();
  void sweep();

  return {
    create,
    async get(id) {
      const row = book.get(id);
      return row === null ? null : viewOf(row);
    },
    list: (query) => Promise.all(book.list(query).map(viewOf)),
    async stop(id, mode, reason) {
      const row = book.get(id);
      if (row === null) return UNKNOWN;
      return hasEnded(row) ? ended(row) : halt(row, { kind: "stop", mode, reason });
    },
    async pause(id) {
      const row = book.get(id);
      if (row === null) return UNKNOWN;
      if (hasEnded(row)) return ended(row);
      if (row.state === "stopping") return conflict(row, "the job is stopping");
      if (row.state === "paused") return done(row);
      dequeue(id);
      const after = change(id, { state: "paused" });
      live.get(id)?.pause();
      pump();
      return done(after);
    },
    async resume(id) {
      const row = book.get(id);
      if (row === null) return UNKNOWN;
      if (hasEnded(row)) return ended(row);
      if (row.state === "stopping") return conflict(row, "the job is stopping");
      if (row.state !== "paused") return done(row);
      const run = live.get(id);
      const after = change(id, { state: run === undefined ? "queued" : "running" });
      if (run === undefined) enqueue(id);
      else run.resume();
      pump();
      return done(book.get(id) ?? after);
    },
    async cancel(id) {
      const row = book.get(id);
      if (row === null) return UNKNOWN;
      if (!hasEnded(row)) return halt(row, { kind: "cancel" });
      await remove(id);
      return { kind: "deleted" };
    },
    addUrls: (id, lines) => turns.take(`job ${id}`, () => addUrls(id, lines)),
    async lines(id, table, cursor) {
      const row = book.get(id);
      return row === null ? null : jobLines(dirOf(id), row, table, specOf(row), cursor);
    },
    async explain(id, url) {
      return book.get(id) === null ? null : explainJob(dirOf(id), url, clock);
    },
    async hosts(id, most) {
      const row = book.get(id);
      if (row === null) return null;
      const views = (await live.get(id)?.hosts(most)) ?? [];
      return views.length === 0 ? hostsOf(dirOf(id), row, most) : views.map((view) => ({ ...view, paused: row.patches[view.host]?.paused === true }));
    },
    async patchHost(id, name, patch) {
      const row = book.get(id);
      if (row === null) return UNKNOWN;
      if (hasEnded(row)) return ended(row);
      const host = name.toLowerCase();
      const after = change(id, { patches: { ...row.patches, [host]: { ...row.patches[host], ...patch } } });
      await live.get(id)?.patchHost(host, patch);
      return done(after);
    },
    async events(id, after, signal) {
      const row = book.get(id);
      if (row === null) return null;
      return hasEnded(row) ? onlyNow(row) : hubOf(id).watch(after, signal, () => happeningsOf(row));
    },
    async health() {
      const why = trouble();
      const byState = book.countByState();
      const jobs = Object.fromEntries(JOB_STATES.map((state) => [state, byState.get(state) ?? 0])) as Record<JobState, number>; // every state has its count
      return { ready: why === null, why, jobs, totals: { ...totals } };
    },
    close() {
      closed ??= shut();
      return closed;
    },
  };
}

/** Calls under one name, one after the other. */
function createTurns() {
  const last = new Map<string, Promise<unknown>>();
  return {
    async take<T>(name: string, run: () => Promise<T>): Promise<T> {
      const mine = (last.get(name) ?? Promise.resolve()).then(run, run);
      last.set(name, mine);
      try {
        return await mine;
      } finally {
        if (last.get(name) === mine) last.delete(name);
      }
    },
  };
}
