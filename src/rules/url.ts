/** URLs as the crawl names them: canonical form, its parts, its fingerprint, and where a redirect leads. Links of a page are resolved in url-resolve.ts. */
import type { Fingerprint, FingerprintSeed, HostKey, Origin } from "../core/request.ts";

/** Canonical URLs longer than this are refused unless the caller says otherwise (RFC 9110 §4.1 asks for 8,000 octets at least). */
export const MAX_URL_LENGTH = 8192;

/** An http(s) URL in its canonical form, and what that form leaves out. */
export interface NormalUrl {
  /**
   * WHATWG serialisation without fragment and credentials, percent-escapes in upper case, escaped unreserved characters decoded (RFC 3986 §6.2.2),
   * no trailing dot of the host. Canonicalising it again changes nothing. Always ASCII.
   */
  readonly url: string;
  /** The URL to send where the page spelt its escapes in another way; null: send `url`. */
  readonly sentAs: string | null;
  /** `user:password`, percent-decoded; null when the URL has none. */
  readonly credentials: string | null;
}

/** Why a text is not a URL to crawl; the words are those of skipped records. */
export type UrlFault = "scheme" | "invalid-url" | "url-too-long";
export interface RejectedUrl {
  readonly reject: UrlFault;
}

// One object per fault: rejections are frequent (mailto:, javascript:) and carry nothing else.
const FAULTS: Readonly<Record<UrlFault, RejectedUrl>> = {
  scheme: { reject: "scheme" },
  "invalid-url": { reject: "invalid-url" },
  "url-too-long": { reject: "url-too-long" },
};

/** Reads `text` by the WHATWG URL Standard, against `base` if it is given. Only http and https are accepted; the length is that of the canonical form. */
export function parseUrl(text: string, base?: string, maxLength: number = MAX_URL_LENGTH): NormalUrl | RejectedUrl {
  const parsed = URL.parse(text, base);
  if (parsed === null) return hasForeignScheme(text) ? FAULTS.scheme : FAULTS["invalid-url"];
  if (parsed.protocol !== "http:" && parsed.protocol !== "https:") return FAULTS.scheme;
  return normalise(parsed.href, maxLength);
}

/** A scheme of its own that is neither http nor https, by the standard's rules for stripping blanks. */
function hasForeignScheme(text: string): boolean {
  const scheme = /^[\0- ]*([a-z][a-z0-9+.\-\t\n\r]*):/i
    .exec(text)?.[1]
    ?.replace(/[\t\n\r]/g, "")
    .toLowerCase();
  return scheme !== undefined && scheme !== "http" && scheme !== "https";
}

/** From a WHATWG serialisation of an http(s) URL. */
function normalise(href: string, maxLength: number): NormalUrl | RejectedUrl {
  const hash = href.indexOf("#");
  let sent = hash < 0 ? href : href.slice(0, hash);
  const hostStart = sent.indexOf("//") + 2;
  let pathStart = sent.indexOf("/", hostStart);
  let credentials: string | null = null;
  // The serialiser escapes "@" inside of userinfo, so that the first one before the path is the delimiter.
  const at = sent.indexOf("@", hostStart);
  if (at >= 0 && at < pathStart) {
    credentials = decodeCredentials(sent.slice(hostStart, at));
    sent = sent.slice(0, hostStart) + sent.slice(at + 1);
    pathStart -= at + 1 - hostStart;
  }
  const undotted = withoutTrailingDot(sent, hostStart, pathStart);
  if (undotted !== sent) {
    sent = undotted;
    pathStart--;
  }
  const url = sent.includes("%") ? sent.slice(0, pathStart) + canonicalEscapes(sent.slice(pathStart)) : sent;
  if (url.length > maxLength || sent.length > 3 * maxLength) return FAULTS["url-too-long"];
  return { url, sentAs: url === sent ? null : sent, credentials };
}

/** `a.example.` names the host `a.example` (absolute form of DNS). Hosts with empty labels are left alone: shortening them could make another kind of host. */
function withoutTrailingDot(url: string, hostStart: number, pathStart: number): string {
  let end = pathStart;
  const colon = url.lastIndexOf(":", pathStart);
  if (colon >= hostStart && url.charCodeAt(pathStart - 1) !== 0x5d) end = colon;
  if (url.charCodeAt(end - 1) !== 0x2e || url.charCodeAt(end - 2) === 0x2e || end - 1 === hostStart) return url;
  return url.slice(0, end - 1) + url.slice(end);
}

function decodeCredentials(userinfo: string): string {
  const colon = userinfo.indexOf(":");
  const user = colon < 0 ? userinfo : userinfo.slice(0, colon);
  const password = colon < 0 ? "" : userinfo.slice(colon + 1);
  return `${percentDecode(user)}:${percentDecode(password)}`;
}

function percentDecode(text: string): string {
  if (!text.includes("%")) return text;
  const bytes = Buffer.from(
    text.replace(/%([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16))),
    "latin1",
  );
  return bytes.toString("utf8");
}

/** Value of an ASCII hex digit, or −1. */
export function hexValue(code: number): number {
  if (code >= 0x30 && code <= 0x39) return code - 0x30;
  const lower = code | 0x20;
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x57 : -1;
}

/** RFC 3986 §2.3. */
export function isUnreserved(code: number): boolean {
  const lower = code | 0x20;
  return (lower >= 0x61 && lower <= 0x7a) || (code >= 0x30 && code <= 0x39) || code === 0x2d || code === 0x2e || code === 0x5f || code === 0x7e;
}

/**
 * Escapes of a path and query in upper case, unreserved ones decoded. A decoded character must not complete an escape with a stray "%" before it
 * (`%2%45` is not `%2E`), so the two characters after a stray one stay escaped.
 */
function canonicalEscapes(text: string): string {
  let out = "";
  let copied = 0;
  let stray = -3;
  let shift = 0; // input position minus output position
  for (let i = text.indexOf("%"); i >= 0; i = text.indexOf("%", i)) {
    const high = hexValue(text.charCodeAt(i + 1));
    const low = hexValue(text.charCodeAt(i + 2));
    if (high < 0 || low < 0) {
      stray = i - shift;
      i++;
      continue;
    }
    const code = high * 16 + low;
    const decode = isUnreserved(code) && i - shift - stray > 2;
    out += text.slice(copied, i) + (decode ? String.fromCharCode(code) : text.slice(i, i + 3).toUpperCase());
    if (decode) shift += 2;
    i += 3;
    copied = i;
  }
  return out + text.slice(copied);
}

/**
 * Where a redirect leads; null when it cannot be followed (unparsable, not http(s), too long).
 * `location` is the field value as HTTP libraries give it: each byte one character (Latin-1). Bytes that are valid UTF-8 are read as UTF-8,
 * others are kept byte by byte, as browsers do. A value with characters beyond U+00FF has been decoded already and is taken as it is.
 */
export function resolveLocation(location: string, base: string, maxLength: number = MAX_URL_LENGTH): NormalUrl | null {
  const result = parseUrl(decodeFieldValue(location), base, maxLength);
  return "reject" in result ? null : result;
}

/** A header value of URL kind from its Latin-1 form: UTF-8 where valid, else its high bytes percent-encoded. */
export function decodeFieldValue(value: string): string {
  if (!/[\x80-\xff]/.test(value) || /[^\0-\xff]/.test(value)) return value;
  const bytes = Buffer.from(value, "latin1");
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return value.replace(/[\x80-\xff]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`);
  }
}

/** `scheme://host[:port]` of a canonical URL. */
export function originOf(url: string): Origin {
  return url.slice(0, pathStartOf(url));
}

/** The unit of politeness: host, and port unless it is 80 or 443. Takes a canonical URL. */
export function hostKeyOf(url: string): HostKey {
  const start = hostStartOf(url);
  const end = pathStartOf(url);
  const colon = portColon(url, start, end);
  if (colon < 0) return url.slice(start, end);
  const port = url.slice(colon + 1, end);
  return url.slice(start, port === "80" || port === "443" ? colon : end);
}

/** Host of a canonical URL without port; IPv6 addresses keep their brackets. */
export function hostnameOf(url: string): string {
  const start = hostStartOf(url);
  const end = pathStartOf(url);
  const colon = portColon(url, start, end);
  return url.slice(start, colon < 0 ? end : colon);
}

/** The request target: path and query of a canonical URL. */
export function pathAndQueryOf(url: string): string {
  return url.slice(pathStartOf(url));
}

function hostStartOf(url: string): number {
  return url.charCodeAt(4) === 0x3a ? 7 : 8; // after "http://" or "https://"
}

function pathStartOf(url: string): number {
  const slash = url.indexOf("/", hostStartOf(url));
  return slash < 0 ? url.length : slash;
}

/** Index of the colon before the port, −1 without one. Ports have five digits at most, so that only the end is looked at. */
function portColon(url: string, start: number, end: number): number {
  for (let i = end - 1; i > start; i--) {
    const c = url.charCodeAt(i);
    if (c === 0x3a) return i;
    if (c < 0x30 || c > 0x39) return -1;
  }
  return -1;
}

/**
 * Keyed 64-bit fingerprint of any string, written to `out[0]` (hi) and `out[1]` (lo).
 * HalfSipHash-1-3 with a 128-bit key and 64-bit output: nobody who does not know the seed can make two URLs collide on purpose, and by chance two of
 * 10 million collide with probability 3 in a million. Words hold four characters below U+0100, or two of any kind; a mark in the state tells these apart.
 */
export function fingerprint(key: string, seed: FingerprintSeed, out: Int32Array): void {
  let v0 = seed[0] | 0;
  let v1 = seed[1] | 0;
  let v2 = seed[2] ^ 0x6c796765;
  let v3 = seed[3] ^ 0x74656462;
  const length = key.length;
  let i = 0;
  let final = 0; // of the rounds after the last word; 0 while words remain
  let hi = 0;
  for (;;) {
    let word = 0;
    if (i < length) {
      const a = key.charCodeAt(i);
      const b = i + 1 < length ? key.charCodeAt(i + 1) : 0;
      const c = i + 2 < length ? key.charCodeAt(i + 2) : 0;
      const d = i + 3 < length ? key.charCodeAt(i + 3) : 0;
      if ((a | b | c | d) < 0x100) {
        word = a | (b << 8) | (c << 16) | (d << 24);
        i += 4;
      } else {
        word = a | (b << 16);
        v2 ^= 0xa5;
        i += 2;
      }
    } else if (final === 0) {
      word = length;
      final = 1;
    } else {
      if (final === 1) v2 ^= 0xee;
      else if (final === 4) {
        hi = v1 ^ v3;
        v1 ^= 0xdd;
      } else if (final === 7) break;
      final++;
    }
    v3 ^= word;
    v0 = (v0 + v1) | 0;
    v1 = ((v1 << 5) | (v1 >>> 27)) ^ v0;
    v0 = (v0 << 16) | (v0 >>> 16);
    v2 = (v2 + v3) | 0;
    v3 = ((v3 << 8) | (v3 >>> 24)) ^ v2;
    v0 = (v0 + v3) | 0;
    v3 = ((v3 << 7) | (v3 >>> 25)) ^ v0;
    v2 = (v2 + v1) | 0;
    v1 = ((v1 << 13) | (v1 >>> 19)) ^ v2;
    v2 = (v2 << 16) | (v2 >>> 16);
    v0 ^= word;
  }
  out[0] = hi;
  out[1] = v1 ^ v3;
}

/** `fingerprint` as a value. */
export function fingerprintOf(key: string, seed: FingerprintSeed): Fingerprint {
  const out = new Int32Array(2);
  fingerprint(key, seed, out);
  return { idHi: out[0]!, idLo: out[1]! };
}
