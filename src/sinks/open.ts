/** The sinks a spec names, and the journal of a durable crawl. Checks that every file can be written before any is touched. */

import { join } from "node:path";
import type { Sink, SinkState } from "../core/sink.ts";
import type { CrawlSpec } from "../core/spec.ts";
import { checkWritable } from "./file.ts";
import { type SharedLines, sharedLines } from "./shared-lines.ts";
import { linksTable, pagesTable, skippedTable, type Table } from "./tables.ts";
import { textSink } from "./text.ts";

const STDOUT = 1;

/** States of the last commit by sink name; null for a fresh run. A sink without one had written nothing by then. */
export type SinkStates = ReadonlyMap<string, SinkState> | null;

/** Closes what was opened when a later one fails. */
function openAll(makers: readonly (() => Sink)[]): readonly Sink[] {
  const opened: Sink[] = [];
  try {
    for (const make of makers) opened.push(make());
  } catch (error) {
    // Sinks to which nothing was written: closing them cannot fail for a reason worth more than this error.
    for (const sink of opened) void sink.close().catch(() => undefined);
    throw error;
  }
  return opened;
}

/**
 * The sinks of a spec, each named by its path. `states` null: a fresh run, an existing file is replaced with its first record.
 * With the states of the last commit: each file is cut back to what was committed and goes on there.
 * Throws CrawlError `output-unwritable` when a file cannot be written, or is shorter or another than the one the state speaks of.
 * `shared`: given to journalSinks too, a page that goes to several files is made into JSON once. The command line keeps `-` for itself.
 */
export function openSinks(spec: CrawlSpec, states: SinkStates = null, shared: SharedLines = sharedLines()): readonly Sink[] {
  const { outputs, pagesFile, skippedFile, linksFile, fields } = spec;
  const files = [...outputs.filter((file) => file !== "-"), pagesFile, skippedFile, linksFile].filter((file) => file !== null);
  for (const file of files) checkWritable(file);
  const sink = <T extends object>(target: string, table: Table<T>) => {
    return () => textSink(target === "-" ? STDOUT : target, table, { state: states?.get(target) ?? null, shared });
  };
  const makers = outputs.map((file) => sink(file, pagesTable({ which: "listed", fields })));
  if (pagesFile !== null) makers.push(sink(pagesFile, pagesTable({ which: "all", fields })));
  if (skippedFile !== null) makers.push(sink(skippedFile, skippedTable({ duplicates: spec.skippedAll })));
  if (linksFile !== null) makers.push(sink(linksFile, linksTable()));
  return openAll(makers);
}

/** DIR/pages.jsonl and DIR/skipped.jsonl with every page record and skipped URL of the run, whatever the spec lists (URLs that are only repetitions apart): named `journal:pages` and `journal:skipped`, wherever DIR lies. */
export function journalSinks(dir: string, states: SinkStates, shared: SharedLines = sharedLines()): readonly Sink[] {
  const sink = <T extends object>(table: Table<T>) => {
    const path = join(dir, `${table.name}.jsonl`);
    const name = `journal:${table.name}`;
    checkWritable(path);
    return () => textSink(path, table, { name, state: states?.get(name) ?? null, shared });
  };
  return openAll([sink(pagesTable({ which: "all", fields: null })), sink(skippedTable({ duplicates: false }))]);
}
