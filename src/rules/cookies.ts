/** Cookies by RFC 6265: reading Set-Cookie, keeping a jar in bounds, writing Cookie. A jar is plain data; where it lies is the store's affair. cookie-file.ts reads files. */
import type { EpochMs } from "../core/clock.ts";
import type { Cookie } from "../core/frontier.ts";
import { trimBlanks } from "./field-value.ts";
import { parseCookieDate } from "./http-date.ts";

/** Bytes of name and value together. */
export const MAX_COOKIE_BYTES = 4_096;
/** Cookies of one domain; the oldest go first. */
export const MAX_COOKIES_PER_DOMAIN = 50;
/** Cookies of a jar, which holds those of one site: its hosts must not fill it one by one. */
export const MAX_COOKIES_PER_JAR = 300;

/** Where a request goes. */
export interface CookiePlace {
  /** Without port, lower case. */
  readonly host: string;
  /** Without query. */
  readonly path: string;
  /** https. */
  readonly secure: boolean;
}

/** May anybody register below this domain? Null: not known yet. */
export type SuffixRule = (domain: string) => boolean | null;

/** An address instead of a name: such hosts match nothing but themselves. */
export function isIpAddress(host: string): boolean {
  return host.startsWith("[") || host.includes(":") || /^\d{1,3}(?:\.\d{1,3}){3}$/.test(host);
}

/** RFC 6265 §5.1.3: the same host, or a name below the domain. */
export function domainMatches(host: string, domain: string): boolean {
  if (host === domain) return true;
  return host.length > domain.length && host.charCodeAt(host.length - domain.length - 1) === 46 && host.endsWith(domain) && !isIpAddress(host);
}

/** RFC 6265 §5.1.4. */
export function pathMatches(path: string, cookiePath: string): boolean {
  if (!path.startsWith(cookiePath)) return false;
  return path.length === cookiePath.length || cookiePath.endsWith("/") || path.charCodeAt(cookiePath.length) === 47;
}

/** The folder of the request's path, without the slash at its end (RFC 6265 §5.1.4). */
function defaultPath(path: string): string {
  const end = path.lastIndexOf("/");
  return path.startsWith("/") && end > 0 ? path.slice(0, end) : "/";
}

const CONTROL = /[\0-\x08\x0a-\x1f\x7f]/;

interface Attributes {
  readonly domain: string | null;
  readonly path: string | null;
  readonly expiresAt: number | null;
  readonly secure: boolean;
}

function splitPair(text: string): readonly [name: string, value: string] {
  const equals = text.indexOf("=");
  return equals < 0 ? [trimBlanks(text), ""] : [trimBlanks(text.slice(0, equals)), trimBlanks(text.slice(equals + 1))];
}

/** RFC 6265 §5.2: of several attributes of one name the last counts, Max-Age before Expires. */
function readAttributes(parts: readonly string[], now: EpochMs): Attributes {
  let domain: string | null = null;
  let path: string | null = null;
  let expires: number | null = null;
  let maxAge: number | null = null;
  let secure = false;
  for (const part of parts) {
    const [name, value] = splitPair(part);
    switch (name.toLowerCase()) {
      case "expires":
        expires = parseCookieDate(value) ?? expires;
        break;
      case "max-age":
        // What is over at once gets the earliest time there is.
        if (/^-?\d+$/.test(value)) maxAge = Number(value) > 0 ? Math.min(now + Number(value) * 1_000, Number.MAX_SAFE_INTEGER) : 0;
        break;
      case "domain":
        if (value !== "") domain = canonicalDomain(value);
        break;
      case "path":
        path = value.startsWith("/") ? value : null;
        break;
      case "secure":
        secure = true;
        break;
    }
  }
  return { domain, path, expiresAt: maxAge ?? expires, secure };
}

/** Lower case, ASCII, without a leading dot. What is no host stays as it is and then matches none. */
function canonicalDomain(value: string): string {
  const name = (value.startsWith(".") ? value.slice(1) : value).toLowerCase();
  return /[^\0-\x7f]/.test(name) ? (URL.parse(`http://${name}/`)?.hostname ?? name) : name;
}

/** Whose the cookie is (RFC 6265 §5.3, steps 4 to 6); null: it must not be kept. */
function ownerOf(domain: string | null, host: string, isPublicSuffix: SuffixRule): { domain: string; hostOnly: boolean } | null {
  const own = { domain: host, hostOnly: true };
  if (domain === null || isIpAddress(host)) return domain === null || domain === host ? own : null;
  if (!domainMatches(host, domain)) return null;
  // A suffix may be a host of its own: its cookie is then for it alone. A single label is always a suffix.
  const suffix = domain.includes(".") ? isPublicSuffix(domain) : true;
  if (suffix === true) return domain === host ? own : null;
  return suffix === null ? own : { domain, hostOnly: false };
}

/** What the prefix of a name promises of where it came from, whatever its case (RFC 6265bis §4.1.3); other names promise nothing. */
function keepsPromise(name: string, { secure, domain, path }: Attributes, place: CookiePlace): boolean {
  const prefix = /^__(?:secure|host)-/i.exec(name)?.[0].toLowerCase();
  if (prefix === undefined) return true;
  return secure && place.secure && (prefix === "__secure-" || (domain === null && path === "/"));
}

/**
 * Reads one Set-Cookie line (RFC 6265 §5.2, §5.3). Null: not a cookie, too large, or for a domain that is not the host's to speak for.
 * One that is to be deleted comes with an `expiresAt` in the past; mergeCookies acts on it. While the suffix rule does not know, a cookie
 * for a whole domain is kept for its host alone: that never tells anyone too much.
 */
export function parseSetCookie(line: string, place: CookiePlace, nowEpochMs: EpochMs, isPublicSuffix: SuffixRule): Cookie | null {
  if (CONTROL.test(line)) return null;
  const parts = line.split(";");
  const pair = parts.shift() ?? "";
  const [name, value] = pair.includes("=") ? splitPair(pair) : ["", ""];
  if (name === "" || Buffer.byteLength(name) + Buffer.byteLength(value) > MAX_COOKIE_BYTES) return null;
  const attributes = readAttributes(parts, nowEpochMs);
  const owner = ownerOf(attributes.domain, place.host, isPublicSuffix);
  if (owner === null || !keepsPromise(name, attributes, place)) return null;
  const path = attributes.path ?? defaultPath(place.path);
  if (path.length > MAX_COOKIE_BYTES) return null;
  return { name, value, ...owner, path, secure: attributes.secure, expiresAt: attributes.expiresAt };
}

/** Reads cookies and loads the public suffix list, which is large, when the first one asks for it. */
export interface CookieReader {
  /** parseSetCookie with that list. Until it is loaded, cookies for whole domains are kept for their host alone. */
  parse(line: string, place: CookiePlace, nowEpochMs: EpochMs): Cookie | null;
  /** Loads the list now: for crawls of several hosts, so that the first cookie already counts for all of its domain. */
  preload(): Promise<void>;
}

export function createCookieReader(): CookieReader {
  let known: SuffixRule | null = null;
  let loading: Promise<void> | null = null;
  async function load(): Promise<void> {
    known = (await import("./site.ts")).isPublicSuffix;
  }
  const preload = () => (loading ??= load());
  const rule: SuffixRule = (domain) => {
    if (known) return known(domain);
    // A failure to load leaves cookies with their hosts; whoever calls preload hears of it.
    preload().catch(() => {
      loading = null;
    });
    return null;
  };
  return { parse: (line, place, nowEpochMs) => parseSetCookie(line, place, nowEpochMs, rule), preload };
}

const isExpired = (cookie: Cookie, now: EpochMs): boolean => cookie.expiresAt !== null && cookie.expiresAt <= now;

/**
 * The jar after these cookies were set, in their order; the jar given is not changed. A cookie of the same name, domain and path takes the place of the old one.
 * Expired ones are dropped, then the oldest beyond the bounds. Order is age: RFC 6265 §5.3 step 11 keeps the creation time of what is replaced.
 */
export function mergeCookies(jar: readonly Cookie[], set: readonly Cookie[], nowEpochMs: EpochMs): readonly Cookie[] {
  const kept = new Map<string, Cookie>();
  for (const cookie of [...jar, ...set]) {
    const key = JSON.stringify([cookie.name, cookie.domain, cookie.path]);
    if (isExpired(cookie, nowEpochMs)) kept.delete(key);
    else kept.set(key, cookie);
  }
  const counts = new Map<string, number>();
  const newestFirst = [...kept.values()].reverse().filter((cookie) => {
    const count = (counts.get(cookie.domain) ?? 0) + 1;
    counts.set(cookie.domain, count);
    return count <= MAX_COOKIES_PER_DOMAIN;
  });
  return newestFirst.slice(0, MAX_COOKIES_PER_JAR).reverse();
}

/** The Cookie header for a request, longest path first, then oldest first (RFC 6265 §5.4); null when no cookie belongs to it. */
export function cookieHeader(jar: readonly Cookie[], place: CookiePlace, nowEpochMs: EpochMs): string | null {
  const sent = jar.filter(
    (cookie) =>
      (cookie.hostOnly ? cookie.domain === place.host : domainMatches(place.host, cookie.domain)) &&
      pathMatches(place.path, cookie.path) &&
      (place.secure || !cookie.secure) &&
      !isExpired(cookie, nowEpochMs),
  );
  if (sent.length === 0) return null;
  return sent
    .sort((a, b) => b.path.length - a.path.length)
    .map((cookie) => `${cookie.name}=${cookie.value}`)
    .join("; ");
}
