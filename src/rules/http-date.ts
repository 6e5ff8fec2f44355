/** Dates of HTTP headers: the three forms of HTTP-date and the lenient cookie-date. */
import type { EpochMs } from "../core/clock.ts";

const MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];

const IMF = /^[a-z]+, (\d{1,2}) ([a-z]{3}) (\d{4}) (\d{2}):(\d{2}):(\d{2}) (?:gmt|utc)$/i;
const RFC850 = /^[a-z]+, (\d{1,2})-([a-z]{3})-(\d{2}) (\d{2}):(\d{2}):(\d{2}) (?:gmt|utc)$/i;
const ASCTIME = /^[a-z]+ ([a-z]{3}) +(\d{1,2}) (\d{2}):(\d{2}):(\d{2}) (\d{4})$/i;

interface Parts {
  readonly day: number;
  /** 0 … 11; −1 is not a month. */
  readonly month: number;
  readonly year: number;
  readonly hour: number;
  readonly minute: number;
  readonly second: number;
}

/** Null when the day does not exist. A leap second counts as the second before it. */
function toEpoch({ day, month, year, hour, minute, second }: Parts): EpochMs | null {
  if (month < 0 || day < 1 || year < 1601 || hour > 23 || minute > 59 || second > 60) return null;
  const epoch = Date.UTC(year, month, day, hour, minute, Math.min(second, 59));
  return new Date(epoch).getUTCDate() === day ? epoch : null;
}

/** The two-digit year of an RFC 850 date: one that seems over 50 years ahead means the past (RFC 9110 §5.6.7). */
function fullYear(twoDigits: number, now: EpochMs): number {
  const thisYear = new Date(now).getUTCFullYear();
  const year = thisYear - (thisYear % 100) + twoDigits;
  if (year > thisYear + 50) return year - 100;
  return year <= thisYear - 50 ? year + 100 : year;
}

/** HTTP-date in its three forms (RFC 9110 §5.6.7); null for anything else. The name of the weekday is not checked. */
export function parseHttpDate(text: string, now: EpochMs): EpochMs | null {
  const value = text.trim();
  const asctime = ASCTIME.exec(value);
  const match = IMF.exec(value) ?? RFC850.exec(value) ?? asctime;
  if (!match) return null;
  const [, first = "", second = "", third = ""] = match;
  if (asctime) {
    const [, name = "", day, hour, minute, seconds, year] = asctime;
    return toEpoch({
      day: Number(day),
      month: MONTHS.indexOf(name.toLowerCase()),
      year: Number(year),
      hour: Number(hour),
      minute: Number(minute),
      second: Number(seconds),
    });
  }
  return toEpoch({
    day: Number(first),
    month: MONTHS.indexOf(second.toLowerCase()),
    year: third.length === 2 ? fullYear(Number(third), now) : Number(third),
    hour: Number(match[4]),
    minute: Number(match[5]),
    second: Number(match[6]),
  });
}

const COOKIE_DELIMITERS = /[\t\x20-\x2f\x3b-\x40\x5b-\x60\x7b-\x7e]+/;
const TIME = /^(\d{1,2}):(\d{1,2}):(\d{1,2})(?:\D|$)/;
const DAY = /^(\d{1,2})(?:\D|$)/;
const YEAR = /^(\d{2,4})(?:\D|$)/;

/** Cookie-date by RFC 6265 §5.1.1: any order, any separators; null when a part is missing or impossible. */
export function parseCookieDate(text: string): EpochMs | null {
  let time: RegExpExecArray | null = null;
  let day: RegExpExecArray | null = null;
  let year: RegExpExecArray | null = null;
  let month = -1;
  for (const token of text.split(COOKIE_DELIMITERS)) {
    if (time === null && (time = TIME.exec(token)) !== null) continue;
    if (day === null && (day = DAY.exec(token)) !== null) continue;
    if (month < 0 && (month = MONTHS.indexOf(token.slice(0, 3).toLowerCase())) >= 0) continue;
    if (year === null) year = YEAR.exec(token);
  }
  if (time === null || day === null || year === null) return null;
  const written = Number(year[1]);
  const century = written >= 70 && written <= 99 ? 1900 : written <= 69 ? 2000 : 0;
  const second = Number(time[3]);
  if (second > 59) return null;
  return toEpoch({ day: Number(day[1]), month, year: century + written, hour: Number(time[1]), minute: Number(time[2]), second });
}
