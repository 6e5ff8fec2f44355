/** What a service knows of its jobs beyond their crawls: one SQLite file in its data directory, which belongs to one process. Runs nothing. */
import { chmodSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync, type SQLInputValue } from "node:sqlite";
import type { EpochMs } from "../../core/clock.ts";
import { CrawlError } from "../../core/errors.ts";
import type { FinishReason, StopMode } from "../../core/events.ts";
import type { HostPatch } from "../../core/frontier.ts";
import type { JobCounts, JobState, JobTable, RejectedLine } from "../../core/jobs.ts";
import type { HostKey } from "../../core/request.ts";
import { makeFolder, takeLock } from "../sqlite/directory.ts";

export const BOOK_FILE = "jobs.db";
const APPLICATION_ID = 0x736b6a62;
const VERSION = 2;

/** What was asked for a job that stops. */
export type Wish = { readonly kind: "stop"; readonly mode: StopMode; readonly reason: string | null } | { readonly kind: "cancel" };

export interface JobRow {
  readonly id: number;
  readonly state: JobState;
  /** JSON of the J options; without secrets once the job has ended. */
  readonly spec: string;
  /** Part of every cursor: tells the records of this job from another's. */
  readonly nonce: string;
  readonly seeds: readonly string[];
  readonly seedsTotal: number;
  /** Bytes of the seeds file that are whole. */
  readonly seedsBytes: number;
  readonly createdAt: EpochMs;
  readonly startedAt: EpochMs | null;
  readonly endedAt: EpochMs | null;
  readonly finishReason: FinishReason | null;
  readonly detail: string | null;
  readonly wish: Wish | null;
  /** Of a job that has ended. */
  readonly counts: JobCounts | null;
  readonly patches: Readonly<Record<HostKey, HostPatch>>;
  /** Bytes of its files when it ended well. */
  readonly sizes: Readonly<Record<JobTable, number>> | null;
  /** Number of its crawl in the store of the service; null: it lives in the job's own directory, or has not begun. */
  readonly crawl: number | null;
  readonly rejected: readonly RejectedLine[];
  readonly rejectedTotal: number;
}

export type NewRow = Pick<JobRow, "spec" | "nonce" | "seeds" | "seedsTotal" | "seedsBytes" | "createdAt" | "rejected" | "rejectedTotal">;
export type RowChange = Partial<Omit<JobRow, "id" | "nonce" | "createdAt" | "rejected" | "rejectedTotal">>;

export interface JobBook {
  /** `beside`: in the same step, told the new id; what it throws leaves the book as it was. */
  add(row: NewRow, key: { readonly key: string; readonly fingerprint: string } | null, beside: (id: number) => void): JobRow;
  get(id: number): JobRow | null;
  /** `waits`: until it is on the disk. What a job's own state says too need not be: a power cut that takes it has it found out again. */
  change(id: number, change: RowChange, waits?: boolean): JobRow;
  /** The row and its key. */
  remove(id: number): void;
  keyed(key: string): { readonly fingerprint: string; readonly id: number } | null;
  /** Newest first. */
  list(query: { readonly states: readonly JobState[] | null; readonly before: number | null; readonly limit: number }): readonly JobRow[];
  /** Oldest first. */
  inStates(states: readonly JobState[]): readonly number[];
  countByState(): ReadonlyMap<JobState, number>;
  /** Ended before this moment. */
  endedBefore(at: EpochMs): readonly number[];
  /** Rises by one a call, over restarts too. */
  nextEvent(): number;
  /** How many processes before this one died within their first moments; to be called once, at the start. */
  deaths(): number;
  /** This one will not. */
  lives(): void;
  /** Throws when nothing can be written. */
  probe(): void;
  /** Frees the directory. Idempotent. */
  close(): void;
}

const SCHEMA = `
  CREATE TABLE meta (key TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
  CREATE TABLE job (
    id INTEGER PRIMARY KEY, state TEXT NOT NULL, spec TEXT NOT NULL, nonce TEXT NOT NULL, seeds TEXT NOT NULL, seedsTotal INTEGER NOT NULL,
    seedsBytes INTEGER NOT NULL, createdAt REAL NOT NULL, startedAt REAL, endedAt REAL, finishReason TEXT, detail TEXT, wish TEXT, counts TEXT,
    patches TEXT NOT NULL, sizes TEXT, rejected TEXT NOT NULL, rejectedTotal INTEGER NOT NULL, crawl INTEGER
  );
  CREATE INDEX job_state ON job (state, id);
  CREATE TABLE key (key TEXT PRIMARY KEY, fingerprint TEXT NOT NULL, job INTEGER NOT NULL) WITHOUT ROWID;
  CREATE INDEX key_job ON key (job);
  INSERT INTO meta VALUES ('nextId', 0), ('nextEvent', 1), ('probe', 0);
`;

/** Columns that hold JSON. */
const JSON_COLUMNS: ReadonlySet<string> = new Set(["seeds", "wish", "counts", "patches", "sizes", "rejected"]);
/** Numbers of events are reserved in blocks: what is left of one at a restart is skipped. */
const EVENT_BLOCK = 100_000;
const EVENTS_UNRESERVED = 100;
const OURS = /^(?:(?:jobs|lock)\.db(?:-journal|-wal|-shm)?|jobs|incoming|\..*)$/;

function unusable(dir: string, why: string, cause?: unknown): CrawlError {
  return new CrawlError("state-unwritable", `cannot use the data directory ${dir}: ${why}`, cause === undefined ? {} : { cause });
}

const reasonOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

function checkFolder(dir: string): void {
  let names: string[];
  try {
    makeFolder(dir);
    names = readdirSync(dir);
  } catch (error) {
    const isFile = error instanceof Error && "code" in error && (error.code === "EEXIST" || error.code === "ENOTDIR");
    throw unusable(dir, isFile ? "a file stands there. Name a directory" : reasonOf(error), error);
  }
  if (names.includes(BOOK_FILE)) return;
  const stranger = names.find((name) => !OURS.test(name));
  if (stranger !== undefined) throw unusable(dir, `it holds other files (${stranger}) and no jobs. Name an empty or a new directory`);
}

function lockOf(dir: string): DatabaseSync {
  try {
    return takeLock(dir);
  } catch (error) {
    if (error instanceof CrawlError && error.code === "state-held")
      throw new CrawlError("state-held", `the data directory ${dir} is held by another process: stop that one, or name another directory`, { cause: error });
    throw unusable(dir, reasonOf(error), error);
  }
}

function openDatabase(dir: string): DatabaseSync {
  const path = join(dir, BOOK_FILE);
  const db = new DatabaseSync(path, { timeout: 5_000 });
  try {
    // What is kept here is secret in part: headers of jobs that have not ended.
    chmodSync(path, 0o600);
    // Most writes somebody relies on: a number that was given out must not come again after a power cut.
    db.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL");
    const id = Object.values(db.prepare("PRAGMA application_id").get() ?? {})[0];
    const version = Object.values(db.prepare("PRAGMA user_version").get() ?? {})[0];
    if (id === 0 && version === 0) db.exec(`BEGIN IMMEDIATE; ${SCHEMA} PRAGMA application_id = ${APPLICATION_ID}; PRAGMA user_version = ${VERSION}; COMMIT`);
    else if (id !== APPLICATION_ID) throw unusable(dir, `its ${BOOK_FILE} was not made by this program. Name another directory`);
    else if (version === 1) db.exec(`BEGIN IMMEDIATE; ALTER TABLE job ADD COLUMN crawl INTEGER; PRAGMA user_version = ${VERSION}; COMMIT`);
    else if (version !== VERSION) throw unusable(dir, `it was written by another version of this program (${version}; this one knows ${VERSION})`);
    return db;
  } catch (error) {
    db.close();
    throw error instanceof CrawlError ? error : unusable(dir, reasonOf(error), error);
  }
}

/** Creates the directory if need be and takes its lock. Throws CrawlError `state-held` or `state-unwritable`. */
export function openBook(dir: string): JobBook {
  checkFolder(dir);
  const lock = lockOf(dir);
  try {
    return bookOf(dir, openDatabase(dir), lock);
  } catch (error) {
    lock.close();
    throw error;
  }
}

function rowOf(found: Record<string, unknown>): JobRow {
  const row: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(found)) row[name] = JSON_COLUMNS.has(name) && typeof value === "string" ? JSON.parse(value) : value;
  return row as unknown as JobRow; // the columns are those of the row, each written by `column`
}

function column(name: string, value: unknown): SQLInputValue {
  if (value === null || value === undefined) return null;
  return JSON_COLUMNS.has(name) ? JSON.stringify(value) : (value as SQLInputValue); // what is no JSON is text or a number
}

function bookOf(dir: string, db: DatabaseSync, lock: DatabaseSync): JobBook {
  let closed = false;
  let event = 0;
  let reserved = 0;
  const one = db.prepare("SELECT * FROM job WHERE id = ?");
  const metaOf = (key: string): number => Number((db.prepare("SELECT value FROM meta WHERE key = ?").get(key) as { value: number }).value); // made with the tables
  const setMeta = (key: string, value: number): void => void db.prepare("UPDATE meta SET value = ? WHERE key = ?").run(value, key);

  function write<T>(run: () => T): T {
    try {
      db.exec("BEGIN IMMEDIATE");
      const answer = run();
      db.exec("COMMIT");
      return answer;
    } catch (error) {
      if (db.isTransaction) db.exec("ROLLBACK");
      throw error instanceof CrawlError ? error : new CrawlError("state-unwritable", `cannot write the jobs in ${dir}: ${reasonOf(error)}`, { cause: error });
    }
  }

  /** The process may die now, as ever; only a power cut may take what is written. */
  function unsynced(run: () => void): void {
    db.exec("PRAGMA synchronous = NORMAL");
    try {
      run();
    } finally {
      db.exec("PRAGMA synchronous = FULL");
    }
  }

  /** Rows of jobs that have not ended are asked for again and again. */
  const kept = new Map<number, JobRow>();
  function keep(row: JobRow): JobRow {
    if (row.endedAt === null) kept.set(row.id, row);
    else kept.delete(row.id);
    return row;
  }

  function get(id: number): JobRow | null {
    const known = kept.get(id);
    if (known !== undefined) return known;
    const found = one.get(id);
    return found === undefined ? null : keep(rowOf(found));
  }

  const marks = (values: readonly unknown[]): string => values.map(() => "?").join(", ");
  const idsOf = (found: readonly Record<string, unknown>[]): number[] => found.map(({ id }) => Number(id));

  return {
    add(given, key, beside) {
      const row = write(() => {
        const id = metaOf("nextId");
        const whole: JobRow = {
          ...{ ...given, id, state: "queued", startedAt: null, endedAt: null, finishReason: null, detail: null, wish: null, counts: null, patches: {} },
          ...{ sizes: null, crawl: null },
        };
        const names = Object.keys(whole);
        setMeta("nextId", id + 1);
        db.prepare(`INSERT INTO job (${names.join(", ")}) VALUES (${marks(names)})`).run(...names.map((name) => column(name, Reflect.get(whole, name))));
        if (key !== null) db.prepare("INSERT OR REPLACE INTO key VALUES (?, ?, ?)").run(key.key, key.fingerprint, id);
        beside(id);
        return whole;
      });
      return keep(row);
    },
    get,
    change(id, change, waits = true) {
      const before = get(id);
      if (before === null) throw new CrawlError("internal", `there is no job ${id}`);
      const names = Object.keys(change);
      const update = db.prepare(`UPDATE job SET ${names.map((name) => `${name} = ?`).join(", ")} WHERE id = ?`);
      const put = () => write(() => update.run(...names.map((name) => column(name, Reflect.get(change, name))), id));
      if (waits) put();
      else unsynced(put);
      return keep({ ...before, ...change });
    },
    remove(id) {
      write(() => {
        db.prepare("DELETE FROM key WHERE job = ?").run(id);
        db.prepare("DELETE FROM job WHERE id = ?").run(id);
      });
      kept.delete(id);
    },
    keyed(key) {
      const found = db.prepare("SELECT fingerprint, job AS id FROM key WHERE key = ?").get(key);
      return found === undefined ? null : (found as { fingerprint: string; id: number }); // the columns are declared so
    },
    list({ states, before, limit }) {
      const where = `${states === null ? "" : `state IN (${marks(states)}) AND `}id < ?`;
      const values = [...(states ?? []), before ?? Number.MAX_SAFE_INTEGER, limit];
      return db
        .prepare(`SELECT * FROM job WHERE ${where} ORDER BY id DESC LIMIT ?`)
        .all(...values)
        .map(rowOf);
    },
    inStates: (states) => idsOf(db.prepare(`SELECT id FROM job WHERE state IN (${marks(states)}) ORDER BY id`).all(...states)),
    countByState() {
      const rows = db.prepare("SELECT state, count(*) AS n FROM job GROUP BY state").all() as unknown as { state: JobState; n: number }[]; // so declared
      return new Map(rows.map(({ state, n }) => [state, n]));
    },
    endedBefore: (at) => idsOf(db.prepare("SELECT id FROM job WHERE endedAt < ? ORDER BY id").all(at)),
    nextEvent() {
      if (event >= reserved) {
        try {
          event = Math.max(event, metaOf("nextEvent"));
          write(() => setMeta("nextEvent", event + EVENT_BLOCK));
          reserved = event + EVENT_BLOCK;
        } catch {
          // Nobody should miss what happens because it cannot be reserved: tried again soon, and the disk is complained of elsewhere.
          reserved = event + EVENTS_UNRESERVED;
        }
      }
      return event++;
    },
    deaths() {
      db.exec("INSERT OR IGNORE INTO meta VALUES ('deaths', 0)");
      const before = metaOf("deaths");
      write(() => setMeta("deaths", before + 1));
      return before;
    },
    lives: () => write(() => setMeta("deaths", 0)),
    probe: () => write(() => setMeta("probe", (metaOf("probe") + 1) % 1_000_000)),
    close() {
      if (closed) return;
      closed = true;
      db.close();
      lock.close();
    },
  };
}
