/**
 * What a resume needs to take back changes in a database that were not committed by the crawl: rows that were replaced, tables and columns that were added.
 * Rows that were added are not its affair: they are told by their number.
 *
 * Entries lie in a table of the same database, so that they are there exactly when the change is. They are undone youngest first, so that each finds the table as it left it.
 */
import type { DatabaseSync, SQLInputValue, StatementSync } from "node:sqlite";

export const UNDO_TABLE = "_skein_undo";
/** A resume may go back at least so many checkpoints; a store needs one. */
const STEPS = 64;

export interface UndoLog {
  /** Checkpoints so far. */
  readonly step: number;
  /** `values`: of the row as it is, in the order of its columns. */
  replaces(table: string, row: number, values: readonly SQLInputValue[]): void;
  creates(table: string): void;
  adds(table: string, column: string): void;
  /** From here on nothing younger than this moment is older than it. */
  mark(): void;
  /** Takes back what is younger than the step at which the log was opened; false: it is too old. Within a transaction. */
  undo(): boolean;
  /** No state but the last one will be asked for, and nothing is younger than that. */
  drop(): void;
}

export const quoted = (name: string): string => `"${name.replaceAll('"', '""')}"`;

export function exists(db: DatabaseSync, table: string): boolean {
  return db.prepare("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?").get(table) !== undefined;
}

/** Lists and objects are JSON, true is 1, what is absent is null; a whole number is bound as one, since columns of items have no type that would make it one. */
export function boundItem(value: unknown): SQLInputValue {
  if (typeof value === "string") return value;
  if (typeof value === "number") return Number.isSafeInteger(value) ? BigInt(value) : value;
  if (typeof value === "boolean") return value ? 1n : 0n;
  return value === undefined || value === null ? null : JSON.stringify(value);
}

function restore(db: DatabaseSync, table: string, row: number, values: readonly unknown[]): void {
  const columns = db.prepare("SELECT name FROM pragma_table_info(?) ORDER BY cid").all(table);
  const set = columns.map(({ name }) => `${quoted(String(name))} = ?`).join(", ");
  db.prepare(`UPDATE ${quoted(table)} SET ${set} WHERE _rowid_ = ?`).run(...values.map(boundItem), row);
}

/** `step`: checkpoints before this moment. Nothing is kept before the first: a run without one begins anew. */
export function undoLog(db: DatabaseSync, step: number): UndoLog {
  const name = quoted(UNDO_TABLE);
  let insert: StatementSync | null = null;

  function log(table: string, row: number | null, old: string | null): void {
    if (step === 0) return;
    if (insert === null) {
      db.exec(`CREATE TABLE IF NOT EXISTS ${name} (step INTEGER, name TEXT, row INTEGER, old TEXT)`);
      insert = db.prepare(`INSERT INTO ${name} VALUES (?, ?, ?, ?)`);
    }
    insert.run(step, table, row, old);
  }

  return {
    get step() {
      return step;
    },
    replaces: (table, row, values) => log(table, row, JSON.stringify(values)),
    creates: (table) => log(table, null, null),
    adds: (table, column) => log(table, null, column),
    mark() {
      step++;
      if (insert === null || step % STEPS !== 0) return;
      // The entry of step −1 tells from which step on the log is whole.
      db.exec(`DELETE FROM ${name} WHERE step < ${step - STEPS}; INSERT INTO ${name} (step, row) VALUES (-1, ${step - STEPS})`);
    },
    undo() {
      if (!exists(db, UNDO_TABLE)) return true;
      const whole = Number(db.prepare(`SELECT coalesce(max(row), 0) AS whole FROM ${name} WHERE step = -1`).get()?.whole);
      if (step < whole) return false;
      for (const { name: table, row, old } of db.prepare(`SELECT name, row, old FROM ${name} WHERE step >= ? ORDER BY _rowid_ DESC`).all(step)) {
        if (row !== null) restore(db, String(table), Number(row), JSON.parse(String(old)));
        else if (old === null) db.exec(`DROP TABLE ${quoted(String(table))}`);
        else db.exec(`ALTER TABLE ${quoted(String(table))} DROP COLUMN ${quoted(String(old))}`);
      }
      db.exec(`DELETE FROM ${name} WHERE step >= ${step}`);
      return true;
    },
    drop() {
      insert = null;
      db.exec(`DROP TABLE IF EXISTS ${name}`);
    },
  };
}
