/** A slow, obvious frontier: plain lists and no clever queue, against which random steps on a real one are judged. Says what a claim may give, not which host goes first. */
import assert from "node:assert/strict";
import type { FrontierConfig, FrontierCounts, Lease, Token } from "../core/frontier.ts";
import { MAX_CRASHES } from "../core/frontier.ts";
import type { CrawlRequest } from "../core/request.ts";

type State = "queued" | "delayed" | "leased" | "done" | "dropped";

interface ModelPlace {
  url: string;
  host: string;
  state: State;
  depth: number;
  priority: number;
  /** Back at the front: before everything of its level and priority that is not. */
  front: boolean;
  arrival: number;
  attempt: number;
  crashes: number;
  dueAt: number;
  /** Fetched again for its links only. */
  relink: boolean;
}

interface ModelLease {
  token: Token;
  place: ModelPlace;
  depth: number;
  expiresAt: number;
  startKnown: boolean;
  ended: boolean;
}

export interface FrontierModel {
  add(requests: readonly CrawlRequest[]): { added: number; known: number; lowered: number };
  seedsComplete(): void;
  /** Lost leases and due retries come back; to be called before every claim. */
  beforeClaim(): void;
  /** Fails unless this lease may be given now, then gives it. */
  take(lease: Lease): void;
  /** Whether anything at all may be given now. */
  mayGive(): boolean;
  /** Clock time of the next moment at which something may change by itself. */
  nextAt(): number;
  started(token: Token, sinceMs: number): void;
  ended(token: Token): void;
  renew(tokens: readonly Token[]): Token[];
  settle(
    token: Token,
    how: { kind: "done"; counted: boolean } | { kind: "retry"; afterMs: number } | { kind: "dropped" } | { kind: "returned" },
    sinceMs: number | null,
  ): boolean;
  /** The process ended and the state was opened again. `lost`: URLs whose leases count as lost to a crash; other leases were handed back. */
  restarted(lost: ReadonlySet<string>): void;
  readonly completed: boolean;
  /** Fails unless the counts agree. */
  compare(counts: FrontierCounts): void;
  readonly held: readonly { readonly token: Token; readonly depth: number }[];
}

/** `now` is the clock that the frontier under test reads. The model knows fixed delays, slots, levels, limits and lost leases; not robots, auto pacing and rate. */
export function createFrontierModel(config: FrontierConfig, now: () => number): FrontierModel {
  const places = new Map<string, ModelPlace>();
  const hosts = new Map<string, { inFlight: number; awaiting: number; lastStart: number }>();
  let leases: ModelLease[] = [];
  let arrivals = 0;
  let seedsComplete = false;
  let completed = false;
  let counted = 0;
  /** Every host may have been asked until then. */
  let restFrom = -Infinity;
  const delayMs = config.perHostDelayMs === "auto" ? 0 : config.perHostDelayMs;

  const all = (state: State): ModelPlace[] => [...places.values()].filter((place) => place.state === state);
  const hostOf = (name: string) => {
    const known = hosts.get(name) ?? { inFlight: 0, awaiting: 0, lastStart: restFrom };
    hosts.set(name, known);
    return known;
  };
  const base = (): number => Math.min(...[...all("queued"), ...all("delayed"), ...all("leased")].map((place) => place.depth));
  const free = (): number => (config.limitPages === null ? Infinity : config.limitPages - counted - leases.length);
  const open = (place: ModelPlace): boolean => !config.levels || place.depth <= base() + 1;

  function dueAt(name: string): number {
    const host = hostOf(name);
    if (host.inFlight >= config.perHostConcurrency || (delayMs > 0 && host.awaiting > 0)) return Infinity;
    return host.lastStart + delayMs;
  }

  /** Those of a host's queued requests that may come next. */
  function next(name: string): ModelPlace[] {
    const queue = all("queued").filter((place) => place.host === name && open(place));
    const order = (a: ModelPlace, b: ModelPlace): number =>
      (config.levels ? a.depth - b.depth : 0) || b.priority - a.priority || Number(b.front) - Number(a.front);
    queue.sort((a, b) => order(a, b) || (config.order === "bfs" ? a.arrival - b.arrival : b.arrival - a.arrival));
    const first = queue[0];
    if (first === undefined) return [];
    return first.front ? queue.filter((place) => order(place, first) === 0) : [first];
  }

  function backToFront(place: ModelPlace): void {
    place.state = "queued";
    place.front = true;
  }

  function end(lease: ModelLease): void {
    leases = leases.filter((other) => other !== lease);
    const host = hostOf(lease.place.host);
    if (!lease.ended) host.inFlight--;
    if (!lease.startKnown) host.awaiting--;
  }

  function completeIfOver(): void {
    if (leases.length > 0) return;
    const empty = all("queued").length + all("delayed").length === 0;
    if ((config.limitPages !== null && counted >= config.limitPages) || (seedsComplete && empty)) completed = true;
  }

  function addOne(request: CrawlRequest): "added" | "known" | "lowered" {
    const place = places.get(request.url);
    if (place === undefined) {
      const { url, host, depth, priority } = request;
      const fresh = {
        url,
        host,
        depth,
        priority,
        state: "queued" as const,
        front: false,
        arrival: arrivals++,
        attempt: 0,
        crashes: 0,
        dueAt: 0,
        relink: false,
      };
      places.set(url, fresh);
      return "added";
    }
    if (request.depth >= place.depth) return "known";
    place.depth = request.depth;
    if (!config.levels || place.state === "dropped" || place.state === "leased" || place.state === "delayed") return "lowered";
    // Queued or done: it stands at its true level now, behind what was there.
    if (place.state === "done") Object.assign(place, { state: "queued", relink: true, attempt: 0, crashes: 0 });
    Object.assign(place, { front: false, arrival: arrivals++, priority: request.priority });
    return "lowered";
  }

  return {
    get completed() {
      return completed;
    },
    get held() {
      return leases;
    },
    add(requests) {
      const counts = { added: 0, known: 0, lowered: 0 };
      for (const request of requests) {
        const what = completed ? "known" : addOne(request);
        if (what === "added") counts.added++;
        else counts.known++;
        if (what === "lowered") counts.lowered++;
      }
      return counts;
    },
    seedsComplete() {
      seedsComplete = true;
      completeIfOver();
    },
    beforeClaim() {
      if (completed) return;
      for (const lease of leases.filter((one) => one.expiresAt <= now())) {
        end(lease);
        lease.place.crashes++;
        if (lease.place.crashes >= MAX_CRASHES) lease.place.state = "dropped";
        else backToFront(lease.place);
      }
      for (const place of all("delayed")) if (place.dueAt <= now()) backToFront(place);
      completeIfOver();
    },
    restarted(lost) {
      for (const { place } of leases) {
        place.state = "queued";
        if (lost.has(place.url)) place.crashes++;
        if (place.crashes >= MAX_CRASHES) place.state = "dropped";
      }
      leases = [];
      hosts.clear();
      restFrom = now();
      for (const place of places.values()) {
        // A store keeps arrival, and that something was tried before; not that it was merely handed back.
        place.front = place.attempt > 0 || place.crashes > 0;
        place.dueAt = Math.ceil(place.dueAt);
        if (place.state === "delayed" && place.dueAt <= now()) place.state = "queued";
      }
      completed = false;
      completeIfOver();
    },
    mayGive: () =>
      !completed &&
      free() > 0 &&
      [...hosts.keys(), ...new Set(all("queued").map((place) => place.host))].some((name) => dueAt(name) <= now() && next(name).length > 0),
    take(lease) {
      const { request } = lease;
      const place = next(request.host).find((one) => one.url === request.url);
      assert.ok(place !== undefined, `${request.url} is not what ${request.host} has next: ${next(request.host).map((one) => one.url)}`);
      assert.ok(dueAt(request.host) <= now(), `${request.host} is not due`);
      assert.ok(free() > 0, "the limit has no place left");
      assert.deepEqual(
        [request.depth, lease.attempt, lease.crashes],
        [place.depth, place.attempt, place.crashes],
        `depth, attempt and crashes of ${request.url}`,
      );
      place.state = "leased";
      const host = hostOf(request.host);
      host.inFlight++;
      host.awaiting++;
      leases.push({ token: lease.token, place, depth: request.depth, expiresAt: now() + config.leaseMs, startKnown: false, ended: false });
    },
    nextAt() {
      const times = [...leases.map((lease) => lease.expiresAt)];
      if (free() > 0) {
        times.push(...all("delayed").map((place) => place.dueAt));
        for (const name of new Set(all("queued").map((place) => place.host))) if (next(name).length > 0) times.push(dueAt(name));
      }
      return Math.min(...times);
    },
    started(token, sinceMs) {
      const lease = leases.find((one) => one.token === token);
      if (lease === undefined || lease.startKnown) return;
      lease.startKnown = true;
      const host = hostOf(lease.place.host);
      host.awaiting--;
      host.lastStart = Math.max(host.lastStart, now() - sinceMs);
    },
    ended(token) {
      const lease = leases.find((one) => one.token === token);
      if (lease === undefined || lease.ended) return;
      lease.ended = true;
      hostOf(lease.place.host).inFlight--;
    },
    renew(tokens) {
      const lost: Token[] = [];
      for (const token of tokens) {
        const lease = leases.find((one) => one.token === token);
        if (lease === undefined) lost.push(token);
        else {
          lease.expiresAt = now() + config.leaseMs;
          leases = [...leases.filter((one) => one !== lease), lease];
        }
      }
      return lost;
    },
    settle(token, how, sinceMs) {
      const lease = leases.find((one) => one.token === token);
      if (lease === undefined) return false;
      if (sinceMs !== null) this.started(token, sinceMs);
      end(lease);
      const { place } = lease;
      if (how.kind === "done") {
        if (how.counted && !place.relink) counted++;
        // Lowered while it was leased: its links are wanted one level lower.
        if (config.levels && place.depth < lease.depth) {
          backToFront(place);
          // Kept as a new arrival, which shows once a restart has forgotten that it was in front.
          Object.assign(place, { relink: true, attempt: 0, crashes: 0, arrival: arrivals++ });
        } else place.state = "done";
      } else if (how.kind === "dropped") place.state = "dropped";
      else if (how.kind === "returned") backToFront(place);
      else {
        place.attempt++;
        place.state = "delayed";
        place.dueAt = now() + how.afterMs;
      }
      completeIfOver();
      return true;
    },
    compare(counts) {
      const mine = {
        queued: all("queued").length,
        delayed: all("delayed").length,
        leased: leases.length,
        done: all("done").length,
        dropped: all("dropped").length,
        seen: places.size,
        counted,
        completed,
      };
      const theirs = Object.fromEntries(Object.keys(mine).map((name) => [name, counts[name as keyof FrontierCounts]])); // the names are those of `mine`
      assert.deepEqual(theirs, mine);
    },
  };
}
