/** Seeds as texts: `{1..1000}` in them, lazy, so that a range of a million costs nothing until it is read; and how a bad one is shown. */

/** At most 15 digits: beyond 2⁵³ counting by one stands still. */
const RANGE = /\{(\d{1,15})\.\.(\d{1,15})\}/;

/** Every URL a seed stands for, first brace slowest: "a{1..2}/{01..03}" gives six. Leading zeros keep the width. A range may count down. */
export function* expandBraces(seed: string): Generator<string> {
  const match = RANGE.exec(seed);
  if (match === null) {
    yield seed;
    return;
  }
  const [whole, from, to] = match as unknown as [string, string, string]; // both groups always take part in a match
  const head = seed.slice(0, match.index);
  const tail = seed.slice(match.index + whole.length);
  const width = from.startsWith("0") || to.startsWith("0") ? Math.max(from.length, to.length) : 0;
  const step = Number(from) <= Number(to) ? 1 : -1;
  for (let n = Number(from); step > 0 ? n <= Number(to) : n >= Number(to); n += step) {
    yield* expandTail(`${head}${String(n).padStart(width, "0")}`, tail);
  }
}

function* expandTail(head: string, tail: string): Generator<string> {
  for (const rest of expandBraces(tail)) yield head + rest;
}

/** Longest part of a bad seed that is shown. */
const SHOWN = 200;

/** A seed that is no URL, as messages show it: shortened, and without the user and password that may stand in it all the same. */
export function shownSeed(text: string): string {
  return text.replace(/^(\s*(?:[a-z][a-z0-9+.-]*:(?=[\\/]))?[\\/]*)[^\\/?#]*@/i, "$1").slice(0, SHOWN);
}
