/** What the last commit of a job's crawl says, read beside its owner: few bytes, asked for often. The whole state: sqlite/read.ts. */
import type { SinkState } from "../../core/sink.ts";
import { openForReading, type RunView, readRun, readSinks } from "../sqlite/directory.ts";
import { type Counters, readCounters } from "../sqlite/progress.ts";

export interface Committed {
  readonly run: Pick<RunView, "elapsedMs" | "finishReason">;
  readonly sinks: ReadonlyMap<string, SinkState>;
  /** Null before the first step. */
  readonly counters: Omit<Counters, "levels" | "limit" | "elapsedMs" | "settled"> | null;
}

/** Null: there is no run yet. Throws CrawlError `state-unwritable` when it cannot be read. */
export function committedOf(dir: string): Committed | null {
  const opened = openForReading(dir);
  if (opened === null) return null;
  const { db } = opened;
  try {
    db.exec("BEGIN");
    const run = readRun(db);
    if (run === null) return null;
    const row = db.prepare("SELECT counters FROM progress").get() as { counters: string } | undefined; // the column is declared so
    return { run, sinks: readSinks(db), counters: row === undefined ? null : readCounters(row.counters) };
  } finally {
    db.close();
  }
}
