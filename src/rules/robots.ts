/** Reads robots.txt (RFC 9309) and tells whether a URL may be fetched; matching lies in robots-match.ts, fetching and keeping the file elsewhere. */
import { compileRules, type RobotsVerdict, type RuleLine, type RuleSet, robotsPath } from "./robots-match.ts";

export type { RobotsVerdict } from "./robots-match.ts";

/** RFC 9309 §2.5: at least this many bytes are read; what lies beyond is not. */
export const ROBOTS_MAX_BYTES = 512_000;

/** Lines that stand together: the agents that head them and their rules. */
interface Group {
  readonly agents: string[];
  readonly rules: RuleLine[];
}

/** A parsed file. Made by parseRobots, read by the functions of this file only. */
export interface Robots {
  /** How many User-agent, Allow, Disallow and Sitemap lines were recognised. */
  readonly directives: number;
  readonly groups: readonly Group[];
  /** Every name a User-agent line gives, lower case. */
  readonly agents: ReadonlySet<string>;
  /** Seconds by agent. */
  readonly delays: ReadonlyMap<string, number>;
  /** Values of the Sitemap lines, as written. */
  readonly sitemapValues: readonly string[];
  /** Rules by product token, compiled when first asked for. */
  readonly compiled: Map<string, RuleSet>;
}

type Field = "user-agent" | "allow" | "disallow" | "sitemap" | "crawl-delay";

/** Field names in lower case. The misspelt ones are frequent, and their meaning is beyond doubt. */
const FIELDS: ReadonlyMap<string, Field> = new Map<string, Field>([
  ["user-agent", "user-agent"],
  ["useragent", "user-agent"],
  ["user agent", "user-agent"],
  ["allow", "allow"],
  ["disallow", "disallow"],
  ["dissallow", "disallow"],
  ["dissalow", "disallow"],
  ["disalow", "disallow"],
  ["diasllow", "disallow"],
  ["disallaw", "disallow"],
  ["desallow", "disallow"],
  ["sitemap", "sitemap"],
  ["site-map", "sitemap"],
  ["crawl-delay", "crawl-delay"],
]);

const LONGEST_FIELD = 16;
const DECIMAL = /^(?:\d+\.?\d*|\.\d+)$/;

/** The name by which a crawler is looked up: what stands before the first "/" or blank, lower case (RFC 9309 §2.2.1). Digits count, as in names that are in use. */
export function productToken(userAgent: string): string {
  return /^[^\s/]*/.exec(userAgent.trim())?.[0].toLowerCase() ?? "";
}

/** Only the lines that lie whole within the limit; a line cut there could mean the opposite of what was written. */
function withinLimit(text: string): string {
  // A UTF-16 unit is at most three bytes. The caller may have cut the bytes exactly at the limit and dropped a BOM.
  if (text.length * 3 < ROBOTS_MAX_BYTES - 3) return text;
  const bytes = Buffer.byteLength(text);
  if (bytes < ROBOTS_MAX_BYTES - 3) return text;
  const kept = bytes > ROBOTS_MAX_BYTES ? Buffer.from(text).subarray(0, ROBOTS_MAX_BYTES).toString() : text;
  return kept.slice(0, Math.max(kept.lastIndexOf("\n"), kept.lastIndexOf("\r")) + 1);
}

/** Splits a line without its comment. Null when it has no field we know. Without a colon a blank may separate, if there is one value only. */
function splitLine(line: string): { field: Field; value: string } | null {
  const colon = line.indexOf(":");
  if (colon >= 0) {
    const name = line.slice(0, colon).trim();
    const field = name.length > LONGEST_FIELD ? undefined : FIELDS.get(name.toLowerCase());
    return field === undefined ? null : { field, value: line.slice(colon + 1).trim() };
  }
  const words = /^([A-Za-z-]{5,16})[ \t]+(\S+)$/.exec(line.trim());
  const field = words ? FIELDS.get(words[1]!.toLowerCase()) : undefined;
  return words && field !== undefined ? { field, value: words[2]! } : null;
}

/** Gathers lines into groups. Only Allow and Disallow end a list of agents (RFC 9309 §2.2.1, §2.2.4). */
function collector() {
  const groups: Group[] = [];
  const agents = new Set<string>();
  const delays = new Map<string, number>();
  const sitemapValues: string[] = [];
  let directives = 0;
  let group: Group | null = null;

  function agent(value: string): void {
    const name = productToken(value);
    if (group === null || group.rules.length > 0) groups.push((group = { agents: [], rules: [] }));
    group.agents.push(name);
    agents.add(name);
  }
  function delay(value: string): void {
    if (group === null || !DECIMAL.test(value)) return;
    const seconds = Number(value);
    // Of several for one agent the politest holds.
    for (const name of group.agents) delays.set(name, Math.max(seconds, delays.get(name) ?? 0));
  }
  return {
    line(number: number, field: Field, value: string, text: string): void {
      if (field !== "crawl-delay") directives++;
      if (field === "user-agent") agent(value);
      else if (field === "crawl-delay") delay(value);
      else if (field === "sitemap") sitemapValues.push(value);
      // A rule before any agent belongs to nobody. An empty one says nothing, but it ends the list of agents: compileRules leaves it out.
      else group?.rules.push({ allow: field === "allow", pattern: value, text, line: number });
    },
    result: (): Robots => ({ directives, groups, agents, delays, sitemapValues, compiled: new Map() }),
  };
}

/**
 * Parses a file decoded as UTF-8. Any text gives an answer; lines that are not understood are passed over.
 * Lines end with CR, LF or CRLF; a byte order mark, also a broken one, is skipped.
 */
export function parseRobots(text: string): Robots {
  const bounded = withinLimit(text);
  const collect = collector();
  const first = bounded.charCodeAt(0);
  let start = first === 0xfeff || first === 0xfffd ? 1 : 0;
  let number = 0;
  let nextCr = -2;
  while (start < bounded.length) {
    let end = bounded.indexOf("\n", start);
    if (end < 0) end = bounded.length;
    if (nextCr !== -1 && nextCr < start) nextCr = bounded.indexOf("\r", start);
    if (nextCr !== -1 && nextCr < end) end = nextCr;
    number++;
    const hash = bounded.slice(start, end).indexOf("#");
    const line = bounded.slice(start, hash < 0 ? end : start + hash);
    const parts = line.length < 3 ? null : splitLine(line);
    if (parts) collect.line(number, parts.field, parts.value, line.trim());
    start = bounded.charCodeAt(end) === 13 && bounded.charCodeAt(end + 1) === 10 ? end + 2 : end + 1;
  }
  return collect.result();
}

/** The name whose groups hold for a product token: its own, else `*` (RFC 9309 §2.2.1); null when no group speaks to it. */
export function groupFor(robots: Robots, productToken: string): string | null {
  const token = productToken.toLowerCase();
  return robots.agents.has(token) ? token : robots.agents.has("*") ? "*" : null;
}

/** The rules for a product token: all groups that name it, else all groups for "*" (RFC 9309 §2.2.1). */
function rulesFor(robots: Robots, productToken: string): RuleSet {
  const known = robots.compiled.get(productToken);
  if (known) return known;
  const token = productToken.toLowerCase();
  const name = robots.agents.has(token) ? token : "*";
  const lines = robots.groups.filter((group) => group.agents.includes(name)).flatMap((group) => group.rules);
  const rules = compileRules(lines);
  robots.compiled.set(productToken, rules);
  return rules;
}

/**
 * May the crawler of this name fetch the absolute URL? The longest rule that matches decides, allow on a tie; no rule allows.
 * `rule` is the deciding line as written without its comment, `line` its number from 1; both null when none matched. `/robots.txt` may always be fetched.
 */
export function verdict(robots: Robots, productToken: string, url: string): RobotsVerdict {
  return rulesFor(robots, productToken).verdict(robotsPath(url));
}

/** Crawl-delay for a product token in ms, fractions kept and not capped; null when there is none. What is not a decimal number is ignored. */
export function crawlDelayMs(robots: Robots, productToken: string): number | null {
  const token = productToken.toLowerCase();
  const seconds = robots.delays.get(robots.agents.has(token) ? token : "*");
  return seconds === undefined ? null : seconds * 1_000;
}

/** The http(s) sitemaps the file names, in its order. Relative values resolve against `base` (the file's URL) and are left out without one. */
export function sitemaps(robots: Robots, base: string | null = null): readonly string[] {
  return robots.sitemapValues.flatMap((value) => {
    const url = value === "" ? null : URL.parse(value, base ?? undefined);
    return url !== null && (url.protocol === "http:" || url.protocol === "https:") ? [url.href] : [];
  });
}
