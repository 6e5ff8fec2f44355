/** What the frontier knows of each host, and when its next request may start. Which request that is, the queues decide. */
import type { Clock } from "../../core/clock.ts";
import type { FrontierConfig, HostPatch, HostTuning, WaitCause } from "../../core/frontier.ts";
import type { HostKey } from "../../core/request.ts";
import { isLocalHost, newPace, noteLocal, type Pace, type PaceRules, slotsOf } from "../../rules/pacing.ts";
import type { GateUse, HostGate } from "./gate.ts";
import type { Levels } from "./levels.ts";
import { flat, type Place } from "./place.ts";
import type { Arena, Lane } from "./queue.ts";
import { createWaitHeap, type HeapMember } from "./wait-heap.ts";

export interface Host extends HeapMember {
  readonly key: HostKey;
  /** Lanes that hold something: lower level first, then larger priority. */
  readonly lanes: Lane[];
  /** Robots requests to make on this host (redirect hops, retries); they go before everything else. */
  readonly robotsLane: Place[];
  /** Level under which the host is parked because all it has belongs to levels not open yet; −1: not parked. */
  parkedAt: number;
  /** Entries in lanes, skipped ones included. */
  entries: number;
  inFlight: number;
  /** Leases that are not settled, those whose response has ended included. */
  leased: number;
  /** Leases of which it is not known yet whether and when their request started. */
  awaiting: number;
  lastStart: number;
  /** Factor by which this gap is longer than the delay (jitter). */
  stretch: number;
  notBefore: number;
  crawlDelayMs: number;
  /** Clock time of its last turn, or when it began to wait. */
  lastTurn: number;
  /** The origin of its first request waits for robots.txt. */
  blocked: boolean;
  why: WaitCause;
  readonly pace: Pace;
  readonly rules: { -readonly [K in keyof PaceRules]: PaceRules[K] };
  readonly fixedDelayMs: number;
  /** Told from outside how many requests it may have: not to be forgotten. */
  tuned: boolean;
  /** Asked for by somebody who watches (HostTuning.patch). */
  patched: boolean;
  paused: boolean;
  patchedDelayMs: number | null;
  /** What a patch of `rules.limit` gives way to. */
  usualLimit: number;
  /** Null: no other crawl shares its clocks. */
  readonly gate: GateUse | null;
  /** What the gate makes it wait for. */
  gated: WaitCause | null;
  settled: number;
  latencySumMs: number;
  latencies: number;
}

export interface Hosts {
  readonly waiting: number;
  of(key: HostKey): Host;
  find(key: HostKey): Host | null;
  all(): IterableIterator<Host>;
  /** Due hosts come first by due time; the host stays where it is until `place`. */
  first(): Host | null;
  /** Puts the host where it belongs: waiting, parked, or nowhere. To be called after every change of it. */
  place(host: Host): void;
  /** As `place`, after a turn that was taken at clock time `now`: behind the other due hosts. */
  endTurn(host: Host, now: number): void;
  /** Brings hosts back whose level has been opened. */
  unpark(): void;
  laneOf(host: Host, level: number, priority: number): Lane;
  /** To be called when a lane ran empty. */
  dropLane(host: Host, lane: Lane): void;
  /** Whether something changed that must outlive the process. */
  tune(host: Host, tuning: HostTuning): boolean;
  started(host: Host, at: number): void;
  delayOf(host: Host): number;
  /** Whether the other crawls that use the host let a request of this one start; if not, the host waits for its turn. To be `undo`ne when nothing starts. */
  passes(host: Host): boolean;
  dueOf(host: Host): number;
  clear(): void;
}

/** Hosts remembered before idle ones are forgotten: a wide crawl meets millions of which it asks one page each. */
const MOST_REMEMBERED = 20_000;
/** Looked at for each new host beyond that; more than one, so that the idle ones run out. */
const LOOKED_AT = 3;

interface HostsEnv {
  readonly clock: Clock;
  readonly random: () => number;
  readonly restFrom?: number;
  readonly gate?: HostGate | null;
}

/** `wake`: the gate lets a host go on that waited for it. */
export function createHosts(config: FrontierConfig, env: HostsEnv, { arena, levels, wake }: { arena: Arena; levels: Levels; wake: () => void }): Hosts {
  const hosts = new Map<HostKey, Host>();
  const heap = createWaitHeap<Host>();
  const member = env.gate?.join() ?? null;
  const parked = new Map<number, Set<Host>>();
  let parkedCount = 0;
  let turns = 0;

  /** Nothing of it is queued or under way, its clock has passed, and it has taught nothing that must be kept. */
  function isForgettable(host: Host, now: number): boolean {
    const busy = host.entries > 0 || host.robotsLane.length > 0 || host.leased > 0;
    const taught = host.tuned || host.patched || host.crawlDelayMs > 0 || host.pace.epoch > 0;
    return !busy && !taught && now > Math.max(host.lastStart + delayOf(host) * host.stretch, host.notBefore, host.pace.heldUntil);
  }

  function patch(host: Host, { paused, delayMs, concurrency }: HostPatch): void {
    host.patched = true;
    if (paused !== undefined) host.paused = paused;
    if (delayMs !== undefined) host.patchedDelayMs = delayMs;
    if (concurrency === undefined) return;
    host.rules.limit = Math.max(1, concurrency ?? host.usualLimit);
    if (isLocalHost(host.key)) noteLocal(host.pace, host.rules.limit);
  }

  let round: IterableIterator<Host> = hosts.values();

  function forgetSome(): void {
    const now = env.clock.now();
    for (let n = 0; n < LOOKED_AT; n++) {
      const next = round.next();
      if (next.done) {
        round = hosts.values();
        return;
      }
      if (!isForgettable(next.value, now)) continue;
      hosts.delete(next.value.key);
      next.value.gate?.release();
    }
  }

  function create(name: HostKey): Host {
    if (hosts.size >= MOST_REMEMBERED) forgetSome();
    const key = flat(name);
    const own = config.hosts.get(key);
    const fixed = own?.delayMs ?? (config.perHostDelayMs === "auto" ? null : config.perHostDelayMs);
    const limit = own?.concurrency ?? config.perHostConcurrency;
    const host: Host = {
      key,
      lanes: [],
      robotsLane: [],
      heapAt: -1,
      dueAt: 0,
      turn: 0,
      parkedAt: -1,
      entries: 0,
      inFlight: 0,
      leased: 0,
      awaiting: 0,
      lastStart: env.restFrom ?? -Infinity,
      stretch: 1,
      notBefore: 0,
      crawlDelayMs: 0,
      lastTurn: 0,
      blocked: false,
      why: "delay",
      pace: newPace(isLocalHost(key), limit),
      rules: { limit, auto: fixed === null, maxWaitMs: config.maxWaitMs },
      fixedDelayMs: fixed ?? 0,
      tuned: false,
      patched: false,
      paused: false,
      patchedDelayMs: null,
      usualLimit: limit,
      gate: member?.use(key, () => letGo(host)) ?? null,
      gated: null,
      settled: 0,
      latencySumMs: 0,
      latencies: 0,
    };
    hosts.set(key, host);
    return host;
  }

  function letGo(host: Host): void {
    host.gated = null;
    place(host);
    wake();
  }

  const delayOf = (host: Host): number => Math.max(host.patchedDelayMs ?? host.fixedDelayMs, host.crawlDelayMs);

  /** Clock time at which its next request may start; Infinity: when a lease of it changes. */
  function dueOf(host: Host): number {
    if (host.paused) {
      host.why = "paused";
      return Infinity;
    }
    if (host.gated !== null) {
      host.why = host.gated;
      return Infinity;
    }
    if (host.inFlight >= slotsOf(host.pace, host.rules)) {
      host.why = "host-slots";
      return Infinity;
    }
    const delay = delayOf(host);
    host.why = "delay";
    if (delay > 0 && host.awaiting > 0) return Infinity;
    if (host.blocked && host.robotsLane.length === 0) {
      host.why = "robots";
      return Infinity;
    }
    return Math.max(host.lastStart + delay * host.stretch, host.notBefore, host.pace.heldUntil, host.lastTurn);
  }

  function leavePark(host: Host): void {
    if (host.parkedAt < 0) return;
    const set = parked.get(host.parkedAt);
    set?.delete(host);
    if (set?.size === 0) parked.delete(host.parkedAt);
    host.parkedAt = -1;
    parkedCount--;
  }

  function park(host: Host, level: number): void {
    if (host.parkedAt === level) return;
    leavePark(host);
    heap.remove(host);
    const set = parked.get(level) ?? new Set();
    parked.set(level, set.add(host));
    host.parkedAt = level;
    parkedCount++;
  }

  function place(host: Host): void {
    const lane = host.lanes[0];
    if (host.robotsLane.length === 0) {
      if (lane === undefined) {
        leavePark(host);
        heap.remove(host);
        return;
      }
      if (!levels.isOpen(lane.level)) {
        park(host, lane.level);
        return;
      }
    }
    const began = host.heapAt < 0;
    if (began && host.parkedAt < 0) host.lastTurn = Math.max(host.lastTurn, env.clock.now());
    leavePark(host);
    const dueAt = dueOf(host);
    if (!began && dueAt === host.dueAt) return;
    host.dueAt = dueAt;
    host.turn = ++turns;
    heap.put(host);
  }

  return {
    get waiting() {
      return heap.size + parkedCount;
    },
    of: (key) => hosts.get(key) ?? create(key),
    find: (key) => hosts.get(key) ?? null,
    all: () => hosts.values(),
    first: () => heap.first(),
    place,
    endTurn(host, now) {
      host.lastTurn = now;
      // A changed due time moves it behind; an equal one (turn taken within one tick) must move too.
      if (host.heapAt >= 0) host.dueAt = Number.NaN;
      place(host);
    },
    unpark() {
      for (const [level, set] of [...parked]) {
        if (levels.isOpen(level)) for (const host of [...set]) place(host);
      }
    },
    laneOf(host, level, priority) {
      const { lanes } = host;
      let at = 0;
      for (; at < lanes.length; at++) {
        const lane = lanes[at]!;
        if (lane.level === level && lane.priority === priority) return lane;
        if (lane.level > level || (lane.level === level && lane.priority < priority)) break;
      }
      const lane = arena.newLane(level, priority);
      lanes.splice(at, 0, lane);
      if (at === 0) host.blocked = false;
      return lane;
    },
    dropLane(host, lane) {
      const at = host.lanes.indexOf(lane);
      if (at >= 0) host.lanes.splice(at, 1);
      if (at === 0) host.blocked = false;
    },
    tune(host, tuning) {
      const now = env.clock.now();
      const before = { limit: host.rules.limit, crawlDelayMs: host.crawlDelayMs, notBefore: host.notBefore };
      if (tuning.concurrency !== undefined) {
        host.usualLimit = host.rules.limit = Math.max(1, tuning.concurrency);
        host.tuned = true;
      }
      if (tuning.crawlDelayMs !== undefined) host.crawlDelayMs = Math.min(tuning.crawlDelayMs, config.maxWaitMs);
      if (tuning.notBeforeMs !== undefined) host.notBefore = Math.max(host.notBefore, now + Math.min(tuning.notBeforeMs, config.maxWaitMs));
      if (tuning.local === true) noteLocal(host.pace, host.rules.limit);
      const changed = host.rules.limit !== before.limit || host.crawlDelayMs !== before.crawlDelayMs || host.notBefore !== before.notBefore;
      if (tuning.patch !== undefined) patch(host, tuning.patch);
      return changed;
    },
    started(host, at) {
      if (at < host.lastStart) return;
      host.lastStart = at;
      host.stretch = 1 + config.jitter * env.random();
    },
    delayOf,
    passes(host) {
      if (host.gate === null) return true;
      host.gated = host.gate.ask(delayOf(host) * host.stretch, slotsOf(host.pace, host.rules), Math.max(host.notBefore, host.pace.heldUntil));
      if (host.gated === null) return true;
      place(host);
      return false;
    },
    dueOf,
    clear() {
      member?.leave();
      hosts.clear();
      heap.clear();
      parked.clear();
      parkedCount = 0;
    },
  };
}
