/** Whether and when a failed request is tried again. Chance comes in as an argument; the host's clock may make a retry later still (rules/pacing.ts). */
import type { EpochMs } from "../core/clock.ts";
import type { ErrorCode } from "../core/records.ts";
import { spellDuration } from "../core/units.ts";
import { parseHttpDate } from "./http-date.ts";

/** The first retry comes within this, each further one within twice the time of the one before. */
const BASE_MS = 1_000;
const CAP_MS = 60_000;

/** Codes that say nothing of passing trouble: trying again cannot help, whatever the fetcher thinks. */
const FINAL: ReadonlySet<ErrorCode> = new Set(["robots-unavailable", "redirect", "too-large", "parse", "crashed", "blocked-address"]);

/** A failed try, in the words of FetchOutcome and Lease. */
export interface FailedTry {
  readonly code: ErrorCode;
  readonly status: number | null;
  /** The fetcher takes it for a passing failure (for TLS: not a bad certificate). */
  readonly retryable: boolean;
  /** The server's wish. */
  readonly retryAfterMs: number | null;
  /** Tries before this one. */
  readonly attempt: number;
  /** Leases lost to crashes: they use up no retry, but lengthen the back-off as tries do. */
  readonly crashes: number;
  readonly maxRetries: number;
  readonly maxWaitMs: number;
}

export type RetryDecision = { readonly kind: "retry"; readonly afterMs: number } | { readonly kind: "give-up"; readonly why: string };

/** Answers that mean "later": 408, 425, 429 and 5xx. What lies above, such as 999, is no status and is taken for a 5xx (RFC 9110 §15). */
export function isPassingStatus(status: number): boolean {
  return status === 408 || status === 425 || status === 429 || status >= 500;
}

/** Seconds for people: whole units as a user would write them, fractions rounded. */
const spell = (ms: number): string => spellDuration(ms >= 1_000 ? Math.round(ms / 1_000) * 1_000 : Math.round(ms));

/**
 * Exponential back-off with full jitter: somewhere in 0 … min(2ⁿ s, 60 s, maxWait), but never before the server's Retry-After.
 * A Retry-After beyond maxWait ends the matter at once. `random` gives 0 ≤ x < 1.
 */
export function retryDecision(failed: FailedTry, random: () => number): RetryDecision {
  const { code, status, retryable, retryAfterMs, attempt, crashes, maxRetries, maxWaitMs } = failed;
  if (!retryable || FINAL.has(code) || (status !== null && code === "http" && !isPassingStatus(status)))
    return { kind: "give-up", why: "not a passing failure" };
  if (retryAfterMs !== null && retryAfterMs > maxWaitMs) {
    return { kind: "give-up", why: `the server asks to wait ${spell(retryAfterMs)} (Retry-After), longer than the longest wait of ${spell(maxWaitMs)}` };
  }
  if (attempt >= maxRetries) return { kind: "give-up", why: maxRetries === 0 ? "no retries allowed" : `after ${attempt + 1} tries` };
  const within = Math.min(BASE_MS * 2 ** (attempt + crashes), CAP_MS, maxWaitMs);
  return { kind: "retry", afterMs: Math.max(random() * within, retryAfterMs ?? 0) };
}

/**
 * Retry-After (RFC 9110 §10.2.3): seconds, fractions accepted, or an HTTP-date, → ms from now, 0 for the past; null for anything else.
 * Of a list (`1, 2`), which a proxy makes of two lines, the longest wait counts; what cannot be read in it does not.
 */
export function parseRetryAfter(value: string, nowEpochMs: EpochMs): number | null {
  const whole = retryAfterOf(value, nowEpochMs);
  if (whole !== null || !value.includes(",")) return whole;
  // The comma of a date stands behind its weekday.
  const parts = value.split(/(?<!\b(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*\s*),/i).map((part) => retryAfterOf(part, nowEpochMs));
  return parts.reduce((longest, part) => (part === null ? longest : Math.max(part, longest ?? 0)), null);
}

function retryAfterOf(value: string, nowEpochMs: EpochMs): number | null {
  const text = value.trim();
  if (/^\d+(?:\.\d+)?$/.test(text)) return Number(text) * 1_000;
  const date = parseHttpDate(text, nowEpochMs);
  return date === null ? null : Math.max(date - nowEpochMs, 0);
}
