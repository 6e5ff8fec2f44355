/** The clocks of hosts that several crawls of one process share: of all that use a host the larger delay and the smaller concurrency hold. Queues and paces are each crawl's own. */
import type { Clock, Timer } from "../../core/clock.ts";
import type { WaitCause } from "../../core/frontier.ts";
import type { HostKey } from "../../core/request.ts";

export interface HostGate {
  join(): GateMember;
}

/** One crawl at the gate. */
export interface GateMember {
  /** `wake`: the turn that was waited for has come; ask again. */
  use(host: HostKey, wake: () => void): GateUse;
  /** Everything it has under way is over. */
  leave(): void;
}

/** A host as one crawl uses it. */
export interface GateUse {
  /**
   * Asks whether a request may start now, under this crawl's own rules. Null: yes; it is under way until `started` and `ended` were told.
   * Else what it waits for: `wake` is called when its turn comes.
   */
  ask(gapMs: number, slots: number, notBefore: number): WaitCause | null;
  /** What was granted is not used. */
  undo(): void;
  /** At this clock time, or never (null). */
  started(at: number | null): void;
  ended(): void;
  /** Nothing starts there before. */
  hold(until: number): void;
  /** The crawl has forgotten the host. */
  release(): void;
}

interface Entry {
  readonly host: HostKey;
  readonly users: Set<Use>;
  /** First come first; each has its turn, also when others ask in between. */
  readonly waiting: Use[];
  inFlight: number;
  /** Of these, starts not known yet. */
  awaiting: number;
  lastStart: number;
  notBefore: number;
  timer: Timer | null;
}

interface Use {
  entry: Entry;
  registered: boolean;
  readonly wake: () => void;
  gapMs: number;
  slots: number;
  inFlight: number;
  awaiting: number;
  waits: boolean;
  askedAt: number;
}

/** A crawl whose turn it is but does not come (paused, or all its requests are out elsewhere) holds up the others for so long. */
const GRACE_MS = 100;
/** The rules of a crawl that has not asked for a host for so long hold no more. */
const IDLE_MS = 60_000;
/** A host that nobody uses is remembered for so long: the next crawl may have a longer delay. */
const KEPT_MS = 300_000;
const LOOKED_AT = 2;
/** Adding a difference to a clock's time may fall short of what it is the difference to. */
const ROUNDING_MS = 1e-6;

export function createHostGate(clock: Clock): HostGate {
  const entries = new Map<HostKey, Entry>();
  let round = entries.values();

  /** Looks at some for each new one, so that the idle ones run out. */
  function forgetSome(): void {
    const now = clock.now();
    for (let n = 0; n < LOOKED_AT; n++) {
      const next = round.next();
      if (next.done) {
        round = entries.values();
        return;
      }
      const { users, inFlight, lastStart, notBefore, host } = next.value;
      if (users.size === 0 && inFlight === 0 && now > Math.max(lastStart + KEPT_MS, notBefore)) entries.delete(host);
    }
  }

  function entryOf(host: HostKey): Entry {
    const known = entries.get(host);
    if (known !== undefined) return known;
    forgetSome();
    const made: Entry = { host, users: new Set(), waiting: [], inFlight: 0, awaiting: 0, lastStart: -Infinity, notBefore: -Infinity, timer: null };
    entries.set(host, made);
    return made;
  }

  const isIdle = (use: Use, now: number): boolean => use.inFlight === 0 && !use.waits && now - use.askedAt > Math.max(IDLE_MS, use.gapMs * 2);

  /** When the next request may start, in ms of the clock; Infinity: once one that is out has started or ended. */
  function freeAt(entry: Entry, now: number): { readonly at: number; readonly cause: WaitCause } {
    let gapMs = 0;
    let slots = Infinity;
    for (const use of entry.users) {
      if (entry.users.size > 1 && isIdle(use, now)) {
        entry.users.delete(use);
        use.registered = false;
        continue;
      }
      if (use.gapMs > gapMs) gapMs = use.gapMs;
      if (use.slots < slots) slots = use.slots;
    }
    if (entry.inFlight >= slots) return { at: Infinity, cause: "host-slots" };
    if (gapMs > 0 && entry.awaiting > 0) return { at: Infinity, cause: "delay" };
    const at = Math.max(entry.lastStart + gapMs, entry.notBefore);
    return { at: at - now < ROUNDING_MS ? now : at, cause: "delay" };
  }

  function leaveQueue(entry: Entry, use: Use): void {
    if (!use.waits) return;
    use.waits = false;
    entry.waiting.splice(entry.waiting.indexOf(use), 1);
  }

  /** To be called after every change while somebody waits. */
  function arrange(entry: Entry): void {
    entry.timer?.cancel();
    entry.timer = null;
    const first = entry.waiting[0];
    if (first === undefined) return;
    const now = clock.now();
    const { at } = freeAt(entry, now);
    if (at === Infinity) return;
    if (at > now) {
      entry.timer = clock.after(at - now, () => arrange(entry));
      return;
    }
    entry.timer = clock.after(GRACE_MS, () => passOn(entry, first));
    first.wake();
  }

  /** The first did not come: it may ask again, behind the others. */
  function passOn(entry: Entry, first: Use): void {
    leaveQueue(entry, first);
    arrange(entry);
  }

  function ask(use: Use, gapMs: number, slots: number, notBefore: number): WaitCause | null {
    if (!use.registered) {
      use.entry = entryOf(use.entry.host);
      use.entry.users.add(use);
      use.registered = true;
    }
    const { entry } = use;
    const now = clock.now();
    use.gapMs = gapMs;
    use.slots = slots;
    use.askedAt = now;
    if (notBefore > entry.notBefore) entry.notBefore = notBefore;
    const { at, cause } = freeAt(entry, now);
    const first = entry.waiting[0];
    if (at <= now && (first === undefined || first === use)) {
      leaveQueue(entry, use);
      entry.inFlight++;
      entry.awaiting++;
      use.inFlight++;
      use.awaiting++;
      if (first !== undefined) arrange(entry);
      return null;
    }
    if (!use.waits) {
      use.waits = true;
      entry.waiting.push(use);
      // Whoever waited before has been arranged for already.
      if (entry.waiting.length === 1) arrange(entry);
    }
    // It came when it was called, and may not start after all: the rules, its own or another's, have become stricter since. It keeps its place, and is called again;
    // passed over it would wait for a call that never comes.
    else if (first === use) arrange(entry);
    return at <= now ? "host-slots" : cause;
  }

  function started(use: Use, at: number | null): void {
    const { entry } = use;
    if (use.awaiting === 0) return;
    use.awaiting--;
    entry.awaiting--;
    if (at !== null && at > entry.lastStart) entry.lastStart = at;
    if (entry.waiting.length > 0) arrange(entry);
  }

  function ended(use: Use): void {
    const { entry } = use;
    if (use.inFlight === 0) return;
    use.inFlight--;
    entry.inFlight--;
    if (entry.waiting.length > 0) arrange(entry);
  }

  function release(use: Use): void {
    const { entry } = use;
    entry.inFlight -= use.inFlight;
    entry.awaiting -= use.awaiting;
    use.inFlight = use.awaiting = 0;
    leaveQueue(entry, use);
    entry.users.delete(use);
    use.registered = false;
    if (entry.waiting.length > 0) arrange(entry);
  }

  return {
    join() {
      const uses = new Set<Use>();
      return {
        use(host, wake) {
          const entry = entryOf(host);
          const use: Use = { entry, registered: false, wake, gapMs: 0, slots: Infinity, inFlight: 0, awaiting: 0, waits: false, askedAt: -Infinity };
          uses.add(use);
          return {
            ask: (gapMs, slots, notBefore) => ask(use, gapMs, slots, notBefore),
            undo() {
              started(use, null);
              ended(use);
            },
            started: (at) => started(use, at),
            ended: () => ended(use),
            hold(until) {
              if (until <= use.entry.notBefore) return;
              use.entry.notBefore = until;
              if (use.entry.waiting.length > 0) arrange(use.entry);
            },
            release() {
              release(use);
              uses.delete(use);
            },
          };
        },
        leave() {
          for (const use of uses) release(use);
          uses.clear();
        },
      };
    },
  };
}
