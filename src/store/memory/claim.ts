/** Claiming: expired leases and due retries come back, then due hosts take turns. */
import { type Claim, type Lease, MAX_CRASHES, type WaitCause } from "../../core/frontier.ts";
import type { Output } from "../../core/records.ts";
import {
  carriedKey,
  completeIfOver,
  type Desk,
  freePlaces,
  freeSlot,
  type Host,
  isDetached,
  isRelink,
  isRobots,
  knowStart,
  levelOfPlace,
  markHeld,
  raise,
  renumbered,
  requeueFront,
  seenValue,
  write,
} from "./desk.ts";
import { forgetCut, isTold, itemRoom } from "./items.ts";
import { UNNUMBERED } from "./journal.ts";
import type { LeaseEntry } from "./leases.ts";
import { DEEPEST, DROPPED, depthOf, originOf, type Place, pack } from "./place.ts";
import type { Lane } from "./queue.ts";
import { delayOfRate } from "./rate.ts";
import { type OriginEntry, robotsRequest } from "./robots.ts";

const MOST_LEASES = 128;
const MOST_REAPED = 32;
/** How long a robots.txt that crashed its workers counts as unavailable. */
const CRASHED_ROBOTS_MS = 300_000;

export type NewToken = () => string;

/** One moment for a whole claim: a clock that moves meanwhile would end a host's turns after the first. */
interface Turn {
  readonly now: number;
  readonly newToken: NewToken;
}

export function claim(desk: Desk, max: number, newToken: NewToken): Claim {
  if (desk.completed) return { kind: "drained" };
  reap(desk);
  recallRetries(desk);
  completeIfOver(desk);
  if (desk.completed) return { kind: "drained" };
  if (desk.control === "pause") return { kind: "held", why: "paused" };
  if (desk.control === "drain" || desk.control === "now" || itemRoom(desk) === 0) return { kind: "held", why: "stopping" };
  const leases = takeTurns(desk, Math.min(max, MOST_LEASES), newToken);
  if (leases.length > 0) {
    const seeds = desk.newSeeds;
    if (seeds.length > 0) desk.newSeeds = [];
    return { kind: "leases", leases, seeds };
  }
  completeIfOver(desk);
  return desk.completed ? { kind: "drained" } : nothingDue(desk);
}

/** Expired leases go back to the front of their queue; the third loss of one drops it. */
export function reap(desk: Desk): void {
  const now = desk.env.clock.now();
  for (let n = 0; n < MOST_REAPED; n++) {
    const entry = desk.leases.first();
    if (entry === null || entry.expiresAt > now) return;
    const lost: Place = { ...entry.place, crashes: entry.place.crashes + 1 };
    const given = lost.crashes >= MAX_CRASHES;
    // Written first: when the sinks refuse, the lease stays and nothing has changed.
    if (given && !isRobots(lost) && !isTold(desk, lost)) {
      write(desk, [crashOutput(desk, lost)]);
      countCrash(desk);
    }
    endLease(desk, entry);
    if (!given) requeueFront(desk, renumbered(desk, lost, isRelink(desk, lost), null));
    else if (isRobots(lost)) settleRobots(desk, lost, { kind: "unavailable", code: "robots-unavailable", why: "crashed", ttlMs: CRASHED_ROBOTS_MS });
    else leaveDropped(desk, lost);
    desk.hosts.place(entry.host);
  }
}

/** As the settle of a page that failed would count it (engine/record.ts). */
export function countCrash(desk: Desk): void {
  for (const name of ["outcome:failed", "error:crashed"]) raise(desk, name, 1);
}

export function crashOutput(desk: Desk, place: Place): Output {
  const output = desk.hooks.crashed(place.request, place.crashes);
  const owed = place.request.rest?.owed;
  return owed === undefined || owed.length === 0 || output.owed !== undefined ? output : { ...output, owed };
}

/** Takes a lease off the books; its place is counted nowhere after this. */
export function endLease(desk: Desk, entry: LeaseEntry): void {
  desk.leases.remove(entry);
  entry.host.leased--;
  if (isRobots(entry.place)) desk.robotsLeased--;
  else desk.leased--;
  freeSlot(entry);
  knowStart(desk, entry, null);
}

/** The place ends without a page. */
export function leaveDropped(desk: Desk, place: Place): void {
  forgetCut(desk, place);
  desk.dropped++;
  desk.levels.drop(levelOfPlace(desk, place));
  desk.journal?.gone(place.seq);
  if (isDetached(place)) return;
  const value = pack(DROPPED, depthOf(seenValue(desk, place)));
  desk.seen.replace(place.request.idHi, place.request.idLo, value);
  desk.journal?.seen(place.request, value);
}

/** A final answer for an origin; its host goes on. */
export function settleRobots(desk: Desk, place: Place, answer: Parameters<Desk["origins"]["store"]>[1]): void {
  const origin = originEntryOf(desk, place);
  desk.origins.store(origin, answer, desk.env.clock.now());
  desk.journal?.origin(origin);
  const host = desk.hosts.of(origin.host);
  host.blocked = false;
  desk.hosts.place(host);
}

export function originEntryOf(desk: Desk, place: Place): OriginEntry {
  const origin = place.request.rest?.robotsFor ?? originOf(place.request.url);
  return desk.origins.of(origin, place.request.host);
}

function recallRetries(desk: Desk): void {
  const now = desk.env.clock.now();
  for (let next = desk.delayed.first(); next !== null && next.dueAt <= now; next = desk.delayed.first()) {
    desk.delayed.remove(next);
    if (!isRobots(next.place)) desk.waitingRetries--;
    requeueFront(desk, next.place);
  }
}

/** One lease a turn: a host that had its turn goes behind the others that are due. */
function takeTurns(desk: Desk, max: number, newToken: NewToken): Lease[] {
  const now = desk.env.clock.now();
  const leases: Lease[] = [];
  while (leases.length < max && freePlaces(desk) > 0 && desk.nextRateAt <= now) {
    const host = desk.hosts.first();
    if (host === null || host.dueAt > now) break;
    if (!desk.hosts.passes(host)) continue;
    const lease = turn(desk, host, { now, newToken });
    if (lease === null) {
      host.gate?.undo();
      continue;
    }
    leases.push(lease);
    if (desk.config.ratePerMinute !== null) desk.nextRateAt = delayOfRate(desk.nextRateAt, now, desk.config.ratePerMinute);
  }
  return leases;
}

/** The host's next request, or null after the host was put where it belongs. */
function turn(desk: Desk, host: Host, at: Turn): Lease | null {
  const robots = host.robotsLane.pop();
  if (robots !== undefined) return lease(desk, host, robots, null, at);
  const lane = host.lanes[0];
  if (lane === undefined || !desk.levels.isOpen(lane.level)) {
    desk.hosts.place(host);
    return null;
  }
  const place = popLive(desk, host, lane);
  if (place === null) {
    desk.hosts.place(host);
    return null;
  }
  if (!desk.config.robots) return lease(desk, host, place, null, at);
  const origin = desk.origins.of(originOf(place.request.url), host.key);
  if (origin.state !== null && origin.expiresAt > at.now) return lease(desk, host, place, origin, at);
  desk.arena.pushFront(lane.size > 0 ? lane : desk.hosts.laneOf(host, lane.level, lane.priority), place);
  host.entries++;
  host.blocked = true;
  if (origin.pending) {
    desk.hosts.place(host);
    return null;
  }
  origin.pending = true;
  return lease(desk, host, { request: robotsRequest(origin), attempt: 0, crashes: 0, seq: UNNUMBERED }, null, at);
}

/** Pops entries until one is met that has not been lowered since. */
function popLive(desk: Desk, host: Host, lane: Lane): Place | null {
  let place: Place | null;
  while ((place = desk.arena.pop(lane, host.key)) !== null) {
    host.entries--;
    if (lane.size === 0) desk.hosts.dropLane(host, lane);
    if (!desk.levels.on || isDetached(place)) return place;
    const value = seenValue(desk, place);
    if (depthOf(value) === lane.level) return place;
    desk.journal?.gone(place.seq);
    if (lane.size === 0) return null;
  }
  return null;
}

/** The place with the history it has carried through the queue. */
function withHistory(desk: Desk, place: Place): Place {
  if (desk.carried.size === 0 || isRobots(place) || isDetached(place)) return place;
  const key = carriedKey(place.request);
  const carried = desk.carried.get(key);
  if (carried === undefined) return place;
  desk.carried.delete(key);
  return { request: place.request, attempt: carried.attempt, crashes: carried.crashes, seq: place.seq };
}

function lease(desk: Desk, host: Host, queued: Place, origin: OriginEntry | null, { now, newToken }: Turn): Lease {
  const { config } = desk;
  const place = withHistory(desk, queued);
  const { request } = place;
  const robots = isRobots(place);
  let handed = request;
  if (robots) desk.robotsLeased++;
  else {
    desk.queued--;
    desk.leased++;
    const value = seenValue(desk, place);
    const known = depthOf(value);
    if (known < request.depth && known < DEEPEST) handed = { ...request, depth: known };
    if (!isDetached(place)) markHeld(desk, place, value);
  }
  const entry: LeaseEntry = {
    token: newToken(),
    place: handed === request ? place : { ...place, request: isDetached(place) ? request : handed },
    host,
    epoch: host.pace.epoch,
    depth: handed.depth,
    expiresAt: now + config.leaseMs,
    startKnown: false,
    ended: false,
    before: null,
    after: null,
  };
  desk.leases.add(entry);
  host.inFlight++;
  host.leased++;
  host.awaiting++;
  desk.hosts.endTurn(host, now);
  return {
    request: handed,
    token: entry.token,
    attempt: place.attempt,
    crashes: place.crashes,
    startWithinMs: config.startWithinMs,
    expiresInMs: config.leaseMs,
    robots: origin?.state ?? null,
    cookies: desk.jars.size === 0 ? null : (desk.jars.get(siteOf(desk, host.key)) ?? null),
  };
}

/** What shares cookies with the host. */
export function siteOf(desk: Desk, host: string): string {
  const port = host.lastIndexOf(":");
  const name = port > 0 && !host.endsWith("]") ? host.slice(0, port) : host;
  return desk.env.siteOf?.(name) ?? name;
}

/** How long nothing can be had, and what it waits for first. */
function nothingDue(desk: Desk): Claim {
  const now = desk.env.clock.now();
  let at = Infinity;
  let cause: WaitCause | null = null;
  const sooner = (time: number, why: WaitCause): void => {
    if (time >= at) return;
    at = time;
    cause = why;
  };
  const host = desk.hosts.first();
  const limited = freePlaces(desk) <= 0;
  if (!limited && host !== null) {
    if (host.dueAt <= now || host.dueAt < desk.nextRateAt) sooner(desk.nextRateAt, "rate");
    else sooner(host.dueAt, host.why);
  }
  const retry = desk.delayed.first();
  if (!limited && retry !== null) sooner(retry.dueAt, "retry");
  const expiring = desk.leases.first();
  if (expiring !== null) sooner(expiring.expiresAt, idleCause(desk, limited, host));
  cause ??= idleCause(desk, limited, host);
  return { kind: "wait", waitMs: Math.max(0, at - now), cause };
}

/** What a claim waits for when no time is known at which something falls due. */
function idleCause(desk: Desk, limited: boolean, host: Host | null): WaitCause {
  if (limited) return "limit";
  if (host !== null) return host.why;
  if (desk.hosts.waiting > 0) return "level";
  return desk.leased + desk.robotsLeased > 0 ? "leased" : "seeds";
}
