/** The command line's entry: picks the command, says what went wrong, answers the exit status. */
import { realClock } from "../core/clock.ts";
import { CrawlError } from "../core/errors.ts";
import { nearest } from "../core/nearest.ts";
import { VERSION } from "../version.ts";
import type { LoadCrawl } from "./commands/crawl.ts";
import { EXIT, errorExitCode } from "./exit.ts";
import { type Io, processIo } from "./io.ts";
import { storeLabel } from "./store-label.ts";
import { VERBS } from "./verbs.ts";

/** Commands are loaded when they are asked for, what crawls only when there is something to crawl: help and errors come at once. */
const loadCrawl: LoadCrawl = () => import("../crawl.ts");

const COMMANDS = ["crawl", ...VERBS.keys(), "help"];

/** `before`: what stood before the word, where it was not the first. */
function unknownCommand(word: string, before = ""): string {
  const near = nearest(word, COMMANDS);
  if (near !== null) return `there is no command "${word}"; did you mean skein ${before}${near}?`;
  return before === "" && /[.:/]/.test(word) && !word.startsWith("-")
    ? `there is no command "${word}"; did you mean skein crawl ${word}?`
    : `there is no command "${word}"; skein --help lists them`;
}

async function dispatch(argv: readonly string[], io: Io, load: LoadCrawl): Promise<number> {
  const [word, ...rest] = argv;
  const print = async (text: string) => {
    await io.stdout.write(Buffer.from(text));
    return EXIT.ok;
  };
  if (word === "--version" || word === "-V") return print(`${VERSION}\n`);
  if (word === "crawl") return (await import("./commands/crawl.ts")).crawlCommand(rest, io, load);
  const verb = VERBS.get(word ?? "");
  if (verb !== undefined) return verb.run(rest, io);
  const asked = VERBS.get(rest[0] ?? "");
  if (word === "help" && asked !== undefined) return print(await asked.help());
  const { MAIN_HELP, crawlHelp } = await import("./help.ts");
  if (word === "help" && rest[0] === "crawl") return print(crawlHelp());
  if (word === "help" && rest[0] !== undefined && !rest[0].startsWith("-") && rest[0] !== "help") {
    io.stderr.write(`skein: ${unknownCommand(rest[0], "help ")}\n`);
    return EXIT.usage;
  }
  if (word === "--help" || word === "-h" || word === "help") return print(MAIN_HELP);
  io.stderr.write(word === undefined ? MAIN_HELP : `skein: ${unknownCommand(word)}\n`);
  return EXIT.usage;
}

/** One line for each thing that is wrong; a stack only for what is our fault. */
function describe(error: unknown, store: string): string[] {
  if (!(error instanceof CrawlError) || error.code === "internal")
    return [`internal error: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`];
  return error.problems.length > 0 ? error.problems.map(({ option, message }) => `${option === "store" ? store : option}: ${message}`) : [error.message];
}

/** Asked for without the parser: the arguments may be what is wrong. */
function wantsJson(argv: readonly string[], env: Io["env"]): boolean {
  return argv.includes("--log-format=json") || argv[argv.indexOf("--log-format") + 1] === "json" || env.SKEIN_LOG_FORMAT === "json";
}

function sayLines(texts: readonly string[], code: string, argv: readonly string[], io: Io): void {
  const line = (text: string) => `${JSON.stringify({ time: new Date(realClock.epoch()).toISOString(), level: "error", message: text, code })}\n`;
  const spell = wantsJson(argv, io.env) ? line : (text: string) => `skein: ${text}\n`;
  io.stderr.write(texts.map(spell).join(""));
}

function sayError(error: unknown, argv: readonly string[], io: Io): void {
  sayLines(describe(error, storeLabel(argv, io.env)), error instanceof CrawlError ? error.code : "internal", argv, io);
}

/** Node leaves with status 0 when nothing is left to wait for, or when somebody's module calls process.exit: neither is an end of ours. Answers how to take it off. */
function watchForEarlyExit(argv: readonly string[], io: Io): () => void {
  const onExit = (code: number): void => {
    // 13: a promise that the top of a module waits for. Any other status was somebody's choice, or an exception that Node has told of.
    if (code !== 0 && code !== 13) return;
    const why = "the process ended before the command did: a function of yours called process.exit, or returned a promise that nothing can settle";
    sayLines([why], "internal", argv, io);
    process.exitCode = EXIT.internal;
  };
  process.once("exit", onExit);
  return () => process.off("exit", onExit);
}

/** Runs one command. With the real process it also sets the exit status, which is returned. */
export async function main(argv: readonly string[], io?: Io, load: LoadCrawl = loadCrawl): Promise<number> {
  const world = io ?? processIo();
  const end = io === undefined ? watchForEarlyExit(argv, world) : () => undefined;
  let status: number;
  try {
    status = await dispatch(argv, world, load);
  } catch (error) {
    // Help that nobody reads (| head) is no error.
    const readerLeft = error instanceof Error && "code" in error && error.code === "EPIPE";
    if (!readerLeft) sayError(error, argv, world);
    status = readerLeft ? EXIT.ok : errorExitCode(error);
  }
  end();
  world.close();
  if (io === undefined) process.exitCode = status;
  return status;
}
