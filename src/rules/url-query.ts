/** Queries of documents in a legacy encoding are percent-encoded in that encoding (URL Standard, query state). Paths and hosts never are. */
import { createEncoder, type Encoder } from "./url-encoders.ts";

const encoders = new Map<string, Encoder | null>();

/** The encoder of a legacy encoding; null for UTF-8 and what stands for it ("get an output encoding"), and for unknown names. */
function encoderOf(encoding: string): Encoder | null {
  let encoder = encoders.get(encoding);
  if (encoder === undefined) {
    encoder = createEncoder(encoding);
    encoders.set(encoding, encoder);
  }
  return encoder;
}

/** In the special-query percent-encode set: C0 controls, space, `"`, `#`, `'`, `<`, `>`, and all that is not ASCII. */
function mustEscape(byte: number): boolean {
  return byte <= 0x20 || byte === 0x22 || byte === 0x23 || byte === 0x27 || byte === 0x3c || byte === 0x3e || byte >= 0x7f;
}

/** Percent-encode after encoding. Unencodable characters become `%26%23N%3B`, which is `&#N;` escaped. */
export function percentEncodeIn(encoding: string, text: string): string {
  const encoder = encoderOf(encoding);
  if (encoder === null) return text;
  let out = "";
  encoder(
    text,
    (byte) => {
      out += mustEscape(byte) ? `%${byte < 16 ? "0" : ""}${byte.toString(16).toUpperCase()}` : String.fromCharCode(byte);
    },
    (codePoint) => {
      out += `%26%23${codePoint}%3B`;
    },
  );
  return out;
}

/** `href` with its query written in `encoding`, so that the URL parser (which knows UTF-8 only) leaves it alone. Cheap for all-ASCII queries. */
export function encodeQuery(href: string, encoding: string | null): string {
  if (encoding === null || encoding === "utf-8" || !needsEncoder(href, encoding)) return href;
  const stripped = withoutBlanks(href);
  // The standard uses UTF-8 for the queries of schemes that are not special; such URLs are not crawled anyway.
  const hash = stripped.indexOf("#");
  const end = hash < 0 ? stripped.length : hash;
  const question = stripped.indexOf("?");
  if (question < 0 || question > end) return href;
  return stripped.slice(0, question + 1) + percentEncodeIn(encoding, stripped.slice(question + 1, end)) + stripped.slice(end);
}

/** What the URL parser drops first: controls and spaces around, tabs and line ends anywhere. */
function withoutBlanks(href: string): string {
  let start = 0;
  let end = href.length;
  while (start < end && href.charCodeAt(start) <= 0x20) start++;
  while (end > start && href.charCodeAt(end - 1) <= 0x20) end--;
  return href.slice(start, end).replace(/[\t\n\r]+/g, "");
}

function needsEncoder(href: string, encoding: string): boolean {
  return encoding === "iso-2022-jp" ? /[^\x21-\x7e]/.test(href) : /[^\0-\x7f]/.test(href);
}
