/** What the loop's thread and a parse worker tell each other, and the memory they share. */
import type { OptionProblem } from "../../core/errors.ts";
import type { LogLevel } from "../../core/log.ts";
import type { ScrapeOutcome, ScrapeTask } from "../../core/scraping.ts";
import type { ModuleFacts } from "./module.ts";
import type { OwnFiles } from "./own-files.ts";

/** Where a worker gets its scraper from. */
export type ScraperSource =
  | { readonly kind: "file"; readonly file: string; readonly cwd: string }
  | { readonly kind: "fields"; readonly extract: Readonly<Record<string, string>> };

export interface WorkerStart {
  readonly source: ScraperSource;
  readonly own: OwnFiles;
  readonly shared: SharedArrayBuffer;
}

/** Changes of values that handlers may read. */
export type LearntValues = readonly (readonly [key: string, value: string | null])[];

export type ToWorker =
  | { readonly kind: "task"; readonly id: number; readonly slot: number; readonly task: ScrapeTask; readonly values: LearntValues | null }
  | { readonly kind: "abort"; readonly id: number };

export type FromWorker =
  | { readonly kind: "ready"; readonly facts: ModuleFacts }
  | { readonly kind: "unusable"; readonly message: string; readonly problems: readonly OptionProblem[] }
  | { readonly kind: "ended"; readonly id: number; readonly outcome: ScrapeOutcome }
  | { readonly kind: "log"; readonly level: LogLevel; readonly message: string; readonly fields: Readonly<Record<string, unknown>> };

/** Pages posted to a worker and not ended: one runs, one is ready, so that it never waits for the loop. */
export const SLOTS = 2;

/**
 * A page posted is its number in a slot. Whoever takes it out has it: the worker begins with it, or the loop takes it back.
 *
 *     slots  [ 7, 8 ]   7 and 8 are posted        [ 0, 8 ]   7 runs        [ 0, 0 ]   7 runs, and 8 was taken back (or: 8 runs)
 */
export interface Shared {
  readonly slots: Int32Array;
  /** When the running page was begun with: `sharedNow`. */
  readonly begun: Float64Array;
}

export const SHARED_BYTES = 8 + SLOTS * 4;

export function sharedOf(memory: SharedArrayBuffer): Shared {
  return { begun: new Float64Array(memory, 0, 1), slots: new Int32Array(memory, 8, SLOTS) };
}

/** True: it was still there, and is the caller's now. */
export function takeOut({ slots }: Shared, slot: number, id: number): boolean {
  return Atomics.compareExchange(slots, slot, id, 0) === id;
}

/** Milliseconds on a scale that threads of one process share. */
export function sharedNow(): number {
  return performance.timeOrigin + performance.now();
}
