/** Byte spans of a page as strings: decoded by the page's encoding where they are not ASCII, character references resolved. The strings are copies: none keeps the page alive. */
import { decodeHTML, decodeHTMLAttribute } from "entities/decode";
import { decodeEucKr } from "../rules/korean.ts";
import { isSpace } from "./scan.ts";

/** Decodes spans of one document. */
export interface TextReader {
  /** Decoded, line ends and NUL as the standard says, character references as they are. */
  raw(start: number, end: number): string;
  /** An attribute's value. */
  attribute(start: number, end: number): string;
  /** The same without white space around it, for URLs. */
  trimmed(start: number, end: number): string;
  /** Text content of an RCDATA element, white space collapsed. */
  text(start: number, end: number): string;
}

interface Decoder {
  decode(bytes: Uint8Array): string;
}
const decoders = new Map<string, Decoder>();

/**
 * The platform's decoder (ICU), and ours for EUC-KR. It lacks the Hong Kong characters of Big5, which come out as U+FFFD; all other encodings agree with the
 * Encoding Standard. A byte order mark is kept, since spans never begin with one.
 * Throws RangeError for names that are no encoding.
 */
export function decoderOf(encoding: string): Decoder {
  let decoder = decoders.get(encoding);
  if (decoder === undefined) {
    decoder = encoding === "euc-kr" ? { decode: decodeEucKr } : new TextDecoder(encoding, { ignoreBOM: true });
    decoders.set(encoding, decoder);
  }
  return decoder;
}

/** `encoding`: lower-case name, ASCII-compatible. */
export function createTextReader(bytes: Buffer, encoding: string): TextReader {
  const isUtf8 = encoding === "utf-8";

  function raw(start: number, end: number): string {
    let union = 0;
    let control = false;
    for (let i = start; i < end; i++) {
      const c = bytes[i]!;
      union |= c;
      if (c === 0 || c === 13) control = true;
    }
    const text = union < 0x80 ? bytes.latin1Slice(start, end) : isUtf8 ? bytes.utf8Slice(start, end) : decoderOf(encoding).decode(bytes.subarray(start, end));
    return control ? text.replace(/\r\n?/g, "\n").replaceAll("\0", "\ufffd") : text;
  }

  function attribute(start: number, end: number): string {
    const text = raw(start, end);
    return text.includes("&") ? decodeAttribute(text) : text;
  }

  return {
    raw,
    attribute,
    trimmed(start, end) {
      while (start < end && isSpace(bytes[start]!)) start++;
      while (end > start && isSpace(bytes[end - 1]!)) end--;
      return attribute(start, end);
    },
    text: (start, end) =>
      decodeHTML(raw(start, end))
        .replace(/[\t\n\f\r ]+/g, " ")
        .trim(),
  };
}

/**
 * Character references of an attribute value (HTML Standard §13.2.5.72). Query strings are full of `&amp;` and of `&name=`, which is no reference
 * whatever the name; only for others the table of names is needed.
 */
export function decodeAttribute(text: string): string {
  let plain = true;
  for (let at = text.indexOf("&"); at >= 0; at = text.indexOf("&", at + 1)) {
    if (text.startsWith("amp;", at + 1)) {
      plain = false;
      continue;
    }
    let i = at + 1;
    while (isAlphanumeric(text.charCodeAt(i))) i++;
    const next = text.charCodeAt(i);
    if (next !== 0x3d && (i > at + 1 || next === 0x23)) return decodeHTMLAttribute(text);
  }
  return plain ? text : text.replaceAll("&amp;", "&");
}

function isAlphanumeric(code: number): boolean {
  const lower = code | 0x20;
  return (lower >= 0x61 && lower <= 0x7a) || (code >= 0x30 && code <= 0x39);
}
