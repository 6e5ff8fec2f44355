/** The state that the frontier's steps share, and the small moves from which they are made. The steps themselves: admit, claim, settle. */
import type { Clock } from "../../core/clock.ts";
import type { Control, Cookie, FrontierConfig, FrontierHooks, ValueChange } from "../../core/frontier.ts";
import type { Output } from "../../core/records.ts";
import type { Fingerprint } from "../../core/request.ts";
import { createSeenTable, type SeenTable } from "../../rules/seen.ts";
import { changedValue } from "../../rules/values.ts";
import type { HostGate } from "./gate.ts";
import { createHosts, type Host, type Hosts } from "./hosts.ts";
import { type Journal, UNNUMBERED } from "./journal.ts";
import { createLeases, type LeaseEntry, type Leases } from "./leases.ts";
import { createLevels, type Levels } from "./levels.ts";
import { createOnceFilter, type OnceFilter } from "./once.ts";
import { depthOf, HELD, levelOf, type Place, pack, QUEUED, RELINK_HELD, RELINK_QUEUED, stateOf } from "./place.ts";
import { type Arena, createArena } from "./queue.ts";
import { createOrigins, type Origins } from "./robots.ts";
import { createWaitHeap, type HeapMember, type WaitHeap } from "./wait-heap.ts";

export interface MemoryEnv {
  readonly clock: Clock;
  /** 0 ≤ x < 1. */
  readonly random: () => number;
  /** What shares cookies with a host; default: the hostname alone. */
  readonly siteOf?: (hostname: string) => string;
  /** Told of every change that must outlive the process. */
  readonly journal?: Journal;
  /** Clock time at which every host may have been asked last: the start of a resumed crawl, since nobody knows when the dead run's last requests went out. */
  readonly restFrom?: number;
  /** Clocks of hosts that other crawls of the process share. */
  readonly gate?: HostGate | null;
}

/** A place whose retry is not due yet. */
export interface Delayed extends HeapMember {
  readonly place: Place;
}

/** The history of a queued place, and what it owes as the target of a redirect. */
export interface Carried {
  readonly attempt: number;
  readonly crashes: number;
  readonly owed: readonly Output[];
}

const NOTHING_OWED: readonly Output[] = [];

export interface Desk {
  readonly config: FrontierConfig;
  readonly hooks: FrontierHooks;
  readonly env: MemoryEnv;
  readonly journal: Journal | null;
  readonly seen: SeenTable;
  readonly arena: Arena;
  readonly levels: Levels;
  readonly hosts: Hosts;
  readonly leases: Leases;
  readonly origins: Origins;
  readonly once: OnceFilter;
  readonly delayed: WaitHeap<Delayed>;
  /** What queued places carry beyond their request, by fingerprint: were such a place lowered, its old entry is skipped and this would be lost. */
  readonly carried: Map<string, Carried>;
  readonly tally: Map<string, number>;
  /** Kept for user code, JSON text. */
  readonly values: Map<string, string>;
  /** Pages with a part of their items written (items.ts), by fingerprint: how many. */
  readonly cuts: Map<string, number>;
  readonly jars: Map<string, readonly Cookie[]>;
  /** Leases that `now` has ended: only their `returned` may still come. */
  readonly revoked: Set<string>;
  newSeeds: string[];
  limit: number | null;
  itemLimit: number | null;
  control: Control;
  /** `finish` was said: it outlasts a pause. */
  finishing: boolean;
  seedsComplete: boolean;
  completed: boolean;
  disposed: boolean;
  /** Balance (I2). */
  queued: number;
  waitingRetries: number;
  leased: number;
  robotsLeased: number;
  done: number;
  dropped: number;
  places: number;
  counted: number;
  nextRateAt: number;
}

export function createDesk(config: FrontierConfig, hooks: FrontierHooks, env: MemoryEnv): Desk {
  const seen = createSeenTable();
  const arena = createArena(config.order, env.journal !== undefined);
  const levels = createLevels(config.levels, () => hosts.unpark());
  const hosts = createHosts(config, env, { arena, levels, wake: () => hooks.wake?.() });
  return {
    config,
    hooks,
    env,
    journal: env.journal ?? null,
    seen,
    arena,
    levels,
    hosts,
    leases: createLeases(),
    origins: createOrigins(),
    once: createOnceFilter((hi, lo) => seen.get(hi, lo) >= 0),
    delayed: createWaitHeap<Delayed>(),
    carried: new Map(),
    tally: new Map(),
    values: new Map(),
    cuts: new Map(),
    jars: new Map(),
    revoked: new Set(),
    newSeeds: [],
    limit: config.limitPages,
    itemLimit: config.limitItems ?? null,
    control: "run",
    finishing: false,
    seedsComplete: false,
    completed: false,
    disposed: false,
    queued: 0,
    waitingRetries: 0,
    leased: 0,
    robotsLeased: 0,
    done: 0,
    dropped: 0,
    places: 0,
    counted: 0,
    nextRateAt: -Infinity,
  };
}

export const isRobots = (place: Place): boolean => place.request.hop === "robots";

/** A reopened URL is a place of its own beside the seen table's: its first place was settled. */
export const isDetached = (place: Place): boolean => place.request.rest?.reopen === true;

/** Queued or held again for its links only. */
export const isRelink = (desk: Desk, place: Place): boolean => !isDetached(place) && stateOf(seenValue(desk, place)) === RELINK_HELD;

export const carriedKey = (of: Fingerprint): string => `${of.idHi}:${of.idLo}`;

/** The place under a new number of the journal, in whose stead `place` stood; itself without a journal. */
export function renumbered(desk: Desk, place: Place, relink: boolean, dueAt: number | null): Place {
  if (desk.journal === null || isRobots(place)) return place;
  if (place.seq !== UNNUMBERED) desk.journal.gone(place.seq);
  return { ...place, seq: desk.journal.queued(place, relink, dueAt) };
}

/** Notes what a place of the seen table carries while it is queued. */
export function carry(desk: Desk, { request, attempt, crashes }: Place): void {
  const owed = request.rest?.owed ?? NOTHING_OWED;
  if (owed.length > 0 || attempt > 0 || crashes > 0) desk.carried.set(carriedKey(request), { attempt, crashes, owed });
}

/** What the seen table says of a place's request; a place always has its entry. */
export const seenValue = (desk: Desk, place: Place): number => desk.seen.get(place.request.idHi, place.request.idLo);

/** Level of a place that comes back to its queue. */
export function levelOfPlace(desk: Desk, place: Place): number {
  if (!desk.levels.on) return 0;
  return isDetached(place) ? levelOf(place.request.depth) : depthOf(seenValue(desk, place));
}

/** Back to the front of its host's queue; the place must be counted nowhere when this is called. */
export function requeueFront(desk: Desk, place: Place): void {
  const host = desk.hosts.of(place.request.host);
  host.blocked = false;
  if (isRobots(place)) {
    host.robotsLane.push(place);
  } else {
    const lane = desk.hosts.laneOf(host, levelOfPlace(desk, place), place.request.priority);
    desk.arena.pushFront(lane, place);
    host.entries++;
    desk.queued++;
    if (!isDetached(place)) {
      markQueued(desk, place);
      carry(desk, place);
    }
  }
  desk.hosts.place(host);
}

function markQueued(desk: Desk, place: Place): void {
  const value = seenValue(desk, place);
  desk.seen.replace(place.request.idHi, place.request.idLo, pack(stateOf(value) === RELINK_HELD ? RELINK_QUEUED : QUEUED, depthOf(value)));
}

/** Marks a place leased or delayed. */
export function markHeld(desk: Desk, place: Place, value: number): void {
  desk.seen.replace(place.request.idHi, place.request.idLo, pack(stateOf(value) === RELINK_QUEUED ? RELINK_HELD : HELD, depthOf(value)));
}

/** Waits for its retry; the place must be counted nowhere when this is called. */
export function delay(desk: Desk, place: Place, afterMs: number, relink: boolean): void {
  const dueAt = desk.env.clock.now() + afterMs;
  if (!isRobots(place)) desk.waitingRetries++;
  desk.delayed.put({ place: renumbered(desk, place, relink, dueAt), heapAt: -1, dueAt, turn: desk.places });
}

/** Gives the host's slot back, once. */
export function freeSlot(entry: LeaseEntry): void {
  if (entry.ended) return;
  entry.ended = true;
  entry.host.inFlight--;
  entry.host.gate?.ended();
}

/** Notes when the request of a lease went out: at the given clock time, or never (null). The first word counts. */
export function knowStart(desk: Desk, entry: LeaseEntry, at: number | null): void {
  if (entry.startKnown) return;
  entry.startKnown = true;
  entry.host.awaiting--;
  entry.host.gate?.started(at);
  if (at !== null) desk.hosts.started(entry.host, at);
}

/** Pages that may still be leased. */
export const freePlaces = (desk: Desk): number => (desk.limit === null ? Infinity : desk.limit - desk.counted - desk.leased);

/** Running → completed, once (I8). Called after every step that may have ended the crawl. */
export function completeIfOver(desk: Desk): void {
  if (desk.completed || desk.leased > 0 || desk.robotsLeased > 0) return;
  const stopped = desk.control === "drain" || desk.control === "now";
  const limited = desk.limit !== null && desk.counted >= desk.limit;
  const drained = desk.seedsComplete && desk.queued === 0 && desk.waitingRetries === 0;
  if (stopped || limited || drained) desk.completed = true;
}

/** Hands outputs to the sinks; when they cannot take them, nothing has passed the once filter. */
export function write(desk: Desk, outputs: readonly Output[]): void {
  if (outputs.length === 0) return;
  const passed = outputs.map(desk.once.pass);
  try {
    desk.hooks.write(passed);
  } catch (error) {
    desk.once.forget(passed);
    throw error;
  }
  for (const output of passed) notePassed(desk, output);
}

/** Changes values of the user's code. */
export function changeValues(desk: Desk, changes: readonly ValueChange[]): void {
  for (const change of changes) {
    const before = desk.values.get(change.key) ?? null;
    const after = changedValue(before, change);
    if (after === before) continue;
    if (after === null) desk.values.delete(change.key);
    else desk.values.set(change.key, after);
    desk.journal?.value(change.key, after);
  }
}

function notePassed(desk: Desk, output: Output): void {
  if (output.items !== undefined && output.items.length > 0) raise(desk, "items", output.items.length);
  for (const skip of output.skipped) {
    // Counted as `duplicates` by the settle.
    if (skip.value.reason === "duplicate") continue;
    raise(desk, `skip:${skip.value.reason}`, 1);
    desk.journal?.skipped(skip);
  }
  if (desk.journal !== null) for (const link of output.found) desk.journal.found(link);
  if (output.owed !== undefined) for (const owed of output.owed) notePassed(desk, owed);
}

export function raise(desk: Desk, name: string, by: number): void {
  desk.tally.set(name, (desk.tally.get(name) ?? 0) + by);
}

export type { Host };
