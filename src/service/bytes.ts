/** Bodies of requests as bounded byte streams, whole JSON values and lines. Nothing here grows with the body but a JSON value, which has a limit of its own. */
import type { IncomingMessage } from "node:http";
import { HttpProblem } from "./problem.ts";

export type Bytes = AsyncIterable<Uint8Array>;

export function tooLarge(limit: number): HttpProblem {
  return new HttpProblem({ status: 413, detail: `the body is larger than ${limit} bytes, the most that is taken here`, close: true });
}

/** The body as it comes, pulled. Throws HttpProblem 413 past the limit, before anything is read if the head says so already. */
export async function* bodyOf(incoming: IncomingMessage, limit: number): AsyncGenerator<Uint8Array> {
  if (Number(incoming.headers["content-length"] ?? 0) > limit) throw tooLarge(limit);
  let size = 0;
  try {
    // Not destroyed on return: the answer goes over the same socket.
    for await (const chunk of incoming.iterator({ destroyOnReturn: false })) {
      const bytes: Uint8Array = chunk;
      size += bytes.length;
      if (size > limit) throw tooLarge(limit);
      yield bytes;
    }
  } catch (error) {
    if (error instanceof HttpProblem) throw error;
    throw new HttpProblem({ status: 400, detail: "the body ended before its end", close: true });
  }
}

/** The same bytes. Throws HttpProblem 413 past the limit. */
export async function* bounded(chunks: Bytes, limit: number, what: string): AsyncGenerator<Uint8Array> {
  let size = 0;
  for await (const chunk of chunks) {
    size += chunk.length;
    if (size > limit) throw new HttpProblem({ status: 413, detail: `${what} is larger than ${limit} bytes`, close: true });
    yield chunk;
  }
}

/** Deeper values are nobody's options, and would overflow the stack of whoever walks through them. */
const DEEPEST = 64;

function isTooDeep(text: string): boolean {
  let depth = 0;
  let quoted = false;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (quoted) {
      if (code === 92) at++;
      else if (code === 34) quoted = false;
    } else if (code === 34) quoted = true;
    else if (code === 91 || code === 123) {
      if (++depth > DEEPEST) return true;
    } else if (code === 93 || code === 125) depth--;
  }
  return false;
}

/** A whole JSON value. Throws HttpProblem 400 or 413. */
export async function jsonOf(chunks: Bytes): Promise<unknown> {
  const parts: Uint8Array[] = [];
  for await (const chunk of chunks) parts.push(chunk);
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(Buffer.concat(parts));
  } catch {
    throw badJson("the body is not UTF-8");
  }
  if (text.trim() === "") throw badJson("the body is empty; expected a JSON value");
  if (isTooDeep(text)) throw badJson(`the body is nested deeper than ${DEEPEST} levels`);
  try {
    return JSON.parse(text);
  } catch {
    throw badJson("the body is no JSON");
  }
}

function badJson(detail: string): HttpProblem {
  return new HttpProblem({ status: 400, detail, errors: [{ pointer: "#", message: detail }] });
}

const LF = 10;
const SPACE = 32;
const PERCENT = 37;
const AMPERSAND = 38;
const PLUS = 43;
const EQUALS = 61;

/** Longer lines are no URLs; they are cut here, so that a body without line ends does not grow in memory. */
const LONGEST_LINE = 65_536;
/** A body with a longer line is no list: it is refused before its end, which it may not have. */
const MOST_WITHOUT_END = 1_000_000;

/** Splits pieces of text into lines ended by LF, CRLF or CR; keeps what has no end yet, cut to the longest line. */
function lineSplitter(): { take(text: string): readonly string[]; rest(): string } {
  let rest = "";
  let afterCr = false;
  let started = false;
  let withoutEnd = 0;
  return {
    take(piece) {
      const text = !started && piece.startsWith("\ufeff") ? piece.slice(1) : piece;
      started ||= piece !== "";
      if (text === "") return [];
      const lines = (afterCr && text.charCodeAt(0) === LF ? text.slice(1) : text).split(/\r\n|\n|\r/);
      afterCr = text.endsWith("\r");
      lines[0] = rest + (lines[0] ?? "");
      const last = lines.pop() ?? "";
      withoutEnd = (lines.length === 0 ? withoutEnd : 0) + text.length;
      if (withoutEnd > MOST_WITHOUT_END) throw new HttpProblem({ status: 413, detail: `a line is longer than ${MOST_WITHOUT_END} characters`, close: true });
      rest = last.length > LONGEST_LINE ? last.slice(0, LONGEST_LINE) : last;
      return lines;
    },
    rest: () => rest,
  };
}

/**
 * Lines of UTF-8 text, ended by LF, CRLF or CR; blank ones too, since they count. A byte order mark is dropped. An iterator by hand: a generator in between would
 * cost as much for each of a million lines as all else. `onFailure` learns what the body failed with before whoever reads does.
 */
export function linesOf(chunks: Bytes, onFailure: (error: unknown) => void = () => undefined): AsyncIterable<string> {
  return {
    [Symbol.asyncIterator](): AsyncIterator<string> {
      const source = chunks[Symbol.asyncIterator]();
      // The mark is dropped by the splitter: a decoder that is fed in pieces drops later ones too.
      const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
      const splitter = lineSplitter();
      let lines: readonly string[] = [];
      let at = 0;
      let ended = false;
      async function pull(): Promise<readonly string[]> {
        const next = await source.next();
        ended = next.done === true;
        const found = splitter.take(decoder.decode(next.done ? undefined : next.value, { stream: !ended }));
        return ended && splitter.rest() !== "" ? [...found, splitter.rest()] : found;
      }
      async function more(): Promise<IteratorResult<string>> {
        while (at === lines.length) {
          if (ended) return { done: true, value: undefined };
          try {
            lines = await pull();
          } catch (error) {
            onFailure(error);
            throw error;
          }
          at = 0;
        }
        return { done: false, value: lines[at++] ?? "" };
      }
      return {
        next: () => (at < lines.length ? Promise.resolve({ done: false, value: lines[at++] ?? "" }) : more()),
        async return() {
          ended = true;
          lines = [];
          at = 0;
          await source.return?.();
          return { done: true, value: undefined };
        },
      };
    },
  };
}

/** The first byte that is no blank, or null where there is none within reason, and the same bytes again. */
export async function peeked(chunks: Bytes): Promise<{ readonly first: string | null; readonly bytes: Bytes }> {
  const source = chunks[Symbol.asyncIterator]();
  const held: Uint8Array[] = [];
  let first: string | null = null;
  let size = 0;
  while (first === null && size < 1_000) {
    const next = await source.next();
    if (next.done) break;
    held.push(next.value);
    size += next.value.length;
    first = /\S/.exec(Buffer.from(next.value.subarray(0, 1_000)).toString("latin1"))?.[0] ?? null;
  }
  async function* again(): AsyncGenerator<Uint8Array> {
    yield* held;
    for (let next = await source.next(); !next.done; next = await source.next()) yield next.value;
  }
  return { first, bytes: again() };
}

/**
 * Text of a body as UTF-8. `label`: its charset as the head says; a byte order mark of UTF-16, which Windows puts before what it calls Unicode, is believed before
 * that. What is UTF-8 passes as it is. Throws RangeError for a label that is none of the Encoding Standard.
 */
export async function* asUtf8(chunks: Bytes, label: string | null): AsyncGenerator<Uint8Array> {
  let decoder = label === null || /^utf-?8$/i.test(label) ? null : new TextDecoder(label);
  let head: Uint8Array | null = new Uint8Array(0);
  for await (const chunk of chunks) {
    let bytes: Uint8Array = chunk;
    if (head !== null) {
      bytes = Buffer.concat([head, chunk]);
      head = bytes.length < 2 ? bytes : null;
      if (head !== null) continue;
      const mark: number = (bytes[0] ?? 0) * 256 + (bytes[1] ?? 0);
      if (mark === 0xfffe || mark === 0xfeff) decoder = new TextDecoder(mark === 0xfffe ? "utf-16le" : "utf-16be");
    }
    yield decoder === null ? bytes : Buffer.from(decoder.decode(bytes, { stream: true }));
  }
  if (head !== null && head.length > 0) yield decoder === null ? head : Buffer.from(decoder.decode(head, { stream: true }));
  const rest = decoder?.decode() ?? "";
  if (rest !== "") yield Buffer.from(rest);
}

const FORM_START = /^[A-Za-z0-9_-]{1,64}=/;

/**
 * What curl -d and --data-binary send under application/x-www-form-urlencoded: the values of the field, decoded, each on a line of its own; a body that does not
 * start with a field name and "=" is plain lines. Yields bytes for linesOf.
 */
export async function* formField(chunks: Bytes, field: string): AsyncGenerator<Uint8Array> {
  let head = Buffer.alloc(0);
  let decode: ((chunk: Uint8Array) => Uint8Array) | null = null;
  let plain = false;
  for await (const chunk of chunks) {
    if (plain) yield chunk;
    else if (decode !== null) yield decode(chunk);
    else {
      head = Buffer.concat([head, chunk]);
      if (head.length < 80 && !head.includes(61)) continue;
      plain = !FORM_START.test(head.toString("latin1", 0, 80));
      decode = plain ? null : formDecoder(field);
      yield decode === null ? head : decode(head);
    }
  }
  if (plain || decode !== null) return;
  yield head;
}

/** Bytes of a form → bytes of the values of one field, a line end after each but the last. Holds at most a name and an unfinished escape. */
function formDecoder(field: string): (chunk: Uint8Array) => Uint8Array {
  let place: "name" | "wanted" | "other" = "name";
  let name = "";
  let pending = "";
  return (chunk) => {
    const out = Buffer.allocUnsafe(chunk.length + 8);
    let size = 0;
    const put = (code: number) => {
      size = out.writeUInt8(code, size);
    };
    for (const code of chunk) {
      if (code === AMPERSAND) {
        if (place === "wanted") put(LF);
        place = "name";
        name = "";
        pending = "";
      } else if (place === "name") {
        if (code === EQUALS) place = name === field ? "wanted" : "other";
        else if (name.length <= field.length) name += String.fromCharCode(code);
      } else if (place === "wanted" && pending !== "") {
        pending += String.fromCharCode(code);
        if (pending.length < 3) continue;
        // What is no escape after all is no URL either, whoever looks at the line says so.
        for (const byte of /^%[0-9a-f]{2}$/i.test(pending) ? [Number.parseInt(pending.slice(1), 16)] : Buffer.from(pending, "latin1")) put(byte);
        pending = "";
      } else if (place === "wanted") {
        if (code === PERCENT) pending = "%";
        else put(code === PLUS ? SPACE : code);
      }
    }
    return out.subarray(0, size);
  };
}
