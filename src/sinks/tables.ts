/** The three kinds of record that outputs hold, each with its columns. Knows no format and no file. */
import { type EdgeRecord, type Output, PAGE_FIELDS, type PageRecord, type SkippedRecord } from "../core/records.ts";

export interface Table<T extends object> {
  readonly name: "pages" | "skipped" | "links";
  readonly columns: readonly string[];
  /** The same URL may stand in it more than once. */
  readonly repeats?: boolean;
  /** Calls `take` for each record of it in an output. */
  each(output: Output, take: (record: T) => void): void;
}

export interface PagesTable extends Table<PageRecord> {
  readonly which: "listed" | "all";
  /** Only these columns, in this order; null: whatever the record has. */
  readonly fields: readonly string[] | null;
}

/** Page records: those the `list` patterns chose, or all. */
export function pagesTable(options: Pick<PagesTable, "which" | "fields">): PagesTable {
  const all = options.which === "all";
  return {
    ...options,
    name: "pages",
    columns: options.fields ?? PAGE_FIELDS,
    each({ page, listed }, take) {
      if (page !== null && (all || listed)) take(page);
    },
  };
}

/** Skipped URLs; those that are only repetitions when asked for. */
export function skippedTable(options: { readonly duplicates: boolean }): Table<SkippedRecord> {
  return {
    name: "skipped",
    columns: ["url", "referrer", "depth", "reason", "rule"],
    repeats: options.duplicates,
    each({ skipped }, take) {
      for (const { value } of skipped) if (options.duplicates || value.reason !== "duplicate") take(value);
    },
  };
}

/** Edges of the link graph. */
export function linksTable(): Table<EdgeRecord> {
  return {
    name: "links",
    columns: ["from", "to", "nofollow"],
    repeats: true,
    each({ edges }, take) {
      for (const edge of edges) take(edge);
    },
  };
}
