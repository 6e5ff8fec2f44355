/** The file of a visit book: its tables, and how it is opened. Who writes it is book.ts in a crawl, edit.ts between crawls. */
import { existsSync } from "node:fs";
import type { DatabaseSync } from "node:sqlite";
import { zstdCompressSync, zstdDecompressSync } from "node:zlib";
import { CrawlError } from "../../core/errors.ts";
import type { Visit } from "../../core/visits.ts";
import { readVisit, visitText } from "./rows.ts";

export const VISITS_FILE = "visits.db";
const APPLICATION_ID = 0x534b5649;
const VERSION = 1;
export const KINDS = ["page", "failed", "gone"] as const;

/**
 *     meta     run: name of the present run · number: its number · base: the last row before it
 *     visit    rows ascend in time; of one page the latest `page` row of an earlier run is what the last run saw
 */
const TABLES = `
  CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
  CREATE TABLE visit (id INTEGER PRIMARY KEY, hi INTEGER NOT NULL, lo INTEGER NOT NULL, run INTEGER NOT NULL, kind INTEGER NOT NULL, note BLOB NOT NULL);
  CREATE INDEX visit_of ON visit (hi, lo);
`;

/** The latest visit of each page that is there, with the last run that met the page. */
export const STANDING = `
  SELECT max(CASE WHEN kind = 0 THEN id END) AS page, max(CASE WHEN kind = 2 THEN id ELSE 0 END) AS gone, max(run) AS run FROM visit
  GROUP BY hi, lo HAVING page > gone`;

/** Any failure as a CrawlError `state-unwritable`. */
export function visitsTrouble(path: string, error: unknown): CrawlError {
  if (error instanceof CrawlError) return error;
  return new CrawlError("state-unwritable", `cannot use ${path}: ${error instanceof Error ? error.message : String(error)}`, { cause: error });
}

/** With its tables. What goes wrong is for visitsTrouble to explain. */
export function openVisits(path: string): DatabaseSync {
  const { DatabaseSync } = process.getBuiltinModule("node:sqlite");
  const fresh = !existsSync(path);
  const db = new DatabaseSync(path, { timeout: 2_000 });
  try {
    db.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL");
    const pragma = (name: string): number => Number(Object.values(db.prepare(`PRAGMA ${name}`).get() ?? {})[0] ?? 0);
    if (fresh || (pragma("user_version") === 0 && pragma("application_id") === 0)) {
      db.exec(`BEGIN IMMEDIATE; ${TABLES} PRAGMA application_id = ${APPLICATION_ID}; PRAGMA user_version = ${VERSION}; COMMIT`);
    } else if (pragma("application_id") !== APPLICATION_ID) throw new CrawlError("state-unwritable", `${path} is not a file of skein's`);
    else if (pragma("user_version") > VERSION)
      throw new CrawlError("state-unwritable", `${path} was written by a newer version of skein: use that one, or --fresh to drop the state`);
    return db;
  } catch (error) {
    db.close();
    throw error;
  }
}

/** A note as it stands in the table. */
export const packVisit = (visit: Visit): Uint8Array => zstdCompressSync(visitText(visit));
export const unpackVisit = (row: { readonly note?: unknown }): Visit => readVisit(zstdDecompressSync(row.note as Uint8Array).toString("utf8")); // the column is a BLOB
