/** What the API gives, as far as the dashboard reads it. The figures are those of core/jobs.ts. */
import type { FinishReason } from "../../../core/events.ts";
import type { JobCounts, JobState, RejectedLine } from "../../../core/jobs.ts";

export type { JobCounts, JobState, RejectedLine };

export type Table = "pages" | "items" | "skipped" | "images";

export interface Job {
  readonly id: number;
  readonly state: JobState;
  readonly spec: Readonly<Record<string, unknown>>;
  readonly counts: JobCounts;
  readonly finishReason: FinishReason | null;
  readonly detail: string | null;
  readonly seeds: readonly string[];
  readonly seedsTotal: number;
  readonly createdAt: string;
  readonly startedAt: string | null;
  readonly endedAt: string | null;
  readonly rejected?: readonly RejectedLine[];
  readonly rejectedTotal?: number;
}

export interface Host {
  readonly host: string;
  readonly queued: number;
  readonly inFlight: number;
  readonly concurrency: number;
  readonly delayMs: number;
  readonly dueInMs: number;
  readonly settled: number;
  readonly meanLatencyMs: number;
  readonly paused: boolean;
}

/** A page record, as far as it is shown. A job may leave fields out. */
export interface Page {
  readonly url?: string;
  readonly status?: number | null;
  readonly outcome?: string;
  readonly depth?: number;
  readonly title?: string;
  readonly bytes?: number;
  readonly durationMs?: number;
  readonly fetchedAt?: string;
  readonly error?: { readonly code: string; readonly message: string };
}

export interface ProblemEntry {
  readonly option?: string;
  readonly line?: number;
  readonly text?: string;
  readonly message: string;
}

export const isEnded = (state: JobState): boolean => state === "completed" || state === "stopped" || state === "failed" || state === "cancelled";
