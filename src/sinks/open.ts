/** The sinks a spec names, and the journal of a durable crawl. Checks that every file can be written before any is touched. */

import { existsSync, lstatSync, readlinkSync, realpathSync, statSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { CrawlError, type OptionProblem } from "../core/errors.ts";
import type { Sink, SinkState } from "../core/sink.ts";
import type { CrawlSpec } from "../core/spec.ts";
import { checkWritable } from "./file.ts";
import { type SharedLines, sharedLines } from "./shared-lines.ts";
import { checkDatabase, sqliteSink } from "./sqlite.ts";
import { changesTable, type ItemType, itemsTable, linksTable, pagesTable, skippedTable, type Table } from "./tables.ts";
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

const isDatabase = (path: string) => /\.sqlite$/i.test(path);

/** An output: which table goes to which file, as the user named it. */
interface Wanted {
  readonly path: string;
  readonly table: Table<object>;
}

/** That a crawl gives items, and which types of them are declared; null: it gives none. */
export type ItemOutputs = { readonly types: readonly ItemType[] } | null;

function wantedBy(spec: CrawlSpec, items: ItemOutputs): readonly Wanted[] {
  const { outputs, pagesFile, skippedFile, changesFile, linksFile, fields, meta } = spec;
  // A scraper may request one URL in several ways.
  const repeats = items !== null;
  const listed = items === null ? pagesTable({ which: "listed", fields }) : itemsTable({ types: items.types, meta, which: "listed" });
  const wanted: Wanted[] = outputs.map((path) => ({ path, table: listed }));
  if (pagesFile !== null) wanted.push({ path: pagesFile, table: pagesTable({ which: "all", fields, repeats }) });
  if (skippedFile !== null) wanted.push({ path: skippedFile, table: skippedTable({ duplicates: spec.skippedAll }) });
  if (changesFile !== null) wanted.push({ path: changesFile, table: changesTable() });
  if (linksFile !== null) wanted.push({ path: linksFile, table: linksTable() });
  return wanted;
}

/** However it is spelt; a link counts as the file that it names, also when that is not there yet. What cannot be looked at is taken as it is named: opening it will say why. */
export function realPath(path: string, hops = 0): string {
  const full = resolve(path);
  try {
    const known = lstatSync(full, { throwIfNoEntry: false });
    if (known?.isSymbolicLink() && !existsSync(full)) return hops > 40 ? full : realPath(resolve(dirname(full), readlinkSync(full)), hops + 1);
    return known === undefined ? join(realpathSync(dirname(full)), basename(full)) : realpathSync(full);
  } catch {
    return full;
  }
}

/** The files of a state directory (store/sqlite/directory.ts), its journal, and what the trap rules remember. */
const STATE_FILES = ["pages.jsonl", "skipped.jsonl", "items.jsonl", "traps.bin", "state.db", "lock.db", "visits.db", "cache.db"];

/** Throws CrawlError `invalid-options` when two names of a spec are one file, which two sinks would write over each other; a database is one sink for all its tables. Devices and pipes may be shared. */
export function checkDistinct(spec: CrawlSpec): void {
  const { outputs, pagesFile, skippedFile, changesFile, linksFile, stateDir } = spec;
  const named = [
    ...outputs.map((file) => ["output", file] as const),
    ["pages", pagesFile] as const,
    ["skipped", skippedFile] as const,
    ["changes", changesFile] as const,
    ["links", linksFile] as const,
  ];
  const names = new Map((stateDir === null ? [] : STATE_FILES).map((file) => [realPath(join(stateDir ?? "", file)), `the state in ${stateDir}`]));
  const problems: OptionProblem[] = [];
  for (const [flag, file] of named) {
    if (file === null || file === "-") continue;
    const real = realPath(file);
    const other = names.get(real);
    names.set(real, file);
    if (other === undefined || (other === file && isDatabase(file)) || statSync(real, { throwIfNoEntry: false })?.isFile() === false) continue;
    problems.push({ option: `--${flag}`, message: `${file} is the same file as ${other}; give each a file of its own` });
  }
  if (problems.length > 0) throw new CrawlError("invalid-options", problems.map(({ option, message }) => `${option}: ${message}`).join("\n"), { problems });
}

/** Fails early, and touches nothing. Throws CrawlError `output-unwritable`. */
export function checkOutputs(spec: CrawlSpec): void {
  for (const { path } of wantedBy(spec, null)) {
    if (path === "-") continue;
    checkWritable(path);
    if (isDatabase(path)) checkDatabase(path);
  }
}

/**
 * The sinks of a spec, each named by its path. `states` null: a fresh run, an existing file is replaced with its first record.
 * With the states of the last commit: each file is cut back to what was committed and goes on there.
 * Throws CrawlError `output-unwritable` when a file cannot be written, or is shorter or another than the one the state speaks of.
 * `shared`: given to journalSinks too, a page that goes to several files is made into JSON once. The command line keeps `-` for itself.
 * `items`: the crawl gives items, which then go to the spec's outputs in place of pages.
 */
export function openSinks(spec: CrawlSpec, states: SinkStates = null, shared: SharedLines = sharedLines(), items: ItemOutputs = null): readonly Sink[] {
  const byPath = Map.groupBy(wantedBy(spec, items), ({ path }) => path);
  checkOutputs(spec);
  checkDistinct(spec);
  const makers: (() => Sink)[] = [];
  for (const [path, wanted] of byPath) {
    const state = states?.get(path) ?? null;
    const tables = wanted.map(({ table }) => table);
    if (isDatabase(path)) makers.push(() => sqliteSink(path, tables, state));
    else for (const table of tables) makers.push(() => textSink(path === "-" ? STDOUT : path, table, { state, shared }));
  }
  return openAll(makers);
}

/**
 * DIR/pages.jsonl and DIR/skipped.jsonl with every page record and skipped URL of the run, whatever the spec lists (URLs that are only repetitions apart), and with
 * `items` DIR/items.jsonl with every item: named `journal:pages`, `journal:skipped` and `journal:items`, wherever DIR lies.
 */
export function journalSinks(dir: string, states: SinkStates, shared: SharedLines = sharedLines(), items: ItemOutputs = null): readonly Sink[] {
  const sink = <T extends object>(table: Table<T>) => {
    const path = join(dir, `${table.name}.jsonl`);
    const name = `journal:${table.name}`;
    checkWritable(path);
    return () => textSink(path, table, { name, state: states?.get(name) ?? null, shared });
  };
  const makers = [sink(pagesTable({ which: "all", fields: null })), sink(skippedTable({ duplicates: false }))];
  if (items !== null) makers.push(sink(itemsTable({ types: items.types, meta: true, journal: true })));
  return openAll(makers);
}
