/** The figures of the rules that recognise spider traps, by name: options of a crawl. The rules themselves are rules/traps.ts. */

/** Every rule is lifted by null. */
export interface TrapLimits {
  /** A run of directories may stand this many times in a row: `/a/b/a/b/a/b/` has 3. One number or character by itself may twice as often. */
  readonly repeats: number | null;
  /** One directory name may occur this many times in a path. */
  readonly segmentUses: number | null;
  /** Segments of a path. */
  readonly pathDepth: number | null;
  /** Characters of a URL. */
  readonly length: number | null;
  /** The same `key=value` this many times in a query. */
  readonly pairRepeats: number | null;
  /** The same key this many times in a query. */
  readonly keyRepeats: number | null;
  /** 1: a page is taken once, whatever session id its URL carries. */
  readonly sessions: number | null;
  /** Calendars are followed to the end of the year this many years after the start of the crawl, and back to 1800. */
  readonly calendarYears: number | null;
  /** URLs of one template that were found on pages of that template; 50 more for each found elsewhere. */
  readonly template: number | null;
  /** Links from a seed along pages of one template. Lift it when newest links come first: depths then say nothing. */
  readonly chain: number | null;
  /** URLs of one path with four or more parameters that only combine what was combined before. */
  readonly combinations: number | null;
  /** Paths of one host that repeat a segment and have no new one. Once that many are known, other paths of three or more known segments end too. */
  readonly shuffles: number | null;
  /** Host names of one registrable domain. */
  readonly hosts: number | null;
  /** Labels of a host name. */
  readonly hostLabels: number | null;
}

export const TRAP_LIMITS: TrapLimits = {
  repeats: 3,
  segmentUses: 4,
  pathDepth: 25,
  length: 8000,
  pairRepeats: 3,
  keyRepeats: 50,
  sessions: 1,
  calendarYears: 2,
  template: 1_000_000,
  chain: 5000,
  combinations: 2000,
  shuffles: 1000,
  hosts: 1000,
  hostLabels: 12,
};

/** In the order in which docs/traps.md tells them. */
export const TRAP_NAMES = [
  "repeats",
  "segmentUses",
  "pathDepth",
  "length",
  "pairRepeats",
  "keyRepeats",
  "sessions",
  "calendarYears",
  "template",
  "chain",
  "combinations",
  "shuffles",
  "hosts",
  "hostLabels",
] as const satisfies readonly (keyof TrapLimits)[];
