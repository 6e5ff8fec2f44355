/** Jobs of a service: crawls whose results lie in one data directory, many side by side, gone on with after a restart. Speaks no HTTP. */
import { CrawlError } from "../core/errors.ts";
import { type ControlAnswer, JOB_STATES, type JobEvent, type JobService, type JobState } from "../core/jobs.ts";
import type { JobRow, Wish } from "../store/jobs/book.ts";
import { endedCounts } from "./counts.ts";
import type { Happening } from "./events.ts";
import { createIntake } from "./intake.ts";
import { hasEnded, specOf } from "./keeper.ts";
import { jobLines } from "./lines.ts";
import { openKeeper } from "./open.ts";
import type { JobsOptions } from "./parts.ts";
import { scraperFile } from "./spec.ts";

export type { JobsOptions } from "./parts.ts";

const STRENGTH = { queue: 1, flight: 2, now: 3 } as const;
/** The disk is tried at most so often. */
const PROBE_MS = 1_000;

/** Takes the directory for this process alone and goes on with its jobs. Rejects with CrawlError `state-held`, `state-unwritable` or `store-unreachable`. */
export async function openJobs(options: JobsOptions): Promise<JobService> {
  const keeper = await openKeeper(options);
  const { book, change, clock, dequeue, dirOf, end, enqueue, home, hubOf, idleCounts, log, pump, remove, runOf, start, totals, viewOf } = keeper;

  const done = async (row: JobRow): Promise<ControlAnswer> => ({ kind: "done", job: await viewOf(row) });
  const conflict = async (row: JobRow, why: string) => ({ kind: "conflict" as const, job: await viewOf(row), why });
  const UNKNOWN = { kind: "unknown" as const };
  const ended = (row: JobRow) => conflict(row, `the job has ended (${row.state})`);

  /** What is asked of a job that has begun is to take hold: where its crawl takes no changes now, nothing is changed. Rejects with `store-unreachable`. */
  async function reached(id: number): Promise<JobRow | null> {
    const row = book.get(id);
    if (row === null || row.startedAt === null || hasEnded(row)) return row;
    await home.tell(async () => undefined);
    return book.get(id);
  }

  /** Notes it, and has the run do it. Rejects where nothing was noted; a store that goes away after that is told as soon as it is back. */
  async function steered(id: number, note: () => JobRow, act: () => Promise<void>): Promise<JobRow | null> {
    let noted = false;
    try {
      await home.tell(() => {
        note();
        noted = true;
        return act();
      });
    } catch (error) {
      const now = book.get(id);
      if (!noted || now === null || hasEnded(now)) throw error;
      log("warn", "what was noted of a job takes hold when its crawl can be reached", { job: id, why: String(error) });
    }
    return book.get(id);
  }

  function stronger(row: JobRow, wish: Wish): boolean {
    if (row.wish === null || wish.kind === "cancel") return true;
    return row.wish.kind === "stop" && STRENGTH[wish.mode] > STRENGTH[row.wish.mode];
  }

  async function halt(row: JobRow, wish: Wish): Promise<ControlAnswer> {
    const { id } = row;
    if (!stronger(row, wish)) return done(row);
    const run = runOf(id);
    dequeue(id);
    if (run !== undefined) {
      const after = change(id, { state: "stopping", wish });
      run.stop(wish);
      return done(after);
    }
    const detail = wish.kind === "stop" ? wish.reason : null;
    // What workers have settled meanwhile is in the store still, and only a run fetches it.
    if ((wish.kind === "cancel" && row.crawl === null) || row.startedAt === null) {
      const how =
        wish.kind === "cancel" ? ({ state: "cancelled", finishReason: "cancelled" } as const) : ({ state: "stopped", finishReason: "stop-condition" } as const);
      const counts = endedCounts(await idleCounts(row), wish.kind === "stop");
      // It was let go meanwhile.
      const now = book.get(id) ?? row;
      if (runOf(id) !== undefined || hasEnded(now)) return hasEnded(now) ? ended(now) : halt(now, wish);
      return done(end(now, how, { detail, counts, sizes: null }));
    }
    // It has begun: what it leaves out is to be listed, and in mode `queue` what is queued is to be done.
    start(book.change(id, { wish }));
    return done(book.get(id) ?? row);
  }

  async function happeningsOf(row: JobRow): Promise<readonly Happening[]> {
    const counts = runOf(row.id)?.latest ?? (await idleCounts(row));
    const { state, finishReason } = book.get(row.id) ?? row;
    return [
      { kind: "state", state, finishReason },
      { kind: "counts", counts },
    ];
  }

  async function* onlyNow(row: JobRow): AsyncGenerator<JobEvent> {
    for (const happening of await happeningsOf(row)) yield { id: String(book.nextEvent()), ...happening };
  }

  let probed = { at: -Infinity, why: null as string | null };
  function trouble(): string | null {
    if (keeper.closing) return "the service is about to stop";
    if (clock.now() - probed.at < PROBE_MS) return probed.why ?? home.trouble;
    try {
      book.probe();
      probed = { at: clock.now(), why: null };
    } catch (error) {
      log("error", "the data directory cannot be written", { why: error instanceof Error ? error.message : String(error) });
      probed = { at: clock.now(), why: "the data directory cannot be written" };
    }
    return probed.why ?? home.trouble;
  }

  return {
    ...createIntake(keeper, options),
    async problemsOf({ scraper }) {
      if (scraper === null) return [];
      try {
        scraperFile(scraper, keeper.policy);
        return [];
      } catch (error) {
        if (error instanceof CrawlError && error.code === "invalid-options") return error.problems;
        throw error;
      }
    },
    async get(id) {
      const row = book.get(id);
      return row === null ? null : viewOf(row);
    },
    list: (query) => Promise.all(book.list(query).map(viewOf)),
    async stop(id, mode, reason) {
      const row = await reached(id);
      if (row === null) return UNKNOWN;
      return hasEnded(row) ? ended(row) : halt(row, { kind: "stop", mode, reason });
    },
    async pause(id) {
      const row = await reached(id);
      if (row === null) return UNKNOWN;
      if (hasEnded(row)) return ended(row);
      if (row.state === "stopping") return conflict(row, "the job is stopping");
      if (row.state === "paused") return done(row);
      dequeue(id);
      const after = change(id, { state: "paused" });
      const run = runOf(id);
      if (run === undefined) home.rest(after);
      else run.pause();
      pump();
      return done(after);
    },
    async resume(id) {
      const row = await reached(id);
      if (row === null) return UNKNOWN;
      if (hasEnded(row)) return ended(row);
      if (row.state === "stopping") return conflict(row, "the job is stopping");
      if (row.state !== "paused") return done(row);
      const run = runOf(id);
      const after = change(id, { state: run === undefined ? "queued" : "running" });
      if (run === undefined) enqueue(id);
      else run.resume();
      pump();
      return done(book.get(id) ?? after);
    },
    async cancel(id) {
      const row = await reached(id);
      if (row === null) return UNKNOWN;
      if (!hasEnded(row)) return halt(row, { kind: "cancel" });
      await remove(id);
      return { kind: "deleted" };
    },
    async lines(id, table, cursor) {
      const row = book.get(id);
      if (row === null) return null;
      const dir = dirOf(id);
      const to = row.sizes?.[table] ?? (await home.bytesOf(row, dir, table));
      return jobLines({ dir, row, table, spec: specOf(row), to }, cursor);
    },
    async explain(id, url) {
      const row = book.get(id);
      return row === null ? null : home.explain(row, dirOf(id), url);
    },
    async hosts(id, most) {
      const row = book.get(id);
      if (row === null) return null;
      const views = await home.ask(async () => (await runOf(id)?.hosts(most)) ?? []);
      return views.length === 0 ? home.hosts(row, dirOf(id), most) : views.map((view) => ({ ...view, paused: row.patches[view.host]?.paused === true }));
    },
    async patchHost(id, name, patch) {
      const row = await reached(id);
      if (row === null) return UNKNOWN;
      if (hasEnded(row)) return ended(row);
      const host = name.toLowerCase();
      const note = () => change(id, { patches: { ...row.patches, [host]: { ...row.patches[host], ...patch } } });
      const run = runOf(id);
      const after = run === undefined ? note() : await steered(id, note, () => run.patchHost(host, patch));
      return after === null ? UNKNOWN : done(after);
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
    close: keeper.close,
  };
}
