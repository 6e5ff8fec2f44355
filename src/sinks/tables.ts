/** The kinds of record that outputs hold, each with its columns. Knows no format and no file. */
import { type EdgeRecord, type ItemRecord, type Output, PAGE_FIELDS, type PageRecord, type SkippedRecord } from "../core/records.ts";
import type { ChangeRecord } from "../core/visits.ts";

export interface Table<T extends object> {
  readonly name: "pages" | "skipped" | "links" | "changes" | "items";
  /** Those of items are their own affair (sinks/item-columns.ts). */
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

/** A kind of item, as the scraper declares it. */
export interface ItemType {
  readonly name: string;
  /** The field that tells items of this type apart; null: none does. */
  readonly key: string | null;
  /** Its fields in their order; null: not declared. */
  readonly columns: readonly string[] | null;
}

/** An item and the page that it is from; without a page there is no `_meta`. */
export interface TakenItem {
  readonly item: ItemRecord;
  readonly page: PageRecord | null;
  readonly listed: boolean;
}

export interface ItemsTable extends Table<TakenItem> {
  readonly name: "items";
  /** Those declared; others may come. */
  readonly types: readonly ItemType[];
  /** Say where each is from. */
  readonly meta: boolean;
  /** Lines of the journal: the item with its page, type and key around it. */
  readonly journal: boolean;
}

/** Page records: those the `list` patterns chose, or all. `repeats`: requests that differ by more than their URL have a record each. */
export function pagesTable(options: Pick<PagesTable, "which" | "fields" | "repeats">): PagesTable {
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

/** What changed since the last run: pages, and items below them. */
export function changesTable(): Table<ChangeRecord> {
  return {
    name: "changes",
    columns: ["kind", "url", "change", "type", "key", "fields"],
    repeats: true,
    each({ changes }, take) {
      if (changes !== undefined) for (const change of changes) take(change);
    },
  };
}

export function isItems(table: { readonly name: string }): table is ItemsTable {
  return table.name === "items";
}

/** Items, of the listed pages or of all. */
export function itemsTable(options: Pick<ItemsTable, "types" | "meta"> & { readonly which?: "listed" | "all"; readonly journal?: boolean }): ItemsTable {
  const { types, meta, which, journal = false } = options;
  return {
    ...{ name: "items", types, meta, journal, columns: [] },
    each({ items, page, listed }, take) {
      if (items === undefined || (which === "listed" && !listed)) return;
      for (const item of items) take({ item, page, listed });
    },
  };
}
