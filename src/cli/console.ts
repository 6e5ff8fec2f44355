/** Diagnostics on stderr, as text or JSON lines. What is worth saying is decided elsewhere. */
import { realClock } from "../core/clock.ts";
import type { LogFields, Logger, LogLevel } from "../core/log.ts";
import type { Io } from "./io.ts";
import { noProgress, type Progress, terminalProgress } from "./progress.ts";

export interface Console {
  /** `text` is a whole line for people; `message` (constant) and `fields` are for programs. */
  say(level: LogLevel, text: string, message: string, fields?: LogFields): void;
  /** As `say` at level info, and when quiet too. */
  insist(text: string, message: string, fields: LogFields): void;
  /** Several lines that belong together; one JSON object. */
  block(lines: readonly string[], message: string, value: object): void;
  /** What crawl() takes. Lines that repeat a message are counted after the first 20; when quiet nothing is said: what ends a crawl is thrown. */
  readonly log: Logger;
  /** Says what `log` counted. */
  finish(): void;
  readonly progress: Progress;
}

export interface ConsoleOptions {
  readonly format: "text" | "json";
  /** Only errors. */
  readonly quiet: boolean;
  /** Debug lines too. */
  readonly verbose: boolean;
  readonly progress: boolean;
}

const LINES_EACH = 20;
const COLOURS: Readonly<Record<LogLevel, string>> = { debug: "\u001b[2m", info: "", warn: "\u001b[33m", error: "\u001b[31m" };

/** Control characters could move the cursor or change colours: URLs and messages come from the web. */
export function harmless(text: string): string {
  return text.replace(/[\u0000-\u001f\u007f-\u009f]/g, (character) => `\\x${character.charCodeAt(0).toString(16).padStart(2, "0")}`);
}

export function createConsole({ stderr, env }: Pick<Io, "stderr" | "env">, options: ConsoleOptions): Console {
  const { format, quiet, verbose } = options;
  const coloured = stderr.isTerminal && (env.NO_COLOR ?? "") === "" && env.TERM !== "dumb";
  const progress = options.progress && !quiet && format === "text" && stderr.isTerminal && env.TERM !== "dumb" ? terminalProgress(stderr) : noProgress;
  const wanted = (level: LogLevel) => (quiet ? level === "error" : level !== "debug" || verbose);

  /** Message → how often. Messages are constants, so these are few. */
  const logged = new Map<string, number>();

  function json(level: LogLevel, message: string, rest: object): void {
    stderr.write(`${JSON.stringify({ time: new Date(realClock.epoch()).toISOString(), level, message, ...rest })}\n`);
  }

  function say(level: LogLevel, text: string, message: string, fields: LogFields = {}): void {
    if (wanted(level)) put(level, text, message, fields);
  }

  function put(level: LogLevel, text: string, message: string, fields: LogFields): void {
    progress.hold();
    const colour = coloured ? COLOURS[level] : "";
    if (format === "json") json(level, message, fields);
    else stderr.write(`${colour}${harmless(text)}${colour === "" ? "" : "\u001b[0m"}\n`);
    progress.release();
  }

  return {
    say,
    insist: (text, message, fields) => put("info", text, message, fields),
    block(lines, message, value) {
      if (quiet) return;
      if (format === "json") json("info", message, value);
      else stderr.write(lines.map((line) => `${harmless(line)}\n`).join(""));
    },
    log(level, message, fields = {}) {
      if (quiet || !wanted(level)) return;
      const count = (logged.get(message) ?? 0) + 1;
      logged.set(message, count);
      if (count > LINES_EACH && !verbose) return;
      const details = Object.entries(fields).map(([name, value]) => `${name} ${value}`);
      const prefix = level === "warn" ? "warning: " : level === "error" ? "error: " : "";
      say(level, `${prefix}${message}${details.length > 0 ? ` (${details.join(", ")})` : ""}`, message, fields);
    },
    finish() {
      if (verbose) return;
      for (const [message, count] of logged) {
        const more = count - LINES_EACH;
        if (more > 0) say("warn", `… ${more} more: ${message}`, "more of a message", { of: message, count: more });
      }
    },
    progress,
  };
}
