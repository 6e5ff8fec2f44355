/** A cache seen from outside: its figures, and clearing it, while crawls may be using it. */
import { closeSync, openSync, readSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import type { DatabaseSync } from "node:sqlite";
import type { CacheStats } from "../../core/cache.ts";
import { APPLICATION_ID, CACHE_FILE, cacheTrouble, diskBytes, isBeyondUse, openForReading, openForWriting } from "./schema.ts";

export function statsOf(db: DatabaseSync, dir: string): CacheStats {
  const row = db.prepare("SELECT count(*) AS responses, min(responded_at) AS oldest, max(responded_at) AS newest FROM response").get();
  const bodies = db.prepare("SELECT total(length(bytes)) AS bytes FROM body").get();
  const time = (value: unknown) => (typeof value === "number" ? value : null);
  return {
    responses: Number(row?.responses),
    bodyBytes: Number(bodies?.bytes),
    diskBytes: diskBytes(dir),
    oldest: time(row?.oldest),
    newest: time(row?.newest),
  };
}

/** Null: there is no cache. What a crawl stored in the last second may not be counted yet. */
export function readCacheStats(dir: string): CacheStats | null {
  const db = openForReading(dir);
  if (db === null) return null;
  try {
    return statsOf(db, dir);
  } catch (error) {
    throw cacheTrouble(join(dir, CACHE_FILE), error);
  } finally {
    db.close();
  }
}

/** In one transaction, then gives the disk its space back. */
export function emptyCache(db: DatabaseSync): void {
  db.exec("BEGIN IMMEDIATE");
  try {
    db.exec("DELETE FROM response; DELETE FROM body; COMMIT");
  } catch (error) {
    db.exec("ROLLBACK");
    throw error;
  }
  db.exec("PRAGMA incremental_vacuum; PRAGMA wal_checkpoint(TRUNCATE)");
}

/** Removes the files; nobody may have them open. */
function removeCache(dir: string): void {
  for (const suffix of ["", "-wal", "-shm"]) rmSync(join(dir, CACHE_FILE + suffix), { force: true });
}

/** Whether the head of the file says that it is a cache of this program, of whatever version, whole or damaged. */
function isOurs(path: string): boolean {
  const head = Buffer.alloc(72);
  const fd = openSync(path, "r");
  try {
    readSync(fd, head, 0, 72, 0);
  } finally {
    closeSync(fd);
  }
  return head.toString("latin1", 0, 16) === "SQLite format 3\0" && head.readUInt32BE(68) === APPLICATION_ID;
}

/** Drops every response, also of a crawl that is running. A damaged cache, or one of another version, is removed. False: there is none. */
export function clearCache(dir: string): boolean {
  const path = join(dir, CACHE_FILE);
  if (statSync(path, { throwIfNoEntry: false }) === undefined) return false;
  let db: DatabaseSync | null = null;
  try {
    db = openForWriting(dir, 1_000_000);
    emptyCache(db);
  } catch (error) {
    const trouble = cacheTrouble(path, error);
    if (!isBeyondUse(trouble) || !isOurs(path)) throw trouble;
    db?.close();
    db = null;
    removeCache(dir);
  } finally {
    db?.close();
  }
  return true;
}
