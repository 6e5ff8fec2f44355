/** The file of the response cache: its tables and version, how it is opened, and what is said when that cannot be. What goes in and out is open.ts. */
import { closeSync, openSync, readSync, statSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { CrawlError } from "../../core/errors.ts";
import { makeFolder } from "../sqlite/directory.ts";
import { isBusy, isFull } from "../sqlite/trouble.ts";

export const CACHE_FILE = "cache.db";
/** "SKCA": tells our caches from other people's SQLite files, and from states. */
export const APPLICATION_ID = 0x534b4341;
const CACHE_VERSION = 1;
const PAGE_BYTES = 4_096;
/** How long to wait for another process that writes. A batch takes it some ms. */
const BUSY_MS = 10_000;

/**
 *     body      each once, by the digest of its bytes; `responses`: how many use it
 *     response  `id` ascends with age, the smallest is the oldest; `head` is JSON: headers and varied
 */
const TABLES = `
  CREATE TABLE body (id INTEGER PRIMARY KEY, digest BLOB NOT NULL UNIQUE, responses INTEGER NOT NULL, packed INTEGER NOT NULL, bytes BLOB NOT NULL);
  CREATE TABLE response (id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, url TEXT, status INTEGER NOT NULL, head TEXT NOT NULL, body INTEGER NOT NULL,
    wire_bytes INTEGER NOT NULL, truncated INTEGER NOT NULL, requested_at REAL NOT NULL, responded_at REAL NOT NULL);
`;

const why = (error: unknown): string => (error instanceof Error ? error.message : String(error));
const fault = (message: string, cause?: unknown) => new CrawlError("state-unwritable", message, cause === undefined ? {} : { cause });

const BEYOND_USE = new WeakSet<CrawlError>();

function beyondUse(what: string, cause?: unknown): CrawlError {
  const error = fault(`${what}; "skein cache clear" drops it`, cause);
  BEYOND_USE.add(error);
  return error;
}

/** Damaged, or of another version: it can only be removed. */
export const isBeyondUse = (error: CrawlError): boolean => BEYOND_USE.has(error);

/** Wraps what opening or reading threw. */
export function cacheTrouble(path: string, error: unknown): CrawlError {
  if (error instanceof CrawlError) return error;
  if (isBusy(error)) return fault(`the cache ${path} is held by another process for too long; wait for it to end`, error);
  if (isFull(error)) return fault(`cannot write the cache ${path}: the disk is full; free some space, or lower --cache-size`, error);
  const code = error instanceof Error && "errcode" in error && typeof error.errcode === "number" ? error.errcode & 0xff : null;
  if (code === 11 || code === 26) return beyondUse(`the cache ${path} is damaged (${why(error)})`, error);
  return fault(`cannot use the cache ${path}: ${why(error)}`, error);
}

/** Reads the first bytes itself: SQLite takes a file that is too short to be one for a new one. Throws for what is no database. */
function checkHeader(path: string): void {
  if ((statSync(path, { throwIfNoEntry: false })?.size ?? 0) === 0) return;
  const head = Buffer.alloc(16);
  const fd = openSync(path, "r");
  try {
    readSync(fd, head, 0, 16, 0);
  } finally {
    closeSync(fd);
  }
  if (head.toString("latin1") !== "SQLite format 3\0") throw strange(path);
}

const strange = (path: string) => fault(`${path} is no cache of this program; name another directory, or move the file away`);

export const number = (db: DatabaseSync, pragma: string): number => Number(Object.values(db.prepare(`PRAGMA ${pragma}`).get() ?? {})[0] ?? 0);

/** Whether the tables are there. Throws for other people's files and newer versions. */
function isReady(db: DatabaseSync, path: string): boolean {
  const [application, version] = [number(db, "application_id"), number(db, "user_version")];
  const tables = Number(db.prepare("SELECT count(*) AS n FROM sqlite_schema").get()?.n ?? 0);
  if (application === 0 && version === 0 && tables === 0) return false;
  if (application !== APPLICATION_ID) throw strange(path);
  if (version !== CACHE_VERSION) throw beyondUse(`${path} was written by another version of this program (${version}; this one knows ${CACHE_VERSION})`);
  return true;
}

const pause = new Int32Array(new SharedArrayBuffer(4));

/** Two processes that open a new file at once: SQLite does not wait for the change to WAL by itself. */
function insist(step: () => void): void {
  for (let tries = 0; ; tries++) {
    try {
      step();
      return;
    } catch (error) {
      if (!isBusy(error) || tries >= 250) throw error;
      Atomics.wait(pause, 0, 0, 20);
    }
  }
}

/** Opens or creates it, with its folder. Several processes may have it open. `walBytes`: about how large its log may grow. */
export function openForWriting(dir: string, walBytes: number): DatabaseSync {
  const path = join(dir, CACHE_FILE);
  let db: DatabaseSync | null = null;
  try {
    makeFolder(dir);
    checkHeader(path);
    db = new DatabaseSync(path, { timeout: BUSY_MS });
    const file = db;
    insist(() => {
      if (isReady(file, path)) return;
      // Before anything is written: afterwards they would change nothing.
      file.exec(`PRAGMA page_size = ${PAGE_BYTES}; PRAGMA auto_vacuum = INCREMENTAL; PRAGMA journal_mode = WAL; BEGIN IMMEDIATE`);
      try {
        if (!isReady(file, path)) file.exec(`${TABLES} PRAGMA application_id = ${APPLICATION_ID}; PRAGMA user_version = ${CACHE_VERSION}`);
        file.exec("COMMIT; PRAGMA wal_checkpoint(PASSIVE)");
      } catch (error) {
        if (file.isTransaction) file.exec("ROLLBACK");
        throw error;
      }
    });
    const pages = Math.max(16, Math.floor(walBytes / PAGE_BYTES));
    insist(() =>
      file.exec(`PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = ${pages}; PRAGMA journal_size_limit = ${walBytes}`),
    );
    file.exec("PRAGMA cache_size = -8000");
    return db;
  } catch (error) {
    db?.close();
    throw cacheTrouble(path, error);
  }
}

/** For a look at it; null: there is none. Another process may be writing. */
export function openForReading(dir: string): DatabaseSync | null {
  const path = join(dir, CACHE_FILE);
  let db: DatabaseSync | null = null;
  try {
    if (statSync(path, { throwIfNoEntry: false }) === undefined) return null;
    checkHeader(path);
    db = new DatabaseSync(path, { readOnly: true, timeout: BUSY_MS });
    if (isReady(db, path)) return db;
    db.close();
    return null;
  } catch (error) {
    db?.close();
    throw cacheTrouble(path, error);
  }
}

/** Of the file and its log. */
export function diskBytes(dir: string): number {
  const size = (suffix: string) => statSync(join(dir, CACHE_FILE + suffix), { throwIfNoEntry: false })?.size ?? 0;
  return size("") + size("-wal") + size("-shm");
}
