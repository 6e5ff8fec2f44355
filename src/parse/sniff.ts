/** What a body is, from its type and its first bytes (MIME Sniffing Standard, as far as a crawl asks: HTML, other XML, text, or none of these). */
import type { MediaType } from "../rules/media-type.ts";

export type DocumentKind = "html" | "xhtml" | "xml" | "text" | "binary";

/** Bytes looked at. */
const SNIFF_BYTES = 1445;

/** Beginnings of files that are certainly not text, whatever the server says. */
const MAGIC: readonly (readonly number[])[] = [
  [...Buffer.from("%PDF-")],
  [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a],
  [...Buffer.from("GIF87a")],
  [...Buffer.from("GIF89a")],
  [0xff, 0xd8, 0xff],
  [0x50, 0x4b, 0x03, 0x04],
  [0x1f, 0x8b, 0x08],
  [0x52, 0x61, 0x72, 0x21, 0x1a, 0x07],
  [0x37, 0x7a, 0xbc, 0xaf, 0x27, 0x1c],
  [0x00, 0x61, 0x73, 0x6d],
  [0x7f, 0x45, 0x4c, 0x46],
];
const MAGIC_FIRST = new Uint8Array(256);
for (const magic of MAGIC) MAGIC_FIRST[magic[0]!] = 1;

function isBinary(bytes: Uint8Array): boolean {
  if (bytes.length < 4 || MAGIC_FIRST[bytes[0]!] === 0) return false;
  return MAGIC.some((magic) => magic.every((byte, i) => bytes[i] === byte));
}

/** §7.1: what begins HTML; a tag-terminating byte must follow. */
const HTML_START = /^[\t\n\f\r ]*(?:<(?:!doctype html|html|head|script|iframe|h1|div|font|table|a|style|title|b|body|br|p)[ >]|<!--)/i;

/** Root element after prolog, comments and DOCTYPE. */
const XHTML_ROOT = /^[\t\n\f\r ]*(?:<\?[^>]*>[\t\n\f\r ]*|<!--(?:(?!-->)[\s\S])*-->[\t\n\f\r ]*|<!doctype[^>[]*>[\t\n\f\r ]*)*<html[\t\n\f\r >]/i;

export function documentKind(type: MediaType, bytes: Buffer): DocumentKind {
  if (type.kind === "binary" || isBinary(bytes)) return "binary";
  if (type.kind === "html" || type.kind === "xhtml" || type.kind === "text") return type.kind;
  const start = withoutMark(bytes).subarray(0, SNIFF_BYTES).latin1Slice();
  if (type.kind === "xml" || /^[\t\n\f\r ]*<\?xml/.test(start)) return XHTML_ROOT.test(start) ? "xhtml" : "xml";
  if (HTML_START.test(start)) return "html";
  // §7.1, step 9 and on: a byte order mark or no "binary data byte" means text.
  return start.length < bytes.length || !/[\0-\x08\x0b\x0e-\x1a\x1c-\x1f]/.test(start) || isUtf16(bytes) ? "text" : "binary";
}

function withoutMark(bytes: Buffer): Buffer {
  return bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? bytes.subarray(3) : bytes;
}

function isUtf16(bytes: Uint8Array): boolean {
  return (bytes[0] === 0xfe && bytes[1] === 0xff) || (bytes[0] === 0xff && bytes[1] === 0xfe);
}
