/** What the frontier cases are written with: a bench for one store, and short words for its calls. */
import assert from "node:assert/strict";
import type { Claim, Frontier, FrontierConfig, Lease, Settled, Settlement, Token } from "../../core/frontier.ts";
import type { Output, PageRecord } from "../../core/records.ts";
import type { CrawlRequest, RequestRest } from "../../core/request.ts";
import { makeRequest } from "../../rules/admit.ts";

/** One store under test, fresh, opened with the case's configuration. */
export interface FrontierBench {
  readonly frontier: Frontier;
  /** Moves the store's clock. */
  advance(ms: number): Promise<void>;
  /** Everything the store has handed to its sinks so far, owed outputs before the output that carries them. */
  outputs(): readonly Output[];
  /** Makes the sinks refuse, as a full disk does, or take again. */
  refuseWrites(refuse: boolean): void;
  /** Only of stores that outlive their process, see DurableBench. */
  readonly restart?: Restart;
}

/**
 * Ends the store's process and opens the same state again, with `frontier` still the one to use. `closed`: it was disposed of, `killed`: it had no time
 * for anything. Answers the URLs whose leases the state knew of: a killed process counts as a crash of each of these.
 */
export type Restart = (how: "closed" | "killed") => Promise<{ readonly lost: ReadonlySet<string> }>;

export interface DurableBench extends FrontierBench {
  readonly restart: Restart;
}

export interface FrontierCase {
  /** A sentence that is true of a frontier that keeps the rule. */
  readonly name: string;
  /** The rule in a word or two: I1 … I9, or the part of the contract. */
  readonly rule: string;
  /** What differs from `caseConfig`. */
  readonly config?: Partial<FrontierConfig>;
  /** Rejects when the rule is broken. */
  run(bench: FrontierBench): Promise<void>;
}

export const caseConfig: FrontierConfig = {
  limitPages: null,
  levels: false,
  order: "bfs",
  perHostConcurrency: 8,
  perHostDelayMs: 0,
  jitter: 0,
  hosts: new Map(),
  ratePerMinute: null,
  robots: false,
  maxWaitMs: 60_000,
  leaseMs: 10_000,
  startWithinMs: Infinity,
};

/** Opens a bench for a case; the store's own test provides it. Its `hooks.crashed` must answer `crashedOutput`. */
export type OpenFrontierBench = (config: FrontierConfig) => Promise<FrontierBench>;

export function pageRecordOf(url: string, more: Partial<PageRecord> = {}): PageRecord {
  const base = { url, status: 200, outcome: "fetched" as const, depth: 0, referrer: null, redirects: [], contentType: null, bytes: 0, bytesDecoded: 0 };
  return { ...base, links: [], attempts: 1, fetchedAt: "2026-01-01T00:00:00Z", durationMs: 0, ...more };
}

export function outputFor(url: string, more: Partial<Output> = {}): Output {
  return { page: pageRecordOf(url), listed: true, skipped: [], found: [], edges: [], ...more };
}

export const noRecord: Output = { page: null, listed: false, skipped: [], found: [], edges: [] };

export function crashedOutput(request: CrawlRequest, crashes: number): Output {
  const error = { code: "crashed" as const, message: `${crashes} crashes` };
  return { ...outputFor(request.url), page: pageRecordOf(request.url, { outcome: "failed", status: null, error }) };
}

/** Owed outputs first, then the output that carried them: what the sinks of a run do too. */
export function flattenOwed(outputs: readonly Output[]): Output[] {
  return outputs.flatMap((output) => [...(output.owed === undefined ? [] : flattenOwed(output.owed)), output]);
}

export interface LinkOptions {
  readonly depth?: number;
  readonly priority?: number;
  readonly referrer?: string | null;
  readonly hop?: CrawlRequest["hop"];
  readonly rest?: RequestRest | null;
}

/** Settled with everything absent but what is given. */
export function settledAs(lease: { readonly token: Token }, settlement: Settlement, more: Partial<Settled> = {}): Settled {
  return { token: lease.token, settlement, sinceStartMs: 0, answer: null, host: null, setCookies: null, newSeeds: null, tally: [], ...more };
}

/** A case of a store that outlives its process. */
export interface RestartCase extends Omit<FrontierCase, "run"> {
  run(bench: DurableBench): Promise<void>;
}

export type Hand = ReturnType<typeof handOf>;

/** Short words for one bench. */
export function handOf(bench: FrontierBench) {
  const { frontier } = bench;
  const link = (url: string, options: LinkOptions = {}): CrawlRequest =>
    makeRequest(url, frontier.seed, {
      hop: options.hop ?? "link",
      depth: options.depth ?? 0,
      referrer: options.referrer ?? null,
      priority: options.priority ?? 0,
      rest: options.rest ?? null,
    });

  /** As a worker does that has room for so many: until there is no more. */
  async function claim(max = 128): Promise<readonly Lease[]> {
    const leases: Lease[] = [];
    while (leases.length < max) {
      const answer = await frontier.claim(max - leases.length);
      if (answer.kind !== "leases") break;
      leases.push(...answer.leases);
    }
    return leases;
  }

  return {
    link,
    claim,
    /** Adds plain links; no more seeds follow. */
    async seed(...urls: (string | CrawlRequest)[]) {
      const counts = await frontier.add(urls.map((url) => (typeof url === "string" ? link(url) : url)));
      await frontier.seedsComplete();
      return counts;
    },
    /** Claims and expects exactly one lease. */
    async one(): Promise<Lease> {
      const leases = await claim(1);
      assert.equal(leases.length, 1, "a claim gives a lease");
      return leases[0]!;
    },
    /** The URLs a claim hands out now. */
    async urls(max = 128): Promise<string[]> {
      return (await claim(max)).map((lease) => lease.request.url);
    },
    done: (lease: Lease, links: readonly CrawlRequest[] = [], more: Partial<Settled> = {}) =>
      frontier.settle([settledAs(lease, { kind: "done", counted: true, output: outputFor(lease.request.url) }, more)], links),
    uncounted: (lease: Lease) => frontier.settle([settledAs(lease, { kind: "done", counted: false, output: outputFor(lease.request.url) })], []),
    retry: (lease: Lease, afterMs: number, more: Partial<Settled> = {}) => frontier.settle([settledAs(lease, { kind: "retry", afterMs }, more)], []),
    returned: (lease: Lease) => frontier.settle([settledAs(lease, { kind: "returned" }, { sinceStartMs: null })], []),
    dropped: (lease: Lease) => frontier.settle([settledAs(lease, { kind: "dropped", output: outputFor(lease.request.url) })], []),
    robots: (lease: Lease, ttlMs = 86_400_000, more: Partial<Settled> = {}) =>
      frontier.settle([settledAs(lease, { kind: "robots", answer: { kind: "allow-all", ttlMs } }, more)], []),
    started: (lease: Lease, sinceMs = 0) => frontier.progress([{ token: lease.token, sinceMs }], []),
    ended: (lease: Lease) => frontier.progress([], [lease.token]),
    /** URLs of the page records written so far. */
    pages: (): string[] => bench.outputs().flatMap((output) => (output.page === null ? [] : [output.page.url])),
    async wait(): Promise<Claim & { kind: "wait" }> {
      const answer = await frontier.claim(1);
      assert.equal(answer.kind, "wait", `a claim answers wait, not ${answer.kind}`);
      return answer as Claim & { kind: "wait" }; // asserted just above
    },
    async kind(): Promise<Claim["kind"]> {
      return (await frontier.claim(1)).kind;
    },
    /** I2 at this moment. */
    async balance(): Promise<void> {
      const { seen, queued, delayed, leased, done, dropped } = await frontier.counts();
      assert.equal(seen, queued + delayed + leased + done + dropped, "seen = queued + delayed + leased + done + dropped");
    },
    async remaining(): Promise<string[]> {
      const urls: string[] = [];
      for await (const request of frontier.remaining()) urls.push(request.url);
      return urls.sort();
    },
  };
}

/** A case whose body gets the bench's words. */
export function caseOf(rule: string, name: string, config: Partial<FrontierConfig>, run: (hand: Hand, bench: FrontierBench) => Promise<void>): FrontierCase {
  return { rule, name, config, run: (bench) => run(handOf(bench), bench) };
}

export function restartCaseOf(
  rule: string,
  name: string,
  config: Partial<FrontierConfig>,
  run: (hand: Hand, bench: DurableBench) => Promise<void>,
): RestartCase {
  return { rule, name, config, run: (bench) => run(handOf(bench), bench) };
}
