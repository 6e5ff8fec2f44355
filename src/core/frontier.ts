/** The frontier's contract: queue, seen-map, politeness clocks, leases, limits. One suite of cases (testing/frontier-cases.ts) proves every store. */
import type { ErrorCode, Output } from "./records.ts";
import type { CrawlRequest, FingerprintSeed, HostKey, Origin } from "./request.ts";
import type { SinkState } from "./sink.ts";

/** Opaque, unique for ever: it alone decides who may settle. */
export type Token = string;

/** What is known of an origin's robots.txt. `version` changes whenever the answer does. */
export type RobotsState = { readonly version: number } & (
  | { readonly kind: "rules"; readonly text: string }
  /** 4xx: everything may be fetched (RFC 9309 §2.3.1.3). */
  | { readonly kind: "allow-all" }
  /** 5xx or unreachable after retries: nothing may be fetched (RFC 9309 §2.3.1.4). */
  | { readonly kind: "unavailable"; readonly code: ErrorCode; readonly why: string }
);

/** Permission to make one request. Durations, never clock times: worker clocks are neither trusted nor compared. */
export interface Lease {
  readonly request: CrawlRequest;
  readonly token: Token;
  /** Tries before this one that were settled as `retry`. */
  readonly attempt: number;
  /** Times the lease of this request was lost to a crash. */
  readonly crashes: number;
  /** From the moment the claim was sent: by then the visit must have begun, else settle `returned`. */
  readonly startWithinMs: number;
  readonly expiresInMs: number;
  /** Robots state of the request's origin; null for robots requests and when robots are not obeyed. */
  readonly robots: RobotsState | null;
  /** Cookies of the request's site as kept by the store (rules/cookies.ts); null when there are none. */
  readonly cookies: readonly Cookie[] | null;
}

/** A cookie as RFC 6265 §5.3 stores it. */
export interface Cookie {
  readonly name: string;
  readonly value: string;
  /** Lower case, without leading dot. */
  readonly domain: string;
  readonly hostOnly: boolean;
  readonly path: string;
  readonly secure: boolean;
  /** Epoch ms; null lasts as long as the crawl. */
  readonly expiresAt: number | null;
}

/** What keeps the work that exists from being done now. */
export type WaitCause = "delay" | "host-slots" | "retry" | "robots" | "rate" | "leased" | "level" | "limit" | "seeds" | "paused";

export type Claim =
  | {
      readonly kind: "leases";
      readonly leases: readonly Lease[] /** URLs that became seeds since this worker's last claim. */;
      readonly seeds: readonly string[];
    }
  /** Nothing is due now; work exists. Infinity: only a settle, an add or control can bring some. */
  | { readonly kind: "wait"; readonly waitMs: number; readonly cause: WaitCause }
  | { readonly kind: "held"; readonly why: "paused" | "stopping" | "outbox-full" }
  /** Nothing queued, leased or delayed, anywhere, and the seeds are complete; or the page limit is used up and nothing is leased. */
  | { readonly kind: "drained" };

/** What a worker learnt about a host. Absent fields change nothing. */
export interface HostTuning {
  /** robots.txt Crawl-delay: a least gap between starts; the larger of this and the configured delay holds. */
  readonly crawlDelayMs?: number;
  /** Nothing starts on the host for this long (Retry-After). Of several in one burst the largest holds. */
  readonly notBeforeMs?: number;
  /** The connected address is loopback or private: `auto` pacing starts at the limit. */
  readonly local?: boolean;
  readonly concurrency?: number;
  /** What somebody who watches the crawl asks for. Not kept over a restart: whoever asked asks again. */
  readonly patch?: HostPatch;
}

/** A change of a host's rules while a crawl runs. Null lifts what was set before; what is absent stays. */
export interface HostPatch {
  /** Nothing starts there until it is lifted. */
  readonly paused?: boolean;
  /** In place of the configured delay; a longer Crawl-delay still holds. */
  readonly delayMs?: number | null;
  readonly concurrency?: number | null;
}

/** How the answer speaks of the host's health; drives `auto` pacing and host back-off (rules/pacing.ts). */
export interface HostAnswer {
  /** `pushback`: 429, 503 or a timeout. `none`: says nothing (connection refused, aborted). */
  readonly kind: "good" | "pushback" | "none";
  /** Request head sent to response head received. */
  readonly latencyMs: number;
}

export type RobotsAnswer =
  | { readonly kind: "rules"; readonly text: string; readonly ttlMs: number }
  | { readonly kind: "allow-all"; readonly ttlMs: number }
  /** `code` is what the origin's pages fail with: `robots-unavailable`, or the network's own code when the host cannot be reached at all. */
  | { readonly kind: "unavailable"; readonly code: ErrorCode; readonly why: string; readonly ttlMs: number }
  /** The next hop, `hop: "robots"`, same `robotsFor`; it waits for the clock of its own host. */
  | { readonly kind: "redirect"; readonly request: CrawlRequest };

export type Settlement =
  /** `counted` uses up limits.pages. */
  | { readonly kind: "done"; readonly counted: boolean; readonly output: Output }
  /** Try again after at least this long (the host's clock may make it later). The worker has checked retry.max. */
  | { readonly kind: "retry"; readonly afterMs: number }
  | { readonly kind: "dropped"; readonly output: Output | null }
  /** Not fetched: shutdown, startWithin missed. Back to the front, no attempt counted. */
  | { readonly kind: "returned" }
  /** Only for hop "robots". */
  | { readonly kind: "robots"; readonly answer: RobotsAnswer };

/** A change of one value that user code keeps in the store (rules/values.ts): `set` to JSON text or nothing, or the larger or smaller of the two. */
export interface ValueChange {
  readonly op: "set" | "max" | "min";
  readonly key: string;
  readonly value: string | null;
}

export interface Settled {
  readonly token: Token;
  readonly settlement: Settlement;
  /** Ms since the request head went out; null: the host was not contacted and is owed no rest. */
  readonly sinceStartMs: number | null;
  readonly answer: HostAnswer | null;
  readonly host: HostTuning | null;
  readonly setCookies: readonly Cookie[] | null;
  /** URLs that are seeds from now on (targets of redirected seeds). */
  readonly newSeeds: readonly string[] | null;
  /** Named counters raised in the same step. */
  readonly tally: readonly (readonly [name: string, by: number])[];
  /** Changed in the same step. */
  readonly values?: readonly ValueChange[];
}

/** What became of added requests. `known` had been added before; `lowered` are those of `known` whose smallest depth fell. */
export interface AddCounts {
  readonly added: number;
  readonly known: number;
  readonly lowered: number;
}

export type Control = "run" | "pause" | "finish" | "drain" | "now";

export interface FrontierCounts {
  readonly queued: number;
  /** Waiting for their retry. */
  readonly delayed: number;
  readonly leased: number;
  readonly done: number;
  readonly dropped: number;
  /** = queued + delayed + leased + done + dropped, always (I2). Robots requests are apart. */
  readonly seen: number;
  readonly counted: number;
  readonly robotsLeased: number;
  /** Hosts with a non-empty queue. */
  readonly hostsWaiting: number;
  readonly level: number;
  readonly control: Control;
  readonly completed: boolean;
  readonly tally: ReadonlyMap<string, number>;
}

/** A host as `skein status` and the summary show it. */
export interface HostView {
  readonly host: HostKey;
  readonly queued: number;
  readonly inFlight: number;
  readonly concurrency: number;
  readonly delayMs: number;
  /** Ms until the next start is allowed; 0 when due. */
  readonly dueInMs: number;
  readonly settled: number;
  readonly meanLatencyMs: number;
}

/**
 * Every method is one atomic step. Calls may overlap; a store orders them itself.
 * A store's failure rejects with a CrawlError (`store-unreachable`, `state-unwritable`); a stale token is an answer, not an error.
 */
export interface Frontier {
  readonly seed: FingerprintSeed;
  /** Idempotent. Over `maxDepth` is the caller's to cut (rules/admit.ts). Refused (all `known`) once completed. */
  add(requests: readonly CrawlRequest[]): Promise<AddCounts>;
  /** Before this a crawl cannot drain. `false`: more seeds come after all; without effect once completed. */
  seedsComplete(complete?: boolean): Promise<void>;
  /**
   * At most `max` (≤ 128) leases. Never more than limit − counted − leased. A store may hand out fewer than there are, so as not to hold up other
   * workers: who has room left asks again, until the answer is another than leases.
   */
  claim(max: number): Promise<Claim>;
  /** `started`: a request head went out `sinceMs` ago. `ended`: the response is over, the host's slot is free. Unknown tokens: nothing. */
  progress(started: readonly { readonly token: Token; readonly sinceMs: number }[], ended: readonly Token[]): Promise<void>;
  /**
   * Whoever held them is dead: lost to a crash, at once. Only where leases do not expire of themselves: then one process holds them all,
   * and knows which of its threads has died.
   */
  abandon?(tokens: readonly Token[]): Promise<void>;
  /** New deadline for what is still held; answers the tokens that are lost and the control state. */
  renew(held: readonly Token[]): Promise<{ readonly lost: readonly Token[]; readonly control: Control }>;
  /** Links first, then the pages: one step with what `write` appends (FrontierHooks). Second use of a token: `stale`, changes nothing but the links, as a page does that the item limit hands back. */
  settle(pages: readonly Settled[], links: readonly CrawlRequest[]): Promise<readonly ("applied" | "stale")[]>;
  tune(host: HostKey, tuning: HostTuning): Promise<void>;
  /** URLs that say what belongs to the crawl: every other process that works on it, or goes on with it, is told of them with its next claim. Idempotent. */
  noteSeeds(urls: readonly string[]): Promise<void>;
  /** Cookies the crawl starts with, each kept for the site of its domain. */
  addCookies(cookies: readonly Cookie[]): Promise<void>;
  control(to: Control): Promise<void>;
  /** Raise (or lower) limits.pages; used on resume. */
  setPageLimit(limit: number | null): Promise<void>;
  /** The same of the item limit. */
  setItemLimit(limit: number | null): Promise<void>;
  /** Values kept for user code, JSON text by key. Those of one run (`run:…`) are gone with the next. */
  values(): Promise<ReadonlyMap<string, string>>;
  /** Changes values outside of a settle step. */
  setValues(changes: readonly ValueChange[]): Promise<void>;
  counts(): Promise<FrontierCounts>;
  /** Slowest first by what is queued, at most `max`. */
  hosts(max: number): Promise<readonly HostView[]>;
  /** Robots state by origin, as far as known. */
  robotsOf(origin: Origin): Promise<RobotsState | null>;
  /** What is still queued or delayed, in no particular order; for the list of what a limit or stop left out, and for saving a crawl. */
  remaining(): AsyncIterable<CrawlRequest>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** What a one-owner store calls inside its settle step. */
export interface FrontierHooks {
  /** Append these outputs to the run's sinks; called before the step is acknowledged, in settle order. Throws when it cannot. */
  write(outputs: readonly Output[]): void;
  /** Where the run's sinks stand after the last `write`, by name: a durable store keeps it in the same step. `sync`: on the disk first. */
  checkpoint?(sync: boolean): ReadonlyMap<string, SinkState>;
  /** The step that the last `checkpoint` belongs to is on record. */
  committed?(): void;
  /** The record of a request whose lease was lost to three crashes (outcome failed, code crashed). */
  crashed(request: CrawlRequest, crashes: number): Output;
  /** Something fell due that the last claim could not foresee: a new claim may give something. */
  wake?(): void;
  /** Resolves when the run is to be left, to go on another time: from then on a store that does not answer is not waited for without end. */
  readonly leaving?: Promise<void>;
}

/** The rules a frontier keeps; comes from the spec (assemble.ts). */
export interface FrontierConfig {
  readonly limitPages: number | null;
  /**
   * Items past this many are not written; what is written raises the counter `items`. A page none of whose items finds room is handed back in the settle
   * step (`stale`), one of which some do is written with these and queued again for the rest; while there is no room nothing is claimed. Absent: no limit.
   */
  readonly limitItems?: number | null;
  /** Run by levels with the two-level window (design: depth). Null: no levels. */
  readonly levels: boolean;
  readonly order: "bfs" | "dfs";
  readonly perHostConcurrency: number;
  /** Fixed least gap between starts, or adaptive pacing. */
  readonly perHostDelayMs: number | "auto";
  /** Fixed delays are lengthened by a random share up to this: 0 … 1. */
  readonly jitter: number;
  readonly hosts: ReadonlyMap<HostKey, { readonly delayMs?: number; readonly concurrency?: number }>;
  readonly ratePerMinute: number | null;
  readonly robots: boolean;
  /** Cap on crawlDelayMs and notBeforeMs. A longer one is the worker's to fail. */
  readonly maxWaitMs: number;
  readonly leaseMs: number;
  readonly startWithinMs: number;
  /** Hand every link of a settle that was known already to `write`, as skipped with reason `duplicate`. They are counted in any case (`duplicates`). */
  readonly listDuplicates?: boolean;
}

/** Lost leases after which a request is dropped as crashed. */
export const MAX_CRASHES = 3;

/** Settles a lease that nothing was done with: it goes back to the front of its queue, and no attempt is counted. */
export function returned(token: Token): Settled {
  return { token, settlement: { kind: "returned" }, sinceStartMs: null, answer: null, host: null, setCookies: null, newSeeds: null, tally: [] };
}
