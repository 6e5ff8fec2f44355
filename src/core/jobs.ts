/** Crawls as jobs of a service: what the HTTP side (service/) asks of whoever keeps and runs them, on the embedded store or on Redis. */
import type { EpochMs } from "./clock.ts";
import type { OptionProblem } from "./errors.ts";
import type { FinishReason, StopMode } from "./events.ts";
import type { HostPatch, HostView } from "./frontier.ts";
import type { CrawlSpec } from "./spec.ts";

/** queued → running ⇄ paused → stopping → completed | stopped | failed | cancelled. Ended by a limit or a stop condition: `completed`. */
export const JOB_STATES = ["queued", "running", "paused", "stopping", "completed", "stopped", "failed", "cancelled"] as const;
export type JobState = (typeof JOB_STATES)[number];
export const ENDED_STATES: ReadonlySet<JobState> = new Set(["completed", "stopped", "failed", "cancelled"]);

/** Of a running job as they are now, of an ended one as they were at its end. */
export interface JobCounts {
  /** URLs known so far, settled ones included. */
  readonly total: number;
  /** Settled, whatever became of them. */
  readonly completed: number;
  readonly inProgress: number;
  readonly queued: number;
  /** Records fetched or unchanged. */
  readonly pages: number;
  readonly failed: number;
  readonly items: number;
  readonly images: number;
  readonly skipped: number;
  readonly bytes: number;
  readonly byStatus: Readonly<Record<string, number>>;
  readonly byOutcome: Readonly<Record<string, number>>;
  readonly byError: Readonly<Record<string, number>>;
  readonly bySkipReason: Readonly<Record<string, number>>;
  readonly pagesPerSecond: number;
  readonly elapsedMs: number;
  /** What limits the speed now, in a word; null when it does not run. */
  readonly bottleneck: string | null;
}

export interface JobView {
  /** Counts up from 0, over restarts. */
  readonly id: number;
  readonly state: JobState;
  /** Options that may stand in a job body, complete; seeds are apart. */
  readonly spec: CrawlSpec;
  /** The first 1,000 seeds as given, and how many there were. */
  readonly seeds: readonly string[];
  readonly seedsTotal: number;
  readonly counts: JobCounts;
  readonly createdAt: EpochMs;
  readonly startedAt: EpochMs | null;
  readonly endedAt: EpochMs | null;
  readonly finishReason: FinishReason | null;
  /** The reason of a stop as it was given, or what failed; says nothing of the machine inside. */
  readonly detail: string | null;
  /** Lines of the list it was made of that are no URLs: the first, and how many there were. */
  readonly rejected: readonly RejectedLine[];
  readonly rejectedTotal: number;
}

/** A line that is no URL. */
export interface RejectedLine {
  /** From 1. */
  readonly line: number;
  /** Cut to 200 characters, without credentials. */
  readonly text: string;
  readonly reason: string;
}

export interface NewJob {
  /** J options, checked (parseSpec); its seeds are empty. */
  readonly spec: CrawlSpec;
  /** One URL a line, pulled as it is stored: never held in memory as a whole. */
  readonly lines: AsyncIterable<string> | Iterable<string>;
  /** What an empty line is: nothing (the default, as in files), or a line that is no URL (as in a JSON list). */
  readonly emptyLines?: "skip" | "reject";
  /** Of the caller; a second job with the key is the first one. `fingerprint`: of the body, to tell a repetition from a mistake; read once the lines are at their end. */
  readonly idempotency: { readonly key: string; readonly fingerprint: string } | null;
}

export type Created =
  | { readonly kind: "created"; readonly job: JobView; readonly rejected: readonly RejectedLine[]; readonly rejectedTotal: number }
  /** The key was used before, with the same body. */
  | { readonly kind: "repeated"; readonly job: JobView; readonly rejected: readonly RejectedLine[]; readonly rejectedTotal: number }
  /** The key was used before, with another body. */
  | { readonly kind: "conflict"; readonly job: JobView }
  /** No line was good: there is no job. */
  | { readonly kind: "no-seeds"; readonly rejected: readonly RejectedLine[]; readonly rejectedTotal: number }
  | { readonly kind: "too-many"; readonly what: "urls" | "jobs"; readonly limit: number };

export type JobTable = "pages" | "items" | "skipped" | "images";

export interface JobLine {
  /** Opaque; what comes after this line. Stays good while the job runs, over restarts and for as long as the job is kept. */
  readonly cursor: string;
  /** JSON text of the record, on one line; of `images` a JSON string. */
  readonly text: string;
}

/** `counts` at most twice a second, `page` for records as they settle (at most 20 a second, the newest), `state` at every change. Ids ascend, over restarts too. */
export type JobEvent = { readonly id: string } & (
  | { readonly kind: "state"; readonly state: JobState; readonly finishReason: FinishReason | null }
  | { readonly kind: "counts"; readonly counts: JobCounts }
  | { readonly kind: "page"; readonly page: Readonly<Record<string, unknown>> }
);

export type { HostPatch } from "./frontier.ts";

export interface JobHost extends HostView {
  readonly paused: boolean;
}

export type ControlAnswer =
  | { readonly kind: "done"; readonly job: JobView }
  | { readonly kind: "unknown" }
  | { readonly kind: "conflict"; readonly job: JobView; readonly why: string };

/** Why what has to reach a crawl is refused: messages of `store-unreachable`. */
export const STORE_AWAY = "the store does not answer";
export const STORE_FULL = "the store takes no writes";

/** Every answer of what the service holds; failures of ours reject with a CrawlError. Unknown ids answer null or `unknown`. */
export interface JobService {
  /** What is wrong with options of a job that only whoever keeps jobs can tell: a scraper that is not there. */
  problemsOf(options: { readonly scraper: string | null }): Promise<readonly OptionProblem[]>;
  create(job: NewJob): Promise<Created>;
  get(id: number): Promise<JobView | null>;
  /** Newest first. `before`: an id. */
  list(query: { readonly states: readonly JobState[] | null; readonly before: number | null; readonly limit: number }): Promise<readonly JobView[]>;
  /** Take hold within a second. */
  stop(id: number, mode: StopMode, reason: string | null): Promise<ControlAnswer>;
  pause(id: number): Promise<ControlAnswer>;
  resume(id: number): Promise<ControlAnswer>;
  /** Aborts what is in flight; what was found so far stays. A job that has ended is deleted with all that it holds. */
  cancel(id: number): Promise<ControlAnswer | { readonly kind: "deleted" }>;
  /** More seeds for a job that has not ended. */
  addUrls(
    id: number,
    lines: AsyncIterable<string> | Iterable<string>,
  ): Promise<
    | { readonly added: number; readonly known: number; readonly rejected: readonly RejectedLine[]; readonly rejectedTotal: number }
    | Exclude<ControlAnswer, { kind: "done" }>
  >;
  /** Committed records in the order in which they were settled, from after `cursor` (null: from the start); ends at what is there now. Null: no such job, or the cursor is none of its. */
  lines(id: number, table: JobTable, cursor: string | null): Promise<AsyncIterable<JobLine> | null>;
  /** The words of `skein explain`; null: no such job. */
  explain(id: number, url: string): Promise<{ readonly url: string; readonly lines: readonly string[] } | null>;
  hosts(id: number, most: number): Promise<readonly JobHost[] | null>;
  patchHost(id: number, host: string, patch: HostPatch): Promise<ControlAnswer>;
  /** From after the event `after`, where it is still known; ends with the job's end or the signal. Null: no such job. */
  events(id: number, after: string | null, signal: AbortSignal): Promise<AsyncIterable<JobEvent> | null>;
  /** For /metrics and /readyz. */
  health(): Promise<{
    readonly ready: boolean;
    readonly why: string | null;
    readonly jobs: Readonly<Record<JobState, number>>;
    readonly totals: Readonly<Record<string, number>>;
  }>;
  /** Stops the work and keeps every job as it is: another process goes on with it. */
  close(): Promise<void>;
}
