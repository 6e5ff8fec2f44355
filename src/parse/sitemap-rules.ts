/** Rules about what sitemaps say: dates of entries, and which hosts a sitemap may speak for. */
import type { EpochMs } from "../core/clock.ts";
import { hostnameOf } from "../rules/url.ts";

const W3C = /^(\d{4})(?:-(\d{1,2})(?:-(\d{1,2})(?:(?:T|\s+)(\d{1,2}):(\d{2})(?::(\d{2})(?:[.,](\d+))?)?\s*(Z|UTC|GMT|[+-]\d{2}:?\d{2}|[+-]\d{2})?)?)?)?$/i;
const RFC_822 =
  /^(?:[a-z]+,?\s+)?(\d{1,2})[\s-]+([a-z]{3})[a-z]*[\s-]+(\d{2}|\d{4})(?:\s+(\d{1,2}):(\d{2})(?::(\d{2}))?(?:\s*([a-z]{1,4}|[+-]\d{2}:?\d{2}))?)?$/i;
const MONTHS = "janfebmaraprmayjunjulaugsepoctnovdec";
/** RFC 822 §5.1, in hours; other names and military letters say nothing reliable (RFC 5322 §4.3) and mean UTC. */
const ZONES: Readonly<Record<string, number>> = {
  EST: -5,
  EDT: -4,
  CST: -6,
  CDT: -5,
  MST: -7,
  MDT: -6,
  PST: -8,
  PDT: -7,
  BST: 1,
  CET: 1,
  CEST: 2,
  EET: 2,
  EEST: 3,
  MSK: 3,
  JST: 9,
};
const MAX_DATE = 100;

function zoneMinutes(zone: string | undefined): number {
  if (zone === undefined) return 0;
  const sign = zone[0];
  if (sign !== "+" && sign !== "-") return (ZONES[zone.toUpperCase()] ?? 0) * 60;
  const digits = zone.slice(1).replace(":", "");
  const minutes = Number(digits.slice(0, 2)) * 60 + Number(digits.slice(2, 4));
  return sign === "-" ? -minutes : minutes;
}

/** All as written, month 1 … 12. */
function epochOf(parts: {
  year: number;
  month: number;
  day: number;
  hour: number;
  minute: number;
  second: number;
  ms: number;
  offset: number;
}): EpochMs | null {
  const { year, month, day, hour, minute, second, ms, offset } = parts;
  if (month < 1 || month > 12 || day < 1 || hour > 24 || minute > 59 || second > 60) return null;
  const date = new Date(0);
  date.setUTCFullYear(year, month - 1, day); // unlike Date.UTC takes years below 100 as they are
  if (date.getUTCMonth() !== month - 1) return null;
  return date.getTime() + ((hour * 60 + minute - offset) * 60 + Math.min(second, 59)) * 1000 + ms;
}

/**
 * A `lastmod` (W3C date and time: a year, a month, a day or a time of day) or an RSS date (RFC 822 with two or four digits of year).
 * What is left out counts as the first moment; a time without zone is UTC. Null when it is neither.
 */
export function parseSitemapDate(text: string): EpochMs | null {
  const value = text.length > MAX_DATE ? "" : text.trim();
  const w3c = W3C.exec(value);
  if (w3c !== null) {
    const [, year, month = "1", day = "1", hour = "0", minute = "0", second = "0", fraction = "0", zone] = w3c;
    const ms = Math.floor(Number(`0.${fraction}`) * 1000);
    return epochOf({
      year: Number(year),
      month: Number(month),
      day: Number(day),
      hour: Number(hour),
      minute: Number(minute),
      second: Number(second),
      ms,
      offset: zoneMinutes(zone),
    });
  }
  const rfc = RFC_822.exec(value.replace(/\s*\([^()]*\)$/, "")); // a comment names the zone
  if (rfc === null) return null;
  const [, day, month = "", written = "", hour = "0", minute = "0", second = "0", zone] = rfc;
  const at = MONTHS.indexOf(month.toLowerCase());
  if (at < 0 || at % 3 !== 0) return null;
  // RFC 5322 §4.3: two digits from 50 on mean the last century.
  const year = Number(written) + (written.length > 2 ? 0 : Number(written) < 50 ? 2000 : 1900);
  return epochOf({
    year,
    month: at / 3 + 1,
    day: Number(day),
    hour: Number(hour),
    minute: Number(minute),
    second: Number(second),
    ms: 0,
    offset: zoneMinutes(zone),
  });
}

/**
 * May the sitemap speak for the page? Yes on its own host, and on hosts whose robots.txt names the sitemap (sitemaps.org, "cross submits").
 * `namedBy`: those hosts, without port. `siteOf` widens a host to what counts as one place (rules/site.ts for registrable domains); else it is the host itself.
 * Both URLs are canonical.
 */
export function mayList(sitemapUrl: string, pageUrl: string, namedBy: readonly string[], siteOf: (host: string) => string = (host) => host): boolean {
  const site = siteOf(hostnameOf(pageUrl));
  return site === siteOf(hostnameOf(sitemapUrl)) || namedBy.some((host) => siteOf(host.toLowerCase()) === site);
}
