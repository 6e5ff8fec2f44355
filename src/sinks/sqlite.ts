/** The SQLite sink: a table for each kind of record that goes to the file, with typed columns. Node's SQLite is loaded with the first such output only. */
import { accessSync, closeSync, constants, fsyncSync, openSync, realpathSync, rmSync, statSync } from "node:fs";
import { dirname } from "node:path";
import type { DatabaseSync, SQLInputValue, StatementSync } from "node:sqlite";
import { realClock } from "../core/clock.ts";
import { CrawlError } from "../core/errors.ts";
import type { Sink, SinkState } from "../core/sink.ts";
import { notAsLeft, unwritable } from "./file.ts";
import { type ItemTables, itemTables } from "./item-tables.ts";
import { type ItemsTable, isItems, type Table, type TakenItem } from "./tables.ts";
import { quoted } from "./undo-log.ts";

/** Without checkpoints a transaction is as large as all before it, so that a disk that fills up early keeps half of what fits, up to so many rows (small ones cost several times as much), or this long. */
const FIRST_ROWS = 32;
const BATCH_ROWS = 5_000;
const STALE_MS = 1_000;
/** How long a commit waits for somebody else's lock on the file. */
const BUSY_MS = 2_000;
const WHOLE_NUMBERS = new Set(["status", "depth", "bytes", "bytesDecoded", "truncated", "bodySkipped", "attempts", "fromCache", "nofollow"]);
const SIDE_FILES = ["-wal", "-shm", "-journal"];

function typeOf(column: string): string {
  if (column === "durationMs") return "REAL";
  return WHOLE_NUMBERS.has(column) ? "INTEGER" : "TEXT";
}

/** The URL is the key where it stands once. Edges have none: it would double the size of what is the largest table. */
function hasKey({ columns, repeats }: Table<object>): boolean {
  return repeats !== true && columns.includes("url");
}

function createSql(table: Table<object>): string {
  const columns = table.columns.map((column) => `${quoted(column)} ${typeOf(column)}${column === "url" && hasKey(table) ? " PRIMARY KEY" : ""}`);
  return `CREATE TABLE ${quoted(table.name)} (${columns.join(", ")})`;
}

function insertSql(table: Table<object>): string {
  const { name, columns } = table;
  const insert = `INSERT INTO ${quoted(name)} (${columns.map(quoted).join(", ")}) VALUES (${columns.map(() => "?").join(", ")})`;
  if (!hasKey(table)) return insert;
  const rest = columns.filter((column) => column !== "url").map((column) => `${quoted(column)} = excluded.${quoted(column)}`);
  return `${insert} ON CONFLICT (url) DO ${rest.length === 0 ? "NOTHING" : `UPDATE SET ${rest.join(", ")}`}`;
}

/** Lists and objects are JSON, true is 1, what is absent is null. */
function bound(value: unknown): SQLInputValue {
  if (typeof value === "string" || typeof value === "number") return value;
  if (typeof value === "boolean") return value ? 1 : 0;
  return value === undefined || value === null ? null : JSON.stringify(value);
}

/** The file and its folder, beside which the write-ahead log stands, must be writable. */
export function checkDatabase(path: string): void {
  const known = statSync(path, { throwIfNoEntry: false });
  if (known && !known.isFile()) throw new CrawlError("output-unwritable", `cannot write ${path}: it is not a file`);
  try {
    accessSync(dirname(known ? realpathSync(path) : path), constants.W_OK);
  } catch (error) {
    throw unwritable(path, error);
  }
}

/** What goes to a file: records of fixed columns, and items, which have tables of their own kind. */
interface Contents {
  readonly tables: readonly Table<object>[];
  readonly items: ItemsTable | null;
}

/** What was committed: the last row of each table, by which later ones are told. `run` is drawn for each new file and kept in it. */
interface DatabaseState {
  readonly run: number;
  readonly rows: ReadonlyMap<string, number>;
  /** Of the tables of items. */
  readonly items: string | null;
}

function readState(path: string, form: string, state: SinkState, { tables, items }: Contents): DatabaseState | null {
  if (state.form !== form) throw notAsLeft(path, `the saved state is that of another output (${state.form ?? "?"}, not ${form})`);
  if (state.run === null) return null;
  const number = (name: string): number => {
    const value = state[name];
    if (typeof value !== "number") throw notAsLeft(path, "the saved state is not that of such a file");
    return value;
  };
  if (items !== null && typeof state.items !== "string") throw notAsLeft(path, "the saved state is not that of such a file");
  return { run: number("run"), rows: new Map(tables.map(({ name }) => [name, number(`${name}Rows`)])), items: items === null ? null : String(state.items) };
}

const lastRowSql = (table: Table<object>) => `SELECT coalesce(max(rowid), 0) AS last FROM ${quoted(table.name)}`;

function numberIn(statement: StatementSync, column: string): number {
  return Number(statement.get()?.[column]);
}

interface OpenDatabase {
  readonly db: DatabaseSync;
  readonly run: number;
  readonly inserts: ReadonlyMap<string, StatementSync>;
  readonly lastRows: ReadonlyMap<string, StatementSync>;
  readonly items: ItemTables | null;
}

function prepared(path: string, db: DatabaseSync, { run, items: state }: Pick<DatabaseState, "run" | "items">, { tables, items }: Contents): OpenDatabase {
  const reserved = tables.map(({ name }) => name);
  return {
    items: items === null ? null : itemTables(db, { path, table: items, reserved, state }),
    db,
    run,
    inserts: new Map(tables.map((table) => [table.name, db.prepare(insertSql(table))])),
    lastRows: new Map(tables.map((table) => [table.name, db.prepare(lastRowSql(table))])),
  };
}

function opened(path: string): DatabaseSync {
  const { DatabaseSync } = process.getBuiltinModule("node:sqlite");
  const db = new DatabaseSync(path, { timeout: BUSY_MS });
  // With a write-ahead log others can read meanwhile, and a commit waits for no disk; a power cut then loses whole commits only.
  db.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL");
  return db;
}

/** Replaces what is there, through a symbolic link too. */
function created(given: string, contents: Contents): OpenDatabase {
  const path = statSync(given, { throwIfNoEntry: false }) ? realpathSync(given) : given;
  for (const file of ["", ...SIDE_FILES]) rmSync(`${path}${file}`, { force: true });
  const db = opened(path);
  const run = crypto.getRandomValues(new Uint32Array(1))[0]! >>> 1;
  try {
    db.exec(`BEGIN; PRAGMA user_version = ${run}; ${contents.tables.map(createSql).join("; ")}; COMMIT`);
    return prepared(given, db, { run, items: null }, contents);
  } catch (error) {
    db.close();
    throw error;
  }
}

/** before: committed rows, and perhaps rows of transactions that the crawl's own state knows nothing of · after: the committed ones. */
function resumed(path: string, at: DatabaseState, contents: Contents): OpenDatabase {
  if (!statSync(path, { throwIfNoEntry: false })) throw notAsLeft(path, "it is gone since the crawl stopped");
  const db = opened(path);
  try {
    if (numberIn(db.prepare("PRAGMA user_version"), "user_version") !== at.run) throw notAsLeft(path, "it was replaced since the crawl stopped");
    const open = prepared(path, db, at, contents);
    for (const [name, statement] of open.lastRows) {
      const rows = at.rows.get(name) ?? 0;
      if (numberIn(statement, "last") < rows) throw notAsLeft(path, `table ${name} has fewer rows than the ${rows} it had when the crawl stopped`);
    }
    db.exec(`BEGIN; ${contents.tables.map(({ name }) => `DELETE FROM ${quoted(name)} WHERE rowid > ${at.rows.get(name) ?? 0}`).join("; ")}; COMMIT`);
    return open;
  } catch (error) {
    db.close();
    throw error;
  }
}

function syncFiles(path: string): void {
  for (const file of [`${path}-wal`, path, ...(process.platform === "win32" ? [] : [dirname(path)])]) {
    if (!statSync(file, { throwIfNoEntry: false })) continue;
    const fd = openSync(file, constants.O_RDONLY);
    try {
      fsyncSync(fd);
    } finally {
      closeSync(fd);
    }
  }
}

/** Folds the log in, so that the file stands alone. Somebody who still reads it may prevent that: it is whole with its log, too. */
function foldLog(db: DatabaseSync): void {
  try {
    db.exec("PRAGMA wal_checkpoint(TRUNCATE); PRAGMA journal_mode = DELETE");
  } catch (error) {
    if (!(error instanceof Error && /locked|busy/i.test(error.message))) throw error;
  }
}

/**
 * `tables`: those whose records go to this file, each name once. Rows are committed in batches, with each checkpoint at the latest.
 * Exactly once: a resume deletes the rows behind those of its state, and undoes what was done to items since (sinks/undo-log.ts);
 * within a run a URL that comes again replaces its row.
 */
export function sqliteSink(path: string, all: readonly Table<object>[], state: SinkState | null = null): Sink {
  const form = `sqlite ${all.map(({ name }) => name).join("+")}`;
  const contents: Contents = { tables: all.filter((table) => !isItems(table)), items: all.find(isItems) ?? null };
  const at = state === null ? null : readState(path, form, state, contents);
  let open: OpenDatabase | null = null;
  let settled = state !== null && state.settled === 1;
  let pending = 0;
  /** Rows in the file for good, those of an earlier process apart. */
  let committed = 0;
  let committedAt = realClock.now();
  let closed = false;
  /** The last checkpoint is committed. */
  let known = false;
  let failure: CrawlError | null = null;

  /** Runs a step on the file; what fails once is not tried again. */
  function step<T>(run: () => T): T {
    if (failure !== null) throw failure;
    try {
      return run();
    } catch (error) {
      failure = error instanceof CrawlError ? error : unwritable(path, error, at === null ? kept() : "");
      throw failure;
    }
  }

  const kept = (): string =>
    committed === 0 ? "; no record is in it" : `; the ${committed === 1 ? "record" : `${committed} records`} before ${committed === 1 ? "is" : "are"} in it`;

  function commit(): void {
    committedAt = realClock.now();
    if (pending === 0) return;
    open?.db.exec("COMMIT");
    committed += pending;
    pending = 0;
  }

  /** The file, within a transaction. */
  function begun(): OpenDatabase {
    open ??= created(path, contents);
    if (pending++ === 0) open.db.exec("BEGIN");
    return open;
  }

  const takers = all.map((table) => ({
    table,
    take(record: object) {
      const { inserts, items } = begun();
      // `as`: what a table of items takes are items.
      if (isItems(table)) return items?.take(record as TakenItem);
      // `as`: only read, by names that are fields of the record or absent from it.
      const values = record as Readonly<Record<string, unknown>>;
      inserts.get(table.name)?.run(...table.columns.map((column) => bound(values[column])));
    },
  }));

  if (at !== null) open = step(() => resumed(path, at, contents));
  return {
    name: path,
    write(outputs) {
      step(() => {
        settled = true;
        for (const output of outputs) for (const { table, take } of takers) table.each(output, take);
        if (pending >= Math.min(BATCH_ROWS, Math.max(FIRST_ROWS, committed)) || realClock.now() - committedAt >= STALE_MS) commit();
      });
    },
    flush: () => step(commit),
    checkpoint: (sync) =>
      step(() => {
        commit();
        if (sync && open !== null) syncFiles(realpathSync(path));
        const rows = contents.tables.map(({ name }) => [`${name}Rows`, open === null ? 0 : numberIn(open.lastRows.get(name)!, "last")] as const);
        return {
          form,
          run: open?.run ?? null,
          settled: settled ? 1 : 0,
          ...Object.fromEntries(rows),
          ...(contents.items === null ? {} : { items: open?.items?.checkpoint() ?? "" }),
        };
      }),
    committed() {
      known = true;
    },
    async close() {
      if (closed) return;
      closed = true;
      try {
        if (failure !== null) return;
        step(() => {
          commit();
          if (settled) open ??= created(path, contents);
          if (known) open?.items?.forget();
          if (open !== null) foldLog(open.db);
        });
      } finally {
        // A transaction that could not be committed is rolled back by this.
        open?.db.close();
      }
    },
  };
}
