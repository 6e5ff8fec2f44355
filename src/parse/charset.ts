/** The encoding of a document and where it was learnt (HTML Standard §13.2.3, Encoding Standard). */
import { isAscii, isUtf8 } from "node:buffer";
import type { CharsetSource } from "../core/records.ts";
import { decoderOf } from "./text.ts";

export interface Charset {
  /** Encoding Standard name in lower case. */
  readonly name: string;
  readonly source: CharsetSource;
}

/** The prescan looks at this many bytes. */
const PRESCAN_BYTES = 1024;

const names = new Map<string, string | null>();
const MAX_LABELS = 1000;

/** Lower-case name of the encoding a label means ("get an encoding"); null for unknown labels and for those the standard refuses to decode. */
export function encodingOfLabel(label: string): string | null {
  let name = names.get(label);
  if (name !== undefined) return name;
  try {
    name = new TextDecoder(label).encoding;
  } catch {
    name = null; // RangeError: no such label
  }
  if (names.size >= MAX_LABELS) names.clear();
  names.set(label, name);
  return name;
}

/** What a meta element's label comes to: UTF-16 cannot be true of a page whose meta was read as ASCII, and x-user-defined means windows-1252. */
function encodingOfMeta(label: string): string | null {
  const name = encodingOfLabel(label);
  if (name === "utf-16le" || name === "utf-16be") return "utf-8";
  return name === "x-user-defined" ? "windows-1252" : name;
}

function byteOrderMark(bytes: Uint8Array): string | null {
  if (bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf) return "utf-8";
  if (bytes[0] === 0xfe && bytes[1] === 0xff) return "utf-16be";
  return bytes[0] === 0xff && bytes[1] === 0xfe ? "utf-16le" : null;
}

/** What is certain before the document is read: BOM, header, or a declaration in the first 1024 bytes; null if none of these says anything. */
export function declaredCharset(bytes: Buffer, headerLabel: string | null, syntax: "html" | "xml" | "text"): Charset | null {
  const mark = byteOrderMark(bytes);
  if (mark !== null) return { name: mark, source: "bom" };
  const header = headerLabel === null ? null : encodingOfLabel(headerLabel);
  if (header !== null) return { name: header, source: "header" };
  if (syntax === "text") return null;
  const meta =
    (syntax === "xml" ? xmlDeclaration(bytes) : null) ?? prescan(bytes.subarray(0, PRESCAN_BYTES)) ?? (syntax === "html" ? xmlDeclaration(bytes) : null);
  return meta === null ? null : { name: meta, source: "meta" };
}

/**
 * What is taken when nothing is declared: a later meta element, UTF-8 if the bytes are not ASCII and valid, else windows-1252.
 * A body that was cut may end within a character.
 */
export function impliedCharset(bytes: Buffer, lateLabel: string | null): Charset {
  const late = lateLabel === null ? null : encodingOfMeta(lateLabel);
  if (late !== null) return { name: late, source: "meta" };
  if (!isAscii(bytes) && isUtf8(bytes.subarray(0, wholeCharacters(bytes)))) return { name: "utf-8", source: "utf-8-valid" };
  return { name: "windows-1252", source: "default" };
}

/** Length without an unfinished UTF-8 sequence at the end. */
function wholeCharacters(bytes: Uint8Array): number {
  for (let back = 1; back <= 3 && back < bytes.length; back++) {
    const c = bytes[bytes.length - back]!;
    if (c < 0x80) break;
    if (c >= 0xc0) return back < (c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : 2) ? bytes.length - back : bytes.length;
  }
  return bytes.length;
}

/** The label in a `content` attribute of a meta element ("extracting a character encoding from a meta element"). */
export function charsetInContent(content: string): string | null {
  const found = /charset[\t\n\f\r ]*=[\t\n\f\r ]*(?:"([^"]*)"|'([^']*)'|([^"'\t\n\f\r ;][^\t\n\f\r ;]*))/i.exec(content);
  return found === null ? null : (found[1] ?? found[2] ?? found[3] ?? null);
}

/** `<?xml … encoding="…"?>` at the very start, as bytes or as UTF-16. */
function xmlDeclaration(bytes: Buffer): string | null {
  if (bytes[0] === 0x3c && bytes[1] === 0 && bytes[2] === 0x3f && bytes[3] === 0 && bytes[4] === 0x78 && bytes[5] === 0) return "utf-16le";
  if (bytes[0] === 0 && bytes[1] === 0x3c && bytes[2] === 0 && bytes[3] === 0x3f && bytes[4] === 0 && bytes[5] === 0x78) return "utf-16be";
  if (bytes[0] !== 0x3c || bytes[1] !== 0x3f) return null;
  const found = /^<\?xml[\t\n\r ][^>]*?encoding[\t\n\r ]*=[\t\n\r ]*(?:"([^">]*)"|'([^'>]*)')/.exec(bytes.subarray(0, PRESCAN_BYTES).latin1Slice());
  return found === null ? null : encodingOfMeta(found[1] ?? found[2] ?? "");
}

/** "Prescan a byte stream to determine its encoding"; null if it finds nothing. Runs on most pages, hence on character codes. */
export function prescan(bytes: Buffer): string | null {
  const text = bytes.latin1Slice();
  let at = 0;
  while ((at = text.indexOf("<", at)) >= 0) {
    const c = text.charCodeAt(at + 1);
    if (isLetter(c) || (c === 0x2f && isLetter(text.charCodeAt(at + 2)))) {
      if ((c | 0x20) === 0x6d && /^meta[\t\n\f\r /]/i.test(text.slice(at + 1, at + 6))) {
        const tag = readMeta(text, at + 5);
        if (tag.encoding !== null) return tag.encoding;
        at = tag.end;
      } else at = skipTag(text, at + 2);
    } else if (c === 0x21 || c === 0x2f || c === 0x3f) {
      // The two dashes that open a comment may be those of its end.
      const isComment = text.startsWith("!--", at + 1);
      const close = isComment ? text.indexOf("-->", at + 2) : text.indexOf(">", at + 1);
      if (close < 0) return null;
      at = close + (isComment ? 3 : 1);
    } else at++;
  }
  return null;
}

function skipTag(text: string, from: number): number {
  let at = from;
  while (at < text.length && !isBlank(text.charCodeAt(at)) && text.charCodeAt(at) !== 0x3e) at++;
  for (;;) {
    const attribute = readAttribute(text, at);
    at = attribute.end;
    if (attribute.name === "") return at;
  }
}

function isLetter(code: number): boolean {
  const lower = code | 0x20;
  return lower >= 0x61 && lower <= 0x7a;
}

function isBlank(code: number): boolean {
  return code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09 || code === 0x0c;
}

function readMeta(text: string, from: number): { readonly encoding: string | null; readonly end: number } {
  const seen = new Set<string>();
  let at = from;
  let pragma = false;
  let label: string | null = null;
  let needsPragma: boolean | null = null;
  for (;;) {
    const { name, value, end } = readAttribute(text, at);
    at = end;
    if (name === "") break;
    if (seen.has(name)) continue;
    seen.add(name);
    if (name === "http-equiv") pragma ||= value === "content-type";
    else if (name === "content" && label === null) {
      const found = charsetInContent(value);
      const known = found === null ? null : encodingOfMeta(found);
      if (known !== null) {
        label = known;
        needsPragma = true;
      }
    } else if (name === "charset") {
      label = encodingOfMeta(value);
      needsPragma = false;
    }
  }
  return { encoding: needsPragma === null || (needsPragma && !pragma) ? null : label, end: at };
}

interface PrescannedAttribute {
  readonly name: string;
  readonly value: string;
  readonly end: number;
}

/** "Get an attribute": lower-cased; the name is empty at the end of the tag. An attribute that the input cuts off is none. */
function readAttribute(text: string, from: number): PrescannedAttribute {
  const n = text.length;
  let at = from;
  while (at < n && (isBlank(text.charCodeAt(at)) || text.charCodeAt(at) === 0x2f)) at++;
  if (at >= n) return { name: "", value: "", end: n };
  if (text.charCodeAt(at) === 0x3e) return { name: "", value: "", end: at };
  const nameStart = at++;
  for (; at < n; at++) {
    const c = text.charCodeAt(at);
    if (c === 0x3d || c === 0x3e || c === 0x2f || isBlank(c)) break;
  }
  const name = text.slice(nameStart, at).toLowerCase();
  while (at < n && isBlank(text.charCodeAt(at))) at++;
  if (at >= n) return { name: "", value: "", end: n };
  if (text.charCodeAt(at) !== 0x3d) return { name, value: "", end: at };
  at++;
  while (at < n && isBlank(text.charCodeAt(at))) at++;
  const quote = text.charCodeAt(at);
  if (quote === 0x22 || quote === 0x27) {
    const close = text.indexOf(text[at]!, at + 1);
    return close < 0 ? { name: "", value: "", end: n } : { name, value: text.slice(at + 1, close).toLowerCase(), end: close + 1 };
  }
  const valueStart = at;
  while (at < n && text.charCodeAt(at) !== 0x3e && !isBlank(text.charCodeAt(at))) at++;
  return at >= n ? { name: "", value: "", end: n } : { name, value: text.slice(valueStart, at).toLowerCase(), end: at };
}

/** Encodings in which an ASCII byte need not be that character, so that a scan of the bytes would be wrong. */
export function isAsciiSafe(encoding: string): boolean {
  // In Shift_JIS, GBK, Big5 and their like the second byte of a character may be 0x40 or above: letters and brackets, but none of < > " ' & = / or white space.
  return encoding !== "utf-16le" && encoding !== "utf-16be" && encoding !== "iso-2022-jp";
}

/** The whole text, without byte order mark. */
export function decodeAll(bytes: Buffer, encoding: string): string {
  const text = decoderOf(encoding).decode(bytes);
  return text.charCodeAt(0) === 0xfeff ? text.slice(1) : text;
}
