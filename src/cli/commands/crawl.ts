/** `skein crawl`: options to spec, spec to crawl, its events to stdout and stderr, its end to an exit status. */
import { statSync } from "node:fs";
import { realClock, type Timer } from "../../core/clock.ts";
import { CrawlError, type OptionProblem } from "../../core/errors.ts";
import type { Summary } from "../../core/events.ts";
import type { CrawlSpec } from "../../core/spec.ts";
import type { CrawlOptions, CrawlRun, crawl } from "../../crawl.ts";
import { shownSeed } from "../../rules/seeds.ts";
import { type Console, createConsole } from "../console.ts";
import { afterSignal, type Ending, exitCode, isDiskFull } from "../exit.ts";
import { type CliFlags, cliFlags, flagTable, type Given, parseFlags } from "../flags.ts";
import { checkNeedsNone, howToResume, type Resumed, type Standing, standingRun } from "../going-on.ts";
import { crawlHelp } from "../help.ts";
import type { Io, StopSignal } from "../io.ts";
import { createNarrator } from "../narrator.ts";
import { outputFiles, watchFiles } from "../outputs.ts";
import { noProgress, REDRAW_MS } from "../progress.ts";
import { checkInputFiles, openSeeds, type SeedSources } from "../seeds.ts";
import { describePatterns, envSettings, finishSpec, mergeSettings, readConfig } from "../settings.ts";
import { stdoutSink } from "../stdout.ts";
import { summaryLines } from "../summary.ts";

/** The front door, and the reason by which a stop from a signal is known; loaded only when there is something to crawl. */
export type LoadCrawl = () => Promise<{ readonly crawl: typeof crawl; readonly INTERRUPTED: string }>;

const BAD_SEEDS_SHOWN = 20;
/** How long an abort may take before the process ends without it. */
const ABORT_MS = 1_500;

interface Command {
  readonly spec: CrawlSpec;
  readonly flags: CliFlags;
  readonly strange: readonly string[];
  readonly configName: string | null;
  /** No seed was named: those of the run that stands in the state directory are taken. */
  readonly standing: Standing | null;
}

/** Everything the user said, or null when only help was asked for. Throws CrawlError `invalid-options`. */
async function readCommand(argv: readonly string[], io: Io): Promise<Command | null> {
  const table = flagTable();
  const parsed = parseFlags(argv, table);
  if (parsed.given.some(({ flag, value }) => flag.name === "help" && value === true)) return null;
  const fromEnv = envSettings(io.env, table);
  const file = await readConfig(io.cwd);
  const given = [...fromEnv.given, ...parsed.given];
  const problems: OptionProblem[] = [...parsed.problems, ...fromEnv.problems];
  const flags = cliFlags(given, problems);
  problems.push(...checkInputFiles(flags.inputFiles));
  const own = mergeSettings(file, given);
  // Seeds of the command line take the place of the config file's.
  const named = parsed.args.length > 0 || flags.inputFiles.length > 0;
  problems.push(...checkTogether(flags, given, own.input));
  const { stateDir, seeds = [] } = own.input;
  const lacks = !named && Array.isArray(seeds) && seeds.length === 0;
  const standing = lacks && typeof stateDir === "string" && !flags.fresh ? await standingRun(stateDir, file) : null;
  const merged = standing === null ? own : mergeSettings(standing.file, given);
  const from = standing?.file ?? file;
  if (standing !== null) flags.inputFiles = standing.inputFiles;
  const spec = finishSpec(named ? { ...merged, input: { ...merged.input, seeds: parsed.args } } : merged, from, problems);
  return { spec, flags, strange: fromEnv.strange, configName: from?.name ?? null, standing };
}

/** Options that are good by themselves and make no sense as they stand. */
function checkTogether(flags: CliFlags, given: readonly Given[], { stateDir, store, cookies }: Readonly<Record<string, unknown>>): OptionProblem[] {
  const labelOf = (name: string) => given.findLast(({ flag }) => flag.name === name)?.label ?? `--${name}`;
  const problems: OptionProblem[] = [];
  if (flags.fresh && (stateDir ?? null) === null && (store ?? null) === null)
    problems.push({
      option: labelOf("fresh"),
      message: "drops what a state directory holds, and none is named: add --state DIR or --store URL, or leave it out",
    });
  if (typeof cookies === "string" && !statSync(cookies, { throwIfNoEntry: false })?.isFile())
    problems.push({ option: labelOf("cookies"), message: `${cookies}: no such file` });
  return problems;
}

function sayAtStart(console: Console, { spec, strange, configName, flags }: Command): void {
  for (const text of strange) console.say("warn", `warning: ${text}`, text);
  if (configName !== null) console.say("info", `options from ${configName}`, "config file", { name: configName });
  if (flags.verbose) {
    for (const { option, pattern, reading } of describePatterns(spec)) {
      console.say("debug", `${option} ${pattern}: ${reading}`, "pattern", { option, pattern, reading });
    }
  }
  if (!spec.robots) console.say("warn", "warning: robots.txt, meta robots and nofollow are not obeyed (--no-robots)", "robots are not obeyed");
  if (spec.insecure) console.say("warn", "warning: TLS certificates are not verified (--insecure)", "certificates are not verified");
}

/** Said when everything that the user named was found good, so that it stands before no refusal. */
function sayWhereItLives(console: Console, { spec }: Command): void {
  if (spec.stateDir === null && spec.store === null)
    console.say("info", "this crawl lives in memory: after Ctrl-C it can be resumed, kill -9 loses it (--state DIR keeps it)", "crawl in memory");
}

function seedSources(console: Console, { spec, flags }: Command, io: Io): SeedSources & { finish(): void } {
  let bad = 0;
  return {
    listed: spec.seeds,
    files: flags.inputFiles,
    defaultScheme: spec.defaultScheme,
    stdin: io.stdin,
    onBad({ where, text, why }) {
      if (++bad <= BAD_SEEDS_SHOWN)
        console.say("warn", `warning: skipped ${where}: ${JSON.stringify(shownSeed(text))}: ${why}`, "bad seed", { where, text: shownSeed(text), why });
    },
    finish() {
      if (bad > BAD_SEEDS_SHOWN)
        console.say("warn", `warning: skipped … ${bad - BAD_SEEDS_SHOWN} more bad seeds`, "more bad seeds", { count: bad - BAD_SEEDS_SHOWN });
    },
  };
}

/** Draws the progress line until the returned function is called. */
function keepDrawing(console: Console, run: CrawlRun): () => void {
  let ended = false;
  let timer: Timer | null = null;
  const tick = async (): Promise<void> => {
    const stats = await run.stats();
    if (ended) return;
    console.progress.draw(stats);
    timer = realClock.after(REDRAW_MS, again);
  };
  // A failure of stats is a failure of the run: `done` tells of it.
  const again = (): void => void tick().catch(() => undefined);
  if (console.progress !== noProgress) again();
  return () => {
    ended = true;
    timer?.cancel();
    console.progress.end();
  };
}

/** First signal: finish what is in flight. Second: abort. Third, or when aborting takes too long: die. */
function obeySignals(io: Io, console: Console, run: CrawlRun, interrupted: string, heard: (signal: StopSignal) => void): () => void {
  let times = 0;
  let timer: Timer | null = null;
  const ignore = () => undefined; // `done` tells of failures
  const off = io.onSignal((signal) => {
    times++;
    heard(signal);
    if (times === 1) {
      console.say("info", "finishing what is in flight, again to abort", "stopping", { signal });
      void run.stop({ mode: "flight", reason: interrupted }).catch(ignore);
    } else if (times === 2) {
      console.say("info", "aborting", "aborting", { signal });
      timer = realClock.after(ABORT_MS, () => io.die(signal));
      void run.stop({ mode: "now", reason: interrupted }).catch(ignore);
    } else io.die(signal);
  });
  return () => {
    timer?.cancel();
    off();
  };
}

/** Runs the crawl to its end; answers its summary and what ended it. */
async function runCrawl(command: Command, io: Io, console: Console, load: LoadCrawl): Promise<{ summary: Summary; ending: Ending; seedsRead: boolean }> {
  const { spec, standing, flags } = command;
  const ignore = () => undefined; // `done` tells of failures
  const loading = load();
  loading.catch(ignore);
  sayAtStart(console, command);
  const sources = seedSources(console, command, io);
  const kept = (spec.stateDir !== null || spec.store !== null) && !flags.fresh;
  const seeds = await openSeeds(sources, standing !== null || (kept && flags.inputFiles.includes("-")));
  if (seeds === null) checkNeedsNone(spec);
  let seedsRead = false;
  const { crawl, INTERRUPTED } = await loading;
  const narrator = createNarrator(console);
  const ending: { signal: StopSignal | null; readerLeft: boolean } = { signal: null, readerLeft: false };
  let stopping = false;
  let gives: "pages" | "items" = "pages";
  const records = spec.outputs.includes("-");
  const sink = stdoutSink(io.stdout, {
    what: () => (!records ? spec.print : gives === "items" ? "items" : "records"),
    fields: spec.fields,
    meta: spec.meta,
    beforeWrite: () => (io.stdout.isTerminal ? console.progress.hold() : undefined),
    afterWrite: () => (io.stdout.isTerminal ? console.progress.release() : undefined),
    // A pause during a stop would hold up the stop.
    onFull: () => (stopping ? undefined : void run.pause().catch(ignore)),
    onSpace: () => void run.resume().catch(ignore),
    onClosed() {
      ending.readerLeft = true;
      void run.stop({ mode: "now", reason: "the reader of stdout went away" }).catch(ignore);
    },
  });
  const options: CrawlOptions = {
    sinks: [sink],
    ...(standing !== null ? { unnamed: "its-own" as const } : seeds === null ? { unnamed: "none" as const } : {}),
    seedNames: standing?.seedNames ?? [...(Array.isArray(spec.seeds) ? spec.seeds : []), ...flags.inputFiles.map((file) => `-i ${file}`)],
    fresh: flags.fresh,
    rescueTo: ".skein",
    cwd: io.cwd,
    log: console.log,
    onEvent(event) {
      if (event.kind === "stopping") stopping = true;
      // All of them, unless it was left before.
      if (event.kind === "started") seedsRead = !stopping && ending.signal === null;
      if (event.kind === "opened") {
        gives = event.gives;
        sayWhereItLives(console, command);
      }
      narrator.tell(event);
    },
  };
  const run = crawl({ ...spec, seeds: seeds ?? [], outputs: spec.outputs.filter((file) => file !== "-") }, options);
  const signalsOff = obeySignals(io, console, run, INTERRUPTED, (signal) => {
    ending.signal ??= signal;
  });
  const stopDrawing = keepDrawing(console, run);
  try {
    return { summary: await run.done, ending, seedsRead };
  } catch (error) {
    throw afterSignal(error, ending.signal, "nothing is lost, and the same command goes on");
  } finally {
    stopDrawing();
    signalsOff();
    sources.finish();
    narrator.finish();
    console.finish();
  }
}

/** Answers the exit status. Throws CrawlError for what is ours; the caller says it. */
export async function crawlCommand(argv: readonly string[], io: Io, load: LoadCrawl): Promise<number> {
  const command = await readCommand(argv, io);
  if (command === null) {
    await io.stdout.write(Buffer.from(crawlHelp()));
    return 0;
  }
  const { flags, spec } = command;
  const console = createConsole(io, {
    format: flags.logFormat === "json" ? "json" : "text",
    quiet: flags.quiet,
    verbose: flags.verbose,
    progress: flags.progress,
  });
  const none = Array.isArray(spec.seeds) && spec.seeds.length === 0 && flags.inputFiles.length === 0;
  if (none && command.standing === null) throw new CrawlError("no-seeds", "nothing to crawl: give a URL, or a file of URLs with -i");
  const written = watchFiles(spec, io.cwd);
  const {
    summary: counted,
    ending,
    seedsRead,
  } = await runCrawl(command, io, console, load).catch((error) => {
    throw withAdvice(error, spec);
  });
  const summary = { ...counted, files: written(counted.files) };
  console.block(summaryLines(summary, ending.readerLeft, { limits: spec.limits, outputs: outputFiles(spec) }), "summary", { summary });
  if (summary.resumeFrom !== null) {
    sayHowToResume(console, summary.resumeFrom, { argv, spec, flags, seedsRead, byNpm: io.env["npm_command"] === "exec" });
  }
  return exitCode(summary, ending);
}

/** What can be done about a full disk. A crawl in memory cannot be rescued then: what failed to be written counts as done in its queue. */
function withAdvice(error: unknown, { stateDir, store }: CrawlSpec): unknown {
  if (!(error instanceof CrawlError) || !isDiskFull(error)) return error;
  const begins =
    stateDir === null && store === null ? "begins anew: it lived in memory (with --state DIR it would go on)" : "goes on where the last commit left it";
  return new CrawlError(error.code, `${error.message}. Make room and run the same command again: the crawl ${begins}`, { cause: error });
}

function sayHowToResume(console: Console, dir: string, resumed: Resumed): void {
  const { text, command } = howToResume(dir, resumed);
  const { spec, flags } = resumed;
  // Nobody else knows where a crawl in memory was put.
  if (flags.quiet && spec.stateDir === null && spec.store === null) console.insist(text, "to resume", { command, dir });
  else console.say("info", text, "to resume", { command, dir });
}
