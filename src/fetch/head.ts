/**
 * Heads of answers as browsers read them: lines without a colon, bare line feeds, blanks and controls where none belong and two lengths are put right before undici's strict
 * parser sees them, and interim answers are left out. A head that is in order passes untouched, and so does what cannot be put right: that then fails there.
 */
import { trimBlanks } from "../rules/field-value.ts";

export interface HeadFilter {
  /** The next bytes are a head. */
  expect(): void;
  /** Bytes came since `expect`. */
  heard(): boolean;
  /** What the parser is to see of this piece; null: nothing yet. */
  pass(piece: Buffer): Buffer | null;
}

/** A head that is longer is not ours to judge: undici's own limit refuses it. */
const MAX_HELD = 256 * 1024;
const CR = 0x0d;
const LF = 0x0a;

/** Characters of a field name (RFC 9110 §5.6.2). */
const TOKEN = new Uint8Array(256);
for (const char of "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") TOKEN[char.charCodeAt(0)] = 1;

/** Bytes of a field value that undici's parser lets pass (RFC 9110 §5.5): a tab, and all but controls. */
const VALUE = new Uint8Array(256).fill(1, 0x20);
VALUE[0x09] = 1;
VALUE[0x7f] = 0;

export function createHeadFilter(): HeadFilter {
  let expecting = true;
  let heard = false;
  let held: Buffer | null = null;
  return {
    expect() {
      expecting = true;
      heard = false;
      held = null;
    },
    heard: () => heard,
    pass(piece) {
      if (!expecting) return piece;
      heard = true;
      let bytes = held ? Buffer.concat([held, piece]) : piece;
      held = null;
      for (;;) {
        if (bytes.byteLength > 11 && !startsLikeAnswer(bytes)) break;
        const end = headEnd(bytes);
        if (end < 0) {
          if (bytes.byteLength > MAX_HELD) break;
          held = bytes;
          return null;
        }
        if (!hasPlainStatusLine(bytes)) {
          const plain = withPlainStatusLine(bytes);
          if (plain === null) break;
          bytes = plain;
          continue;
        }
        // 1xx are no answers (RFC 9110 §15.2); 101 nobody asked for, which undici refuses.
        if (bytes[9] === 0x31 && bytes.toString("latin1", 9, 12) !== "101") {
          bytes = bytes.subarray(end);
          continue;
        }
        expecting = false;
        return inOrder(bytes, end) ? bytes : mended(bytes, end);
      }
      expecting = false;
      return bytes;
    },
  };
}

/** A status line as it should be, or in one of the forms that browsers read: another version, more blanks, lower case, that of radio servers. */
const STATUS_LINE = /^(?:HTTP\/\d(?:\.\d)?|ICY)[ \t]+(\d{3})[ \t]*(?=[\r\n]|[^\d])/i;

function startsLikeAnswer(bytes: Buffer): boolean {
  return hasPlainStatusLine(bytes) || /^(?:HTTP\/|ICY )/i.test(bytes.toString("latin1", 0, 5));
}

/** `HTTP/1.1 2…` or `HTTP/1.0 2…`. */
function hasPlainStatusLine(bytes: Buffer): boolean {
  const isHttp = bytes[0] === 0x48 && bytes[1] === 0x54 && bytes[2] === 0x54 && bytes[3] === 0x50 && bytes[4] === 0x2f;
  const minor = bytes[7];
  return isHttp && bytes[5] === 0x31 && bytes[6] === 0x2e && (minor === 0x31 || minor === 0x30) && bytes[8] === 0x20 && bytes[9] !== 0x20 && bytes[9] !== 0x09;
}

/** Of a version we do not speak the highest we do is taken (RFC 9110 §2.5). Null: this is no status line. */
function withPlainStatusLine(bytes: Buffer): Buffer | null {
  const [line, status] = STATUS_LINE.exec(bytes.toString("latin1", 0, 64)) ?? [];
  if (line === undefined) return null;
  const version = /^ICY|^HTTP\/1\.0/i.test(line) ? "HTTP/1.0" : "HTTP/1.1";
  return Buffer.concat([Buffer.from(`${version} ${status} `), bytes.subarray(line.length)]);
}

/** Index behind the empty line; −1 when it has not come. */
function headEnd(bytes: Buffer): number {
  const strict = bytes.indexOf("\r\n\r\n");
  const limit = strict < 0 ? bytes.byteLength : strict + 2;
  // An empty line of bare line feeds may come earlier.
  for (let i = bytes.indexOf(LF); i >= 0 && i < limit - 1; i = bytes.indexOf(LF, i + 1)) {
    if (bytes[i + 1] === LF) return i + 2;
    if (bytes[i + 1] === CR && bytes[i + 2] === LF) return i + 3;
  }
  return strict < 0 ? -1 : strict + 4;
}

/** One pass over the bytes of the head, since it is done for every page; whatever is unusual at all is left to `mended`. */
function inOrder(bytes: Buffer, end: number): boolean {
  let at = bytes.indexOf(LF) + 1;
  if (bytes[at - 2] !== CR) return false;
  let framed = 0;
  while (at < end - 2) {
    let colon = at;
    while (TOKEN[bytes[colon]!] === 1) colon++; // an index within the head, which ends in a line feed
    if (bytes[colon] !== 0x3a || colon === at) return false;
    let last = colon;
    while (VALUE[bytes[last]!] === 1) last++;
    if (bytes[last] !== CR || bytes[++last] !== LF) return false;
    const length = colon - at;
    const initial = bytes[at]! | 0x20; // at < end
    if ((length === 14 && initial === 0x63) || (length === 17 && initial === 0x74)) {
      const name = bytes.toString("latin1", at, colon).toLowerCase();
      if (name === "content-length") {
        if (framed++ > 0 || !isNumber(bytes, colon + 1, last - 1)) return false;
      } else if (name === "transfer-encoding" && framed++ > 0) return false;
    }
    at = last + 1;
  }
  return true;
}

/** Digits, after one blank or none. */
function isNumber(bytes: Buffer, start: number, end: number): boolean {
  for (let i = bytes[start] === 0x20 ? start + 1 : start; i < end; i++) if (bytes[i]! < 0x30 || bytes[i]! > 0x39) return false; // i < end
  return true;
}

/** The head written anew, followed by what came behind it; the bytes as they are when the head holds what no server means (NUL, a lone CR). */
function mended(bytes: Buffer, end: number): Buffer {
  const text = bytes.toString("latin1", 0, end);
  if (/\0|\r(?!\n)/.test(text)) return bytes;
  const [status = "", ...lines] = text.split(/\r?\n/);
  const fields: (readonly [name: string, value: string])[] = [];
  for (const line of lines) {
    const [, name, value] = /^([^\s:]+)[ \t]*:[ \t]*(.*?)[ \t]*$/.exec(line) ?? [];
    const before = fields.at(-1);
    // A folded line goes on with the one before (RFC 9112 §5.2).
    if (/^[ \t]+\S/.test(line) && before) fields[fields.length - 1] = [before[0], `${before[1]} ${printable(trimBlanks(line))}`];
    else if (name !== undefined && value !== undefined && [...name].every((char) => TOKEN[char.charCodeAt(0)] === 1)) fields.push([name, printable(value)]);
  }
  const head = [status, ...reframed(fields).map(([name, value]) => `${name}: ${value}`), "", ""].join("\r\n");
  return Buffer.concat([Buffer.from(head, "latin1"), bytes.subarray(end)]);
}

/** Controls as the URL parser would write them: browsers keep them in a value, undici's parser refuses the whole head. */
function printable(value: string): string {
  return value.replace(/[\x01-\x08\x0b-\x1f\x7f]/g, (char) => `%${Buffer.from(char, "latin1").toString("hex").toUpperCase()}`);
}

/** Equal lengths become one; a transfer coding goes before any length, and the connection is closed afterwards (RFC 9112 §6.3). */
function reframed(fields: readonly (readonly [string, string])[]): readonly (readonly [string, string])[] {
  const isLength = ([name]: readonly [string, string]) => name.toLowerCase() === "content-length";
  const lengths = fields.filter(isLength).flatMap(([, value]) => value.split(",").map((part) => part.trim()));
  const others = fields.filter((field) => !isLength(field));
  if (lengths.length === 0) return fields;
  if (fields.some(([name]) => name.toLowerCase() === "transfer-encoding")) return [...others, ["Connection", "close"]];
  const [length = ""] = lengths;
  return /^\d+$/.test(length) && lengths.every((other) => other === length) ? [...others, ["Content-Length", length]] : fields;
}
