/** A state directory that this process owns: its lock, its runs, and what is kept beside the frontier. The frontier itself: frontier.ts. Reading one that another process owns: read.ts. */
import { closeSync, mkdirSync, openSync, readdirSync, readSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import type { EpochMs } from "../../core/clock.ts";
import type { FingerprintSeed } from "../../core/request.ts";
import type { SinkState } from "../../core/sink.ts";
import { readCounters } from "./progress.ts";
import { APPLICATION_ID, createSchema, migrate, SCHEMA_VERSION, TABLES_LEARNT, TABLES_OF_A_RUN, versionOf } from "./schema.ts";
import { held, isBusy, unreadable, unusable, unwritable } from "./trouble.ts";

export const STATE_FILE = "state.db";
const LOCK_FILE = "lock.db";

/** Present run of a directory. */
export interface RunView {
  readonly name: string;
  /** As startRun was given it. */
  readonly spec: string;
  readonly startedAt: EpochMs;
  /** Ms of work over all resumes. */
  readonly elapsedMs: number;
  /** Null: it did not come to its end (or goes on, see reopenRun). */
  readonly finishReason: string | null;
}

/** What a new run keeps of the old one besides the rules of hosts and robots.txt. */
export interface KeepOptions {
  readonly cookies?: boolean;
}

export interface StateDirectory {
  readonly dir: string;
  /** Keys the fingerprints; the same as long as the directory lives. */
  readonly seed: FingerprintSeed;
  run(): RunView | null;
  meta(key: string): string | null;
  setMeta(key: string, value: string | null): void;
  sinkStates(): ReadonlyMap<string, SinkState>;
  /** What user code keeps, JSON text by key (rules/values.ts). */
  values(): ReadonlyMap<string, string>;
  /** The first run, or the one after newRun. `spec` is not looked into. */
  startRun(run: { readonly name: string; readonly spec: string; readonly startedAt: EpochMs }): void;
  /** The options of the present run, where some of them were changed for its resume. */
  setSpec(spec: string): void;
  /** A run that had ended goes on: by a larger limit, or after an interruption. */
  reopenRun(): void;
  /** Drops queue, seen-map, counters, sinks and seeds of the last run. Robots answers and host rules stay (they expire by themselves), cookies only if asked for. */
  newRun(keep?: KeepOptions): void;
  /** Drops everything, `meta` too. */
  dropAll(): void;
  /** The run came to its end. */
  finishRun(reason: string, at: EpochMs): void;
  /** Frees the lock. Idempotent. */
  close(): void;
}

/** For frontier.ts: the directory with its database. */
export interface OpenDirectory extends StateDirectory {
  readonly db: DatabaseSync;
}

const OURS = /^(?:(?:state|lock|cache)\.db(?:-journal|-wal|-shm)?|\..*)$/;

/** With its parents. Not the recursive mkdir of Node, which never returns where a parent exists and takes no folders (/proc), and no signal ends it. */
export function makeFolder(dir: string): void {
  if (statSync(dir, { throwIfNoEntry: false })?.isDirectory() === true) return;
  const parent = dirname(dir);
  if (parent !== dir) makeFolder(parent);
  try {
    mkdirSync(dir);
  } catch (error) {
    // Another process may have made it in between.
    if (statSync(dir, { throwIfNoEntry: false })?.isDirectory() !== true) throw error;
  }
}

/** Whether there is a state to go on with; throws when the folder is something else. */
function checkFolder(dir: string): void {
  let names: string[];
  try {
    makeFolder(dir);
    names = readdirSync(dir);
  } catch (error) {
    throw unusable(dir, error instanceof Error ? error.message : String(error), error);
  }
  if (names.includes(STATE_FILE)) return;
  const stranger = names.find((name) => !OURS.test(name));
  if (stranger !== undefined) throw unusable(dir, `it holds other files (${stranger}) and no state of a crawl. Name an empty or a new directory`);
}

/** Held for life by an exclusive transaction; the kernel frees it with the process. Throws CrawlError `state-held`. */
export function takeLock(dir: string): DatabaseSync {
  let lock: DatabaseSync | null = null;
  try {
    lock = new DatabaseSync(join(dir, LOCK_FILE), { timeout: 0 });
    // Nothing is ever written to it, so that there is nothing to sync either.
    lock.exec("PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE");
    return lock;
  } catch (error) {
    lock?.close();
    throw isBusy(error) ? held(dir, error) : unreadable(dir, error);
  }
}

/** Reads the first bytes itself: SQLite takes a file that is too short to be one for a new one. */
function checkHeader(path: string, dir: string): void {
  const size = statSync(path, { throwIfNoEntry: false })?.size ?? 0;
  if (size === 0) return;
  const head = Buffer.alloc(16);
  const fd = openSync(path, "r");
  try {
    readSync(fd, head, 0, 16, 0);
  } finally {
    closeSync(fd);
  }
  if (head.toString("latin1") !== "SQLite format 3\0") throw unreadable(dir, new Error("state.db is not a database"));
}

/** Opens for reading only: nothing is changed, whatever the file is. Null: there is nothing in it yet. */
export function openForReading(dir: string): { readonly db: DatabaseSync; readonly version: number } | null {
  const path = join(dir, STATE_FILE);
  let db: DatabaseSync | null = null;
  try {
    checkHeader(path, dir);
    if ((statSync(path, { throwIfNoEntry: false })?.size ?? 0) === 0 && (statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0) === 0) return null;
    db = new DatabaseSync(path, { readOnly: true, timeout: 5_000 });
    const { applicationId, version, empty } = versionOf(db);
    if (empty && applicationId === 0 && version === 0) {
      db.close();
      return null;
    }
    if (applicationId !== APPLICATION_ID) throw unusable(dir, `its ${STATE_FILE} was not made by this program. Name another directory`);
    if (version > SCHEMA_VERSION)
      throw unusable(
        dir,
        `it was written by a newer version of this program (state version ${version}; this one knows ${SCHEMA_VERSION}). Use that version, or name another directory`,
      );
    return { db, version };
  } catch (error) {
    db?.close();
    throw unreadable(dir, error);
  }
}

/**
 * `fresh`: there is nothing in it yet. Unless a power cut may take nothing, the files of a new state are made without waiting for the disk six times, which is
 * most of what a small crawl costs: the first checkpoint syncs them, and until then a power cut leaves an empty state.
 */
function openForWriting(dir: string, { strict, fresh }: { readonly strict: boolean; readonly fresh: boolean }): DatabaseSync {
  const db = new DatabaseSync(join(dir, STATE_FILE), { timeout: 5_000 });
  if (fresh && !strict) db.exec("PRAGMA synchronous = OFF");
  // A checkpoint of the log copies its pages and syncs twice: every 16 MB.
  db.exec("PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 4000; PRAGMA journal_size_limit = 67108864; PRAGMA cache_size = -16000");
  if (fresh) createSchema(db);
  db.exec(`PRAGMA synchronous = ${strict ? "FULL" : "NORMAL"}`);
  return db;
}

/** Creates the directory if need be, takes its lock, and brings an older state to the present version. `seed`: for a new state. */
export function openDirectory(dir: string, options: { readonly seed: FingerprintSeed; readonly strict: boolean }): OpenDirectory {
  checkFolder(dir);
  const lock = takeLock(dir);
  let db: DatabaseSync | null = null;
  try {
    const found = openForReading(dir);
    found?.db.close();
    db = openForWriting(dir, { strict: options.strict, fresh: found === null });
    if (found !== null && found.version < SCHEMA_VERSION) migrate(db, found.version);
    return directoryOf(dir, db, lock, options.seed);
  } catch (error) {
    db?.close();
    lock.close();
    throw unreadable(dir, error);
  }
}

function directoryOf(dir: string, db: DatabaseSync, lock: DatabaseSync, givenSeed: FingerprintSeed): OpenDirectory {
  let closed = false;
  const text = (sql: string, ...values: string[]): string | null => {
    const first = Object.values(db.prepare(sql).get(...values) ?? {})[0];
    return typeof first === "string" ? first : null;
  };
  const putMeta = (key: string, value: string): void => void db.prepare("INSERT OR REPLACE INTO meta VALUES (?, ?)").run(key, value);

  /** One transaction; joins the one that a step has open. */
  function write(run: () => void): void {
    const joins = db.isTransaction;
    try {
      if (!joins) db.exec("BEGIN IMMEDIATE");
      run();
      if (!joins) db.exec("COMMIT");
    } catch (error) {
      if (!joins && db.isTransaction) db.exec("ROLLBACK");
      throw unwritable(dir, error);
    }
  }

  // A process killed between the tables and their first row leaves no seed.
  if (text("SELECT value FROM meta WHERE key = 'seed'") === null) write(() => putMeta("seed", JSON.stringify(givenSeed)));
  const seed = JSON.parse(text("SELECT value FROM meta WHERE key = 'seed'") ?? "null") as FingerprintSeed; // written just above or by an earlier run

  return {
    dir,
    db,
    seed,
    run: () => readRun(db),
    meta: (key) => text("SELECT value FROM meta WHERE key = ?", `x:${key}`),
    setMeta: (key, value) =>
      write(() => {
        if (value === null) db.prepare("DELETE FROM meta WHERE key = ?").run(`x:${key}`);
        else putMeta(`x:${key}`, value);
      }),
    sinkStates: () => readSinks(db),
    values: () =>
      new Map(
        db
          .prepare("SELECT key, value FROM val")
          .all()
          .map(({ key, value }) => [String(key), String(value)]),
      ),
    startRun: ({ name, spec, startedAt }) =>
      write(() => void db.prepare("INSERT INTO run (name, spec, started_at) VALUES (?, ?, ?)").run(name, spec, Math.round(startedAt))),
    setSpec: (spec) => write(() => void db.prepare("UPDATE run SET spec = ? WHERE id = (SELECT max(id) FROM run)").run(spec)),
    reopenRun: () => write(() => db.exec("UPDATE run SET finish_reason = NULL, finished_at = NULL WHERE id = (SELECT max(id) FROM run)")),
    newRun: (keep = {}) =>
      write(() => {
        drop(db, [...TABLES_OF_A_RUN, ...(keep.cookies === true ? [] : ["cookie"])]);
        db.exec("DELETE FROM val WHERE key LIKE 'run:%'");
      }),
    dropAll: () =>
      write(() => {
        drop(db, [...TABLES_OF_A_RUN, ...TABLES_LEARNT, "cookie", "val", "run", "meta"]);
        putMeta("seed", JSON.stringify(seed));
      }),
    finishRun: (reason, at) =>
      write(() => void db.prepare("UPDATE run SET finish_reason = ?, finished_at = ? WHERE id = (SELECT max(id) FROM run)").run(reason, Math.round(at))),
    close() {
      if (closed) return;
      closed = true;
      db.close();
      lock.close();
    },
  };
}

function drop(db: DatabaseSync, tables: readonly string[]): void {
  for (const table of tables) db.exec(`DELETE FROM ${table}`);
}

export function readRun(db: DatabaseSync): RunView | null {
  type Row = { name: string; spec: string; startedAt: number; finishReason: string | null };
  const row = db.prepare("SELECT name, spec, started_at AS startedAt, finish_reason AS finishReason FROM run ORDER BY id DESC LIMIT 1").get();
  if (row === undefined) return null;
  const { name, spec, startedAt, finishReason } = row as unknown as Row; // the columns are declared so
  const counters = db.prepare("SELECT counters FROM progress").get() as { counters: string } | undefined; // the column is declared so
  return { name, spec, startedAt, elapsedMs: counters === undefined ? 0 : readCounters(counters.counters).elapsedMs, finishReason };
}

export function readSinks(db: DatabaseSync): ReadonlyMap<string, SinkState> {
  const rows = db.prepare("SELECT name, state FROM sink").all() as { name: string; state: string }[]; // the columns are declared so
  return new Map(rows.map(({ name, state }) => [name, JSON.parse(state) as SinkState])); // written by writer.ts
}
