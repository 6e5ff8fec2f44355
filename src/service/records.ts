/** A page of a job's records: found with a bounded look ahead, so that its link to the next page stands in the head, then streamed as JSON, NDJSON or CSV. */
import type { JobLine, JobService, JobTable } from "../core/jobs.ts";

/** Text that is kept while looking ahead; what lies beyond is read again when it is sent. */
const KEPT_CHARS = 1_000_000;
const BLOCK_CHARS = 65_536;

export interface RecordPage {
  readonly count: number;
  /** Of the last record; of an empty page the cursor that was asked for. */
  readonly last: string | null;
  /** Where the next page starts, if anything is there now. */
  readonly next: string | null;
  /** The texts in order, each once. May be called once. */
  texts(): AsyncGenerator<string>;
}

export interface PageQuery {
  readonly id: number;
  readonly table: JobTable;
  readonly cursor: string | null;
  readonly limit: number;
}

/** Null: no such job, or the cursor is none of its. Stops reading when the signal is aborted. */
export async function recordPage(jobs: JobService, query: PageQuery, signal: AbortSignal): Promise<RecordPage | null> {
  const { id, table, cursor, limit } = query;
  const lines = await jobs.lines(id, table, cursor);
  if (lines === null) return null;
  const kept: JobLine[] = [];
  let chars = 0;
  let count = 0;
  let last = cursor;
  let more = false;
  for await (const line of lines) {
    if (signal.aborted) break;
    if (count === limit) {
      more = true;
      break;
    }
    count++;
    last = line.cursor;
    chars += line.text.length;
    if (kept.length === count - 1 && chars <= KEPT_CHARS) kept.push(line);
  }
  async function* texts(): AsyncGenerator<string> {
    for (const { text } of kept) yield text;
    let left = count - kept.length;
    if (left === 0) return;
    const rest = await jobs.lines(id, table, kept.at(-1)?.cursor ?? cursor);
    // Deleted meanwhile: the answer ends short, which its reader sees from the missing end of the stream.
    if (rest === null) throw new Error("the job was deleted while it was read");
    for await (const { text } of rest) {
      yield text;
      if (--left === 0) return;
    }
  }
  return { count, last, next: more ? last : null, texts };
}

/** Pieces of text as bytes in blocks of a size that is worth a write. */
export async function* blocks(pieces: AsyncIterable<string> | Iterable<string>): AsyncGenerator<Uint8Array> {
  let held = "";
  for await (const piece of pieces) {
    held += piece;
    if (held.length < BLOCK_CHARS) continue;
    yield Buffer.from(held);
    held = "";
  }
  if (held !== "") yield Buffer.from(held);
}

/** A JSON array of the texts. */
export async function* jsonArray(texts: AsyncIterable<string>): AsyncGenerator<string> {
  let before = "[";
  for await (const text of texts) {
    yield before + text;
    before = ",";
  }
  yield before === "[" ? "[]" : "]";
}

/** One text a line. */
export async function* jsonLines(texts: AsyncIterable<string>): AsyncGenerator<string> {
  for await (const text of texts) yield `${text}\n`;
}
