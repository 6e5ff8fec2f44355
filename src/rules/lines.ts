/** Records to JSON Lines in one buffer, byte for byte what JSON.stringify gives. Writes no file. */
import type { PageRecord } from "../core/records.ts";

/** What lines are appended to: a buffer that grows with its largest content and is emptied by its owner. */
export interface LineBuffer {
  /** Bytes held. */
  readonly size: number;
  text(part: string): void;
  /** Appends these bytes of another buffer. */
  copy(source: Uint8Array, from: number, to: number): void;
  /** A view of what is held, valid until the next `text` or `copy`; the buffer is empty afterwards. */
  take(): Uint8Array;
}

const USUAL_BYTES = 128 * 1024;

export function lineBuffer(): LineBuffer {
  let bytes = Buffer.allocUnsafe(USUAL_BYTES);
  let size = 0;

  function makeRoom(most: number): void {
    if (most <= bytes.length) return;
    const larger = Buffer.allocUnsafe(Math.max(most, bytes.length * 2));
    bytes.copy(larger, 0, 0, size);
    bytes = larger;
  }

  return {
    get size() {
      return size;
    },
    text(part) {
      // A UTF-16 unit takes at most three bytes in UTF-8.
      makeRoom(size + part.length * 3);
      size += bytes.write(part, size);
    },
    copy(source, from, to) {
      makeRoom(size + to - from);
      bytes.set(source.subarray(from, to), size);
      size += to - from;
    },
    take() {
      const taken = bytes.subarray(0, size);
      if (bytes.length > USUAL_BYTES) bytes = Buffer.allocUnsafe(USUAL_BYTES);
      size = 0;
      return taken;
    },
  };
}

const NEEDS_ESCAPES = /["\\\u0000-\u001f\ud800-\udfff]/;

function quoted(text: string): string {
  return NEEDS_ESCAPES.test(text) ? JSON.stringify(text) : `"${text}"`;
}

function encoded(value: unknown): string | undefined {
  if (typeof value === "string") return quoted(value);
  if (value === null) return "null";
  // Undefined and functions give undefined: the field is left out, as JSON.stringify does.
  return JSON.stringify(value);
}

const NOT_ASCII = /[^\u0000-\u007f]/;

/**
 * Appends a page record as one line, with these fields in this order, or all of the record. `end` follows it.
 * The links are a piece of their own when the title is not ASCII: it would make the engine treat the whole line, links and all, as two-byte text
 * (60 links: 5 µs instead of 8; with an ASCII title JSON.stringify takes 3).
 */
export function appendPage(line: LineBuffer, page: PageRecord, fields: readonly string[] | null, end = "\n"): void {
  if (fields === null && !NOT_ASCII.test(page.title ?? "")) {
    appendRecord(line, page, end);
    return;
  }
  let part = "";
  let separator = "{";
  // `as`: only read, by names that are fields of the record or absent from it.
  const record = page as unknown as Readonly<Record<string, unknown>>;
  for (const field of fields ?? Object.keys(page)) {
    const value = record[field];
    const json = encoded(value);
    if (json === undefined) continue;
    if (typeof value === "object" && value !== null) {
      line.text(`${part}${separator}"${field}":`);
      line.text(json);
      part = "";
    } else part += `${separator}"${field}":${json}`;
    separator = ",";
  }
  line.text(separator === "{" ? `{}${end}` : `${part}}${end}`);
}

/** Appends any other record as one line. `end` follows it. */
export function appendRecord(line: LineBuffer, record: object, end = "\n"): void {
  line.text(`${JSON.stringify(record)}${end}`);
}

/** An item's text, with `_meta` of its page as the last field where there is one. */
export function itemText(json: string, page: Pick<PageRecord, "url" | "depth" | "fetchedAt"> | null): string {
  if (page === null) return json;
  const { url, depth, fetchedAt } = page;
  const tail = `"_meta":${JSON.stringify({ url, depth, fetchedAt })}}`;
  // Only an object without fields is two characters long.
  return `${json.slice(0, -1)}${json.length === 2 ? "" : ","}${tail}`;
}
