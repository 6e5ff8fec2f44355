/** What a run tells its listeners: the log, the progress line and the summary. */
import type { HostView } from "./frontier.ts";
import type { ErrorCode, Output } from "./records.ts";

export type FinishReason =
  | "finished"
  | "limit-pages"
  | "limit-items"
  | "limit-time"
  | "limit-bytes"
  | "limit-errors"
  | "stop-condition"
  | "cancelled"
  | "interrupted"
  | "failed";

/** How to end: `queue` does what is queued but takes no new links, `flight` finishes what is in flight, `now` aborts. */
export type StopMode = "queue" | "flight" | "now";

export type CrawlEvent =
  /** Store, outputs and scraper are open, nothing was requested yet. `gives`: what goes to the outputs. */
  | { readonly kind: "opened"; readonly gives: "pages" | "items"; readonly parseWorkers: number }
  | { readonly kind: "started"; readonly seeds: number }
  | { readonly kind: "settled"; readonly output: Output }
  | {
      readonly kind: "retry";
      readonly url: string;
      readonly code: ErrorCode;
      readonly status: number | null;
      readonly attempt: number;
      readonly afterMs: number;
    }
  /** What became of the run found in the state directory, in one line. */
  | { readonly kind: "state"; readonly message: string }
  /** A seed's redirect widened the scope. */
  | { readonly kind: "seed-moved"; readonly from: string; readonly to: string }
  | { readonly kind: "stopping"; readonly mode: StopMode; readonly reason: FinishReason; readonly detail: string | null }
  | { readonly kind: "finished"; readonly summary: Summary };

/** What limits the speed now, in words for the progress line. */
export type Bottleneck = "concurrency" | "per-host" | "delay" | "back-off" | "robots" | "rate" | "cpu" | "parse" | "network" | "output" | "nothing";

export interface CrawlStats {
  readonly elapsedMs: number;
  /** Page records with outcome fetched or unchanged: what limits.pages counts. */
  readonly pages: number;
  readonly pagesPerSecond: number;
  readonly queued: number;
  readonly inFlight: number;
  readonly failed: number;
  /** Written so far, and refused by their schema. */
  readonly items: number;
  readonly badItems: number;
  readonly bytes: number;
  readonly bytesDecoded: number;
  readonly byStatus: Readonly<Record<string, number>>;
  readonly byOutcome: Readonly<Record<string, number>>;
  readonly byError: Readonly<Record<string, number>>;
  readonly bySkipReason: Readonly<Record<string, number>>;
  readonly duplicates: number;
  readonly retries: number;
  readonly requests: number;
  /** Share of one core the loop's thread used, 0 … 1. */
  readonly loopCpuShare: number;
  /** Share of one core that each parse worker used on average, 0 … 1; null: there are none. */
  readonly parseCpuShare: number | null;
  /** Pages fetched that wait for a parse worker. */
  readonly waitingForParse: number;
  readonly bottleneck: Bottleneck;
}

export interface Summary extends CrawlStats {
  readonly finishReason: FinishReason;
  /** What the user gave as reason, or the message of the failure. */
  readonly detail: string | null;
  readonly seeds: number;
  /** Seeds answered with a page or a redirect; 0 of some seeds is exit status 4. */
  readonly seedsReached: number;
  readonly slowestHosts: readonly HostView[];
  readonly files: readonly string[];
  /** The directory from which what is left can be resumed; null: nothing is left, or it is not kept. */
  readonly resumeFrom: string | null;
}
