/** The frontier in memory, for crawls of one process: the fastest store, and nothing survives the process. */
import { CrawlError } from "../core/errors.ts";
import type { Control, Frontier, FrontierConfig, FrontierCounts, FrontierHooks, HostView } from "../core/frontier.ts";
import type { CrawlRequest, FingerprintSeed } from "../core/request.ts";
import { admit } from "./memory/admit.ts";
import { claim, endLease, originEntryOf } from "./memory/claim.ts";
import {
  changeValues,
  completeIfOver,
  createDesk,
  type Desk,
  freeSlot,
  type Host,
  isDetached,
  isRobots,
  knowStart,
  type MemoryEnv,
  requeueFront,
  seenValue,
  write,
} from "./memory/desk.ts";
import { isRest } from "./memory/items.ts";
import { depthOf, type Place, RELINK_HELD, RELINK_QUEUED, stateOf } from "./memory/place.ts";
import { keepCookies, settle } from "./memory/settle.ts";

export type { MemoryEnv } from "./memory/desk.ts";

const THIRTY_TWO_BITS = 2 ** 32;

/** Frontier methods that answer with a promise. */
type StepName = Exclude<keyof Frontier, "seed" | "remaining" | "abandon" | typeof Symbol.asyncDispose>;

/** The methods of a frontier as plain steps: each takes effect, and throws, before it returns. */
export type FrontierSteps = { readonly [K in StepName]: (...args: Parameters<Frontier[K]>) => Awaited<ReturnType<Frontier[K]>> };

export interface FrontierParts {
  readonly desk: Desk;
  readonly seed: FingerprintSeed;
  readonly steps: FrontierSteps;
}

/** The state and the steps from which a frontier of one process is made (here and in sqlite/). */
export function createFrontierParts(config: FrontierConfig, hooks: FrontierHooks, env: MemoryEnv & { readonly seed?: FingerprintSeed }): FrontierParts {
  const desk = createDesk(config, hooks, env);
  const word = (): number => Math.floor(env.random() * THIRTY_TWO_BITS) | 0;
  const seed: FingerprintSeed = env.seed ?? [word(), word(), word(), word()];
  const nonce = `${(word() >>> 0).toString(36)}${(word() >>> 0).toString(36)}-`;
  let tokens = 0;
  const newToken = (): string => nonce + (tokens++).toString(36);
  // `finish` takes no new links, but a chain of redirects that is under way belongs to what is queued.
  const adds = (request: CrawlRequest): boolean => !desk.completed && (!desk.finishing || request.hop === "redirect");
  // A seed among the links of a settle stands in for one that could not be reached.
  const follows = (request: CrawlRequest): boolean => adds(request) || (!desk.completed && request.hop === "seed");

  const steps: FrontierSteps = {
    add(requests) {
      const { added, known, lowered, owed } = admit(desk, requests, adds);
      if (owed !== null) write(desk, owed);
      return { added, known, lowered };
    },
    seedsComplete(complete = true) {
      desk.seedsComplete = complete || desk.completed;
      completeIfOver(desk);
    },
    claim: (max) => claim(desk, max, newToken),
    progress(started, ended) {
      for (const { token, sinceMs } of started) noteStart(desk, token, sinceMs);
      for (const token of ended) noteEnd(desk, token);
    },
    renew: (held) => ({ lost: held.filter((token) => !renewed(desk, token)), control: desk.control }),
    settle: (pages, links) => settle(desk, pages, links, follows),
    tune(host, tuning) {
      const entry = desk.hosts.of(host);
      if (desk.hosts.tune(entry, tuning)) desk.journal?.host(entry);
      desk.hosts.place(entry);
    },
    // Nobody else works on it: what is noted is for the process that goes on with it.
    noteSeeds: (urls) => desk.journal?.seeds(urls),
    addCookies(cookies) {
      for (const cookie of cookies) keepCookies(desk, cookie.domain, [cookie]);
    },
    control: (to) => turnTo(desk, to),
    setPageLimit: (limit) => setLimit(desk, limit),
    setItemLimit(limit) {
      desk.itemLimit = limit;
    },
    values: () => new Map(desk.values),
    setValues: (changes) => changeValues(desk, changes),
    counts: () => countsOf(desk),
    hosts: (max) => hostViews(desk, max),
    robotsOf: (origin) => knownRobots(desk, origin),
  };
  return { desk, seed, steps };
}

/** Frees what a frontier holds; its steps must not be taken any more. */
export function disposeDesk(desk: Desk): void {
  desk.disposed = true;
  desk.hosts.clear();
  desk.leases.clear();
  desk.origins.clear();
  desk.delayed.clear();
  desk.carried.clear();
  desk.jars.clear();
}

/** `around` runs every step, and what it throws rejects the call. */
export function frontierOf(parts: FrontierParts, around: <T>(name: StepName, run: () => T) => T, dispose: () => Promise<void>): Frontier {
  const { steps, desk, seed } = parts;
  return {
    seed,
    add: async (requests) => around("add", () => steps.add(requests)),
    seedsComplete: async (complete) => around("seedsComplete", () => steps.seedsComplete(complete)),
    claim: async (max) => around("claim", () => steps.claim(max)),
    progress: async (started, ended) => around("progress", () => steps.progress(started, ended)),
    renew: async (held) => around("renew", () => steps.renew(held)),
    settle: async (pages, links) => around("settle", () => steps.settle(pages, links)),
    tune: async (host, tuning) => around("tune", () => steps.tune(host, tuning)),
    noteSeeds: async (urls) => around("noteSeeds", () => steps.noteSeeds(urls)),
    addCookies: async (cookies) => around("addCookies", () => steps.addCookies(cookies)),
    control: async (to) => around("control", () => steps.control(to)),
    setPageLimit: async (limit) => around("setPageLimit", () => steps.setPageLimit(limit)),
    setItemLimit: async (limit) => around("setItemLimit", () => steps.setItemLimit(limit)),
    values: async () => around("values", () => steps.values()),
    setValues: async (changes) => around("setValues", () => steps.setValues(changes)),
    counts: async () => around("counts", steps.counts),
    hosts: async (max) => around("hosts", () => steps.hosts(max)),
    robotsOf: async (origin) => around("robotsOf", () => steps.robotsOf(origin)),
    // Nothing is changed yet: the next claim finds them expired.
    abandon: async (tokens) =>
      around("renew", () => {
        for (const token of tokens) {
          const entry = desk.leases.find(token);
          if (entry !== undefined) desk.leases.expire(entry);
        }
      }),
    remaining: () => remaining(desk),
    [Symbol.asyncDispose]: dispose,
  };
}

const partsOf = new WeakMap<Frontier, FrontierParts>();

/** What a frontier made here consists of; null for another's. For saving a crawl in memory to a directory (sqlite/save.ts). */
export const memoryPartsOf = (frontier: Frontier): FrontierParts | null => partsOf.get(frontier) ?? null;

/** Every call takes effect before it returns its promise, in the order of the calls. Errors of `hooks.write` reject the call that wrote. */
export function createMemoryFrontier(config: FrontierConfig, hooks: FrontierHooks, env: MemoryEnv & { readonly seed?: FingerprintSeed }): Frontier {
  const parts = createFrontierParts(config, hooks, env);
  const { desk } = parts;
  const frontier = frontierOf(
    parts,
    (_, run) => {
      if (desk.disposed) throw new CrawlError("internal", "the frontier was disposed of");
      return run();
    },
    async () => disposeDesk(desk),
  );
  partsOf.set(frontier, parts);
  return frontier;
}

function noteStart(desk: Desk, token: string, sinceMs: number): void {
  const entry = desk.leases.find(token);
  if (entry === undefined) return;
  knowStart(desk, entry, desk.env.clock.now() - sinceMs);
  desk.hosts.place(entry.host);
}

function noteEnd(desk: Desk, token: string): void {
  const entry = desk.leases.find(token);
  if (entry === undefined) return;
  freeSlot(entry);
  desk.hosts.place(entry.host);
}

/** A lease past its deadline that nobody has reaped yet still counts as held. */
function renewed(desk: Desk, token: string): boolean {
  const entry = desk.leases.find(token);
  if (entry === undefined) return false;
  desk.leases.renew(entry, desk.env.clock.now() + desk.config.leaseMs);
  return true;
}

/** Stopping is not undone: a crawl that finishes may be paused and go on, but takes no links again; one that drains goes no other way than to `now`. */
function turnTo(desk: Desk, to: Control): void {
  if (desk.control === "now" || (desk.control === "drain" && to !== "now")) return;
  if (to === "finish") desk.finishing = true;
  desk.control = to === "run" && desk.finishing ? "finish" : to;
  if (to === "now") revokeAll(desk);
  completeIfOver(desk);
}

/** Leases end as if returned; their tokens may still be handed back. */
export function revokeAll(desk: Desk): void {
  // The last one put in front is the first to go: they come back in the order of their claims.
  for (const entry of desk.leases.all().reverse()) {
    endLease(desk, entry);
    desk.revoked.add(entry.token);
    if (isRobots(entry.place)) originEntryOf(desk, entry.place).pending = false;
    else requeueFront(desk, entry.place);
    desk.hosts.place(entry.host);
  }
}

function setLimit(desk: Desk, limit: number | null): void {
  desk.limit = limit;
  const room = limit === null || desk.counted < limit;
  const work = desk.queued > 0 || desk.waitingRetries > 0 || !desk.seedsComplete;
  const stopped = desk.control === "drain" || desk.control === "now";
  if (desk.completed && room && work && !stopped) desk.completed = false;
  completeIfOver(desk);
}

function countsOf(desk: Desk): FrontierCounts {
  return {
    queued: desk.queued,
    delayed: desk.waitingRetries,
    leased: desk.leased,
    done: desk.done,
    dropped: desk.dropped,
    seen: desk.places,
    counted: desk.counted,
    robotsLeased: desk.robotsLeased,
    hostsWaiting: desk.hosts.waiting,
    level: desk.levels.base,
    control: desk.control,
    completed: desk.completed,
    tally: new Map(desk.tally),
  };
}

/** The `max` hosts with the longest queues; slow ones first among equals. One pass: there may be a million hosts. */
function busiest(desk: Desk, max: number): Host[] {
  const before = (a: Host, b: Host): boolean => a.entries > b.entries || (a.entries === b.entries && a.latencySumMs > b.latencySumMs);
  const best: Host[] = [];
  for (const host of desk.hosts.all()) {
    if (best.length >= max && (max === 0 || !before(host, best[max - 1]!))) continue;
    let at = best.length;
    while (at > 0 && before(host, best[at - 1]!)) at--;
    best.splice(at, 0, host);
    if (best.length > max) best.pop();
  }
  return best;
}

function hostViews(desk: Desk, max: number): HostView[] {
  const now = desk.env.clock.now();
  return busiest(desk, max).map((host) => ({
    host: host.key,
    queued: host.entries,
    inFlight: host.inFlight,
    concurrency: host.rules.auto ? Math.min(host.pace.window, host.rules.limit) : host.rules.limit,
    delayMs: desk.hosts.delayOf(host),
    dueInMs: Math.max(0, Math.max(host.lastStart + desk.hosts.delayOf(host) * host.stretch, host.notBefore, host.pace.heldUntil) - now),
    settled: host.settled,
    meanLatencyMs: host.latencies === 0 ? 0 : host.latencySumMs / host.latencies,
  }));
}

function knownRobots(desk: Desk, origin: string) {
  const entry = desk.origins.find(origin);
  return entry === null || entry.expiresAt <= desk.env.clock.now() ? null : entry.state;
}

/** Read host by host while others go on: what moves meanwhile may be met or missed, nothing is met twice within a host. */
async function* remaining(desk: Desk): AsyncGenerator<CrawlRequest> {
  for (const delayed of [...desk.delayed.members()]) if (isListed(desk, delayed.place, null)) yield delayed.place.request;
  for (const host of [...desk.hosts.all()]) {
    for (const lane of [...host.lanes]) {
      for (const place of desk.arena.list(lane, host.key)) if (isListed(desk, place, lane.level)) yield place.request;
    }
  }
}

/** Not: robots requests, entries that were lowered since, pages that are only fetched again for their links or the rest of their items. */
function isListed(desk: Desk, place: Place, level: number | null): boolean {
  if (isRobots(place) || isRest(desk, place)) return false;
  if (isDetached(place)) return true;
  const value = seenValue(desk, place);
  const state = stateOf(value);
  return state !== RELINK_QUEUED && state !== RELINK_HELD && (level === null || !desk.levels.on || depthOf(value) === level);
}
