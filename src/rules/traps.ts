/**
 * Spider traps: which links lead into a web without end. Decided per link from its URL, the page it stands on, and what has been admitted before; never from bodies.
 * The choice of rules and figures is told in docs/decisions/0010-traps.md.
 */
import type { EpochMs } from "../core/clock.ts";
import { TRAP_LIMITS, type TrapLimits } from "../core/traps.ts";
import { createHashFilter, type SavedFilter } from "./traps-filter.ts";
import { mostPairs, mostUses, repeatsInARow, templateOf, type UrlParts, urlParts, withoutSession, yearIn } from "./traps-url.ts";

export type TrapRule = keyof TrapLimits;

const SENTENCES: Readonly<Record<TrapRule, string>> = {
  repeats: "the same directories more than N times in a row",
  segmentUses: "one directory more than N times in the path",
  pathDepth: "more than N path segments",
  length: "longer than N characters",
  pairRepeats: "the same parameter more than N times",
  keyRepeats: "one parameter more than N times",
  sessions: "the same page under another session id",
  calendarYears: "a calendar more than N years ahead, or before 1800",
  template: "more than N URLs of one form that only lead to each other",
  chain: "more than N links deep along URLs of one form",
  combinations: "more than N combinations of the same parameters",
  shuffles: "more than N paths that only rearrange known directories",
  hosts: "more than N host names of one domain",
  hostLabels: "a host name of more than N labels",
};

export interface TrapVerdict {
  readonly name: TrapRule;
  /** `traps.NAME FIGURE: SENTENCE`. */
  readonly rule: string;
}

export interface TrapOptions extends Partial<TrapLimits> {
  /** When the crawl began; a snapshot keeps it. */
  readonly startedAt: EpochMs;
  /** What belongs together as one site (rules/site.ts). Asked once per host name. */
  readonly siteOf: (host: string) => string;
  /** Bound of the memory of what has been admitted, 5 to 15 bytes a URL. Once it is full only rules about single URLs are left. Default 64 MiB. */
  readonly maxBytes?: number;
}

/** Plain data: may be written to a file and read by another process of the same version. */
export interface TrapSnapshot {
  readonly version: 1;
  readonly startedAt: EpochMs;
  readonly full: boolean;
  readonly counters: readonly (readonly [key: number, own: number, other: number])[];
  readonly summary: readonly (readonly [TrapRule, number])[];
  readonly filter: SavedFilter;
}

export interface Traps {
  /**
   * Null: admit it; the URL is remembered, and the answer stays null for it. Both URLs are canonical; `referrer` null (a seed) is never a trap.
   * `depth`: links from a seed.
   */
  verdict(url: string, referrer: string | null, depth: number): TrapVerdict | null;
  /** Distinct URLs refused, by rule. */
  summary(): Readonly<Partial<Record<TrapRule, number>>>;
  snapshot(): TrapSnapshot;
  restore(snapshot: TrapSnapshot): void;
}

/** What was admitted of one form: found on pages of that form, and found elsewhere. */
interface Counter {
  own: number;
  other: number;
}

const MAX_BYTES = 64 * 1024 * 1024;
const MAX_COUNTERS = 50_000;
/** Shops and forums reach their pages from lists: each page found there vouches for this many found along the pages themselves. */
const VOUCHED = 50;
const FIRST_YEAR = 1800;
const BELT_AHEAD = 10;
const BELT_BACK = 200;
const MIN_KEYS = 4;
const MAX_KEYS = 12;

export function createTraps(options: TrapOptions): Traps {
  const limits: TrapLimits = { ...TRAP_LIMITS, ...options };
  const filter = createHashFilter(options.maxBytes ?? MAX_BYTES);
  let counters = new Map<number, Counter>();
  let refused = new Map<TrapRule, number>();
  let startedAt = options.startedAt;
  let full = false;
  let hi = 0;
  let lo = 0;
  let lastReferrer = "";
  let lastTemplate: string | null = null;
  const verdicts = new Map<TrapRule, TrapVerdict>();
  for (const name of Object.keys(SENTENCES) as TrapRule[]) // the keys of a record over TrapRule
    verdicts.set(name, { name, rule: `traps.${name} ${limits[name]}: ${SENTENCES[name].replace("N", String(limits[name]))}` });

  /** Two hashes of `text` (and of what it is a hash for) into `hi` and `lo`. */
  function hash(text: string, salt: number): void {
    let a = 0x811c9dc5 ^ salt;
    let b = 0x9747b28c + salt;
    for (let i = 0; i < text.length; i++) {
      const c = text.charCodeAt(i);
      a = Math.imul(a ^ c, 0x01000193);
      b = Math.imul(b ^ c, 0x5bd1e995);
      b ^= b >>> 15;
    }
    a ^= a >>> 16;
    hi = Math.imul(a, 0x85ebca6b);
    hi ^= hi >>> 13;
    lo = Math.imul(b ^ a, 0xc2b2ae35);
    lo ^= lo >>> 16;
  }

  function isKnown(text: string, salt: number): boolean {
    hash(text, salt);
    return filter.has(hi, lo);
  }

  function remember(text: string, salt: number): void {
    hash(text, salt);
    if (!full && !filter.has(hi, lo)) full = !filter.add(hi, lo);
  }

  /** The counter of `text`; a new one is kept only once it is raised. */
  function counterKey(text: string, salt: number): number {
    hash(text, salt);
    return (hi >>> 0) * 0x200000 + (lo >>> 11);
  }

  function raise(key: number, own: boolean): void {
    let counter = counters.get(key);
    if (counter === undefined) {
      if (counters.size >= MAX_COUNTERS) forgetSmall();
      counter = { own: 0, other: 0 };
      counters.set(key, counter);
    }
    if (own) counter.own++;
    else counter.other++;
  }

  /** Most forms have one URL: those that grew least make room. */
  function forgetSmall(): void {
    for (let bound = 1; counters.size > MAX_COUNTERS / 2; bound *= 2) {
      for (const [key, counter] of counters) if (counter.own + counter.other <= bound) counters.delete(key);
    }
  }

  function exceeds(limit: number | null, figure: number): boolean {
    return limit !== null && figure > limit;
  }

  function aloneRule(url: string, parts: UrlParts): TrapRule | null {
    const { directories, segments, pairs } = parts;
    if (exceeds(limits.length, url.length)) return "length";
    if (exceeds(limits.pathDepth, segments.length)) return "pathDepth";
    if (limits.repeats !== null && directories.length > limits.repeats && repeatsInARow(directories, limits.repeats, 2 * limits.repeats)) return "repeats";
    if (limits.segmentUses !== null && directories.length > limits.segmentUses && mostUses(directories) > limits.segmentUses) return "segmentUses";
    if (pairs.length > 1) {
      const uses = mostPairs(pairs);
      if (exceeds(limits.pairRepeats, uses.pair)) return "pairRepeats";
      if (exceeds(limits.keyRepeats, uses.key)) return "keyRepeats";
    }
    return null;
  }

  /** Host names: how many of one site, and names of endlessly many labels. */
  function hostRule(origin: string, tell: Telling): TrapRule | null {
    if (isKnown(origin, HOST)) return null;
    const host = origin.slice(origin.indexOf("//") + 2).replace(/:\d+$/, "");
    if (exceeds(limits.hostLabels, host.split(".").length)) return "hostLabels";
    const key = counterKey(options.siteOf(host), SITE);
    if (limits.hosts !== null && (counters.get(key)?.own ?? 0) >= limits.hosts) return "hosts";
    tell.known.push(origin, HOST);
    tell.raised.push(key);
    return null;
  }

  function sessionRule(url: string, tell: Telling): TrapRule | null {
    if (limits.sessions === null) return null;
    const plain = withoutSession(url, true);
    if (plain === url) return null;
    if (isKnown(plain, PAGE)) return "sessions";
    tell.known.push(plain, PAGE);
    return null;
  }

  /** A step from one year to the next (or the one before) within a belt that calendars cannot leap over. Beyond it four digits are the number of something. */
  function calendarRule(url: string, referrer: string): boolean {
    if (limits.calendarYears === null) return false;
    const year = yearIn(url);
    if (year === null) return false;
    const ahead = year - new Date(startedAt).getUTCFullYear() - limits.calendarYears;
    if (ahead > 0 && ahead <= BELT_AHEAD) return yearIn(referrer) === year - 1;
    return year < FIRST_YEAR && year >= FIRST_YEAR - BELT_BACK && yearIn(referrer) === year + 1;
  }

  function templateRule(url: string, template: string | null, referrer: string, depth: number, tell: Telling): TrapRule | null {
    if (template === null) return null;
    if (referrer !== lastReferrer) {
      lastTemplate = templateOf(referrer);
      lastReferrer = referrer;
    }
    const key = counterKey(template, TEMPLATE);
    if (template !== lastTemplate) {
      tell.foundElsewhere = key;
      return null;
    }
    if (calendarRule(url, referrer)) return "calendarYears";
    const { own, other } = counters.get(key) ?? NOTHING;
    if (limits.template !== null && own >= limits.template + VOUCHED * other) return "template";
    if (limits.chain !== null && depth > limits.chain && own >= limits.chain && own >= VOUCHED * other) return "chain";
    tell.raised.push(key);
    return null;
  }

  /** Parameters that only combine what was combined before, in pairs. */
  function combinationRule(url: string, parts: UrlParts, tell: Telling): TrapRule | null {
    const { pairs } = parts;
    if (limits.combinations === null || pairs.length < MIN_KEYS) return null;
    const path = url.slice(0, url.indexOf("?"));
    const sorted = pairs.slice(0, MAX_KEYS).sort();
    let fresh = false;
    for (let i = 0; i < sorted.length; i++) {
      for (let j = i + 1; j < sorted.length; j++) {
        const text = `${path}?${sorted[i]}&${sorted[j]}`;
        if (isKnown(text, PAIR)) continue;
        fresh = true;
        tell.known.push(text, PAIR);
      }
    }
    if (fresh) return null;
    const key = counterKey(path, COMBINED);
    if ((counters.get(key)?.own ?? 0) >= limits.combinations) return "combinations";
    tell.raised.push(key);
    return null;
  }

  /** Relative links that go one level deeper on every page: the same names in every order. */
  function shuffleRule(parts: UrlParts, tell: Telling): TrapRule | null {
    const { segments, origin } = parts;
    if (limits.shuffles === null || segments.length < 2) return null;
    let fresh = false;
    for (const segment of segments) {
      const text = `${origin}/${segment}`;
      if (isKnown(text, SEGMENT)) continue;
      fresh = true;
      tell.known.push(text, SEGMENT);
    }
    if (fresh) return null;
    const repeated = new Set(segments).size < segments.length;
    if (!repeated && segments.length < 3) return null;
    const key = counterKey(origin, SHUFFLED);
    if ((counters.get(key)?.own ?? 0) >= limits.shuffles) return "shuffles";
    if (repeated) tell.raised.push(key);
    return null;
  }

  function judge(url: string, referrer: string | null, depth: number): TrapRule | null {
    const parts = urlParts(url);
    const tell: Telling = { known: [], raised: [], foundElsewhere: null };
    let rule: TrapRule | null = null;
    if (referrer !== null) {
      rule = aloneRule(url, parts);
      if (rule === null && !full) {
        const template = templateOf(url);
        rule =
          hostRule(parts.origin, tell) ??
          sessionRule(url, tell) ??
          templateRule(url, template, referrer, depth, tell) ??
          combinationRule(url, parts, tell) ??
          (template === null ? shuffleRule(parts, tell) : null);
      }
    }
    if (rule !== null || full) return rule;
    remember(url, PAGE);
    for (let i = 0; i < tell.known.length; i += 2) remember(tell.known[i] as string, tell.known[i + 1] as number); // pushed in this order
    for (const key of tell.raised) raise(key, true);
    if (tell.foundElsewhere !== null) raise(tell.foundElsewhere, false);
    return null;
  }

  return {
    verdict(url, referrer, depth) {
      hash(url, PAGE);
      if (filter.has(hi, lo)) return null;
      const name = judge(url, referrer, depth);
      if (name === null) return null;
      if (!isKnown(url, REFUSED)) {
        refused.set(name, (refused.get(name) ?? 0) + 1);
        remember(url, REFUSED);
      }
      return verdicts.get(name) ?? null;
    },
    summary: () => Object.fromEntries(refused),
    snapshot: () => ({
      version: 1,
      startedAt,
      full,
      counters: [...counters].map(([key, { own, other }]) => [key, own, other]),
      summary: [...refused],
      filter: filter.save(),
    }),
    restore(snapshot) {
      startedAt = snapshot.startedAt;
      full = snapshot.full;
      counters = new Map(snapshot.counters.map(([key, own, other]) => [key, { own, other }]));
      refused = new Map(snapshot.summary);
      filter.load(snapshot.filter);
    },
  };
}

/** What is noted once a URL is admitted. */
interface Telling {
  /** Text and salt by turns. */
  readonly known: (string | number)[];
  readonly raised: number[];
  foundElsewhere: number | null;
}

const NOTHING: Counter = { own: 0, other: 0 };

// What a hash is for.
const PAGE = 1;
const HOST = 2;
const SITE = 3;
const TEMPLATE = 4;
const PAIR = 5;
const COMBINED = 6;
const SEGMENT = 7;
const SHUFFLED = 8;
const REFUSED = 9;
