/** Records of a job as CSV (RFC 4180): which columns a table has, the same for every page of it. */
import type { JobService, JobTable } from "../core/jobs.ts";
import { PAGE_FIELDS } from "../core/records.ts";
import { csvCell, csvHeader, csvLine, csvRow } from "../rules/csv.ts";

/** Items from which columns are taken; fields that come later stand in `_extra` as JSON. */
const HEAD_ITEMS = 1_000;
const MOST_COLUMNS = 2_000;
const META = ["url", "depth", "fetchedAt"] as const;
const SKIPPED_FIELDS = ["url", "referrer", "depth", "reason", "rule"];

export interface CsvTable {
  readonly header: string;
  /** One record's JSON text as a line. */
  row(text: string): string;
}

function objectOf(text: string): Readonly<Record<string, unknown>> {
  const value: unknown = JSON.parse(text);
  // `as`: only read, by names; whatever else a record may be has none of them.
  return typeof value === "object" && value !== null ? (value as Readonly<Record<string, unknown>>) : {};
}

function itemColumns(fields: readonly string[]): CsvTable {
  const known = new Set(fields);
  return {
    header: csvHeader([...fields, ...META.map((name) => `_${name}`), "_extra"]),
    row(text) {
      const { _meta: meta, ...item } = objectOf(text);
      const from = objectOf(JSON.stringify(meta ?? null));
      const left = Object.entries(item).filter(([name]) => !known.has(name));
      const cells = [...fields.map((name) => (Object.hasOwn(item, name) ? item[name] : undefined)), ...META.map((name) => from[name])];
      return csvLine([...cells, left.length === 0 ? undefined : Object.fromEntries(left)].map(csvCell).join(","));
    },
  };
}

async function fieldsOfItems(jobs: JobService, id: number): Promise<readonly string[]> {
  const fields = new Set<string>();
  let count = 0;
  for await (const { text } of (await jobs.lines(id, "items", null)) ?? []) {
    for (const name of Object.keys(objectOf(text))) if (name !== "_meta" && fields.size < MOST_COLUMNS) fields.add(name);
    if (++count === HEAD_ITEMS) break;
  }
  return [...fields];
}

const columns = (names: readonly string[]): CsvTable => ({ header: csvHeader(names), row: (text) => csvRow(objectOf(text), names) });

/** `fields`: the page fields that the job was asked for, or null. */
export async function csvTable(jobs: JobService, id: number, table: JobTable, fields: readonly string[] | null): Promise<CsvTable> {
  switch (table) {
    case "pages":
      return columns(fields ?? PAGE_FIELDS);
    case "skipped":
      return columns(SKIPPED_FIELDS);
    case "images":
      return { header: csvHeader(["url"]), row: (text) => csvLine(csvCell(JSON.parse(text))) };
    case "items":
      return itemColumns(await fieldsOfItems(jobs, id));
  }
}

export async function* csvRows(table: CsvTable, texts: AsyncIterable<string>): AsyncGenerator<string> {
  yield table.header;
  for await (const text of texts) yield table.row(text);
}
