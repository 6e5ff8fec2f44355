/** Encoders of the Encoding Standard's legacy encodings, built from the platform's decoders when first needed. Only for the queries of URLs. */

import { eucKrIndex, eucKrPointer } from "./korean.ts";

/** Calls `byte` for each byte of the encoded text and `unencodable` for each code point that the encoding lacks. */
export type Encoder = (text: string, byte: (value: number) => void, unencodable: (codePoint: number) => void) => void;

/** Bytes of a code point as one number, most significant first; undefined: none. ASCII is not asked for. */
type Lookup = (codePoint: number) => number | undefined;

/** Null for UTF-8, UTF-16, `replacement` (all of which write UTF-8) and names that are no encoding. */
export function createEncoder(encoding: string): Encoder | null {
  switch (encoding) {
    case "utf-8":
    case "utf-16le":
    case "utf-16be":
    case "replacement":
      return null;
    case "iso-2022-jp":
      return iso2022jp();
    case "shift_jis":
      return stateless(japanese(shiftJisTable(), (kana) => kana - 0xff61 + 0xa1));
    case "euc-jp":
      return stateless(japanese(twoByteTable("euc-jp", 0xa1, 0xfe, 0xa1, 0xfe), (kana) => 0x8e00 | (kana - 0xff61 + 0xa1)));
    case "gbk":
      return stateless(gb(false));
    case "gb18030":
      return stateless(gb(true));
    case "big5":
      return stateless(big5());
    case "euc-kr":
      return stateless(lookupIn(koreanTable()));
    default:
      return singleByte(encoding);
  }
}

function stateless(lookup: Lookup): Encoder {
  return (text, byte, unencodable) => {
    for (const char of text) {
      const codePoint = scalar(char);
      const bytes = codePoint < 0x80 ? codePoint : lookup(codePoint);
      if (bytes === undefined) unencodable(codePoint);
      else writeBytes(bytes, byte);
    }
  };
}

/** Lone surrogates are read as U+FFFD, as the URL parser does. */
function scalar(char: string): number {
  const codePoint = char.codePointAt(0) ?? 0xfffd;
  return codePoint >= 0xd800 && codePoint <= 0xdfff ? 0xfffd : codePoint;
}

function writeBytes(bytes: number, byte: (value: number) => void): void {
  if (bytes > 0xffffff) byte(bytes >>> 24);
  if (bytes > 0xffff) byte((bytes >>> 16) & 0xff);
  if (bytes > 0xff) byte((bytes >>> 8) & 0xff);
  byte(bytes & 0xff);
}

function lookupIn(table: ReadonlyMap<number, number>): Lookup {
  return (codePoint) => table.get(codePoint);
}

function singleByte(encoding: string): Encoder | null {
  const table = new Map<number, number>();
  try {
    const decoder = new TextDecoder(encoding);
    for (let byte = 0x80; byte < 0x100; byte++) {
      const codePoint = decoder.decode(Uint8Array.of(byte)).codePointAt(0);
      if (codePoint !== undefined && codePoint !== 0xfffd && !table.has(codePoint)) table.set(codePoint, byte);
    }
  } catch {
    return null; // not an encoding: a RangeError by the Encoding Standard
  }
  return stateless(lookupIn(table));
}

/** Code point → two bytes, by decoding every pair. Of several pairs the first counts ("index pointer"), or the last where `last` says so. */
function twoByteTable(
  encoding: string,
  leadFrom: number,
  leadTo: number,
  trailFrom: number,
  trailTo: number,
  last: (codePoint: number) => boolean = () => false,
): Map<number, number> {
  const decoder = new TextDecoder(encoding);
  const table = new Map<number, number>();
  const pair = new Uint8Array(2);
  for (let lead = leadFrom; lead <= leadTo; lead++) {
    for (let trail = trailFrom; trail <= trailTo; trail++) {
      pair[0] = lead;
      pair[1] = trail;
      const text = decoder.decode(pair);
      const codePoint = text.codePointAt(0) ?? 0xfffd;
      // Two characters: an error and an ASCII trail, or one of Big5's pairs with a combining mark, which no encoder writes.
      if (codePoint === 0xfffd || codePoint < 0x80 || text.length !== (codePoint > 0xffff ? 2 : 1)) continue;
      if (!table.has(codePoint) || last(codePoint)) table.set(codePoint, (lead << 8) | trail);
    }
  }
  return table;
}

/** Without the NEC selection of IBM extensions (pointers 8272–8835: lead bytes ED and EE) and the private-use rows. */
function shiftJisTable(): Map<number, number> {
  const table = twoByteTable("shift_jis", 0x81, 0x9f, 0x40, 0xfc);
  for (const [lead, to] of [
    [0xe0, 0xec],
    [0xfa, 0xfc],
  ] as const) {
    for (const [codePoint, bytes] of twoByteTable("shift_jis", lead, to, 0x40, 0xfc)) if (!table.has(codePoint)) table.set(codePoint, bytes);
  }
  return table;
}

function japanese(table: ReadonlyMap<number, number>, kana: (codePoint: number) => number): Lookup {
  return (codePoint) => {
    if (codePoint === 0xa5) return 0x5c;
    if (codePoint === 0x203e) return 0x7e;
    if (codePoint >= 0xff61 && codePoint <= 0xff9f) return kana(codePoint);
    return table.get(codePoint === 0x2212 ? 0xff0d : codePoint);
  };
}

function koreanTable(): ReadonlyMap<number, number> {
  const index = eucKrIndex();
  const table = new Map<number, number>();
  for (let lead = 0x81; lead <= 0xfe; lead++) {
    for (let trail = 0x41; trail <= 0xfe; trail++) {
      const unit = index[eucKrPointer(lead, trail)]!; // within the index
      if (unit !== 0xfffd && !table.has(unit)) table.set(unit, (lead << 8) | trail);
    }
  }
  return table;
}

function big5(): Lookup {
  // Box-drawing and number characters that the standard encodes with their last pointer.
  const lastOnes = new Set([0x2550, 0x255e, 0x2561, 0x256a, 0x5341, 0x5345]);
  return lookupIn(twoByteTable("big5", 0xa1, 0xfe, 0x40, 0xfe, (codePoint) => lastOnes.has(codePoint)));
}

function gb(fourBytes: boolean): Lookup {
  const table = twoByteTable("gb18030", 0x81, 0xfe, 0x40, 0xfe);
  const ranges = fourBytes ? gbFourByteTable() : null;
  return (codePoint) => {
    if (codePoint === 0xe5e5) return undefined;
    if (!fourBytes && codePoint === 0x20ac) return 0x80;
    const bytes = table.get(codePoint) ?? ranges?.get(codePoint);
    if (bytes !== undefined || !fourBytes || codePoint < 0x10000) return bytes;
    return gbFourBytes(codePoint - 0x10000 + 189000);
  };
}

function gbFourBytes(pointer: number): number {
  const b4 = 0x30 + (pointer % 10);
  const b3 = 0x81 + (Math.floor(pointer / 10) % 126);
  const b2 = 0x30 + (Math.floor(pointer / 1260) % 10);
  const b1 = 0x81 + Math.floor(pointer / 12600);
  return ((b1 << 24) | (b2 << 16) | (b3 << 8) | b4) >>> 0;
}

/** The four-byte codes of the Basic Multilingual Plane: pointers below 39420. */
function gbFourByteTable(): Map<number, number> {
  const decoder = new TextDecoder("gb18030");
  const table = new Map<number, number>();
  for (let pointer = 0; pointer < 39420; pointer++) {
    const bytes = gbFourBytes(pointer);
    const text = decoder.decode(Uint8Array.of(bytes >>> 24, (bytes >>> 16) & 0xff, (bytes >>> 8) & 0xff, bytes & 0xff));
    const codePoint = text.codePointAt(0) ?? 0xfffd;
    if (text.length === 1 && (codePoint !== 0xfffd || pointer === 39417)) table.set(codePoint, bytes);
  }
  return table;
}

/** Half-width katakana as ISO-2022-JP writes them, U+FF61 first (index ISO-2022-JP katakana). */
const FULL_WIDTH_KANA = "。「」、・ヲァィゥェォャュョッーアイウエオカキクケコサシスセソタチツテトナニヌネノハヒフヘホマミムメモヤユヨラリルレロワン゛゜";

const ASCII = 0x1b2842;
const ROMAN = 0x1b284a;
const JIS0208 = 0x1b2442;

/** The states are named by the escape sequences that enter them. */
function iso2022jp(): Encoder {
  // JIS X 0208 in EUC-JP is the same table with the high bits set.
  const table = twoByteTable("euc-jp", 0xa1, 0xfe, 0xa1, 0xfe);
  return (text, byte, unencodable) => {
    let state: number = ASCII;
    const enter = (to: number): void => {
      if (to !== state) writeBytes(to, byte);
      state = to;
    };
    for (const char of text) {
      const codePoint = scalar(char);
      if (codePoint < 0x80) {
        if (state === JIS0208 || (state === ROMAN && (codePoint === 0x5c || codePoint === 0x7e))) enter(ASCII);
        // These would be read as shifts and escapes.
        if (codePoint === 0x0e || codePoint === 0x0f || codePoint === 0x1b) unencodable(0xfffd);
        else byte(codePoint);
        continue;
      }
      if (codePoint === 0xa5 || codePoint === 0x203e) {
        enter(ROMAN);
        byte(codePoint === 0xa5 ? 0x5c : 0x7e);
        continue;
      }
      const bytes = table.get(jisCodePoint(codePoint));
      if (bytes === undefined) {
        if (state === JIS0208) enter(ASCII);
        unencodable(codePoint);
      } else {
        enter(JIS0208);
        writeBytes(bytes & 0x7f7f, byte);
      }
    }
    enter(ASCII);
  };
}

function jisCodePoint(codePoint: number): number {
  if (codePoint === 0x2212) return 0xff0d;
  return codePoint >= 0xff61 && codePoint <= 0xff9f ? FULL_WIDTH_KANA.charCodeAt(codePoint - 0xff61) : codePoint;
}
