/** What a single URL tells of a trap: repeated segments and parameters, session ids, dates, its template. No state; which figure is too much is decided in traps.ts. */

/** A canonical URL in parts. `directories` are the segments that a "/" ends; `segments` has the last one too, unless it is empty. */
export interface UrlParts {
  readonly origin: string;
  readonly segments: readonly string[];
  readonly directories: readonly string[];
  /** `key=value` or `key`, as written and in order; empty ones left out. */
  readonly pairs: readonly string[];
}

export function urlParts(url: string): UrlParts {
  const pathStart = url.indexOf("/", url.indexOf("//") + 2);
  const question = url.indexOf("?", pathStart);
  const path = question < 0 ? url.slice(pathStart + 1) : url.slice(pathStart + 1, question);
  const segments = path.split("/");
  const leaf = segments.pop() ?? "";
  const directories = segments.filter((segment) => segment !== "");
  const pairs =
    question < 0
      ? []
      : url
          .slice(question + 1)
          .split("&")
          .filter((pair) => pair !== "");
  return { origin: url.slice(0, pathStart), segments: leaf === "" ? directories : [...directories, leaf], directories, pairs };
}

/** Numbers and single characters name shards, and are equal by chance. */
const isSmall = (segment: string) => segment.length === 1 || /^\d+$/.test(segment);

/** Does a run of one or more directories stand more than `max` times in a row? `small` is the figure for one number or one character by itself. */
export function repeatsInARow(directories: readonly string[], max: number, small = max): boolean {
  const n = directories.length;
  for (let width = 1; width * (max + 1) <= n; width++) {
    let same = 0; // positions in a row that equal the one `width` before
    for (let i = width; i < n; i++) {
      same = directories[i] === directories[i - width] ? same + 1 : 0;
      if (same >= width * max && (width > 1 || same >= small || !isSmall(directories[i]!))) return true;
    }
  }
  return false;
}

/** How often the most frequent directory occurs; numbers do not count. */
export function mostUses(directories: readonly string[]): number {
  let most = directories.length === 0 ? 0 : 1;
  for (let i = 0; i < directories.length; i++) {
    if (/^\d+$/.test(directories[i]!)) continue;
    let uses = 1;
    for (let j = i + 1; j < directories.length; j++) if (directories[j] === directories[i]) uses++;
    if (uses > most) most = uses;
  }
  return most;
}

/** How often the most frequent `key=value` pair and the most frequent key occur. */
export function mostPairs(pairs: readonly string[]): { readonly pair: number; readonly key: number } {
  if (pairs.length < 2) return { pair: pairs.length, key: pairs.length };
  const uses = new Map<string, number>();
  let pair = 0;
  let key = 0;
  for (const text of pairs) {
    // Keys and pairs share the map: a key is marked by a leading "&", which no pair has.
    const name = `&${keyOf(text)}`;
    const ofPair = (uses.get(text) ?? 0) + 1;
    const ofKey = (uses.get(name) ?? 0) + 1;
    uses.set(text, ofPair);
    uses.set(name, ofKey);
    if (ofPair > pair) pair = ofPair;
    if (ofKey > key) key = ofKey;
  }
  return { pair, key };
}

export function keyOf(pair: string): string {
  const equals = pair.indexOf("=");
  return equals < 0 ? pair : pair.slice(0, equals);
}

/** Parameters that carry a session whatever their value is. */
const SESSION_NAME = /^_?(?:l|j|bv_)?(?:sid|sessionid)$|^_?phpsessid$|^cf(?:id|token)$/i;
/** Names that also mean other things: their value must look drawn by lot. */
const MAYBE_SESSION_NAME =
  /^(?:s|ssid|psid|sess|sessid|session|session_id|session-id|oscsid|xtcsid|zenid|phpsessionid|aspsessionid[a-z]{8}|aspxsessionid|sess_id|usersession)$/i;
/** These two are always 32 characters in a query; others of that name are something else. */
const FIXED_NAME = /^_?(?:jsessionid|phpsessid)$/i;
const FIXED_VALUE = /^[0-9a-z]{32}$/i;

/** At least 16 letters and digits, some of each; or the 24 letters of ASP. */
function looksRandom(value: string): boolean {
  return /^[0-9a-z._!~-]{16,128}$/i.test(value) ? (/\d/.test(value) && /[a-z]/i.test(value)) || /^[a-z]{24}$/i.test(value) || /^\d{20,}$/.test(value) : false;
}

function isSession(pair: string, strict: boolean): boolean {
  const name = keyOf(pair);
  const value = pair.slice(name.length + 1).trim();
  if (FIXED_NAME.test(name)) return FIXED_VALUE.test(value);
  if (/^cf(?:id|token)$/i.test(name)) return /^[\w-]{6,}$/.test(value);
  if (SESSION_NAME.test(name)) return !strict || looksRandom(value);
  return MAYBE_SESSION_NAME.test(name) && looksRandom(value);
}

const MAY_HAVE_SESSION = /s(?:ess|id)|zenid|cfid|cftoken|[?&]s=|\([a-z]\(/i;

/**
 * The URL without session ids: in the query, after ";" in path or query, and in ASP.NET's `/(S(…))/`. The same string when it has none.
 * `strict`: parameters such as `sid`, which may name a story as well, count only when their value looks drawn by lot.
 */
export function withoutSession(url: string, strict = false): string {
  if (!MAY_HAVE_SESSION.test(url)) return url;
  let out = url.replace(/;_?j?sessionid=[^?#/&;]*/gi, "").replace(/\/\((?:[a-z]\([0-9a-z]{24}\))+\)(?=\/)/gi, "");
  const question = out.indexOf("?");
  if (question >= 0) {
    const pairs = out.slice(question + 1).split("&");
    const kept = pairs.filter((pair) => !isSession(pair, strict));
    if (kept.length < pairs.length) {
      const query = kept.filter((pair) => pair !== "").join("&");
      out = out.slice(0, question) + (query === "" ? "" : `?${query}`);
    }
  }
  return out;
}

const DATE_IN_PATH = /[/=_-](\d{4})[/-](?:0?[1-9]|1[0-2])(?:[/-]\d{1,2})?(?=[/?&#._-]|$)|[/=_-](\d{4})(?:0[1-9]|1[0-2])(?:[0-3]\d)?(?=[/?&#.]|$)/;
const YEAR_IN_QUERY = /[?&](?:[a-z]+_)?(?:[a-z]*year|yyyy|yr|(y))=(\d{4})(?=&|$)/i;
const MONTH_IN_QUERY = /[?&](?:[a-z]+_)?(?:[a-z]*month|mm|mon|mo|m)=(?:0?[1-9]|1[0-2])(?=&|$)/i;

/** The year of a date in the URL (a year and a month next to each other, or parameters of that name), or null. Thread 2030, page 11 has one too: the caller judges. */
export function yearIn(url: string): number | null {
  const path = url.indexOf("/", 8);
  const text = path < 0 ? "" : url.slice(path);
  if (!/\d{4}/.test(text)) return null;
  const found = DATE_IN_PATH.exec(text);
  if (found !== null) return Number(found[1] ?? found[2]);
  const named = YEAR_IN_QUERY.exec(text);
  return named === null || (named[1] !== undefined && !MONTH_IN_QUERY.test(text)) ? null : Number(named[2]);
}

const UUID = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}(?![0-9a-z])/iy;
const DIGIT = 1;
const LETTER = 2;
const BEYOND_F = 4;

function classOf(code: number): number {
  if (code >= 0x30 && code <= 0x39) return DIGIT;
  const lower = code | 0x20;
  return lower >= 0x61 && lower <= 0x66 ? LETTER : lower > 0x66 && lower <= 0x7a ? LETTER | BEYOND_F : 0;
}

/**
 * A path with numbers → N, UUIDs, and words drawn by lot → H (16 or more hexadecimal characters, or 20 of any kind, letters and digits mixed).
 * The same string when nothing varies. By hand: five times as fast as expressions that look for all of these.
 */
function shapeOf(path: string): string {
  let out = "";
  let copied = 0;
  for (let i = 0; i < path.length; ) {
    let seen = classOf(path.charCodeAt(i));
    if (seen === 0) {
      i++;
      continue;
    }
    let end = i + 1;
    for (let kind = 0; end < path.length && (kind = classOf(path.charCodeAt(end))) !== 0; end++) seen |= kind;
    if ((seen & DIGIT) !== 0) {
      const length = end - i;
      let shape = "N";
      UUID.lastIndex = i;
      if (length === 8 && path.charCodeAt(end) === 0x2d && UUID.test(path)) {
        shape = "H";
        end = i + 36;
      } else if ((seen & LETTER) !== 0) shape = length >= ((seen & BEYOND_F) === 0 ? 16 : 20) ? "H" : path.slice(i, end).replace(/\d+/g, "N");
      out += path.slice(copied, i) + shape;
      copied = end;
    }
    i = end;
  }
  return copied === 0 ? path : out + path.slice(copied);
}

/**
 * The URL with what varies taken out: numbers → N, digests and tokens → H, parameters → their sorted names. Null when nothing in it varies.
 * `https://h/t/12/page-3?b=1&a=2` → `https://h/t/N/page-N?a&b`.
 */
export function templateOf(url: string): string | null {
  const pathStart = url.indexOf("/", url.indexOf("//") + 2);
  const question = url.indexOf("?", pathStart);
  const path = question < 0 ? url.slice(pathStart) : url.slice(pathStart, question);
  const shape = shapeOf(path);
  if (question < 0) return shape === path ? null : url.slice(0, pathStart) + shape;
  const query = url.slice(question + 1);
  const keys = query.includes("&") ? query.split("&").map(keyOf).sort().join("&") : keyOf(query);
  return `${url.slice(0, pathStart)}${shape}?${/\d/.test(keys) ? keys.replace(/\d+/g, "N") : keys}`;
}
