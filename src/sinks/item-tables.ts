/** The tables of items in a database, one a type: upserts by key, columns that come with later fields. Opens and commits nothing. */
import type { DatabaseSync, SQLInputValue, StatementSync } from "node:sqlite";
import { notAsLeft } from "./file.ts";
import { EXTRA_COLUMN, fieldsOf, META_COLUMNS, META_FIELDS, nameGiver } from "./item-columns.ts";
import type { ItemsTable, TakenItem } from "./tables.ts";
import { boundItem, exists, quoted, UNDO_TABLE, type UndoLog, undoLog } from "./undo-log.ts";

/** Fields of a table at most that are columns, SQLite's own limit being 2,000; what more there are goes to `_extra`. */
const MOST_COLUMNS = 1_000;
/** Names are cut to that. */
const LONGEST_NAME = 200;
/** Names a field's column does not get: what is ours, and the row number, by which rows are told. */
const RESERVED = [...META_COLUMNS, EXTRA_COLUMN, "_rowid_"];

/** A table as the state tells it. `fields`: what its columns hold, in the order in which they were added; null: one of ours, named in `columns`. */
interface TableState {
  readonly type: string;
  readonly table: string;
  readonly key: string | null;
  readonly fields: readonly (string | null)[];
  readonly columns: readonly string[];
  /** The last row. */
  readonly rows: number;
}

interface TypeTable extends TableState {
  readonly fields: (string | null)[];
  readonly columns: string[];
  readonly known: Set<string>;
  readonly give: (wanted: string) => string;
  /** The last row in the last checkpoint. */
  rows: number;
  statements: Statements;
}

interface Statements {
  readonly insert: StatementSync;
  readonly update: StatementSync;
  readonly find: StatementSync | null;
}

export interface ItemTables {
  /** Within a transaction. */
  take(taken: TakenItem): void;
  /** Where the tables stand. */
  checkpoint(): string;
  /** At the end, when the last checkpoint is committed. */
  forget(): void;
}

/** A name that SQL text can hold. */
function safeName(name: string): string {
  return name === "" ? "_" : name.slice(0, LONGEST_NAME).replaceAll("\0", "\ufffd").toWellFormed();
}

/** SQLite knows columns and tables whatever the case of their letters. */
const fold = (name: string): string => name.toLowerCase();

function prepare(db: DatabaseSync, { table, columns, fields, key }: TableState): Statements {
  const name = quoted(table);
  const all = columns.map(quoted);
  const keyColumn = key === null ? undefined : all[fields.indexOf(key)];
  const find = keyColumn === undefined ? null : db.prepare(`SELECT _rowid_, ${all.join(", ")} FROM ${name} WHERE ${keyColumn} = ?`);
  find?.setReturnArrays(true);
  return {
    insert: db.prepare(`INSERT INTO ${name} (${all.join(", ")}) VALUES (${all.map(() => "?").join(", ")})`),
    update: db.prepare(`UPDATE ${name} SET ${all.map((column) => `${column} = ?`).join(", ")} WHERE _rowid_ = ?`),
    find,
  };
}

function lastRow(db: DatabaseSync, table: string): number {
  return Number(db.prepare(`SELECT coalesce(max(_rowid_), 0) AS last FROM ${quoted(table)}`).get()?.last);
}

function opened(db: DatabaseSync, state: TableState): TypeTable {
  const fields = [...state.fields];
  const known = new Set(fields.filter((field) => field !== null));
  return { ...state, fields, columns: [...state.columns], known, give: nameGiver([...RESERVED, ...state.columns], fold), statements: prepare(db, state) };
}

/** before: tables as an earlier process left them · after: as they were at the state's checkpoint. Throws CrawlError `output-unwritable` when they are not of it. */
function goBack(db: DatabaseSync, path: string, states: readonly TableState[], log: UndoLog): void {
  for (const { table, rows } of states) {
    if (!exists(db, table)) throw notAsLeft(path, `table ${table} is gone since the crawl stopped`);
    if (lastRow(db, table) < rows) throw notAsLeft(path, `table ${table} has fewer rows than the ${rows} it had when the crawl stopped`);
  }
  db.exec("BEGIN");
  if (!log.undo()) throw notAsLeft(path, "it has gone on too far since the state was saved");
  for (const { table, rows } of states) db.exec(`DELETE FROM ${quoted(table)} WHERE _rowid_ > ${rows}`);
  db.exec("COMMIT");
}

export interface ItemTablesOptions {
  /** For messages. */
  readonly path: string;
  readonly table: ItemsTable;
  /** Tables of other records in the file. */
  readonly reserved: readonly string[];
  /** Of a checkpoint; null: the file is new. */
  readonly state: string | null;
}

export function itemTables(db: DatabaseSync, { path, table: wanted, reserved, state }: ItemTablesOptions): ItemTables {
  // `as`: it is what `checkpoint` gave.
  const at = state === null ? { step: 0, tables: [] } : (JSON.parse(state) as { readonly step: number; readonly tables: readonly TableState[] });
  const log = undoLog(db, at.step);
  if (state !== null) goBack(db, path, at.tables, log);
  const tables = new Map(at.tables.map((one) => [one.type, opened(db, one)]));
  const giveTable = nameGiver([...reserved, UNDO_TABLE, ...at.tables.map(({ table }) => table)], fold);
  const declared = new Map(wanted.types.map((type) => [type.name, type]));
  /** Something was taken since the last checkpoint. */
  let fresh = false;

  function create(type: string, found: readonly string[]): TypeTable {
    const { key = null, columns = null } = declared.get(type) ?? {};
    const distinct = new Set([...(columns ?? []), ...found]);
    // The key stands where it was declared or found; first, if it was neither.
    const all = key === null || distinct.has(key) ? [...distinct] : [key, ...distinct];
    const cut = all.slice(0, MOST_COLUMNS);
    const own = key === null || cut.includes(key) ? cut : [key, ...cut.slice(1)];
    const ours = wanted.meta ? META_COLUMNS : own.length === 0 ? [EXTRA_COLUMN] : [];
    const give = nameGiver(RESERVED, fold);
    const fields = [...own, ...ours.map(() => null)];
    const names = [...own.map((field) => give(safeName(field))), ...ours];
    const plain = safeName(type);
    const table = giveTable(/^sqlite_/i.test(plain) ? `_${plain}` : plain);
    const sql = names.map((name, index) => `${quoted(name)}${key !== null && fields[index] === key ? " PRIMARY KEY" : ""}`);
    db.exec(`CREATE TABLE ${quoted(table)} (${sql.join(", ")})`);
    log.creates(table);
    const made = opened(db, { type, table, key, fields, columns: names, rows: 0 });
    tables.set(type, made);
    return made;
  }

  /** `names`: fields; null: `_extra`. */
  function addColumns(to: TypeTable, names: readonly (string | null)[]): void {
    for (const field of names) {
      const column = field === null ? EXTRA_COLUMN : to.give(safeName(field));
      db.exec(`ALTER TABLE ${quoted(to.table)} ADD COLUMN ${quoted(column)}`);
      log.adds(to.table, column);
      to.fields.push(field);
      to.columns.push(column);
      if (field !== null) to.known.add(field);
    }
    to.statements = prepare(db, to);
  }

  /** Gives columns to fields that have none, as long as there is room; answers those without, as JSON. */
  function makeRoom(to: TypeTable, fields: Readonly<Record<string, unknown>>): string | null {
    const missing = Object.keys(fields).filter((field) => !to.known.has(field));
    if (missing.length === 0) return null;
    const room = Math.max(0, MOST_COLUMNS - to.known.size);
    if (room > 0) addColumns(to, missing.slice(0, room));
    const left = missing.slice(room);
    if (left.length === 0) return null;
    if (!to.columns.includes(EXTRA_COLUMN)) addColumns(to, [null]);
    return JSON.stringify(Object.fromEntries(left.map((field) => [field, fields[field]])));
  }

  function valuesOf(of: TypeTable, fields: Readonly<Record<string, unknown>>, page: TakenItem["page"], extra: string | null): SQLInputValue[] {
    return of.fields.map((field, index) => {
      if (field !== null) return Object.hasOwn(fields, field) ? boundItem(fields[field]) : null;
      const column = of.columns[index] ?? "";
      if (column === EXTRA_COLUMN) return extra;
      const meta = META_FIELDS[META_COLUMNS.indexOf(column)];
      return page === null || meta === undefined ? null : boundItem(page[meta]);
    });
  }

  for (const { name, columns } of state === null ? wanted.types : []) if (columns !== null) create(name, []);
  return {
    take({ item, page }) {
      fresh = true;
      const fields = fieldsOf(item.json);
      const to = tables.get(item.type) ?? create(item.type, Object.keys(fields));
      const extra = makeRoom(to, fields);
      const values = valuesOf(to, fields, page, extra);
      const { insert, update, find } = to.statements;
      const key = to.key !== null && Object.hasOwn(fields, to.key) ? boundItem(fields[to.key]) : null;
      // `as`: rows of this statement come as arrays; their values are those that were bound.
      const found = key === null ? undefined : (find?.get(key) as unknown as readonly [number, ...SQLInputValue[]] | undefined);
      if (found === undefined) insert.run(...values);
      else {
        const [row, ...old] = found;
        if (row <= to.rows) log.replaces(to.table, row, old);
        update.run(...values, row);
      }
    },
    checkpoint() {
      // Without a first step nothing would be kept of what comes.
      if (fresh || log.step === 0) {
        for (const one of tables.values()) one.rows = lastRow(db, one.table);
        log.mark();
      }
      fresh = false;
      const told = [...tables.values()].map(({ type, table, key, fields, columns, rows }): TableState => ({ type, table, key, fields, columns, rows }));
      return JSON.stringify({ step: log.step, tables: told });
    },
    forget() {
      if (!fresh) log.drop();
    },
  };
}
