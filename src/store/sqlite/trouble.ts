/** What a state directory says when it cannot be used: whose fault it is and what to do. */
import { CrawlError } from "../../core/errors.ts";

/** SQLite's primary result codes (sqlite.org/rescode.html). */
const BUSY = 5;
const LOCKED = 6;
const CORRUPT = 11;
const FULL = 13;
const NOT_A_DATABASE = 26;

/** The primary code of an error that node:sqlite threw; null for others. */
function codeOf(error: unknown): number | null {
  return error instanceof Error && "errcode" in error && typeof error.errcode === "number" ? error.errcode & 0xff : null;
}

export const isFull = (error: unknown): boolean => codeOf(error) === FULL;

export const isBusy = (error: unknown): boolean => [BUSY, LOCKED].includes(codeOf(error) ?? 0);

export function held(dir: string, cause: unknown): CrawlError {
  return new CrawlError("state-held", `the state directory ${dir} is held by another process: wait for its crawl to end, or name another directory`, { cause });
}

export function unusable(dir: string, why: string, cause?: unknown): CrawlError {
  return new CrawlError("state-unwritable", `cannot use the state directory ${dir}: ${why}`, cause === undefined ? {} : { cause });
}

export function damaged(dir: string, cause: unknown): CrawlError {
  const why = cause instanceof Error ? cause.message : String(cause);
  return unusable(dir, `state.db is damaged (${why}); nothing was changed. Name another directory, or start over with --fresh`, cause);
}

/** Wraps what reading a state threw. */
export function unreadable(dir: string, error: unknown): CrawlError {
  if (error instanceof CrawlError) return error;
  if (isBusy(error)) return held(dir, error);
  return codeOf(error) === null || codeOf(error) === CORRUPT || codeOf(error) === NOT_A_DATABASE
    ? damaged(dir, error)
    : unusable(dir, error instanceof Error ? error.message : String(error), error);
}

/** Wraps what writing a state threw. */
export function unwritable(dir: string, error: unknown): CrawlError {
  if (error instanceof CrawlError) return error;
  const why = isFull(error) ? "the disk is full" : error instanceof Error ? error.message : String(error);
  return new CrawlError("state-unwritable", `cannot write the state in ${dir}: ${why}; what was written before is whole and can be resumed`, { cause: error });
}
