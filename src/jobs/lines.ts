/** Records of a job as they are handed out while it runs: what is committed of its journals, from a cursor on, in pieces. */
import { type FileHandle, open } from "node:fs/promises";
import { join } from "node:path";
import type { JobLine, JobTable } from "../core/jobs.ts";
import type { CrawlSpec } from "../core/spec.ts";
import { itemLine } from "../inspect/export.ts";
import { loadScope } from "../rules/scope.ts";
import type { JobRow } from "../store/jobs/book.ts";

const PIECE = 256 * 1024;
const STEP_BACK = 64 * 1024;
const NEWLINE = 10;
const LETTERS: Readonly<Record<JobTable, string>> = { pages: "p", items: "i", skipped: "s", images: "m" };

/** The file's name, and its sink's in the state. */
export const fileOf = (table: JobTable): string => `${table}.jsonl`;
export const sinkOf = (table: JobTable): string => `journal:${table}`;

const cursorOf = ({ nonce }: JobRow, table: JobTable, offset: number): string => `${nonce}${LETTERS[table]}${offset.toString(36)}`;

/** Null: it is none of this job and table. */
function offsetOf(row: JobRow, table: JobTable, cursor: string): number | null {
  const head = `${row.nonce}${LETTERS[table]}`;
  const rest = cursor.slice(head.length);
  return cursor.startsWith(head) && /^[0-9a-z]{1,10}$/.test(rest) ? Number.parseInt(rest, 36) : null;
}

/** How a line of the journal is handed out; null: it is not. */
async function rendering(table: JobTable, spec: CrawlSpec): Promise<((line: string) => string | null) | null> {
  if (table === "items") return (line) => (isUnlisted(line) ? null : itemLine(line, spec.meta));
  if (table !== "pages" || (spec.fields === null && spec.list.length === 0)) return null;
  const scope = spec.list.length === 0 ? null : await loadScope({ preset: "any", include: [], exclude: [] }, [], spec.list, []);
  const { fields } = spec;
  return (line) => {
    const record: Readonly<Record<string, unknown>> = JSON.parse(line);
    if (scope !== null && !scope.lists(String(record["url"]))) return null;
    if (fields === null) return line;
    return JSON.stringify(Object.fromEntries(fields.flatMap((field) => (record[field] === undefined ? [] : [[field, record[field]]]))));
  };
}

/** The mark stands before the item, whose text may hold anything. */
const isUnlisted = (line: string): boolean => line.slice(0, line.indexOf(',"item":')).endsWith(',"listed":false');

export interface LinesInput {
  readonly dir: string;
  readonly row: JobRow;
  readonly table: JobTable;
  readonly spec: CrawlSpec;
  /** Bytes of the table that will not be taken back. */
  readonly to: number;
}

/** Null: the cursor is none of this table. */
export async function jobLines({ dir, row, table, spec, to }: LinesInput, cursor: string | null): Promise<AsyncIterable<JobLine> | null> {
  const from = cursor === null ? 0 : offsetOf(row, table, cursor);
  if (from === null || from > to) return null;
  const path = join(dir, fileOf(table));
  if (from > 0 && !(await beginsLine(path, from))) return null;
  const render = await rendering(table, spec);
  return linesBetween(path, { from, to }, (line, end) => {
    const text = render === null ? line : render(line);
    return text === null ? null : { text, cursor: cursorOf(row, table, end) };
  });
}

/** Bytes of a table up to the end of its last whole line, whoever says how many of them count: of a job that nobody writes any more. No file: 0. */
export async function wholeLines(dir: string, table: JobTable): Promise<number> {
  let file: FileHandle;
  try {
    file = await open(join(dir, fileOf(table)), "r");
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return 0;
    throw error;
  }
  try {
    for (let { size: end } = await file.stat(); end > 0; ) {
      const start = Math.max(0, end - STEP_BACK);
      const { buffer, bytesRead } = await file.read(Buffer.alloc(end - start), 0, end - start, start);
      const last = buffer.subarray(0, bytesRead).lastIndexOf(NEWLINE);
      if (last >= 0) return start + last + 1;
      end = start;
    }
    return 0;
  } finally {
    await file.close();
  }
}

async function beginsLine(path: string, offset: number): Promise<boolean> {
  const file = await open(path, "r");
  try {
    const { buffer } = await file.read(Buffer.alloc(1), 0, 1, offset - 1);
    return buffer[0] === NEWLINE;
  } finally {
    await file.close();
  }
}

type Place = { readonly from: number; readonly to: number };

async function* linesBetween(path: string, { from, to }: Place, make: (line: string, end: number) => JobLine | null): AsyncGenerator<JobLine> {
  if (from >= to) return;
  const file: FileHandle = await open(path, "r");
  try {
    let held = Buffer.alloc(0);
    let at = from;
    /** Where `held` begins in the file. */
    let base = from;
    while (at < to) {
      const piece = Buffer.allocUnsafe(Math.min(Math.max(PIECE, held.length), to - at));
      const { bytesRead } = await file.read(piece, 0, piece.length, at);
      if (bytesRead === 0) return;
      at += bytesRead;
      held = held.length === 0 ? piece.subarray(0, bytesRead) : Buffer.concat([held, piece.subarray(0, bytesRead)]);
      let start = 0;
      for (let end = held.indexOf(NEWLINE); end >= 0; end = held.indexOf(NEWLINE, start)) {
        const line = make(held.toString("utf8", start, end), base + end + 1);
        start = end + 1;
        if (line !== null) yield line;
      }
      held = held.subarray(start);
      base += start;
    }
  } finally {
    await file.close();
  }
}
