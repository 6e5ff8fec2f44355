/** The flags of `skein crawl`: a table made from the option schema, and the parser it drives. Values are checked by the schema, not here. */

import type { OptionProblem } from "../core/errors.ts";
import { nearest } from "../core/nearest.ts";
import type { OptionNode } from "../core/schema.ts";
import { options } from "../core/spec.ts";
import { parseDuration } from "../core/units.ts";

/** Flags of the command line itself: they are no part of a spec. */
export interface CliFlags {
  inputFiles: string[];
  quiet: boolean;
  verbose: boolean;
  logFormat: string;
  progress: boolean;
  fresh: boolean;
  help: boolean;
}

export interface Flag {
  /** Without dashes and without a leading `no-`. */
  readonly name: string;
  readonly short: string | null;
  /** Null: a switch. */
  readonly value: string | null;
  /** The value it has when none is given; what follows is its value only if it looks like one (LOOKS_LIKE). */
  readonly bare: string | null;
  /** The switch is on by default: help shows `--no-X`. */
  readonly negated: boolean;
  readonly group: string;
  readonly description: string;
  readonly allowed: string;
  /** The option of the spec it sets; null for a flag of the command line. */
  readonly node: OptionNode | null;
}

export function cliFlag(name: string, flag: Partial<Flag> & { readonly description: string }): Flag {
  return { name, short: null, value: null, bare: null, negated: false, group: "running", allowed: "", node: null, ...flag };
}

const OWN_FLAGS: readonly Flag[] = [
  cliFlag("input-file", {
    ...{ short: "i", value: "FILE|-", group: "what to crawl", allowed: "a file name, or - for stdin" },
    description: "URLs from a file, one a line (# comments), .csv (last column with a URL) or .gz; - is stdin (repeatable).",
  }),
  cliFlag("quiet", { short: "q", description: "No warnings, failures, progress or summary on stderr; stdout is not silenced." }),
  cliFlag("verbose", { short: "v", description: "How each pattern was read, retries and other detail on stderr." }),
  cliFlag("log-format", { value: "text|json", allowed: "one of text, json", description: "Diagnostics on stderr as text or as JSON lines." }),
  cliFlag("progress", { negated: true, description: "No progress line; there is one only on a terminal anyway." }),
  cliFlag("fresh", {
    description:
      "With --state: drop what the directory holds and start anew. With --store: the same of an unfinished crawl there that writes to the same files.",
  }),
  cliFlag("help", { short: "h", description: "This text." }),
];

/** Every flag of `skein crawl`. */
export function flagTable(): readonly Flag[] {
  const ofSpec = options().flatMap((node): Flag[] => {
    const { flag, short, value, bare, group, description } = node.meta;
    if (flag === undefined) return [];
    const negated = node.kind === "boolean" && node.fallback === true;
    const name = negated ? flag.replace(/^no-/, "") : flag;
    return [{ name, short: short ?? null, value: value ?? null, bare: bare ?? null, negated, group, description, allowed: node.allowed, node }];
  });
  return [...ofSpec, ...OWN_FLAGS];
}

/** One flag as it was given: its texts, or on and off. */
export interface Given {
  readonly flag: Flag;
  readonly value: readonly string[] | boolean;
  /** As the user wrote it, for messages: `--depth`, `SKEIN_DEPTH`. */
  readonly label: string;
}

export interface ParsedFlags {
  readonly given: readonly Given[];
  readonly args: readonly string[];
  /** Arguments that stand behind a flag whose value may be left out, and do not look like its value: place among the arguments → the flag. Null: behind one that is none. */
  readonly behind: ReadonlyMap<number, Given | null>;
  readonly problems: readonly OptionProblem[];
}

const SWITCH_WORDS: ReadonlyMap<string, boolean> = new Map([
  ...["1", "true", "yes", "on"].map((word) => [word, true] as const),
  ...["0", "false", "no", "off"].map((word) => [word, false] as const),
]);

/** "true", "0", "off" …; null when it is none of them. */
export function parseSwitch(text: string): boolean | null {
  return SWITCH_WORDS.get(text.toLowerCase()) ?? null;
}

/** A value that starts with a dash must be joined with "=", unless it is "-" alone or a number: a forgotten value would swallow the next flag. */
function canBeValue(text: string | undefined): text is string {
  return text !== undefined && (!text.startsWith("-") || text === "-" || /^-\.?\d/.test(text));
}

/** `--sitemap URL` and `--sitemap SEED` look alike: a URL whose last segment names a sitemap or ends as one does is its value. */
function looksLikeSitemap(text: string): boolean {
  return /^https?:\/\/[^?#]*\/(?:[^/?#]*sitemap[^/?#]*|[^/?#]+\.(?:xml|txt|rss|atom)(?:\.gz)?)(?:[?#]|$)/i.test(text);
}

/** What a value looks like: of flags whose value may be left out, and of flags of single commands, which no schema judges. */
const LOOKS_LIKE: ReadonlyMap<string, (text: string) => boolean> = new Map([
  ["sitemap", looksLikeSitemap],
  ["exit-when-idle", (text: string) => parseDuration(text) !== null],
  ["job", (text: string) => /^[1-9]\d{0,14}$/.test(text)],
]);

const canFollow = ({ name, bare }: Flag, text: string | undefined): text is string =>
  bare === null ? canBeValue(text) : text !== undefined && LOOKS_LIKE.get(name)?.(text) === true;

/** Values of flags that are no option of a spec, as far as they can be told to be wrong. */
export function wrongValues(given: readonly Given[]): OptionProblem[] {
  return given.flatMap(({ flag, value, label }) => {
    const looks = flag.node === null ? LOOKS_LIKE.get(flag.name) : undefined;
    const last: unknown = Array.isArray(value) ? value.at(-1) : null;
    if (looks === undefined || typeof last !== "string" || looks(last)) return [];
    return [{ option: label, message: `expected ${flag.allowed}, got ${JSON.stringify(last)}` }];
  });
}

/** Reads flags anywhere among the arguments; after `--` all are arguments. Unknown flags and missing values are problems, not exceptions. */
export function parseFlags(argv: readonly string[], table: readonly Flag[]): ParsedFlags {
  const byName = new Map(table.map((flag) => [flag.name, flag]));
  const byShort = new Map(table.flatMap((flag) => (flag.short === null ? [] : [[flag.short, flag] as const])));
  const given = new Map<Flag, Given>();
  const args: string[] = [];
  const behind = new Map<number, Given | null>();
  const problems: OptionProblem[] = [];
  let at = 0;
  /** The flag before the word that is read now, if it was left without its value; null: it is no flag of this command. */
  let bare: Given | null | undefined;

  function set(flag: Flag, label: string, joined: string | null, on: boolean): void {
    if (flag.value === null) {
      const value = joined === null ? true : parseSwitch(joined);
      if (value === null) problems.push({ option: label, message: `expected true or false, got ${JSON.stringify(joined)}` });
      else given.set(flag, { flag, label, value: value === on });
      return;
    }
    const follows = canFollow(flag, argv[at]);
    const text = joined ?? (follows ? argv[at++] : (flag.bare ?? undefined));
    const known = given.get(flag)?.value;
    if (text === undefined) {
      problems.push({ option: label, message: `needs a value: expected ${flag.allowed}` });
      return;
    }
    const now: Given = { flag, label, value: [...(Array.isArray(known) ? known : []), text] };
    given.set(flag, now);
    if (joined === null && !follows) bare = now;
  }

  function long(text: string): void {
    const equals = text.indexOf("=");
    const name = equals < 0 ? text.slice(2) : text.slice(2, equals);
    const joined = equals < 0 ? null : text.slice(equals + 1);
    const flag = byName.get(name);
    const opposite = name.startsWith("no-") ? byName.get(name.slice(3)) : undefined;
    if (flag !== undefined) {
      set(flag, `--${name}`, joined, true);
      return;
    }
    if (opposite?.value === null) {
      set(opposite, `--${name}`, joined, false);
      return;
    }
    if (joined === null) bare = null;
    const near = nearest(name, [...byName.keys(), ...table.filter((known) => known.negated).map((known) => `no-${known.name}`)]);
    problems.push({ option: `--${name}`, message: `no such option${near === null ? "" : `; did you mean --${near}?`}` });
  }

  function short(text: string): void {
    for (let index = 1; index < text.length; index++) {
      const letter = text.charAt(index);
      const flag = byShort.get(letter);
      if (flag === undefined) {
        problems.push({ option: `-${letter}`, message: "no such option" });
        if (index === text.length - 1) bare = null;
        return;
      }
      if (flag.value === null) {
        set(flag, `-${letter}`, null, true);
        continue;
      }
      const rest = text.slice(index + 1).replace(/^=/, "");
      set(flag, `-${letter}`, rest === "" ? null : rest, true);
      return;
    }
  }

  while (at < argv.length) {
    const text = argv[at++] ?? "";
    const before = bare;
    bare = undefined;
    if (text === "--") {
      args.push(...argv.slice(at));
      break;
    }
    if (text.startsWith("--")) long(text);
    else if (text.startsWith("-") && text !== "-") short(text);
    else {
      if (before !== undefined) behind.set(args.length, before);
      args.push(text);
    }
  }
  return { given: [...given.values()], args, behind, problems };
}

/** What is given for the command line itself. */
export function cliFlags(given: readonly Given[], problems: OptionProblem[]): CliFlags {
  const found: CliFlags = { inputFiles: [], quiet: false, verbose: false, logFormat: "text", progress: true, fresh: false, help: false };
  for (const { flag, value, label } of given) {
    if (flag.node !== null) continue;
    if (flag.name === "input-file" && Array.isArray(value)) found.inputFiles = [...value];
    else if (flag.name === "log-format" && Array.isArray(value)) {
      const format = value.at(-1);
      if (format === "text" || format === "json") found.logFormat = format;
      else problems.push({ option: label, message: `expected ${flag.allowed}, got ${JSON.stringify(format)}` });
    } else if (flag.name === "quiet") found.quiet = value === true;
    else if (flag.name === "verbose") found.verbose = value === true;
    else if (flag.name === "progress") found.progress = value === true;
    else if (flag.name === "fresh") found.fresh = value === true;
    else if (flag.name === "help") found.help = value === true;
  }
  return found;
}
