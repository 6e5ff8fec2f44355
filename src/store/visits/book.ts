/** The visit book of a crawl, in a SQLite file of its own: appended with every settle, cut back to the last commit on a resume. What is kept is core/visits.ts. */
import { closeSync, constants, fsyncSync, openSync, statSync } from "node:fs";
import { join } from "node:path";
import type { DatabaseSync } from "node:sqlite";
import type { Fingerprint } from "../../core/request.ts";
import type { SinkState } from "../../core/sink.ts";
import type { Visit, VisitBook } from "../../core/visits.ts";
import { KINDS, openVisits, packVisit, STANDING, unpackVisit, VISITS_FILE, visitsTrouble } from "./file.ts";

export { VISITS_FILE };
/** Its name among the sinks. */
export const VISITS_SINK = "journal:visits";
/** Without checkpoints so many rows make a transaction. */
const BATCH_ROWS = 5_000;

interface Run {
  readonly number: number;
  /** A power cut took visits that the crawl had counted as kept: which pages were met is not known. */
  readonly torn: boolean;
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
    const rows = typeof state?.["rows"] === "number" ? state["rows"] : base;
    const torn = meta.has("torn") || Number(db.prepare("SELECT coalesce(max(id), 0) AS last FROM visit").get()?.["last"]) < rows;
    db.exec("BEGIN IMMEDIATE");
    db.prepare("DELETE FROM visit WHERE id > ?").run(rows);
    db.exec(`DELETE FROM meta WHERE key = 'whole'; ${torn ? "INSERT OR REPLACE INTO meta VALUES ('torn', '1');" : ""} COMMIT`);
    return { number: Number(meta.get("number")), base, torn };
  }
  const number = Number(meta.get("number") ?? 0) + 1;
  db.exec("BEGIN IMMEDIATE");
  // What a later visit stands for, pages that are gone, and after a whole run those that it did not meet are of no use any more.
  db.prepare(`DELETE FROM visit WHERE id NOT IN (SELECT page FROM (${STANDING}) WHERE run >= ?)`).run(meta.has("whole") ? number - 1 : 0);
  const put = db.prepare("INSERT OR REPLACE INTO meta VALUES (?, ?)");
  const base = Number(db.prepare("SELECT coalesce(max(id), 0) AS last FROM visit").get()?.["last"]);
  for (const [key, value] of Object.entries({ run: name, number, base })) put.run(key, String(value));
  db.exec("DELETE FROM meta WHERE key IN ('whole', 'torn'); COMMIT");
  return { number, base, torn: false };
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
    db = openVisits(path);
  } catch (error) {
    throw visitsTrouble(path, error);
  }
  try {
    present = begin(db, run, state);
  } catch (error) {
    db.close();
    throw visitsTrouble(path, error);
  }
  const { number, base, torn } = present;
  const insert = db.prepare("INSERT INTO visit (hi, lo, run, kind, note) VALUES (?, ?, ?, ?, ?)");
  const latest = db.prepare("SELECT note FROM visit WHERE hi = ? AND lo = ? AND run < ? AND kind = 0 ORDER BY id DESC LIMIT 1");
  const last = db.prepare("SELECT coalesce(max(id), 0) AS last FROM visit");
  let pending = 0;
  let closed = false;

  function step<T>(action: () => T): T {
    try {
      return action();
    } catch (error) {
      throw visitsTrouble(path, error);
    }
  }

  function commit(): void {
    if (pending === 0) return;
    db.exec("COMMIT");
    pending = 0;
  }

  function put(visit: Visit): void {
    if (pending++ === 0) db.exec("BEGIN");
    insert.run(visit.idHi, visit.idLo, number, KINDS.indexOf(visit.kind), packVisit(visit));
  }

  function* among(which: string): Generator<Visit> {
    const rows = step(() => db.prepare(`SELECT page FROM (${STANDING}) WHERE ${which} ORDER BY page`).all({ number, base }));
    const one = db.prepare("SELECT note FROM visit WHERE id = ?");
    for (const { page } of rows) yield step(() => unpackVisit(one.get(Number(page)) ?? {}));
  }

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
        return row === undefined ? null : unpackVisit(row);
      }),
    missed: () => (torn ? [] : among("run < :number AND page <= :base")),
    failed: () => among("run = :number AND page <= :base"),
    whole() {
      if (!torn) step(() => void db.prepare("INSERT OR REPLACE INTO meta VALUES ('whole', '1')").run());
    },
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
