/**
 * Tokenizer over the bytes of an ASCII-compatible HTML document: finds the tags that matter to a crawl (HTML Standard §13.2.5).
 * It knows nothing of trees: parse/tree.ts tells it when foreign content begins and what a tag means.
 *
 * The inner loops are long functions with local variables because they see every byte of every page. Everything ends at the end of the input
 * at the latest and no byte is looked at again, so that time is linear for any input.
 */

declare global {
  // Node's own methods behind toString("latin1") and toString("utf8"), without the look-up of the encoding's name. Not in the typings.
  interface Buffer {
    latin1Slice(start?: number, end?: number): string;
    utf8Slice(start?: number, end?: number): string;
  }
}

/** Tags with a meaning of their own. Every other name is OTHER. */
export const TAG = {
  OTHER: 1,
  A: 2,
  AREA: 3,
  BASE: 4,
  FRAME: 5,
  FRAMESET: 6,
  IFRAME: 7,
  IMG: 8,
  LINK: 9,
  MATH: 10,
  META: 11,
  /** noembed, noframes, style, textarea, xmp: their content is text. */
  RAW: 12,
  NOFRAMES: 13,
  NOSCRIPT: 14,
  PLAINTEXT: 15,
  SCRIPT: 16,
  SOURCE: 17,
  SVG: 18,
  TEMPLATE: 19,
  TITLE: 20,
} as const;

/** State of a scan and the tag it stands at. The spans are byte offsets; they hold until the next call. */
export interface Scan {
  readonly bytes: Buffer;
  readonly end: number;
  at: number;
  /** Report every start and end tag, not only those that matter. */
  everyTag: boolean;
  /** Report img and source. */
  images: boolean;
  /** The current node is foreign: `<![CDATA[` opens a section instead of a bogus comment. */
  cdata: boolean;
  nameStart: number;
  nameEnd: number;
  selfClosing: boolean;
  attributeCount: number;
  /** Four offsets per attribute: name start, name end, value start, value end. Duplicates are included: the first counts. */
  attributes: Int32Array;
}

const SPACE = new Uint8Array(256);
const ALPHA = new Uint8Array(256);
/** Ends a tag name: white space, "/", ">". */
const NAME_END = new Uint8Array(256);
/** Ends an attribute name: these and "=". */
const ATTRIBUTE_END = new Uint8Array(256);
/** Ends an unquoted value: white space, ">". */
const UNQUOTED_END = new Uint8Array(256);
for (const c of [9, 10, 12, 13, 32]) SPACE[c] = NAME_END[c] = ATTRIBUTE_END[c] = UNQUOTED_END[c] = 1;
for (let c = 65; c <= 90; c++) ALPHA[c] = ALPHA[c + 32] = 1;
NAME_END[0x2f] = NAME_END[0x3e] = 1;
ATTRIBUTE_END[0x2f] = ATTRIBUTE_END[0x3e] = ATTRIBUTE_END[0x3d] = 1;
UNQUOTED_END[0x3e] = 1;

/** First letters of the names in TAG, in either case. */
const FIRST = new Uint8Array(256);
for (const c of "abfilmnpstx") FIRST[c.charCodeAt(0)] = FIRST[c.charCodeAt(0) - 32] = 1;

/** Arrays for the attribute spans, used again: a new one for every page would cost more than scanning a small page. */
const spare: Int32Array[] = [];
const MAX_SPARE_LENGTH = 4096;

/** Gives back what `startScan` took. The scan must not be used any more. */
export function endScan(s: Scan): void {
  if (s.attributes.length <= MAX_SPARE_LENGTH && spare.length < 4) spare.push(s.attributes);
}

export function startScan(bytes: Buffer, images: boolean): Scan {
  return {
    bytes,
    end: bytes.length,
    at: 0,
    everyTag: false,
    images,
    cdata: false,
    nameStart: 0,
    nameEnd: 0,
    selfClosing: false,
    attributeCount: 0,
    attributes: spare.pop() ?? new Int32Array(256),
  };
}

/** ASCII-case-insensitive; `word` in lower-case letters and digits. */
function nameIs(b: Buffer, start: number, word: string): boolean {
  for (let i = 0; i < word.length; i++) if ((b[start + i]! | 0x20) !== word.charCodeAt(i)) return false;
  return true;
}

function tagOf(b: Buffer, start: number, length: number): number {
  const first = b[start]! | 0x20;
  switch (length) {
    case 1:
      return first === 0x61 ? TAG.A : TAG.OTHER;
    case 3:
      if (first === 0x69) return nameIs(b, start, "img") ? TAG.IMG : TAG.OTHER;
      if (first === 0x73) return nameIs(b, start, "svg") ? TAG.SVG : TAG.OTHER;
      return nameIs(b, start, "xmp") ? TAG.RAW : TAG.OTHER;
    case 4:
      if (first === 0x6c) return nameIs(b, start, "link") ? TAG.LINK : TAG.OTHER;
      if (first === 0x61) return nameIs(b, start, "area") ? TAG.AREA : TAG.OTHER;
      if (first === 0x62) return nameIs(b, start, "base") ? TAG.BASE : TAG.OTHER;
      return nameIs(b, start, "meta") ? TAG.META : nameIs(b, start, "math") ? TAG.MATH : TAG.OTHER;
    case 5:
      if (first === 0x73) return nameIs(b, start, "style") ? TAG.RAW : TAG.OTHER;
      if (first === 0x74) return nameIs(b, start, "title") ? TAG.TITLE : TAG.OTHER;
      if (first === 0x69) return nameIs(b, start, "image") ? TAG.IMG : TAG.OTHER; // the tree builder makes it an img
      return nameIs(b, start, "frame") ? TAG.FRAME : TAG.OTHER;
    case 6:
      if (first === 0x69) return nameIs(b, start, "iframe") ? TAG.IFRAME : TAG.OTHER;
      return nameIs(b, start, "script") ? TAG.SCRIPT : nameIs(b, start, "source") ? TAG.SOURCE : TAG.OTHER;
    case 7:
      return nameIs(b, start, "noembed") ? TAG.RAW : TAG.OTHER;
    case 8:
      if (first === 0x74) return nameIs(b, start, "template") ? TAG.TEMPLATE : nameIs(b, start, "textarea") ? TAG.RAW : TAG.OTHER;
      if (first === 0x6e) return nameIs(b, start, "noscript") ? TAG.NOSCRIPT : nameIs(b, start, "noframes") ? TAG.NOFRAMES : TAG.OTHER;
      return nameIs(b, start, "frameset") ? TAG.FRAMESET : TAG.OTHER;
    case 9:
      return nameIs(b, start, "plaintext") ? TAG.PLAINTEXT : TAG.OTHER;
    default:
      return TAG.OTHER;
  }
}

/** Goes to the next tag that is reported: its TAG, negative for an end tag, 0 at the end of the input. A tag that the input cuts off is not reported. */
export function nextTag(s: Scan): number {
  const b = s.bytes;
  const n = s.end;
  let i = s.at;
  for (;;) {
    while (i < n && b[i] !== 0x3c) i++;
    if (i + 1 >= n) break;
    const c = b[i + 1]!;
    if (ALPHA[c] === 1) {
      const start = i + 1;
      i = start + 1;
      const wanted = FIRST[c] === 1 || s.everyTag;
      while (i < n && NAME_END[b[i]!] === 0) i++;
      const tag = wanted ? tagOf(b, start, i - start) : TAG.OTHER;
      if (!s.everyTag && (tag === TAG.OTHER || (!s.images && (tag === TAG.IMG || tag === TAG.SOURCE)))) {
        i = b[i] === 0x3e ? i + 1 : skipAttributes(b, i, n);
        continue;
      }
      s.nameStart = start;
      s.nameEnd = i;
      i = readAttributes(s, i);
      if (i < 0) break;
      s.at = i;
      return tag;
    }
    if (c !== 0x2f || i + 2 >= n || ALPHA[b[i + 2]!] === 0) {
      i = skipMarkup(s, i);
      continue;
    }
    const start = i + 2;
    i += 3;
    while (i < n && NAME_END[b[i]!] === 0) i++;
    const end = i;
    i = b[i] === 0x3e ? i + 1 : skipAttributes(b, i, n);
    if (i > n) break;
    const length = end - start;
    if (!s.everyTag && length !== 8) continue; // the length of the three names below
    const tag = tagOf(b, start, length);
    if (!s.everyTag && tag !== TAG.TEMPLATE && tag !== TAG.NOSCRIPT && tag !== TAG.FRAMESET) continue;
    s.nameStart = start;
    s.nameEnd = end;
    s.at = i;
    return -tag;
  }
  s.at = n;
  return 0;
}

/** What begins with "<" and is no tag: comments of every form, declarations, CDATA sections, or just text. Answers where to go on. */
function skipMarkup(s: Scan, from: number): number {
  const b = s.bytes;
  const n = s.end;
  const c = b[from + 1]!;
  if (c === 0x21) {
    if (b[from + 2] === 0x2d && b[from + 3] === 0x2d) return skipComment(b, from + 4, n);
    if (s.cdata && from + 9 <= n && b.latin1Slice(from + 2, from + 9) === "[CDATA[") {
      const close = b.indexOf("]]>", from + 9, "latin1");
      return close < 0 ? n : close + 3;
    }
  } else if (c === 0x2f) {
    if (from + 2 >= n) return n;
  } else if (c !== 0x3f) return from + 1;
  const close = b.indexOf(0x3e, from + 2); // a bogus comment, or a DOCTYPE
  return close < 0 ? n : close + 1;
}

/** From after `<!--`. Ends at `-->`, `--!>`, or at once at `>` or `->`. */
function skipComment(b: Buffer, from: number, n: number): number {
  if (b[from] === 0x3e) return from + 1;
  if (b[from] === 0x2d && b[from + 1] === 0x3e) return from + 2;
  for (let i = b.indexOf(0x3e, from); i >= 0; i = b.indexOf(0x3e, i + 1)) {
    const before = b[i - 1];
    if (before === 0x2d && b[i - 2] === 0x2d && i - 2 >= from) return i + 1;
    if (before === 0x21 && b[i - 2] === 0x2d && b[i - 3] === 0x2d && i - 3 >= from) return i + 1;
  }
  return n;
}

/** From the end of a tag name to after its ">"; n + 1 if the input ends before. */
function skipAttributes(b: Buffer, from: number, n: number): number {
  let i = from;
  for (;;) {
    let c = 0;
    while (i < n && ((c = b[i]!) === 0x2f || SPACE[c] === 1)) i++;
    if (i >= n) return n + 1;
    if (c === 0x3e) return i + 1;
    i++;
    while (i < n && ATTRIBUTE_END[(c = b[i]!)] === 0) i++;
    if (c !== 0x3d) {
      while (i < n && SPACE[(c = b[i]!)] === 1) i++;
      if (c !== 0x3d || i >= n) continue;
    }
    i++;
    while (i < n && SPACE[(c = b[i]!)] === 1) i++;
    if (i >= n) return n + 1;
    c = b[i]!;
    if (c === 0x22 || c === 0x27) {
      i++;
      while (i < n && b[i] !== c) i++;
      i++;
    } else while (i < n && UNQUOTED_END[b[i]!] === 0) i++;
  }
}

/** As skipAttributes, keeping the spans in `s`; −1 if the input ends before the tag does. */
function readAttributes(s: Scan, from: number): number {
  const b = s.bytes;
  const n = s.end;
  let out = s.attributes;
  let k = 0;
  let i = from;
  s.selfClosing = false;
  for (;;) {
    let c = 0;
    while (i < n && ((c = b[i]!) === 0x2f || SPACE[c] === 1)) i++;
    if (i >= n) return -1;
    if (c === 0x3e) {
      s.selfClosing = b[i - 1] === 0x2f && i - 1 >= from && (k === 0 || i - 1 >= out[k - 1]!);
      s.attributeCount = k >> 2;
      return i + 1;
    }
    if (k + 4 > out.length) {
      const larger = new Int32Array(out.length * 2);
      larger.set(out);
      out = s.attributes = larger;
    }
    out[k] = i++;
    while (i < n && ATTRIBUTE_END[(c = b[i]!)] === 0) i++;
    out[k + 1] = i;
    while (i < n && SPACE[(c = b[i]!)] === 1) i++;
    if (i >= n) return -1;
    if (c !== 0x3d) {
      out[k + 2] = out[k + 3] = out[k + 1]!;
      k += 4;
      continue;
    }
    i++;
    while (i < n && SPACE[b[i]!] === 1) i++;
    if (i >= n) return -1;
    c = b[i]!;
    if (c === 0x22 || c === 0x27) {
      out[k + 2] = ++i;
      while (i < n && b[i] !== c) i++;
      if (i >= n) return -1;
      out[k + 3] = i++;
    } else {
      out[k + 2] = i;
      while (i < n && UNQUOTED_END[b[i]!] === 0) i++;
      out[k + 3] = i;
    }
    k += 4;
  }
}

/** Text up to the end tag of the element whose start tag was read last (RAWTEXT and RCDATA). Answers where it ends; the scan goes on with that end tag. */
export function skipRawText(s: Scan): number {
  const b = s.bytes;
  for (let i = b.indexOf(0x3c, s.at); i >= 0; i = b.indexOf(0x3c, i + 1)) if (isEndTag(s, i)) return (s.at = i);
  return (s.at = s.end);
}

/** As skipRawText for a script, with the escape states that `<!--` and `<script` in it bring. */
export function skipScript(s: Scan): void {
  const b = s.bytes;
  const n = s.end;
  let escaped = 0; // 1: after "<!--"; 2: and after "<script" within
  let i = s.at;
  for (; i < n; i++) {
    if (escaped === 0) {
      i = b.indexOf(0x3c, i);
      if (i < 0) break;
    }
    const c = b[i];
    if (c === 0x3c) {
      if (isEndTag(s, i)) {
        if (escaped < 2) {
          s.at = i;
          return;
        }
        escaped = 1;
      } else if (escaped === 0) {
        if (b[i + 1] !== 0x21 || b[i + 2] !== 0x2d || b[i + 3] !== 0x2d) continue;
        escaped = 1;
        i += 3;
      } else if (escaped === 1 && nameIs(b, i + 1, "script") && NAME_END[b[i + 7] ?? 0] === 1) escaped = 2;
    } else if (c === 0x3e && b[i - 1] === 0x2d && b[i - 2] === 0x2d) escaped = 0;
  }
  s.at = n;
}

/** `</name` and a delimiter at `i`, for the element last started. */
function isEndTag(s: Scan, i: number): boolean {
  const b = s.bytes;
  if (b[i + 1] !== 0x2f) return false;
  const length = s.nameEnd - s.nameStart;
  for (let k = 0; k < length; k++) if ((b[i + 2 + k]! | 0x20) !== (b[s.nameStart + k]! | 0x20)) return false;
  const after = i + 2 + length;
  return after < s.end && NAME_END[b[after]!] === 1;
}

/** Lower-case name of the tag at hand. */
export function elementName(s: Scan): string {
  return s.bytes.latin1Slice(s.nameStart, s.nameEnd).toLowerCase();
}

/** Index in `s.attributes` of the first attribute of that name (lower case); −1 if absent. */
export function attributeAt(s: Scan, name: string): number {
  const b = s.bytes;
  const spans = s.attributes;
  for (let k = 0; k < s.attributeCount * 4; k += 4) {
    const start = spans[k]!;
    if (spans[k + 1]! - start === name.length && sameName(b, start, name)) return k;
  }
  return -1;
}

/** As nameIs, for names that hold other characters than letters. */
export function sameName(b: Buffer, start: number, name: string): boolean {
  for (let i = 0; i < name.length; i++) {
    const c = b[start + i]!;
    if ((ALPHA[c] === 1 ? c | 0x20 : c) !== name.charCodeAt(i)) return false;
  }
  return true;
}

export function isSpace(byte: number): boolean {
  return SPACE[byte] === 1;
}
