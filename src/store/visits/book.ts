/** The visit book of a state directory, in a SQLite file of its own: appended with every settle, cut back to the last commit on a resume. What is kept is core/visits.ts. */
import { closeSync, constants, existsSync, fsyncSync, openSync, statSync } from "node:fs";
import { join } from "node:path";
import type { DatabaseSync } from "node:sqlite";
import { zstdCompressSync, zstdDecompressSync } from "node:zlib";
import { CrawlError } from "../../core/errors.ts";
import type { Fingerprint } from "../../core/request.ts";
import type { SinkState } from "../../core/sink.ts";
import type { Visit, VisitBook } from "../../core/visits.ts";
import { readVisit, visitText } from "./rows.ts";

export const VISITS_FILE = "visits.db";
/** Its name among the sinks. */
export const VISITS_SINK = "journal:visits";
const APPLICATION_ID = 0x534b5649;
const VERSION = 1;
const KINDS = ["page", "failed", "gone"] as const;
/** Without checkpoints so many rows make a transaction. */
const BATCH_ROWS = 5_000;

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
const STANDING = `
  SELECT max(CASE WHEN kind = 0 THEN id END) AS page, max(CASE WHEN kind = 2 THEN id ELSE 0 END) AS gone, max(run) AS run FROM visit
  GROUP BY hi, lo HAVING page > gone`;

function trouble(path: string, error: unknown): CrawlError {
  if (error instanceof CrawlError) return error;
  return new CrawlError("state-unwritable", `cannot use ${path}: ${error instanceof Error ? error.message : String(error)}`, { cause: error });
}

function opened(path: string, readOnly: boolean): DatabaseSync {
  const { DatabaseSync } = process.getBuiltinModule("node:sqlite");
  const fresh = !existsSync(path);
  const db = new DatabaseSync(path, { timeout: 2_000, readOnly });
  try {
    if (!readOnly) db.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL");
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

interface Run {
  readonly number: number;
  /** The last row of the runs before. */
  readonly base: number;
}

/** Where the book stands for this run: cut back to the last commit, or begun anew. */
function begin(db: DatabaseSync, name: string, state: SinkState | null): Run {
  const meta = new Map(
    db
      .prepare("SELECT key, value FROM meta")
      .all()
      .map(({ key, value }) => [String(key), String(value)]),
  );
  if (meta.get("run") === name) {
    const base = Number(meta.get("base") ?? 0);
    db.prepare("DELETE FROM visit WHERE id > ?").run(typeof state?.["rows"] === "number" ? state["rows"] : base);
    db.exec("DELETE FROM meta WHERE key = 'whole'");
    return { number: Number(meta.get("number")), base };
  }
  const number = Number(meta.get("number") ?? 0) + 1;
  db.exec("BEGIN IMMEDIATE");
  // What a later visit stands for, pages that are gone, and after a whole run those that it did not meet are of no use any more.
  db.prepare(`DELETE FROM visit WHERE id NOT IN (SELECT page FROM (${STANDING}) WHERE run >= ?)`).run(meta.has("whole") ? number - 1 : 0);
  const put = db.prepare("INSERT OR REPLACE INTO meta VALUES (?, ?)");
  const base = Number(db.prepare("SELECT coalesce(max(id), 0) AS last FROM visit").get()?.["last"]);
  for (const [key, value] of Object.entries({ run: name, number, base })) put.run(key, String(value));
  db.exec("DELETE FROM meta WHERE key = 'whole'; COMMIT");
  return { number, base };
}

export interface OpenVisitBook extends VisitBook {
  /** The run came to its natural end: what it did not meet is gone for good. */
  whole(): void;
}

/** `run`: the name of the run that writes. Throws CrawlError `state-unwritable`. */
export function openVisitBook(dir: string, run: string, state: SinkState | null): OpenVisitBook {
  const path = join(dir, VISITS_FILE);
  let db: DatabaseSync;
  let present: Run;
  try {
    db = opened(path, false);
  } catch (error) {
    throw trouble(path, error);
  }
  try {
    present = begin(db, run, state);
  } catch (error) {
    db.close();
    throw trouble(path, error);
  }
  const { number, base } = present;
  const insert = db.prepare("INSERT INTO visit (hi, lo, run, kind, note) VALUES (?, ?, ?, ?, ?)");
  const latest = db.prepare("SELECT note FROM visit WHERE hi = ? AND lo = ? AND run < ? AND kind = 0 ORDER BY id DESC LIMIT 1");
  const last = db.prepare("SELECT coalesce(max(id), 0) AS last FROM visit");
  let pending = 0;
  let closed = false;

  function step<T>(action: () => T): T {
    try {
      return action();
    } catch (error) {
      throw trouble(path, error);
    }
  }

  function commit(): void {
    if (pending === 0) return;
    db.exec("COMMIT");
    pending = 0;
  }

  function put(visit: Visit): void {
    if (pending++ === 0) db.exec("BEGIN");
    insert.run(visit.idHi, visit.idLo, number, KINDS.indexOf(visit.kind), zstdCompressSync(visitText(visit)));
  }

  function* among(which: string): Generator<Visit> {
    const rows = step(() => db.prepare(`SELECT page FROM (${STANDING}) WHERE ${which} ORDER BY page`).all({ number, base }));
    const one = db.prepare("SELECT note FROM visit WHERE id = ?");
    for (const { page } of rows) yield step(() => visitOf(one.get(Number(page)) ?? {}));
  }

  const visitOf = (row: { readonly note?: unknown }): Visit => readVisit(zstdDecompressSync(row.note as Uint8Array).toString("utf8")); // the column is a BLOB

  return {
    name: VISITS_SINK,
    write(outputs) {
      step(() => {
        for (const { visit } of outputs) if (visit !== undefined) put(visit);
        if (pending >= BATCH_ROWS) commit();
      });
    },
    flush: () => step(commit),
    checkpoint: (sync) =>
      step(() => {
        commit();
        if (sync) syncFiles(path);
        return { form: "visits", rows: Number(last.get()?.["last"]) };
      }),
    find: (id: Fingerprint) =>
      step(() => {
        const row = latest.get(id.idHi, id.idLo, number);
        return row === undefined ? null : visitOf(row);
      }),
    missed: () => among("run < :number AND page <= :base"),
    failed: () => among("run = :number AND page <= :base"),
    all: () => allOf(db, visitOf),
    whole: () => step(() => void db.prepare("INSERT OR REPLACE INTO meta VALUES ('whole', '1')").run()),
    async close() {
      if (closed) return;
      closed = true;
      try {
        step(commit);
      } finally {
        db.close();
      }
    },
  };
}

function* allOf(db: DatabaseSync, visitOf: (row: { readonly note?: unknown }) => Visit): Generator<Visit> {
  for (const row of db.prepare(`SELECT note FROM visit WHERE id IN (SELECT page FROM (${STANDING})) ORDER BY id`).iterate()) yield visitOf(row);
}

/** The latest visit of each page, oldest first; null: the directory has no book. For readers beside a crawl. */
export function readVisits(dir: string): { all(): Iterable<Visit>; close(): void } | null {
  const path = join(dir, VISITS_FILE);
  if (!existsSync(path)) return null;
  try {
    const db = opened(path, true);
    return { all: () => allOf(db, (row) => readVisit(zstdDecompressSync(row.note as Uint8Array).toString("utf8"))), close: () => db.close() };
  } catch (error) {
    throw trouble(path, error);
  }
}

function syncFiles(path: string): void {
  for (const file of [`${path}-wal`, path]) {
    if (!statSync(file, { throwIfNoEntry: false })) continue;
    const fd = openSync(file, constants.O_RDONLY);
    try {
      fsyncSync(fd);
    } finally {
      closeSync(fd);
    }
  }
}
