/** The records of a durable crawl into files of other formats. The formats are those of the sinks; here the journals are only read. */
import type { EdgeRecord, Output, PageRecord, SkippedRecord } from "./core/records.ts";
import { parseSpec } from "./core/spec.ts";
import type { Journal, StateView } from "./inspect.ts";
import { journalLines } from "./inspect-journal.ts";
import { emptyOutput } from "./rules/admit.ts";
import { openSinks } from "./sinks/open.ts";

export type ExportKind = "pages" | "skipped" | "links";

export interface ExportOptions {
  readonly what: ExportKind;
  /** Fields of page records; null: all. */
  readonly fields: readonly string[] | null;
}

/** Outputs written in one step. */
const BATCH = 256;

function edgesOf({ url, links }: PageRecord): EdgeRecord[] {
  return links.map((to) => ({ from: url, to }));
}

function outputOf(line: string, what: ExportKind): Output {
  const record: unknown = JSON.parse(line);
  // `as`, three times: each journal holds lines of one kind, written by this program.
  if (what === "skipped") return { ...emptyOutput, skipped: [{ idHi: 0, idLo: 0, value: record as SkippedRecord }] };
  if (what === "pages") return { ...emptyOutput, page: record as PageRecord, listed: true };
  return { ...emptyOutput, edges: edgesOf(record as PageRecord) };
}

export function journalFor(view: StateView, what: ExportKind): Journal {
  return what === "skipped" ? view.journal.skipped : view.journal.pages;
}

/** Writes a file in the format of its suffix; answers the number of lines read. Throws CrawlError `output-unwritable`, `invalid-options` for a suffix or field that is none. */
export async function exportTo(journal: Journal, file: string, { what, fields }: ExportOptions): Promise<number> {
  const target = what === "pages" ? { outputs: [file] } : what === "skipped" ? { skippedFile: file } : { linksFile: file };
  const sinks = openSinks(parseSpec({ ...target, fields }));
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
