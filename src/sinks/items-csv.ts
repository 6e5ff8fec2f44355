/**
 * Items as CSV, whose columns are those of the declared types, or else come from the first 1,000 items.
 *
 * Until then the file is whole at any time, with the columns known so far: rows are appended while the header stays, and when it changes the file is replaced
 * by one with the new header. Such a replacement may happen after the last commit of the crawl, so a resume reads the committed rows back from whatever
 * stands there now, by the names of their columns: a later header has all that an earlier one had, and a cell that is written never changes.
 * After the first 1,000 the header stays, and the file only grows, like any other (sinks/text-file.ts).
 * A file that cannot be replaced (a device, a folder without permission) is held back until its header stays: at the first checkpoint at the latest.
 */
import { accessSync, chmodSync, constants, readFileSync, realpathSync, renameSync, rmSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { realClock } from "../core/clock.ts";
import { CrawlError } from "../core/errors.ts";
import type { Sink, SinkState } from "../core/sink.ts";
import { type ColumnsState, type CsvColumns, csvColumns, type Row } from "./csv-columns.ts";
import { type AppendFile, appendFile, type FileState, notAsLeft, unwritable } from "./file.ts";
import { type GzipSteps, gzipSteps } from "./gzip.ts";
import type { ItemsTable } from "./tables.ts";
import { type TextFile, textFile } from "./text-file.ts";

/** Items, or characters of them, from which columns are taken. */
const HEAD_ITEMS = 1_000;
const HEAD_LENGTH = 16 * 1024 * 1024;
const STALE_MS = 250;

const checksum = (text: string, before = 0): number => process.getBuiltinModule("node:zlib").crc32(text, before);

function textIn(path: string, gzip: boolean): string {
  let bytes: Buffer;
  try {
    bytes = readFileSync(path);
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") throw notAsLeft(path, "it is gone since the crawl stopped");
    throw unwritable(path, error);
  }
  if (!gzip) return bytes.toString();
  const { gunzipSync, constants: flags } = process.getBuiltinModule("node:zlib");
  try {
    // Without its end, which only a clean end writes.
    return gunzipSync(bytes, { finishFlush: flags.Z_SYNC_FLUSH }).toString();
  } catch {
    throw notAsLeft(path, "it was replaced or changed since the crawl stopped");
  }
}

/** Whether another file may take its place. */
function isReplaceable(path: string): boolean {
  const known = statSync(path, { throwIfNoEntry: false });
  if (known === undefined) return true;
  if (!known.isFile()) return false;
  try {
    accessSync(dirname(realpathSync(path)), constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

/** before: a file with rows that a commit may count on · after: the other one, at once. Answers where it stands. */
function replace(path: string, bytes: Uint8Array, sync: boolean): FileState {
  const real = realpathSync(path);
  const beside = `${real}.skein-new`;
  try {
    const file = appendFile(beside, null);
    file.append(bytes, []);
    file.create();
    if (sync) file.sync();
    file.close();
    chmodSync(beside, statSync(real).mode & 0o777);
    renameSync(beside, real);
    return file.state();
  } catch (error) {
    rmSync(beside, { force: true });
    throw unwritable(path, error instanceof CrawlError ? error.cause : error);
  }
}

/** The rows while the header may change. */
interface Head {
  readonly rows: readonly Row[];
  /** Characters of the rows. */
  readonly length: number;
  push(row: Row): void;
  /** Brings the file up to date. */
  drain(): void;
  checkpoint(sync: boolean): { readonly records: number; readonly check: number };
  /** Lets go of the file; where it stands. */
  leave(): { readonly at: FileState; readonly gzip: GzipSteps | null } | null;
  end(): void;
}

function openHead(path: string, gzipped: boolean, columns: CsvColumns, before: readonly Row[]): Head {
  const rows = [...before];
  let length = rows.reduce((sum, row) => sum + lengthOf(row), 0);
  let file: AppendFile | null = null;
  let gzip: GzipSteps | null = null;
  /** Something of this run is in the file. */
  let begun = rows.length > 0;
  let asked = begun;
  /** What is in the file, and what of it the checksum covers: rows, under which header. */
  let written = { version: -1, rows: 0 };
  let summed = { version: -1, rows: 0, sum: 0 };

  const linesFrom = (first: number): string =>
    rows
      .slice(first)
      .map((row) => columns.line(row))
      .join("");

  function packed(text: string, fresh: boolean): Uint8Array {
    if (!gzipped) return Buffer.from(text);
    if (fresh) gzip = gzipSteps(null);
    return gzip?.step(Buffer.from(text)) ?? Buffer.alloc(0);
  }

  function rewrite(): void {
    const bytes = packed(columns.header() + linesFrom(0), true);
    file?.close();
    file = null;
    if (begun) file = appendFile(path, replace(path, bytes, asked));
    else {
      file = appendFile(path, null);
      file.append(bytes, []);
      file.create();
    }
    begun = true;
  }

  function drain(): void {
    const { version } = columns;
    if (written.version === version && written.rows === rows.length) return;
    if (written.version === version && file !== null) file.append(packed(linesFrom(written.rows), false), []);
    else rewrite();
    written = { version, rows: rows.length };
  }

  function check(): number {
    const { version } = columns;
    const same = summed.version === version;
    const text = (same ? "" : columns.header()) + linesFrom(same ? summed.rows : 0);
    summed = { version, rows: rows.length, sum: checksum(text, same ? summed.sum : 0) };
    return summed.sum;
  }

  return {
    rows,
    get length() {
      return length;
    },
    push(row) {
      rows.push(row);
      length += lengthOf(row);
    },
    drain,
    checkpoint(sync) {
      asked = true;
      if (rows.length > 0) drain();
      if (sync) file?.sync();
      return { records: rows.length, check: check() };
    },
    leave() {
      if (file === null) return null;
      const at = file.state();
      file.close();
      file = null;
      return { at, gzip };
    },
    end() {
      if (gzip !== null) file?.append(gzip.end(), []);
    },
  };
}

const lengthOf = (row: Row): number => row.reduce((sum, cell) => sum + (cell?.length ?? 0), 0);

/** What a resume finds: rows of the head, or a file whose header stays. */
function resumed(path: string, form: string, gzip: boolean, table: ItemsTable, state: SinkState): { columns: CsvColumns; rows: readonly Row[] } {
  if (state.form !== form) throw notAsLeft(path, `the saved state is that of another output (${state.form ?? "?"}, not ${form})`);
  if (typeof state.columns !== "string" || typeof state.records !== "number") throw notAsLeft(path, "the saved state is not that of such a file");
  const at = JSON.parse(state.columns) as ColumnsState; // `as`: it is what a checkpoint gave
  const columns = csvColumns(table, at);
  if (at.fixed || state.records === 0) return { columns, rows: [] };
  const text = textIn(path, gzip);
  const rows = columns.read(text, state.records);
  if (rows === null) throw notAsLeft(path, `it was replaced or changed since the crawl stopped, or has fewer than ${state.records} rows`);
  if (checksum(columns.header() + rows.map((row) => columns.line(row)).join("")) !== state.check) {
    throw notAsLeft(path, "it was replaced or changed since the crawl stopped");
  }
  return { columns, rows };
}

/** Throws CrawlError `output-unwritable`. */
export function itemsCsvSink(path: string, table: ItemsTable, state: SinkState | null): Sink {
  const gzip = /\.gz$/i.test(path);
  const form = `items csv${gzip ? " gz" : ""}`;
  const { columns, rows } = state === null ? { columns: csvColumns(table, null), rows: [] } : resumed(path, form, gzip, table, state);
  let body: TextFile | null = columns.state().fixed ? textFile(path, { gzip, form, state }) : null;
  const head = openHead(path, gzip, columns, rows);
  const replaceable = isReplaceable(path);
  let settled = state?.settled === 1;
  let drainedAt = realClock.now();
  let failure: CrawlError | null = null;
  let closed = false;

  /** What fails once is not tried again. */
  function step<T>(run: () => T): T {
    if (failure !== null) throw failure;
    try {
      return run();
    } catch (error) {
      failure = error instanceof CrawlError ? error : new CrawlError("internal", `cannot write ${path}`, { cause: error });
      throw failure;
    }
  }

  /** before: rows that are held, in the file or not · after: a file that only grows. */
  function fix(): TextFile {
    columns.fix();
    if (replaceable) head.drain();
    const left = head.leave();
    const records = head.rows.length;
    if (left !== null) return textFile(path, { gzip, form, state: { form, ...left.at, records, ...(left.gzip?.state() ?? { crc: 0, size: 0 }) } });
    const file = textFile(path, { gzip, form, state: null });
    file.lines.text(columns.header());
    for (const row of head.rows) append(file, row);
    return file;
  }

  function append(file: TextFile, row: Row): void {
    file.lines.text(columns.line(row));
    file.endRecord();
  }

  function take(row: Row): void {
    if (body !== null) append(body, row);
    else {
      head.push(row);
      if (head.rows.length >= HEAD_ITEMS || head.length >= HEAD_LENGTH) body = fix();
    }
  }

  function drain(): void {
    drainedAt = realClock.now();
    if (body !== null) body.flush();
    else if (replaceable && head.rows.length > 0) head.drain();
  }

  /** After a failure what was saved before gets its end if a few bytes fit. */
  function endHead(): void {
    try {
      head.end();
    } catch (error) {
      // The failure before was told when it happened.
      if (failure === null) throw error;
    }
  }

  return {
    name: path,
    write(outputs) {
      step(() => {
        settled = true;
        for (const output of outputs) table.each(output, (taken) => take(columns.row(taken)));
        if (body !== null) body.settle();
        else if (!gzip && realClock.now() - drainedAt >= STALE_MS) drain();
      });
    },
    flush: () => step(drain),
    checkpoint: (sync) =>
      step(() => {
        if (body === null && !replaceable && head.rows.length > 0) body = fix();
        const where = body === null ? { form, ...head.checkpoint(sync) } : body.checkpoint(sync);
        return { ...where, settled: settled ? 1 : 0, columns: JSON.stringify(columns.state()) };
      }),
    async close() {
      if (closed) return;
      closed = true;
      try {
        if (body !== null) return body.close(() => "");
        if (failure === null) step(() => (settled ? head.drain() : undefined));
        endHead();
      } finally {
        head.leave();
      }
    },
  };
}
