/** For tests only: a place for one output of any format, with a reader that knows the format better than the sink does. */
import assert from "node:assert/strict";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { gunzipSync } from "node:zlib";
import type { Output } from "../core/records.ts";
import type { Sink, SinkState } from "../core/sink.ts";
import type { SinkBench, SinkCase } from "../testing/sink-cases.ts";
import { sqliteSink } from "./sqlite.ts";
import { isItems, itemsTable, linksTable, pagesTable, skippedTable, type Table, type TakenItem } from "./tables.ts";
import { textSink } from "./text.ts";

export const SUFFIXES = ["jsonl", "json", "csv", "jsonl.gz", "json.gz", "csv.gz", "sqlite"] as const;
export const TABLES: readonly Table<object>[] = [
  pagesTable({ which: "all", fields: null }),
  pagesTable({ which: "listed", fields: null }),
  skippedTable({ duplicates: true }),
  linksTable(),
  itemsTable({ types: [{ name: "product", key: "id", columns: null }], meta: true }),
];
/** Cases of thousands of records, or of many runs. */
export const isLong = ({ name }: SinkCase): boolean => /^(?:10,000 records|whatever is written)/.test(name);

/** Every format with the kinds of records that are tried in it: others than pages in the two formats that have columns; the rest differ by what stands around a record. */
export function* tablesInFormats() {
  for (const suffix of SUFFIXES) {
    for (const [index, table] of TABLES.entries()) {
      if (index > 0 && suffix !== "sqlite" && suffix !== "csv" && !(isItems(table) && suffix !== "json.gz" && suffix !== "jsonl.gz")) continue;
      yield { suffix, table, label: `${index === 1 ? "listed " : ""}${table.name}.${suffix}`, first: index === 0 };
    }
  }
}

/** Where items stand among the tables. */
export const ITEMS = TABLES.length - 1;

const NUMBERS = /^(?:status|_?depth|bytes|bytesDecoded|attempts|durationMs|price|late.*)$/;
const FLAGS = new Set(["truncated", "bodySkipped", "fromCache", "nofollow", "inStock"]);
const STRUCTURES = new Set(["redirects", "robots", "links", "images", "error", "tags", "_extra"]);

/** A cell of CSV or SQLite as the record had it. */
function valueOfCell(column: string, cell: unknown): unknown {
  if (cell === null) return null;
  if (STRUCTURES.has(column)) return JSON.parse(String(cell));
  if (FLAGS.has(column)) return cell === 1 || cell === "true";
  return NUMBERS.test(column) ? Number(cell) : cell;
}

function recordsOf(columns: readonly string[], rows: readonly (readonly unknown[])[]): object[] {
  return rows.map((row) => {
    assert.equal(row.length, columns.length);
    return Object.fromEntries(columns.map((column, index) => [column, valueOfCell(column, row[index])]));
  });
}

/** Rows of items as the scraper gave them. */
function itemsOf(columns: readonly string[], rows: readonly (readonly unknown[])[]): object[] {
  return recordsOf(columns, rows).map((record) => {
    // `as`: made just now, with the columns of items.
    const { _url: url, _depth: depth, _fetchedAt: fetchedAt, _extra, _type, ...fields } = record as Record<string, unknown>;
    return { ...fields, ...(_extra as object | null), _meta: { url, depth, fetchedAt } };
  });
}

/** The items of outputs as an output holds them; in a database by type, a key that comes again in the place of the first. */
function wantedItems(outputs: readonly Output[], database: boolean): object[] {
  const rows: { readonly type: string; item: object }[] = [];
  const byKey = new Map<string, { item: object }>();
  const take = ({ item: { type, key, json }, page }: TakenItem) => {
    const item = { ...JSON.parse(json), _meta: { url: page?.url, depth: page?.depth, fetchedAt: page?.fetchedAt } };
    const name = database && key !== null ? `${type} ${key}` : null;
    const before = name === null ? undefined : byKey.get(name);
    const row = { type, item };
    if (before !== undefined) before.item = item;
    else rows.push(row);
    if (name !== null && before === undefined) byKey.set(name, row);
  };
  for (const output of outputs) itemsTable({ types: [], meta: true }).each(output, take);
  return (database ? [...Map.groupBy(rows, ({ type }) => type).values()].flat() : rows).map(({ item }) => item);
}

/** What an output should hold of these outputs. */
export function wantedOf(table: Table<object>, path: string, outputs: readonly Output[]): object[] {
  if (isItems(table)) return wantedItems(outputs, path.endsWith(".sqlite"));
  const records: object[] = [];
  for (const output of outputs) table.each(output, (record) => records.push(record));
  return records;
}

/** RFC 4180 §2, strictly. An empty cell that is not quoted is null. */
function csvRows(text: string): (string | null)[][] {
  const rows: (string | null)[][] = [];
  let row: (string | null)[] = [];
  const cell = /(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r\n)/y;
  while (cell.lastIndex < text.length) {
    const from = cell.lastIndex;
    const match = cell.exec(text);
    assert.ok(match, `no cell at ${from}: ${JSON.stringify(text.slice(from, from + 40))}`);
    row.push(match[1]?.replaceAll('""', '"') ?? (match[2] === "" ? null : (match[2] ?? null)));
    if (match[3] === ",") continue;
    rows.push(row);
    row = [];
  }
  assert.deepEqual(row, []);
  return rows;
}

function textOf(path: string): string {
  const bytes = readFileSync(path);
  const plain = path.endsWith(".gz") ? gunzipSync(bytes) : bytes;
  return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(plain);
}

interface Rows {
  readonly columns: string[];
  readonly rows: unknown[][];
}

/** Every table of a database of items, in the order in which they came to be. */
function itemRows(path: string): (Rows & { readonly name: string })[] {
  const db = new DatabaseSync(path);
  const tables = db.prepare("SELECT name FROM sqlite_schema WHERE type = 'table' AND name <> '_skein_undo' ORDER BY _rowid_").all();
  db.close();
  return tables.map(({ name }) => ({ name: String(name), ...databaseRows(path, String(name)) }));
}

function databaseRows(path: string, table: string): Rows {
  const db = new DatabaseSync(path);
  try {
    assert.deepEqual({ ...db.prepare("PRAGMA integrity_check").get() }, { integrity_check: "ok" });
    const statement = db.prepare(`SELECT * FROM "${table}" ORDER BY rowid`);
    const columns = statement.columns().map(({ name }) => name);
    return { columns, rows: statement.all().map((row) => Object.values(row)) };
  } finally {
    db.close();
  }
}

/** The records in a finished output. */
export function readOutput(path: string, table: Table<object>): object[] {
  if (path.endsWith(".sqlite")) {
    assert.deepEqual(
      readdirSync(join(path, "..")).filter((name) => /-(wal|shm|journal)$/.test(name)),
      [],
    );
    if (isItems(table)) return itemRows(path).flatMap(({ columns, rows }) => itemsOf(columns, rows));
    const { columns, rows } = databaseRows(path, table.name);
    assert.deepEqual(columns, table.columns);
    return recordsOf(columns, rows);
  }
  const text = textOf(path);
  const format = /\.(jsonl|json|csv)(?:\.gz)?$/.exec(path)?.[1];
  if (format === "json") return JSON.parse(text);
  if (format === "csv") {
    const [columns = [], ...rows] = csvRows(text);
    if (isItems(table)) return itemsOf(columns as string[], rows); // `as`: no column is without a name
    assert.deepEqual(columns, table.columns);
    return recordsOf(table.columns, rows);
  }
  assert.ok(text === "" || text.endsWith("\n"));
  return text
    .split("\n")
    .slice(0, -1)
    .map((line) => JSON.parse(line));
}

export function openAt(path: string, table: Table<object>, state: SinkState | null): Sink {
  return path.endsWith(".sqlite") ? sqliteSink(path, [table], state) : textSink(path, table, { state });
}

export interface SinkPlaces {
  open(suffix: string, table: Table<object>): SinkBench;
  close(): Promise<void>;
}

/** Benches with folders of their own under `root`; a kill goes on in a copy of the folder, so that nothing the dead sinks hold reaches it. */
export function sinkPlaces(root: string): SinkPlaces {
  const opened: Sink[] = [];
  return {
    open(suffix, table) {
      let dir = mkdtempSync(join(root, "bench-"));
      const path = () => join(dir, `out.${suffix}`);
      return {
        open(state) {
          const sink = openAt(path(), table, state);
          opened.push(sink);
          return sink;
        },
        kill() {
          const copy = mkdtempSync(join(root, "bench-"));
          // The index of a write-ahead log is memory that its processes share; it dies with them.
          cpSync(dir, copy, { recursive: true, filter: (from) => !from.endsWith("-shm") });
          dir = copy;
        },
        remove() {
          rmSync(dir, { recursive: true });
          mkdirSync(dir);
        },
        read: () => readOutput(path(), table),
        content() {
          if (suffix !== "sqlite") return textOf(path());
          return isItems(table) ? itemRows(path()) : databaseRows(path(), table.name);
        },
        wanted: (outputs) => wantedOf(table, path(), outputs),
      };
    },
    async close() {
      for (const sink of opened) await sink.close();
      if (existsSync(root)) rmSync(root, { recursive: true });
    },
  };
}
