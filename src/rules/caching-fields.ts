/** Reads the header fields that caching goes by: Cache-Control, Expires, Date, Age, Vary (RFC 9110, RFC 9111 §5). What follows from them is caching.ts. */
import type { EpochMs } from "../core/clock.ts";
import { parseHttpDate } from "./http-date.ts";

/** Names in lower case, one entry a line, in the order of the message. */
export type Fields = readonly (readonly [name: string, value: string])[];

/** Every line of that name. */
export function linesOf(fields: Fields, name: string): string[] {
  return fields.filter((field) => field[0] === name).map((field) => field[1]);
}

/** All lines of that name as one; null: there is none. */
export function fieldOf(fields: Fields, name: string): string | null {
  const lines = linesOf(fields, name);
  return lines.length === 0 ? null : lines.join(", ");
}

/** A comma, unless it stands in a quoted string; an unfinished one goes to the end. */
const MEMBERS = /(?:[^",]|"(?:[^"\\]|\\.)*(?:"|$))+/gs;
const DIRECTIVE = /^([!#$%&'*+\-.^_`|~0-9a-z]+)[ \t]*(?:=[ \t]*(.*))?$/is;

/** Members of a list field, trimmed, the empty ones left out (RFC 9110 §5.6.1). */
export function membersOf(value: string): string[] {
  return (value.match(MEMBERS) ?? []).map((member) => member.trim()).filter((member) => member !== "");
}

/** Names in lower case; null: no argument. Of two of a name the first counts (RFC 9111 §4.2.1). */
export type Directives = ReadonlyMap<string, string | null>;

/** RFC 9111 §5.2: an argument may be a token or a quoted string. */
export function directivesOf(cacheControl: string | null): Directives {
  const directives = new Map<string, string | null>();
  if (cacheControl === null) return directives;
  for (const member of membersOf(cacheControl)) {
    const match = DIRECTIVE.exec(member);
    if (match === null) continue;
    const name = (match[1] ?? "").toLowerCase();
    if (!directives.has(name)) directives.set(name, match[2] === undefined ? null : unquoted(match[2]));
  }
  return directives;
}

function unquoted(text: string): string {
  return text.length >= 2 && text.startsWith('"') && text.endsWith('"') ? text.slice(1, -1).replace(/\\(.)/gs, "$1") : text;
}

/** Larger ones mean this (RFC 9111 §1.2.2). */
const MAX_SECONDS = 2 ** 31;

/** delta-seconds in ms (RFC 9111 §1.2.2); null when it is none. */
export function deltaMs(text: string | null): number | null {
  return text !== null && /^\d+$/.test(text) ? Math.min(Number(text), MAX_SECONDS) * 1_000 : null;
}

const STRICT_DATE = [
  /^[a-z]{3}, \d{2} [a-z]{3} \d{4} \d{2}:\d{2}:\d{2} gmt$/i,
  /^[a-z]{6,9}, \d{2}-[a-z]{3}-\d{2} \d{2}:\d{2}:\d{2} gmt$/i,
  /^[a-z]{3} [a-z]{3} (?: \d|\d{2}) \d{2}:\d{2}:\d{2} \d{4}$/i,
];

/** A date that decides on freshness must have one of the three forms (RFC 9110 §5.6.7) to the letter, but for upper and lower case; null for others (RFC 9111 §4.2, §5.3). */
export function cacheDate(text: string | undefined, now: EpochMs): EpochMs | null {
  const value = text?.trim() ?? "";
  return STRICT_DATE.some((form) => form.test(value)) ? parseHttpDate(value, now) : null;
}

/** RFC 9111 §5.1: of several members the first counts; one that is no number is as if it were not there. */
export function ageMs(fields: Fields): number {
  const value = fieldOf(fields, "age");
  return value === null ? 0 : (deltaMs(membersOf(value)[0] ?? null) ?? 0);
}

/** The fields that Vary names, lower case; null: `*`, nothing can match (RFC 9111 §4.1). */
export function variedNames(fields: Fields): readonly string[] | null {
  const value = fieldOf(fields, "vary");
  if (value === null) return [];
  const names = new Set(membersOf(value).map((name) => name.toLowerCase()));
  return names.has("*") ? null : [...names];
}

/** Values that differ in space around commas only are the same (RFC 9111 §4.1). */
export function normalField(value: string): string {
  return value
    .split(",")
    .map((part) => part.trim().replace(/[ \t]+/g, " "))
    .join(",");
}
