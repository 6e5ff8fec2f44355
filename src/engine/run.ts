/** The loop: claim, visit, settle, wait, until the frontier says drained. One instance works on one crawl; another process may run the same loop on the same store. */
import type { Timer } from "../core/clock.ts";
import { assertNever } from "../core/errors.ts";
import type { StopMode } from "../core/events.ts";
import { type Claim, type Frontier, type Lease, returned, type Settled, type Token, type ValueChange, type WaitCause } from "../core/frontier.ts";
import type { Exchange, Fetcher } from "../core/outcome.ts";
import type { CrawlRequest } from "../core/request.ts";
import type { Scraping, ScrapingView } from "../core/scraping.ts";
import type { Gate } from "../core/sink.ts";
import type { VisitBook } from "../core/visits.ts";
import { createTokenMap } from "../rules/token-map.ts";
import { RUN_SERIES, RUN_STOP } from "../rules/values.ts";
import type { Concluded } from "./concluded.ts";
import { createRenewal } from "./leases.ts";
import type { LimitWatch } from "./limit-watch.ts";
import type { Parts } from "./parts.ts";
import type { Values } from "./values.ts";
import { createVisitor } from "./visit.ts";

/** Pages that wait for their settle step before it is taken without waiting for the loop to go idle. */
const MAX_BATCH = 64;
const MAX_CLAIM = 128;
/** While BUSY requests are out, a settle step is put off for a few rounds of the event loop until GOOD_BATCH pages wait for it: a durable store commits each step. */
const BUSY = 4;
const GOOD_BATCH = 16;
const PUT_OFF_ROUNDS = 4;
/** Who looks on asks so often. */
const LOOK_MS = 250;

export interface LoopView {
  readonly inFlight: number;
  readonly requests: number;
  /** Why the last claim gave less than it was asked for; null: it gave all. */
  readonly waitingFor: WaitCause | "paused" | "output" | "parse" | null;
  /** Null: there is no scraper. */
  readonly scraping: ScrapingView | null;
  /** Share of one core that the busiest of several threads used, 0 … 1; absent: the loop runs in this thread. */
  readonly cpuShare?: number;
}

export interface Loop {
  /** Resolves when the frontier is drained or the crawl was stopped and everything in flight is settled. Rejects when we fail. */
  readonly done: Promise<void>;
  stop(mode: StopMode): Promise<void>;
  /** Claims no more and ends when what is held is settled, or with `abort` handed back; the crawl goes on elsewhere. */
  leave(abort?: boolean): void;
  /** Something changed outside: claim again. */
  wake(): void;
  view(): LoopView;
}

/** An exchange under way. */
interface Flight {
  readonly exchange: Exchange;
  /** Its request has gone out. */
  begun: boolean;
}

/** What a loop works with, beyond the parts. */
export interface LoopInput {
  readonly parts: Parts;
  readonly frontier: Frontier;
  readonly fetcher: Fetcher;
  readonly scraping: Scraping | null;
  readonly values: Values;
  readonly book: VisitBook | null;
  readonly gate: Gate;
  /** Other processes work on the same crawl. */
  readonly shared?: boolean;
  /** Most requests in flight now; by default the spec's. */
  readonly concurrency?: () => number;
  /** Takes nothing: it only waits for the end that others bring about. */
  readonly looksOn?: boolean;
  /** Leaves after the first claim that gave something. */
  readonly once?: boolean;
  readonly limits: LimitWatch;
  /** Changes of values that were settled with a page. */
  readonly onValues: (changes: readonly ValueChange[]) => Promise<void>;
}

/** What a stop of each mode is to the frontier. */
export const CONTROL: Readonly<Record<StopMode, "finish" | "drain" | "now">> = { queue: "finish", flight: "drain", now: "now" };

export function startLoop(input: LoopInput): Loop {
  const { parts, frontier, fetcher, scraping, values, book, gate, limits } = input;
  const { clock, spec } = parts;
  const visitor = createVisitor({
    parts,
    fetcher,
    scraping,
    values,
    book,
    async add(requests) {
      await frontier.add(requests);
      wakeSoon();
    },
  });
  /** What is held: an exchange under way, or null for a page that was fetched and is read (by the scraper, as a sitemap). */
  const inFlight = createTokenMap<Flight | null>();
  let reading = 0;
  let pages: Settled[] = [];
  let links: CrawlRequest[] = [];
  /** One of `pages` must be settled before more is claimed. */
  let urgent = false;
  /** For a limit that one of them reaches. */
  let heldBack = false;
  let started: { token: Token; at: number }[] = [];
  let ended: Token[] = [];
  let requests = 0;
  let waitingFor: LoopView["waitingFor"] = null;
  let aborting = false;
  /** Stopped, but for what is in flight. */
  let stopping = false;
  let leaving = false;
  let failure: { readonly error: unknown } | null = null;

  // One promise per turn of the loop: resolved by the first of wake and timer.
  let wakeUp: (() => void) | null = null;
  let woken = false;
  function wake(): void {
    woken = true;
    wakeUp?.();
  }
  let soonAsked = false;
  let rounds = 0;
  /** The round in which the first of `pages` was concluded. */
  let waitingSince = 0;
  function wakeSoon(): void {
    if (soonAsked) return;
    soonAsked = true;
    clock.soon(() => {
      soonAsked = false;
      rounds++;
      wake();
    });
  }
  function nextWake(ms: number): Promise<void> {
    if (woken) return Promise.resolve();
    return new Promise((resolve) => {
      const timer: Timer | null = ms === Infinity ? null : clock.after(ms, () => wake());
      wakeUp = () => {
        timer?.cancel();
        wakeUp = null;
        resolve();
      };
    });
  }

  function fail(error: unknown): void {
    failure ??= { error };
    wake();
  }

  function conclude(concluded: Concluded): void {
    const { token } = concluded.settled;
    if (inFlight.get(token) === null) reading--;
    inFlight.delete(token);
    if (pages.push(concluded.settled) === 1) waitingSince = rounds;
    if (limits.ended(concluded.settled)) holdBack();
    else urgent ||= bearsOnClaims(concluded.settled);
    for (const link of concluded.links) links.push(link);
    if (pages.length >= MAX_BATCH) wake();
    else wakeSoon();
  }

  /** A limit is reached: it is settled before anything else, and what has not gone out does not. */
  function holdBack(): void {
    urgent = true;
    if (heldBack) return;
    heldBack = true;
    for (const token of inFlight.tokens()) {
      const flight = inFlight.get(token);
      if (flight && !flight.begun) fetcher.abort(flight.exchange);
    }
  }

  function visit(lease: Lease, claimedAt: number): void {
    const { token } = lease;
    if (aborting || stopping || limits.over() || clock.now() - claimedAt > lease.startWithinMs) {
      conclude({ settled: returned(token), links: [] });
      return;
    }
    const verdict = visitor.before(lease);
    if (verdict !== null) {
      conclude(verdict);
      return;
    }
    const exchange = visitor.exchange(
      lease,
      () => {
        requests++;
        flight.begun = true;
        const start = { token, at: clock.now() };
        started.push(start);
        // What begins now is written when this callback is over: a machine with much to do may need a while for that, and the host's rest begins then.
        queueMicrotask(() => {
          start.at = clock.now();
        });
        wakeSoon();
      },
      () => {
        ended.push(token);
        wakeSoon();
      },
    );
    const flight: Flight = { exchange, begun: false };
    inFlight.set(token, flight);
    visitor.fetch(exchange).then((outcome) => {
      try {
        const result = visitor.after(lease, outcome);
        if (result instanceof Promise) {
          inFlight.set(token, null);
          reading++;
          // A slot is free: a page that is read holds none.
          wakeSoon();
          result.then(conclude, fail);
        } else conclude(result);
      } catch (error) {
        fail(error);
      }
    }, fail);
  }

  /** The settle step may wait for more pages; until it is known whether enough is in flight, `turn` sees to it. */
  const mayWait = (): boolean => !urgent && pages.length > 0 && pages.length < GOOD_BATCH && rounds - waitingSince < PUT_OFF_ROUNDS;

  async function flush(later: boolean): Promise<void> {
    if (started.length > 0 || ended.length > 0) {
      const now = clock.now();
      // A page that is settled below brings its own end with it.
      const settledNow = new Set(later ? [] : pages.map((page) => page.token));
      const begun = started.filter(({ token }) => !settledNow.has(token)).map(({ token, at }) => ({ token, sinceMs: now - at }));
      const over = ended.filter((token) => !settledNow.has(token));
      started = [];
      ended = [];
      if (begun.length > 0 || over.length > 0) await frontier.progress(begun, over);
    }
    if (pages.length === 0 || later) return;
    for (const { host, crawlDelayMs } of visitor.robots.takeDelays()) await frontier.tune(host, { crawlDelayMs });
    const batch = pages;
    const found = links;
    pages = [];
    links = [];
    urgent = false;
    heldBack = false;
    const answers = await frontier.settle(batch, found);
    for (const [i, { values: changes }] of batch.entries()) if (changes !== undefined && answers[i] === "applied") await input.onValues(changes);
    const limited = limits.settled(batch);
    if (limited !== null) await limited;
  }

  const renewal = createRenewal(frontier, clock, {
    held: () => inFlight.tokens(),
    lost(tokens) {
      for (const token of tokens) {
        const flight = inFlight.get(token);
        if (flight) fetcher.abort(flight.exchange);
      }
    },
    control(control) {
      if (control === "now") abortAll();
      wake();
    },
    fail,
  });

  function abortAll(): void {
    aborting = true;
    fetcher.abortAll();
    scraping?.abort();
  }

  /** One claim; answers how long to wait, 0 for "again at once", null when all is done. */
  async function claimOnce(): Promise<number | null> {
    if (leaving) return inFlight.size === 0 && pages.length === 0 ? null : Infinity;
    const looksOn = input.looksOn === true;
    const free = looksOn ? 0 : Math.min((input.concurrency?.() ?? spec.concurrency) - (inFlight.size - reading), MAX_CLAIM);
    if (free <= 0 && !looksOn) {
      waitingFor = null;
      return Infinity;
    }
    if (scraping?.full()) {
      waitingFor = "parse";
      scraping.onSpace(wake);
      return Infinity;
    }
    if (!gate.open()) {
      waitingFor = "output";
      gate.onOpen(wake);
      return Infinity;
    }
    const claimedAt = clock.now();
    const claim: Claim = await frontier.claim(free);
    switch (claim.kind) {
      case "leases": {
        // They take the scope along, not what was meant for the seeds' hosts alone (Authorization, Cookie).
        for (const seed of claim.seeds) parts.admit.scope.addSeed(seed);
        if (claim.leases.length > 0) renewal.start(claim.leases[0]!.expiresInMs);
        for (const lease of claim.leases) visit(lease, claimedAt);
        if (input.once === true && claim.leases.length > 0) leaving = true;
        waitingFor = null;
        return 0;
      }
      case "wait":
        waitingFor = claim.cause;
        return looksOn ? Math.max(LOOK_MS, claim.waitMs) : claim.waitMs;
      case "held":
        waitingFor = claim.why === "outbox-full" ? "output" : "paused";
        return 1_000;
      case "drained":
        return inFlight.size === 0 && pages.length === 0 ? null : Infinity;
      default:
        return assertNever(claim);
    }
  }

  async function turn(): Promise<void> {
    for (;;) {
      if (failure !== null) throw failure.error;
      woken = false;
      await flush(mayWait());
      // It may have come while the store was told of starts and ends.
      if (urgent) await flush(false);
      const waitMs = await claimOnce();
      if (waitMs === null) return;
      if (waitMs === 0) continue;
      if (pages.length === 0) await nextWake(waitMs);
      else if (inFlight.size < BUSY) await flush(false);
      else {
        wakeSoon();
        await nextWake(waitMs);
      }
    }
  }

  async function run(): Promise<void> {
    try {
      await turn();
    } finally {
      renewal.stop();
      if (failure !== null || inFlight.size > 0) abortAll();
    }
  }

  return {
    done: run(),
    async stop(mode) {
      if (mode !== "queue") stopping = true;
      try {
        await frontier.control(CONTROL[mode]);
      } catch (error) {
        stopping = false;
        throw error;
      }
      if (mode === "now") abortAll();
      wake();
    },
    leave(abort = false) {
      leaving = true;
      if (abort) abortAll();
      wake();
    },
    wake,
    view: () => ({ inFlight: inFlight.size - reading, requests, waitingFor, scraping: scraping?.view() ?? null }),
  };
}

/** Whether other requests must not be begun before it is settled: it holds its host back, or ends a series or the run. */
function bearsOnClaims({ answer, host, values }: Settled): boolean {
  if (answer?.kind === "pushback" || host?.notBeforeMs !== undefined) return true;
  return values?.some(({ key }) => key === RUN_STOP || key.startsWith(RUN_SERIES)) ?? false;
}
