/** The visit book between crawls: pages that are read again keep their place in it, with another reading. Whoever opens it holds the state directory. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Visit } from "../../core/visits.ts";
import { KINDS, openVisits, packVisit, STANDING, unpackVisit, VISITS_FILE, visitsTrouble } from "./file.ts";

export interface VisitEditor {
  /** The latest visit of each page that is there, and of each that could not be read, oldest first. `put` may be called meanwhile. */
  each(): Iterable<{ readonly row: number; readonly visit: Visit }>;
  /** In place of the one that stood there. Committed in batches, at the latest when it is closed. */
  put(row: number, visit: Visit): void;
  close(): void;
}

/** A kill costs so many readings at most. */
const BATCH_ROWS = 500;
/** Pages of which an answer is known, but no reading. */
const UNREAD = `
  SELECT max(id) AS page FROM visit GROUP BY hi, lo HAVING max(kind = ${KINDS.indexOf("page")}) = 0 AND max(kind = ${KINDS.indexOf("gone")}) = 0`;

/** Null: the directory has no book. Throws CrawlError `state-unwritable`. */
export function editVisits(dir: string): VisitEditor | null {
  const path = join(dir, VISITS_FILE);
  if (!existsSync(path)) return null;
  let pending = 0;

  function step<T>(action: () => T): T {
    try {
      return action();
    } catch (error) {
      throw visitsTrouble(path, error);
    }
  }

  const db = step(() => openVisits(path));
  const one = db.prepare("SELECT note FROM visit WHERE id = ?");
  const update = db.prepare("UPDATE visit SET kind = ?, note = ? WHERE id = ?");

  function commit(): void {
    if (pending === 0) return;
    pending = 0;
    db.exec("COMMIT");
  }

  return {
    *each() {
      const rows = step(() => db.prepare(`SELECT page FROM (${STANDING}) UNION ALL SELECT page FROM (${UNREAD}) ORDER BY page`).all());
      for (const { page } of rows) {
        const row = Number(page);
        const visit = step(() => unpackVisit(one.get(row) ?? {}));
        if (visit.kind === "page" || visit.page.error?.code === "scraper") yield { row, visit };
      }
    },
    put(row, visit) {
      step(() => {
        if (pending++ === 0) db.exec("BEGIN");
        update.run(KINDS.indexOf(visit.kind), packVisit(visit), row);
        if (pending >= BATCH_ROWS) commit();
      });
    },
    close() {
      try {
        step(commit);
      } finally {
        db.close();
      }
    },
  };
}
