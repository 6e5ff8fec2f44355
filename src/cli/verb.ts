/** What the smaller commands share: their options, read from flags, variables and config file as for `crawl`, and their help. Each command says which options it takes. */
import { resolve } from "node:path";
import { CrawlError, type OptionProblem } from "../core/errors.ts";
import type { Logger } from "../core/log.ts";
import { type CrawlSpec, parseSpec } from "../core/spec.ts";
import { createConsole } from "./console.ts";
import { cliFlag, type Flag, flagTable, type Given, type ParsedFlags, parseFlags, wrongValues } from "./flags.ts";
import { flagLines } from "./help.ts";
import type { Io } from "./io.ts";
import { envSettings, finishSpec, mergeSettings, readConfig } from "./settings.ts";

export interface Verb {
  readonly name: string;
  /** First lines of the help: usage, what it does, examples. */
  readonly head: string;
  /** Flags of the spec that it takes, by name without dashes and without `no-`. */
  readonly shared: readonly string[];
  /** Defaults that differ from those of a crawl, for the help. */
  readonly defaults?: Readonly<Record<string, number>>;
  /** Flags of its own. */
  readonly own: readonly Flag[];
  /** Last lines of the help: exit statuses and the like. */
  readonly tail: string;
}

/** What was said on the command line, in variables and in the config file. */
export interface Reading {
  readonly args: readonly string[];
  /** Every default filled in; options that the command does not take are there too, from the config file. */
  readonly spec: CrawlSpec;
  /** The last value of an own flag, or null. */
  text(name: string): string | null;
  texts(name: string): readonly string[];
  isOn(name: string): boolean;
  /** Whether a flag, variable or the config file sets this option of the spec. */
  isGiven(path: string): boolean;
}

/** Own flags of several commands. */
export const JSON_FLAG: Flag = cliFlag("json", { description: "JSON instead of text for people." });
export const STATE_FLAG: Flag = cliFlag("state", {
  ...{ value: "DIR", allowed: "a directory" },
  description: "The state directory of the crawl (skein crawl --state DIR); SKEIN_STATE names it too.",
});
/** A crawl is put into a store; everybody else finds it there. */
const STORE_WORDS = "The store that crawls live in (skein crawl --store URL); SKEIN_STORE names it too.";
/** Where --refuse-private is not offered, since it always holds. */
const ALLOW_WORDS = "Host, address or CIDR block that jobs may reach although it is not public (repeatable).";
const HELP_FLAG: Flag = cliFlag("help", { short: "h", description: "This text." });

function tableOf(verb: Verb): readonly Flag[] {
  const all = flagTable();
  const shared = verb.shared.map((name) => {
    const flag = all.find((known) => known.name === name && known.node !== null);
    if (flag === undefined) throw new CrawlError("internal", `skein ${verb.name} takes an option that does not exist: ${name}`);
    if (name === "store") return { ...flag, description: STORE_WORDS };
    if (name === "allow-address" && verb.name === "serve") return { ...flag, description: ALLOW_WORDS };
    const fallback = verb.defaults?.[name];
    return fallback === undefined || flag.node === null ? flag : { ...flag, node: { ...flag.node, fallback } };
  });
  return [...verb.own, ...shared, HELP_FLAG];
}

export function verbHelp(verb: Verb): string {
  const table = tableOf(verb);
  const ofRequests = ({ node, group }: Flag) => node !== null && group !== "output";
  const section = (title: string, flags: readonly Flag[]): string[] => (flags.length === 0 ? [] : ["", title, ...flags.flatMap(flagLines)]);
  const requests = table.filter(ofRequests);
  const isScraping = ({ group }: Flag) => group === "scraping";
  const rest = [
    ...section(
      "Requests:",
      requests.filter((flag) => !isScraping(flag)),
    ),
    ...section("Scraping:", requests.filter(isScraping)),
  ];
  return `${verb.head}\nOptions:\n${[...table.filter((flag) => !ofRequests(flag)).flatMap(flagLines), ...rest].join("\n")}\n${verb.tail}`;
}

/** An option of `crawl` that makes no sense here gets a better answer than a guess. */
function explained(problems: readonly OptionProblem[], verb: Verb): OptionProblem[] {
  const all = flagTable();
  return problems.map((problem) => {
    const name = problem.option.replace(/^--(?:no-)?/, "");
    const foreign = problem.message.startsWith("no such option") && all.some((flag) => flag.name === name || problem.option === `-${flag.short}`);
    return foreign ? { ...problem, message: `an option of skein crawl, not of skein ${verb.name}` } : problem;
  });
}

/** Commands that take flags alone, and where what somebody may have meant by an argument belongs. */
const WITHOUT_ARGUMENTS: ReadonlyMap<string, string> = new Map([
  ["doctor", ""],
  ["export", "; name the directory with --state"],
  ["reparse", "; name the directory with --state"],
  ["serve", "; URLs are posted to it"],
  ["status", "; name the directory with --state"],
  ["work", ": crawls come from the store"],
]);

/** Arguments of a command that takes none. Behind a flag whose value may be left out they are most likely meant as that. */
function strays({ args, behind }: ParsedFlags, { name }: Verb): OptionProblem[] {
  const instead = WITHOUT_ARGUMENTS.get(name);
  if (instead === undefined) return [];
  return args.flatMap((text, index) => {
    const flag = behind.get(index);
    // The value of a flag that is none: that one is told of.
    if (flag === null) return [];
    if (flag === undefined) return { option: text, message: `skein ${name} takes no arguments${instead}` };
    const { label, flag: known } = flag;
    const example = /such as (\S+)/.exec(known.allowed)?.[1] ?? known.value ?? "";
    return { option: label, message: `expected ${known.allowed} (${label} ${example} or ${label}=${example}) or nothing, got ${JSON.stringify(text)}` };
  });
}

/**
 * Null when only help was asked for, which is then printed. Throws CrawlError `invalid-options` with every problem at once, those that the command itself finds
 * (`check` throws them in the same way) among them; where the shared options are no good, it finds their defaults.
 */
export async function readVerb(verb: Verb, argv: readonly string[], io: Io, check: (reading: Reading) => void = () => undefined): Promise<Reading | null> {
  const table = tableOf(verb);
  const parsed = parseFlags(argv, table);
  if (parsed.given.some(({ flag, value }) => flag.name === "help" && value === true)) {
    await io.stdout.write(Buffer.from(verbHelp(verb)));
    return null;
  }
  const fromEnv = envSettings(io.env, flagTable());
  for (const text of fromEnv.strange) logOf(io)("warn", text);
  const taken = (name: string) => table.some((flag) => flag.name === name && flag.node !== null);
  const file = await readConfig(io.cwd);
  const given: Given[] = [...fromEnv.given.filter(({ flag }) => taken(flag.name)), ...parsed.given];
  const merged = mergeSettings(file, given);
  // Seeds and outputs of a config file are those of a crawl.
  const input = { ...merged.input, seeds: [], outputs: [], pagesFile: null, skippedFile: null, changesFile: null, linksFile: null };
  const own = (name: string) => parsed.given.find(({ flag }) => flag.node === null && flag.name === name)?.value;
  const texts = (name: string) => {
    const value = own(name);
    return Array.isArray(value) ? (value as readonly string[]) : []; // `as`: Array.isArray forgets the element type
  };
  const readingOf = (spec: CrawlSpec): Reading => ({
    args: parsed.args,
    spec,
    text: (name) => texts(name).at(-1) ?? null,
    texts,
    isOn: (name) => own(name) === true,
    isGiven: (path) => merged.labels.has(path) || path.split(".").reduce<unknown>(inside, file?.values) !== undefined,
  });
  const problems: OptionProblem[] = [...explained(parsed.problems, verb), ...wrongValues(parsed.given), ...strays(parsed, verb)];
  const collect = <T>(work: () => T): T | null => {
    try {
      return work();
    } catch (error) {
      if (!(error instanceof CrawlError) || error.problems.length === 0) throw error;
      problems.push(...error.problems);
      return null;
    }
  };
  const reading = readingOf(collect(() => finishSpec({ ...merged, input }, file, [])) ?? parseSpec({}));
  collect(() => check(reading));
  if (problems.length === 0) return reading;
  throw new CrawlError("invalid-options", problems.map(({ option, message }) => `${option}: ${message}`).join("\n"), { problems });
}

function inside(value: unknown, key: string): unknown {
  return typeof value === "object" && value !== null ? Object.entries(value).find(([name]) => name === key)?.[1] : undefined;
}

/** The state directory that was named. Throws CrawlError `invalid-options` when none was. */
export function stateOf(reading: Reading, io: Io): string {
  const named = reading.text("state") ?? io.env.SKEIN_STATE ?? reading.spec.stateDir ?? "";
  if (named === "") throw usageError("--state", "name the state directory of the crawl");
  return resolve(io.cwd, named);
}

/** Warnings and errors of the parts on stderr. */
export function logOf(io: Io): Logger {
  return createConsole(io, { format: "text", quiet: false, verbose: false, progress: false }).log;
}

/** One problem, as an exception. */
export function usageError(option: string, message: string): CrawlError {
  return new CrawlError("invalid-options", `${option}: ${message}`, { problems: [{ option, message }] });
}
