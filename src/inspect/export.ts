/** The records of a durable crawl into files of other formats. The formats are those of the sinks; here the journals are only read. */
import type { EdgeRecord, Output, PageRecord, SkippedRecord } from "../core/records.ts";
import { parseSpec } from "../core/spec.ts";
import { emptyOutput } from "../rules/admit.ts";
import { readJournalItem } from "../sinks/item-lines.ts";
import { openSinks } from "../sinks/open.ts";
import type { ItemType } from "../sinks/tables.ts";
import type { Journal, StateView } from "./inspect.ts";
import { journalLines } from "./journal.ts";

export type ExportKind = "pages" | "skipped" | "links" | "items";

export interface ExportOptions {
  readonly what: ExportKind;
  /** Fields of page records; null: all. */
  readonly fields: readonly string[] | null;
  /** Items say where they are from. */
  readonly meta: boolean;
}

/** Columns of a type of items at most; what more fields there are goes to `_extra`. */
const MOST_COLUMNS = 1_000;
/** Outputs written in one step. */
const BATCH = 256;

function edgesOf({ url, links }: PageRecord): EdgeRecord[] {
  return links.map((to) => ({ from: url, to }));
}

function itemOutput(line: string): Output {
  const { item, from } = readJournalItem(line);
  // `as`: where it is from is all that is read of the page of an item.
  return { ...emptyOutput, page: from.url === null ? null : (from as object as PageRecord), listed: true, items: [item] };
}

/** The types of items and all of their fields, as far as columns go. */
async function typesIn(journal: Journal): Promise<readonly ItemType[]> {
  const types = new Map<string, { key: string | null; readonly columns: Set<string> }>();
  for await (const lines of journalLines(journal)) {
    for (const line of lines) {
      const { item, from } = readJournalItem(line);
      const type = types.get(item.type) ?? { key: null, columns: new Set<string>() };
      types.set(item.type, type);
      type.key ??= from.keyField ?? null;
      if (type.columns.size < MOST_COLUMNS) for (const field of Object.keys(JSON.parse(item.json))) type.columns.add(field);
    }
  }
  return [...types].map(([name, { key, columns }]) => ({ name, key, columns: [...columns] }));
}

function outputOf(line: string, what: ExportKind): Output {
  if (what === "items") return itemOutput(line);
  const record: unknown = JSON.parse(line);
  // `as`, three times: each journal holds lines of one kind, written by this program.
  if (what === "skipped") return { ...emptyOutput, skipped: [{ idHi: 0, idLo: 0, value: record as SkippedRecord }] };
  if (what === "pages") return { ...emptyOutput, page: record as PageRecord, listed: true };
  return { ...emptyOutput, edges: edgesOf(record as PageRecord) };
}

export function journalFor(view: StateView, what: ExportKind): Journal {
  return what === "links" ? view.journal.pages : view.journal[what];
}

/** Items as they go to stdout, one line each. */
export function itemLine(line: string, meta: boolean): string {
  const { item, from } = readJournalItem(line);
  const { url, depth, fetchedAt } = from;
  if (!meta || url === null) return item.json;
  return `${item.json.slice(0, -1)}${item.json.length === 2 ? "" : ","}"_meta":${JSON.stringify({ url, depth, fetchedAt })}}`;
}

/** Writes a file in the format of its suffix; answers the number of lines read. Throws CrawlError `output-unwritable`, `invalid-options` for a suffix or field that is none. */
export async function exportTo(journal: Journal, file: string, { what, fields, meta }: ExportOptions): Promise<number> {
  const target = what === "pages" || what === "items" ? { outputs: [file] } : what === "skipped" ? { skippedFile: file } : { linksFile: file };
  // JSON Lines and JSON have no columns, for which all is read first.
  const types = what !== "items" ? null : /\.(csv|sqlite)(?:\.gz)?$/i.test(file) ? await typesIn(journal) : [];
  const sinks = openSinks(parseSpec({ ...target, fields, meta }), null, undefined, types === null ? null : { types });
  let count = 0;
  try {
    for await (const lines of journalLines(journal)) {
      for (let at = 0; at < lines.length; at += BATCH) {
        const outputs = lines.slice(at, at + BATCH).map((line) => outputOf(line, what));
        for (const sink of sinks) sink.write(outputs);
      }
      count += lines.length;
    }
    // A run of no records is exported as none, and not as the file that was there.
    if (count === 0) for (const sink of sinks) sink.write([]);
  } finally {
    for (const sink of sinks) await sink.close();
  }
  return count;
}
