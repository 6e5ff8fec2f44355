/** Resolves the references of one document: equal to the WHATWG URL parser, without building a URL object for the common forms. */

import { MAX_URL_LENGTH, type NormalUrl, parseUrl, type RejectedUrl } from "./url.ts";
import { encodeQuery } from "./url-query.ts";

/** A plain string is the canonical URL of which nothing else is to be said (neither `sentAs` nor credentials). */
export type Resolved = string | NormalUrl | RejectedUrl;

export interface Resolver {
  /** `href` as the document has it, character references decoded. Never throws. */
  resolve(href: string): Resolved;
}

// Classes of characters after the host. Anything without a class goes the slow way, where the URL parser decides.
const PLAIN = 1;
const SLASH = 2;
const DOT = 3;
const QUESTION = 4;
const HASH = 5;
const PERCENT = 6;
const COLON = 7;
const CLASS = /* @__PURE__ */ (() => {
  const table = new Uint8Array(128);
  // Never encoded or changed by the parser, neither in a path nor in a query. "'" is encoded in queries only, and therefore absent.
  for (const c of "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_~!$&()*+,;=@") table[c.charCodeAt(0)] = PLAIN;
  table[0x2f] = SLASH;
  table[0x2e] = DOT;
  table[0x3f] = QUESTION;
  table[0x23] = HASH;
  table[0x25] = PERCENT;
  table[0x3a] = COLON;
  return table;
})();

// Escapes that canonicalisation leaves as they are, by their two characters: upper case and of a reserved byte.
function isSettledEscape(text: string, at: number): boolean {
  const high = text.charCodeAt(at + 1);
  const low = text.charCodeAt(at + 2);
  const lowIsHex = (low >= 0x30 && low <= 0x39) || (low >= 0x41 && low <= 0x46);
  if (!lowIsHex) return false;
  if ((high >= 0x38 && high <= 0x39) || (high >= 0x41 && high <= 0x46)) return true; // 80–FF
  if (high === 0x30 || high === 0x31) return true; // 00–1F
  if (high === 0x32) return low !== 0x44 && low !== 0x45; // 20–2F but "-" and "."
  return high === 0x33 && low >= 0x41; // 3A–3F
}

/** Where a run of plain characters ends. */
const SLOW = -1;

/**
 * Looks at the path, query and fragment of `href` from `from` on. Answers the length that counts (up to the fragment), or SLOW
 * if the parser would change anything in it. `relative`: a colon in the first segment may end a scheme.
 */
function plainEnd(href: string, from: number, relative: boolean): number {
  const n = href.length;
  let segment = from;
  let mayBeScheme = relative;
  let i = from;
  for (; i < n; i++) {
    const code = href.charCodeAt(i);
    const kind = code < 128 ? CLASS[code]! : 0;
    if (kind === PLAIN || kind === DOT) continue;
    if (kind === SLASH || kind === QUESTION || kind === HASH) {
      if (isDotSegment(href, segment, i)) return SLOW;
      if (kind !== SLASH) break;
      segment = i + 1;
      mayBeScheme = false;
    } else if (kind === PERCENT) {
      if (!isSettledEscape(href, i)) return SLOW;
      i += 2;
    } else if (kind === 0 || mayBeScheme) return SLOW;
  }
  if (i >= n) return isDotSegment(href, segment, n) ? SLOW : n;
  return href.charCodeAt(i) === 0x23 ? i : plainQueryEnd(href, i + 1);
}

function isDotSegment(href: string, start: number, end: number): boolean {
  const length = end - start;
  if (length === 0 || length > 2 || href.charCodeAt(start) !== 0x2e) return false;
  return length === 1 || href.charCodeAt(start + 1) === 0x2e;
}

function plainQueryEnd(href: string, from: number): number {
  const n = href.length;
  for (let i = from; i < n; i++) {
    const code = href.charCodeAt(i);
    const kind = code < 128 ? CLASS[code]! : 0;
    if (kind === 0) return SLOW;
    if (kind === HASH) return i;
    if (kind === PERCENT) {
      if (!isSettledEscape(href, i)) return SLOW;
      i += 2;
    }
  }
  return n;
}

/**
 * End of a host that the parser would leave as it is: lower-case letters, digits, hyphens, underscores and single dots, no Punycode,
 * not ending like a number. Else SLOW.
 */
function plainHostEnd(href: string, from: number): number {
  const n = href.length;
  let label = from;
  let i = from;
  for (; i < n; i++) {
    const code = href.charCodeAt(i);
    if ((code >= 0x61 && code <= 0x7a) || code === 0x2d || code === 0x5f) continue;
    if (code >= 0x30 && code <= 0x39) continue;
    if (code === 0x2e) {
      if (i === label) return SLOW;
      label = i + 1;
      continue;
    }
    if (code === 0x2f || code === 0x3f || code === 0x23) break;
    return SLOW;
  }
  if (i === label) return SLOW; // empty host, or a trailing dot
  const first = href.charCodeAt(label);
  if (first >= 0x30 && first <= 0x39) return SLOW;
  const puny = href.indexOf("xn--", from);
  return puny >= 0 && puny < i ? SLOW : i;
}

/** The document base taken apart; null when references must go the slow way. */
interface PlainBase {
  readonly url: string;
  readonly scheme: "http:" | "https:";
  readonly origin: string;
  /** URL up to the query. */
  readonly withoutQuery: string;
  /** URL up to the last slash of the path; [k]: k directories up. */
  readonly directories: string[];
}

/** Origins that the parser has given, so that the next page of a host needs no parser. Bounded: it is emptied when full. */
const knownOrigins = new Set<string>();
const MAX_ORIGINS = 10_000;

function plainBase(documentBase: string): PlainBase | null {
  const url = isKnownCanonical(documentBase) ? documentBase : canonicalBase(documentBase);
  if (url === null) return null;
  const scheme = url.startsWith("https:") ? "https:" : "http:";
  const path = url.indexOf("/", scheme.length + 2);
  const origin = url.slice(0, path);
  if (knownOrigins.size >= MAX_ORIGINS) knownOrigins.clear();
  knownOrigins.add(origin);
  const question = url.indexOf("?", path);
  const withoutQuery = question < 0 ? url : url.slice(0, question);
  return { url, scheme, origin, withoutQuery, directories: [withoutQuery.slice(0, withoutQuery.lastIndexOf("/") + 1)] };
}

function isKnownCanonical(text: string): boolean {
  const path = text.indexOf("/", 8);
  return path > 0 && knownOrigins.has(text.slice(0, path)) && plainEnd(text, path + 1, false) === text.length;
}

/** Null where references must go the slow way: no http(s) URL, or one whose spelling or credentials its references inherit. */
function canonicalBase(text: string): string | null {
  const base = parseUrl(text, undefined, Number.POSITIVE_INFINITY);
  return "reject" in base || base.sentAs !== null || base.credentials !== null ? null : base.url;
}

function directoryUp(base: PlainBase, levels: number): string {
  for (let k = base.directories.length; k <= levels; k++) {
    const below = base.directories[k - 1]!;
    const cut = below.lastIndexOf("/", below.length - 2);
    base.directories.push(cut < base.origin.length ? below : below.slice(0, cut + 1));
  }
  return base.directories[levels]!;
}

/** More steps up than this are the parser's business: the list of directories of a base stays short. */
const MAX_STEPS_UP = 64;

/**
 * `documentBase`: the URL of the document, or what its `<base>` resolved to (any scheme, any spelling).
 * `encoding`: the document's encoding (Encoding Standard name); queries are written in it. Null, UTF-8 and UTF-16 mean UTF-8 (URL Standard, query state).
 */
export function createResolver(documentBase: string, encoding: string | null, maxLength: number = MAX_URL_LENGTH): Resolver {
  const base = plainBase(documentBase);

  function slow(href: string): Resolved {
    const result = parseUrl(encodeQuery(href, encoding), documentBase, maxLength);
    return !("reject" in result) && result.sentAs === null && result.credentials === null ? result.url : result;
  }

  /** `prefix` and what of `href` from `from` on counts. */
  function joined(prefix: string, href: string, from: number, end: number): Resolved {
    if (end === SLOW || prefix.length + end - from > maxLength) return slow(href);
    return end === from ? prefix : prefix + (from === 0 && end === href.length ? href : href.slice(from, end));
  }

  function absolute(href: string, scheme: PlainBase["scheme"], hostStart: number): Resolved {
    const end = plainHostEnd(href, hostStart);
    if (end === SLOW) return slow(href);
    if (end === href.length || href.charCodeAt(end) !== 0x2f) {
      const tail = end === href.length ? end : href.charCodeAt(end) === 0x23 ? end : plainQueryEnd(href, end + 1);
      return joined(`${scheme}//${href.slice(hostStart, end)}/`, href, end, tail);
    }
    const tail = plainEnd(href, end + 1, false);
    if (tail === href.length && hostStart === scheme.length + 2 && tail <= maxLength) return href;
    return joined(`${scheme}//`, href, hostStart, tail);
  }

  function relative(plain: PlainBase, href: string): Resolved {
    let at = 0;
    let up = 0;
    while (href.charCodeAt(at) === 0x2e) {
      if (href.charCodeAt(at + 1) === 0x2f) at += 2;
      else if (href.charCodeAt(at + 1) === 0x2e && href.charCodeAt(at + 2) === 0x2f) {
        at += 3;
        up++;
      } else break;
    }
    if (up > MAX_STEPS_UP) return slow(href);
    return joined(directoryUp(plain, up), href, at, plainEnd(href, at, at === 0));
  }

  /** `href` starts with the base's own origin: its host needs no look, whatever it is. */
  function sameOrigin(plain: PlainBase, href: string): boolean {
    return href.charCodeAt(plain.origin.length) === 0x2f && href.startsWith(plain.origin);
  }

  function resolve(href: string): Resolved {
    const length = href.length;
    if (base === null || (length > 0 && (href.charCodeAt(0) <= 0x20 || href.charCodeAt(length - 1) <= 0x20))) return slow(href);
    if (length === 0) return base.url.length > maxLength ? slow(href) : base.url;
    switch (href.charCodeAt(0)) {
      case 0x23:
        return base.url.length > maxLength ? slow(href) : base.url;
      case 0x3f:
        return joined(base.withoutQuery, href, 0, plainQueryEnd(href, 1));
      case 0x2f:
        if (href.charCodeAt(1) === 0x2f) return absolute(href, base.scheme, 2);
        return joined(base.origin, href, 0, plainEnd(href, 1, false));
      case 0x68: {
        const scheme = href.startsWith("https://") ? "https:" : href.startsWith("http://") ? "http:" : null;
        if (scheme === null) return relative(base, href);
        if (!sameOrigin(base, href)) return absolute(href, scheme, scheme.length + 2);
        return joined(base.origin, href, base.origin.length, plainEnd(href, base.origin.length + 1, false));
      }
      default:
        return relative(base, href);
    }
  }

  return { resolve };
}
