/** Sinks that write text: JSON Lines, a JSON array, CSV. Where the text goes is sinks/text-file.ts. */
import type { Output, PageRecord } from "../core/records.ts";
import type { Sink, SinkState } from "../core/sink.ts";
import { csvHeader, csvRow } from "../rules/csv.ts";
import { appendPage, appendRecord, type LineBuffer } from "../rules/lines.ts";
import { itemAppender } from "./item-lines.ts";
import { itemsCsvSink } from "./items-csv.ts";
import { type SharedLines, sharedLines } from "./shared-lines.ts";
import { isItems, type PagesTable, type Table, type TakenItem } from "./tables.ts";
import { type TextFile, textFile } from "./text-file.ts";

/** What stands around records. All of it up to the end of a record is written with that record, so that a file cut after any of them can go on. */
interface Format {
  readonly name: "jsonl" | "json" | "csv";
  readonly begin: string;
  readonly between: string;
  readonly afterEach: string;
  readonly end: string;
  readonly empty: string;
}

const FORMATS: Readonly<Record<Exclude<Format["name"], "csv">, Format>> = {
  jsonl: { name: "jsonl", begin: "", between: "", afterEach: "\n", end: "", empty: "" },
  json: { name: "json", begin: "[\n", between: ",\n", afterEach: "", end: "\n]\n", empty: "[]\n" },
};

/** By suffix: `.json`, `.csv`, else JSON Lines; each also with `.gz`. */
function formatOf(target: string | number, columns: readonly string[]): Format {
  const suffix = typeof target === "number" ? "jsonl" : /\.(json|csv)(?:\.gz)?$/i.exec(target)?.[1]?.toLowerCase();
  if (suffix !== "csv") return FORMATS[suffix === "json" ? "json" : "jsonl"];
  const header = csvHeader(columns);
  return { name: "csv", begin: header, between: "", afterEach: "", end: "", empty: header };
}

function isPages(table: { readonly name: string }): table is PagesTable {
  return table.name === "pages";
}

/** Appends one record, without what stands around it. */
function writerOf<T extends object>(table: Table<T>, { name, afterEach }: Format): (lines: LineBuffer, record: T) => void {
  if (name === "csv") return (lines, record) => lines.text(csvRow(record, table.columns));
  if (isItems(table)) {
    const append = itemAppender(table, afterEach);
    // `as`: what a table of items takes are items.
    return (lines, record) => append(lines, record as object as TakenItem);
  }
  if (!isPages(table)) return (lines, record) => appendRecord(lines, record, afterEach);
  const { fields } = table;
  // `as`: the records of a table of pages are pages.
  return (lines, record) => appendPage(lines, record as object as PageRecord, fields, afterEach);
}

/** Whole page records as JSON, copied from lines that are made once for several files. */
function copier(file: TextFile, { which }: PagesTable, { begin, between, afterEach }: Format, shared: SharedLines): (outputs: readonly Output[]) => void {
  const { lines } = file;
  const cut = afterEach === "" ? 1 : 0;
  return (outputs) => {
    const { bytes, ends } = shared.of(outputs);
    let start = 0;
    for (const [index, { page, listed }] of outputs.entries()) {
      const end = ends[index] ?? start;
      if (page !== null && (listed || which === "all")) {
        if (between !== "") lines.text(file.records === 0 ? begin : between);
        lines.copy(bytes, start, end - cut);
        file.endRecord();
      }
      start = end;
    }
  };
}

export interface TextSinkOptions {
  /** Shown in messages; by default the path. */
  readonly name?: string;
  /** Where to go on; null or absent: a fresh run. */
  readonly state?: SinkState | null;
  readonly shared?: SharedLines;
}

/** `target`: a path, whose suffix gives the format (`.gz` compresses), or a file descriptor for JSON Lines. Throws CrawlError `output-unwritable`. */
export function textSink<T extends object>(target: string | number, table: Table<T>, options: TextSinkOptions = {}): Sink {
  const format = formatOf(target, table.columns);
  if (isItems(table) && format.name === "csv" && typeof target === "string") return itemsCsvSink(target, table, options.state ?? null);
  const gzip = typeof target === "string" && /\.gz$/i.test(target);
  const file = textFile(target, { gzip, form: `${table.name} ${format.name}${gzip ? " gz" : ""}`, state: options.state ?? null });
  const { lines } = file;
  const { begin, between } = format;
  const append = writerOf(table, format);
  const shared = options.shared ?? sharedLines();
  const copy = isPages(table) && table.fields === null && format.name !== "csv" ? copier(file, table, format, shared) : null;
  if (copy !== null) shared.join();

  function take(record: T): void {
    const before = file.records === 0 ? begin : between;
    if (before !== "") lines.text(before);
    append(lines, record);
    file.endRecord();
  }

  const sink: Sink = {
    name: options.name ?? (typeof target === "string" ? target : "stdout"),
    write(outputs) {
      if (copy !== null && shared.shared) copy(outputs);
      else for (const output of outputs) table.each(output, take);
      file.settle();
    },
    flush: () => file.flush(),
    // `async`: a failure rejects, as callers expect of a promise.
    close: async () => file.close((empty) => (empty ? format.empty : format.end)),
  };
  // A pipe cannot be taken back.
  return typeof target === "number" ? sink : { ...sink, checkpoint: (sync) => file.checkpoint(sync) };
}
