/** Exit statuses (product contract, section 4). */
import { CrawlError, ERROR_CODES, LostCrawl } from "../core/errors.ts";
import type { Summary } from "../core/events.ts";
import type { StopSignal } from "./io.ts";

/** `no`: asked a question, the answer is no (skein robots, skein explain). */
export const EXIT = { ok: 0, internal: 1, usage: 2, unwritable: 3, noSeedReached: 4, tooManyErrors: 6, no: 8, SIGINT: 130, SIGTERM: 143 } as const;

export interface Ending {
  /** The first signal that came while the crawl ran. */
  readonly signal: StopSignal | null;
  /** The reader of stdout went away, and the crawl was ended for that. */
  readonly readerLeft: boolean;
}

/** The status of a crawl that came to its end. A reader that went away (`| head`) had what it wanted: 0. */
export function exitCode(summary: Pick<Summary, "finishReason" | "seeds" | "seedsReached">, { signal, readerLeft }: Ending): number {
  if (signal !== null) return EXIT[signal];
  if (readerLeft) return EXIT.ok;
  if (summary.finishReason === "failed") return EXIT.internal;
  if (summary.finishReason === "limit-errors") return EXIT.tooManyErrors;
  if (summary.seeds > 0 && summary.seedsReached === 0) return EXIT.noSeedReached;
  return EXIT.ok;
}

/** Told to leave by a signal, while its store did not answer: it left without it. */
export class LeftAlone extends CrawlError {
  readonly signal: StopSignal;
  constructor(error: CrawlError, signal: StopSignal, then: string) {
    super(error.code, `left without the store; ${then} (${error.message})`, { cause: error });
    this.name = "LeftAlone";
    this.signal = signal;
  }
}

/** What to throw for an error after a signal. `then`: what becomes of what was under way; of a crawl that is gone from its store nothing does. */
export function afterSignal(error: unknown, signal: StopSignal | null, then: string): unknown {
  if (signal === null || error instanceof LostCrawl) return error;
  return error instanceof CrawlError && error.code === "store-unreachable" ? new LeftAlone(error, signal, then) : error;
}

/** SQLite's primary code for a disk without room (sqlite.org/rescode.html). */
const SQLITE_FULL = 13;

/** Whether an error, or what caused it, is a disk or a quota without room. */
export function isDiskFull(error: unknown): boolean {
  for (let at = error; at instanceof Error; at = at.cause) {
    if ("code" in at && (at.code === "ENOSPC" || at.code === "EDQUOT")) return true;
    if ("errcode" in at && typeof at.errcode === "number" && (at.errcode & 0xff) === SQLITE_FULL) return true;
  }
  return false;
}

/** The status for an exception: ours by its code, anything else is an internal error. */
export function errorExitCode(error: unknown): number {
  if (error instanceof LeftAlone) return EXIT[error.signal];
  return error instanceof CrawlError ? ERROR_CODES[error.code].exit : EXIT.internal;
}
