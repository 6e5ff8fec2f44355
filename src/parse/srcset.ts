/** The URLs of a srcset attribute (HTML Standard §4.8.4.3.10, parse a srcset attribute). Which of them fits a screen is not asked. */

const INTEGER = /^[0-9]+$/;
const FLOAT = /^-?(?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?$/;

export interface ImageCandidate {
  /** As written. */
  readonly url: string;
  /** A browser keeps it: its descriptors are understood. A crawler takes the others too, since the URL is that of an image all the same. */
  readonly valid: boolean;
}

/** All candidates, in order. */
export function parseSrcset(value: string): ImageCandidate[] {
  const candidates: ImageCandidate[] = [];
  const n = value.length;
  let at = 0;
  for (;;) {
    while (at < n && isSpaceOrComma(value.charCodeAt(at))) at++;
    if (at >= n) return candidates;
    const start = at;
    while (at < n && !isSpace(value.charCodeAt(at))) at++;
    let end = at;
    while (value.charCodeAt(end - 1) === 0x2c) end--;
    const url = value.slice(start, end);
    // A comma at its end means that no descriptors follow.
    const descriptors: string[] = [];
    if (end === at) at = readDescriptors(value, at, descriptors);
    candidates.push({ url, valid: areValid(descriptors) });
  }
}

/** Splits at white space outside of parentheses; answers the position after the comma that ends them. */
function readDescriptors(value: string, from: number, descriptors: string[]): number {
  let start = from;
  let inParens = false;
  let at = from;
  for (; at < value.length; at++) {
    const c = value.charCodeAt(at);
    if (inParens) inParens = c !== 0x29;
    else if (c === 0x28) inParens = true;
    else if (c === 0x2c || isSpace(c)) {
      if (at > start) descriptors.push(value.slice(start, at));
      start = at + 1;
      if (c === 0x2c) return at + 1;
    }
  }
  if (at > start) descriptors.push(value.slice(start, at));
  return at;
}

function areValid(descriptors: readonly string[]): boolean {
  let width = false;
  let density = false;
  let height = false;
  for (const descriptor of descriptors) {
    const number = descriptor.slice(0, -1);
    const unit = descriptor.at(-1);
    if (unit === "w" && INTEGER.test(number)) {
      if (width || density || Number(number) === 0) return false;
      width = true;
    } else if (unit === "x" && FLOAT.test(number)) {
      if (width || density || height || Number(number) < 0) return false;
      density = true;
    } else if (unit === "h" && INTEGER.test(number)) {
      if (height || density || Number(number) === 0) return false;
      height = true;
    } else return false;
  }
  return !height || width;
}

function isSpace(code: number): boolean {
  return code === 0x20 || code === 0x0a || code === 0x09 || code === 0x0d || code === 0x0c;
}

function isSpaceOrComma(code: number): boolean {
  return code === 0x2c || isSpace(code);
}
