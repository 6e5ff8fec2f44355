/** A whole table as a file: page after page of at most 100,000 records, put together by the browser, which keeps large parts on disk. */
import { good, nextOf } from "./api.ts";
import type { Table } from "./types.ts";

export type FileForm = "csv" | "ndjson";
const TYPES: Readonly<Record<FileForm, string>> = { csv: "text/csv", ndjson: "application/x-ndjson" };
const MOST = 100_000;
const HEAD_BYTES = 1_000_000;

/** All but the first line: each page of CSV names the columns again. */
async function withoutHeader(part: Blob): Promise<Blob> {
  const head = new Uint8Array(await part.slice(0, HEAD_BYTES).arrayBuffer());
  const end = head.indexOf(10);
  return end < 0 ? part : part.slice(end + 1);
}

export async function download(id: number, table: Table, form: FileForm, signal: AbortSignal): Promise<void> {
  const parts: Blob[] = [];
  let cursor: string | null = null;
  do {
    const query = new URLSearchParams({ limit: String(MOST), ...(cursor === null ? {} : { cursor }) });
    const response: Response = await good(`v1/jobs/${id}/${table}?${query}`, { headers: { accept: TYPES[form] }, signal });
    const part = await response.blob();
    parts.push(form === "csv" && cursor !== null ? await withoutHeader(part) : part);
    cursor = nextOf(response);
  } while (cursor !== null);
  const url = URL.createObjectURL(new Blob(parts, { type: TYPES[form] }));
  const link = document.createElement("a");
  link.href = url;
  link.download = `job-${id}-${table}.${form}`;
  link.click();
  // The browser has taken it by then; a file left open for good would stay in memory.
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}
