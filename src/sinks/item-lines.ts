/** Items as JSON, copied from the text that the scraper gave: never parsed, only `_meta` or a journal's fields put around it. Writes no file. */
import type { ItemRecord, PageRecord } from "../core/records.ts";
import type { LineBuffer } from "../rules/lines.ts";
import type { ItemsTable, TakenItem } from "./tables.ts";

/** A line of DIR/items.jsonl. It begins with the page's URL, as the journal of pages does. */
export interface JournalItem {
  readonly url: string | null;
  readonly type: string;
  readonly key: string | null;
  /** The field that the key is the value of; absent without a key. */
  readonly keyField?: string;
  readonly depth: number | null;
  readonly fetchedAt: string | null;
  /** Absent: its page is listed. */
  readonly listed?: false;
  readonly item: Readonly<Record<string, unknown>>;
}

type AppendItem = (lines: LineBuffer, taken: TakenItem) => void;

/** `{…}` and `_meta` of the page as its last field. */
function plainAppender(meta: boolean, afterEach: string): AppendItem {
  let of: PageRecord | null = null;
  let tail = "";
  return (lines, { item, page }) => {
    if (!meta || page === null) {
      lines.text(item.json);
      if (afterEach !== "") lines.text(afterEach);
      return;
    }
    if (page !== of) {
      const { url, depth, fetchedAt } = page;
      tail = `,"_meta":${JSON.stringify({ url, depth, fetchedAt })}}${afterEach}`;
      of = page;
    }
    lines.text(item.json.slice(0, -1));
    // Only an object without fields is two characters long.
    lines.text(item.json.length === 2 ? tail.slice(1) : tail);
  };
}

function journalAppender(types: ItemsTable["types"], afterEach: string): AppendItem {
  const keyFields = new Map(types.map(({ name, key }) => [name, key]));
  return (lines, { item, page, listed }) => {
    const { type, key, json } = item;
    const keyField = key === null ? null : (keyFields.get(type) ?? null);
    const head = { url: page?.url ?? null, type, key, ...(keyField === null ? {} : { keyField }) };
    const rest = { depth: page?.depth ?? null, fetchedAt: page?.fetchedAt ?? null, ...(listed ? {} : { listed }) };
    lines.text(`${JSON.stringify({ ...head, ...rest }).slice(0, -1)},"item":`);
    lines.text(json);
    lines.text(`}${afterEach}`);
  };
}

/** Appends one item, without what stands around it. */
export function itemAppender(table: ItemsTable, afterEach: string): AppendItem {
  return table.journal ? journalAppender(table.types, afterEach) : plainAppender(table.meta, afterEach);
}

/** A line of the journal, taken apart without reading the item. */
export function readJournalItem(line: string): { readonly item: ItemRecord; readonly from: Omit<JournalItem, "item"> } {
  // Within a string the quotes would be escaped.
  const at = line.indexOf(',"item":');
  // `as`: written above.
  const from = JSON.parse(`${line.slice(0, at)}}`) as Omit<JournalItem, "item">;
  return { item: { type: from.type, key: from.key, json: line.slice(at + 8, -1) }, from };
}
