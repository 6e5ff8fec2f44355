/** A state directory as `skein explain`, `status` and `export` read it: one consistent moment of a run, under way or over. Nothing is changed. */
import { statSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import type { EpochMs } from "../core/clock.ts";
import { CrawlError } from "../core/errors.ts";
import type { Control, FrontierCounts, RobotsState } from "../core/frontier.ts";
import type { SinkState } from "../core/sink.ts";
import { type CrawlSpec, parseSpec } from "../core/spec.ts";
import { LIVE_KEY, type LiveNote, readLive } from "../live.ts";
import { fingerprintOf } from "../rules/url.ts";
import { type KnownPlace, readState, type StateReader } from "../store/sqlite/read.ts";

/** A journal of the run, JSON Lines; what lies behind `bytes` was never committed. */
export interface Journal {
  readonly path: string;
  readonly bytes: number;
}

/** Of a crawl in memory that was interrupted and kept: what it had settled by then has no record in the directory. */
export interface BeganInMemory {
  readonly keptAt: EpochMs;
  /** URLs settled by then. */
  readonly settled: number;
}

/** Its place among what a state directory keeps beside the frontier. */
export const BEGAN_KEY = "began";

export interface StateView {
  readonly dir: string;
  /** The crawl as it was started, every default filled in. */
  readonly spec: CrawlSpec;
  readonly counts: Pick<FrontierCounts, "queued" | "delayed" | "leased" | "done" | "dropped" | "counted" | "level" | "completed">;
  readonly control: Control;
  readonly tally: ReadonlyMap<string, number>;
  readonly startedAt: EpochMs;
  /** Ms of work over all resumes. */
  readonly elapsedMs: number;
  /** Null: it has not come to its end. */
  readonly finishReason: string | null;
  /** A process holds the directory now. */
  readonly running: boolean;
  readonly journal: { readonly pages: Journal; readonly skipped: Journal; readonly items: Journal };
  readonly sinks: ReadonlyMap<string, SinkState>;
  /** Null: the crawl has had a state directory from its start. */
  readonly beganInMemory: BeganInMemory | null;
  /** What its process noted last. */
  readonly live: LiveNote | null;
  /** Null: the crawl has never met this canonical URL. */
  lookUp(url: string): KnownPlace | null;
  /** Whether a skipped line was written for this URL, here or while the crawl ran in memory. */
  wasSkipped(url: string): boolean;
  /** What is queued, delayed or leased, oldest first. */
  queue(): ReturnType<StateReader["queue"]>;
  robotsOf(origin: string): RobotsState | null;
  [Symbol.dispose](): void;
}

const NO_COUNTS = { queued: 0, delayed: 0, leased: 0, done: 0, dropped: 0, counted: 0, level: 0, completed: false } as const;

/** Whether a process holds the lock: a reader is then refused. */
function isHeld(dir: string): boolean {
  const path = join(dir, "lock.db");
  if (statSync(path, { throwIfNoEntry: false }) === undefined) return false;
  const lock = new DatabaseSync(path, { readOnly: true, timeout: 0 });
  try {
    lock.prepare("SELECT count(*) FROM sqlite_schema").get();
    return false;
  } catch {
    return true;
  } finally {
    lock.close();
  }
}

function absent(dir: string): CrawlError {
  const message = `there is no state of a crawl in ${dir}`;
  return new CrawlError("invalid-options", message, { problems: [{ option: "--state", message }] });
}

function journalOf(dir: string, name: "pages" | "skipped" | "items", sinks: ReadonlyMap<string, SinkState>): Journal {
  const bytes = sinks.get(`journal:${name}`)?.bytes;
  return { path: join(dir, `${name}.jsonl`), bytes: typeof bytes === "number" ? bytes : 0 };
}

/** Throws CrawlError `invalid-options` when there is no state in the directory, `state-unwritable` when it cannot be read. */
export function openStateView(dir: string): StateView {
  if (!statSync(dir, { throwIfNoEntry: false })?.isDirectory()) throw absent(dir);
  const running = isHeld(dir);
  const reader = readState(dir);
  const run = reader?.run ?? null;
  if (reader === null || run === null) {
    reader?.close();
    throw absent(dir);
  }
  const { counters, sinks, seed } = reader;
  return {
    dir,
    spec: parseSpec(JSON.parse(run.spec)),
    counts: counters ?? NO_COUNTS,
    control: counters?.control ?? "run",
    tally: new Map(counters?.tally ?? []),
    startedAt: run.startedAt,
    elapsedMs: run.elapsedMs,
    finishReason: run.finishReason,
    running,
    journal: { pages: journalOf(dir, "pages", sinks), skipped: journalOf(dir, "skipped", sinks), items: journalOf(dir, "items", sinks) },
    sinks,
    beganInMemory: JSON.parse(reader.meta(BEGAN_KEY) ?? "null"),
    live: readLive(reader.meta(LIVE_KEY)),
    lookUp: (url) => reader.lookUp(fingerprintOf(url, seed)),
    wasSkipped: (url) => reader.wasSkipped(fingerprintOf(url, seed)),
    queue: () => reader.queue(),
    robotsOf: (origin) => reader.robotsOf(origin)?.state ?? null,
    [Symbol.dispose]: () => reader.close(),
  };
}
