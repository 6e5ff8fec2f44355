/** The tables of a state directory, their version, and how older ones become the present one. */
import type { DatabaseSync } from "node:sqlite";

/** "SKEI": tells our files from other people's SQLite files. */
export const APPLICATION_ID = 0x534b4549;
export const SCHEMA_VERSION = 3;

/**
 *     meta      what others keep here: the fingerprint seed, and whatever setMeta is given
 *     run       one row a run, the last one is the present one
 *     progress  one row: counters, and the numbers of the places leased at the last commit
 *     queue     one row a place that is queued, delayed or leased; seq ascends with arrival
 *     log       packed fingerprints (log.ts), appended; of two values for one fingerprint the later holds
 *     sink      where each output stood at the last commit
 *     host, robots, cookie, seed    what was learnt on the way
 *     val       values kept for user code, JSON text; keys `run:…` are those of one run
 */
const TABLES = `
  CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
  CREATE TABLE run (id INTEGER PRIMARY KEY, name TEXT NOT NULL, spec TEXT NOT NULL, started_at INTEGER NOT NULL, finish_reason TEXT, finished_at INTEGER);
  CREATE TABLE progress (id INTEGER PRIMARY KEY, counters TEXT NOT NULL, leased BLOB NOT NULL);
  CREATE TABLE queue (seq INTEGER PRIMARY KEY, hi INTEGER NOT NULL, lo INTEGER NOT NULL, facts INTEGER NOT NULL, url TEXT NOT NULL, referrer TEXT, rest TEXT, history TEXT);
  CREATE TABLE log (id INTEGER PRIMARY KEY, kind INTEGER NOT NULL, entries BLOB NOT NULL);
  CREATE TABLE sink (name TEXT PRIMARY KEY, state TEXT NOT NULL) WITHOUT ROWID;
  CREATE TABLE host (key TEXT PRIMARY KEY, crawl_delay_ms REAL NOT NULL, not_before INTEGER, concurrency INTEGER) WITHOUT ROWID;
  CREATE TABLE robots (origin TEXT PRIMARY KEY, host TEXT NOT NULL, expires_at INTEGER NOT NULL, state TEXT NOT NULL) WITHOUT ROWID;
  CREATE TABLE cookie (site TEXT PRIMARY KEY, jar TEXT NOT NULL) WITHOUT ROWID;
  CREATE TABLE seed (url TEXT PRIMARY KEY) WITHOUT ROWID;
  CREATE TABLE val (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
`;

/** What a run leaves behind when the next one begins. */
export const TABLES_OF_A_RUN = ["progress", "queue", "log", "sink", "seed"] as const;
/** Rules of hosts and robots.txt hold whoever asks; a new run keeps them, they expire by themselves. */
export const TABLES_LEARNT = ["host", "robots"] as const;

/** `MIGRATIONS[n]` brings version n + 1 to n + 2. */
const MIGRATIONS: readonly string[] = [
  "ALTER TABLE run ADD COLUMN finished_at INTEGER",
  "CREATE TABLE val (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
];

export function versionOf(db: DatabaseSync): { readonly applicationId: number; readonly version: number; readonly empty: boolean } {
  const number = (pragma: string): number => Number(Object.values(db.prepare(`PRAGMA ${pragma}`).get() ?? {})[0] ?? 0);
  const tables = Number(db.prepare("SELECT count(*) AS n FROM sqlite_schema").get()?.n ?? 0);
  return { applicationId: number("application_id"), version: number("user_version"), empty: tables === 0 };
}

/** All or nothing: a process killed here leaves an empty file, which counts as new. */
export function createSchema(db: DatabaseSync): void {
  db.exec(`BEGIN IMMEDIATE; ${TABLES} PRAGMA application_id = ${APPLICATION_ID}; PRAGMA user_version = ${SCHEMA_VERSION}; COMMIT`);
}

export function migrate(db: DatabaseSync, from: number): void {
  const steps = MIGRATIONS.slice(from - 1).join("; ");
  db.exec(`BEGIN IMMEDIATE; ${steps}; PRAGMA user_version = ${SCHEMA_VERSION}; COMMIT`);
}
