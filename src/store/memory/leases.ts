/** The leases that are out, in the order in which they expire. */
import type { Token } from "../../core/frontier.ts";
import { createTokenMap } from "../../rules/token-map.ts";
import type { Host } from "./hosts.ts";
import type { Place } from "./place.ts";

export interface LeaseEntry {
  readonly token: Token;
  readonly place: Place;
  readonly host: Host;
  /** Pace epoch of the host at the claim. */
  readonly epoch: number;
  /** Depth that was handed out. */
  readonly depth: number;
  expiresAt: number;
  /** The start is known, or known not to have happened. */
  startKnown: boolean;
  /** The host's slot was given back. */
  ended: boolean;
  before: LeaseEntry | null;
  after: LeaseEntry | null;
}

export interface Leases {
  readonly size: number;
  find(token: Token): LeaseEntry | undefined;
  /** Next to expire. */
  first(): LeaseEntry | null;
  add(entry: LeaseEntry): void;
  remove(entry: LeaseEntry): void;
  /** A new deadline, later than every other (all leases last equally long). */
  renew(entry: LeaseEntry, expiresAt: number): void;
  /** It has expired, before every other. */
  expire(entry: LeaseEntry): void;
  /** Next to expire first. */
  all(): LeaseEntry[];
  clear(): void;
}

/** A linked list beside the map: renewing is a move to the end. */
export function createLeases(): Leases {
  const byToken = createTokenMap<LeaseEntry>();
  let head: LeaseEntry | null = null;
  let tail: LeaseEntry | null = null;

  function link(entry: LeaseEntry): void {
    entry.before = tail;
    entry.after = null;
    if (tail === null) head = entry;
    else tail.after = entry;
    tail = entry;
  }

  function unlink(entry: LeaseEntry): void {
    if (entry.before === null) head = entry.after;
    else entry.before.after = entry.after;
    if (entry.after === null) tail = entry.before;
    else entry.after.before = entry.before;
    // What is gone points to nobody: else one that has grown old would keep all that came after it.
    entry.before = entry.after = null;
  }

  function all(): LeaseEntry[] {
    const entries: LeaseEntry[] = [];
    for (let entry = head; entry !== null; entry = entry.after) entries.push(entry);
    return entries;
  }

  return {
    get size() {
      return byToken.size;
    },
    find: (token) => byToken.get(token),
    first: () => head,
    add(entry) {
      byToken.set(entry.token, entry);
      link(entry);
    },
    remove(entry) {
      if (byToken.delete(entry.token)) unlink(entry);
    },
    renew(entry, expiresAt) {
      unlink(entry);
      entry.expiresAt = expiresAt;
      link(entry);
    },
    expire(entry) {
      unlink(entry);
      entry.expiresAt = -Infinity;
      entry.after = head;
      if (head === null) tail = entry;
      else head.before = entry;
      head = entry;
    },
    all,
    clear() {
      byToken.clear();
      head = tail = null;
    },
  };
}
