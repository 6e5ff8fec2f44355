/** What the threads of a crawl and the thread that keeps its frontier say to one another. Plain data, in few messages: a batch of pages, or of leases, is one. */
import { CrawlError, type CrawlErrorCode, type OptionProblem } from "../core/errors.ts";
import type { CrawlEvent, StopMode } from "../core/events.ts";
import type { AddCounts, Control, HostTuning, Lease, RobotsState, Settled, Token } from "../core/frontier.ts";
import type { LogFields, LogLevel } from "../core/log.ts";
import type { CrawlRequest, Fingerprint, FingerprintSeed, HostKey, Origin } from "../core/request.ts";
import type { CrawlSpec } from "../core/spec.ts";
import type { SeedGrowth } from "../engine/parts.ts";
import type { LoopView } from "../engine/run.ts";
import type { Spent } from "../rules/limits.ts";

/** With what a thread starts (`workerData`). */
export interface ThreadStart {
  readonly spec: CrawlSpec;
  readonly seed: FingerprintSeed;
  /** Against which the path of a scraper module is resolved. */
  readonly cwd: string;
  /** Most requests in flight. */
  readonly concurrency: number;
  /** Other processes change values too: they are looked at now and then. */
  readonly shared: boolean;
  readonly growth: readonly SeedGrowth[];
}

/** `robots` true: as told with an earlier lease of that origin. */
export type SentLease = Omit<Lease, "robots"> & { readonly robots: RobotsState | true | null };

export interface Batch {
  readonly started: readonly { readonly token: Token; readonly sinceMs: number }[];
  readonly ended: readonly Token[];
  readonly tunes: readonly (readonly [HostKey, HostTuning])[];
  readonly settled: readonly Settled[];
  readonly links: readonly CrawlRequest[];
  /** Leases that it has room for, beyond those it has asked for before. */
  readonly asked: number;
  readonly view: Pick<LoopView, "inFlight" | "requests" | "scraping">;
}

export interface News {
  readonly leases: readonly SentLease[];
  /** When the leases were claimed, epoch ms. */
  readonly claimedAt: number;
  /** URLs that became seeds. */
  readonly seeds: readonly string[];
  readonly growth: readonly SeedGrowth[];
  /** As they are now; null: gone. */
  readonly values: readonly (readonly [key: string, value: string | null])[];
  /** Batches of this thread whose links are in the frontier now, and those of their links that are not, for a trap rule stood against them. */
  readonly taken: number;
  readonly refused: readonly Fingerprint[];
  /** What the crawl has spent without this thread; null: there are no limits but those of pages and time. */
  readonly others: Spent | null;
  /** What was told of robots.txt before is to be forgotten first. */
  readonly forgetRobots: boolean;
}

/** What is waited for, one at a time or many. */
export type Call =
  | { readonly name: "add"; readonly requests: readonly CrawlRequest[] }
  | { readonly name: "renew"; readonly held: readonly Token[] }
  | { readonly name: "values" };
export type Answer = AddCounts | { readonly lost: readonly Token[]; readonly control: Control } | ReadonlyMap<string, string>;

export type ToThread =
  | { readonly kind: "news"; readonly news: News }
  | { readonly kind: "answer"; readonly id: number; readonly answer: Answer }
  | { readonly kind: "stop"; readonly mode: StopMode }
  /** The crawl goes on elsewhere: what is held is finished, or with `abort` handed back. */
  | { readonly kind: "leave"; readonly abort: boolean }
  /** Nothing is left to do. */
  | { readonly kind: "over" }
  | { readonly kind: "ping" };

export type FromThread =
  | { readonly kind: "ready" }
  | { readonly kind: "batch"; readonly batch: Batch }
  | { readonly kind: "call"; readonly id: number; readonly call: Call }
  | { readonly kind: "event"; readonly event: CrawlEvent }
  | { readonly kind: "log"; readonly level: LogLevel; readonly message: string; readonly fields: LogFields }
  | { readonly kind: "failed"; readonly error: SentError }
  /** Everything it held is settled, and said. */
  | { readonly kind: "left" }
  | { readonly kind: "pong" };

export interface SentError {
  readonly message: string;
  readonly stack: string | null;
  /** Null: no CrawlError. */
  readonly code: CrawlErrorCode | null;
  readonly problems: readonly OptionProblem[];
}

export function sentError(error: unknown): SentError {
  const message = error instanceof Error ? error.message : String(error);
  const stack = error instanceof Error ? (error.stack ?? null) : null;
  return error instanceof CrawlError ? { message, stack, code: error.code, problems: error.problems } : { message, stack, code: null, problems: [] };
}

export function receivedError({ message, stack, code, problems }: SentError): Error {
  const error = code === null ? new Error(message) : new CrawlError(code, message, { problems });
  if (stack !== null) error.stack = stack;
  return error;
}

const MOST_ROBOTS = 2_000;

/** Of which origins a thread has been told the robots state: a text may be half a megabyte, and goes with each of the origin's leases. */
export function createRobotsTold(): { tell(origin: Origin, state: RobotsState): RobotsState | true; makeRoom(): boolean } {
  const told = new Map<Origin, number>();
  return {
    tell(origin, state) {
      if (told.get(origin) === state.version) return true;
      told.set(origin, state.version);
      return state;
    },
    makeRoom() {
      if (told.size < MOST_ROBOTS) return false;
      told.clear();
      return true;
    },
  };
}
