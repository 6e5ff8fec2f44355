/** A clock that only moves when it is told to, so that tests own time and whole crawls take milliseconds. */
import type { Clock, EpochMs, Timer } from "../core/clock.ts";

export interface TestClock extends Clock {
  /** Moves on by `ms` and runs the timers on the way, each at its own time and with everything it set off done. */
  advance(ms: number): Promise<void>;
  /**
   * Runs until the promise settles: whenever nothing is left to do at this moment, jumps to the next timer. Rejects when no timer is left, or
   * when more than `maxMs` of clock time have passed.
   */
  run<T>(until: Promise<T>, maxMs?: number): Promise<T>;
  /** Timers that wait. */
  readonly pending: number;
}

interface Entry {
  readonly at: number;
  readonly order: number;
  readonly callback: () => void;
  cancelled: boolean;
}

/** 2026-01-01T00:00:00Z. */
const START: EpochMs = 1_767_225_600_000;
/** Rounds of the event loop without a `soon` call after which the moment counts as done: promises are settled between two of them. */
const QUIET_ROUNDS = 2;
const PATIENCE_ROUNDS = 600;
const PATIENCE_MS = 5;

function before(a: Entry, b: Entry): boolean {
  return a.at < b.at || (a.at === b.at && a.order < b.order);
}

/** Timers in a binary heap; cancelled ones are dropped when they come up. */
function createTimers() {
  const heap: Entry[] = [];
  let live = 0;

  function siftDown(entry: Entry): void {
    let at = 0;
    for (;;) {
      let child = at * 2 + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && before(heap[child + 1]!, heap[child]!)) child++;
      if (!before(heap[child]!, entry)) break;
      heap[at] = heap[child]!;
      at = child;
    }
    heap[at] = entry;
  }

  function pop(): Entry | null {
    const first = heap[0];
    const last = heap.pop();
    if (first === undefined || last === undefined) return null;
    if (heap.length > 0) siftDown(last);
    return first;
  }

  return {
    get live() {
      return live;
    },
    add(entry: Entry): void {
      live++;
      let at = heap.push(entry) - 1;
      while (at > 0) {
        const parent = (at - 1) >> 1;
        if (!before(entry, heap[parent]!)) break;
        heap[at] = heap[parent]!;
        at = parent;
      }
      heap[at] = entry;
    },
    cancel(entry: Entry): void {
      if (entry.cancelled) return;
      entry.cancelled = true;
      live--;
    },
    /** Time of the next live timer. */
    next(): number | null {
      while (heap[0]?.cancelled === true) pop();
      return heap[0]?.at ?? null;
    },
    take(): Entry | null {
      const entry = pop();
      if (entry !== null) {
        entry.cancelled = true;
        live--;
      }
      return entry;
    },
  };
}

export function createTestClock(): TestClock {
  const timers = createTimers();
  let now = 0;
  let order = 0;
  /** `soon` calls that have not run. */
  let soon = 0;

  /** Resolves when promises and `soon` calls have run dry. */
  async function settle(): Promise<void> {
    for (let quiet = 0; quiet < QUIET_ROUNDS; ) {
      await new Promise<void>((resolve) => setImmediate(resolve));
      quiet = soon > 0 ? 0 : quiet + 1;
    }
  }

  /** With no timer left there may still be real work under way (a module being loaded): gives it a moment of real time. */
  async function patience(over: () => boolean): Promise<boolean> {
    for (let round = 0; round < PATIENCE_ROUNDS; round++) {
      if (over() || timers.next() !== null) return true;
      await new Promise<void>((resolve) => setTimeout(resolve, PATIENCE_MS));
      await settle();
    }
    return over() || timers.next() !== null;
  }

  /** Runs every timer of the next moment that has one. */
  function fire(at: number): void {
    now = Math.max(now, at);
    while (timers.next() === at) timers.take()?.callback();
  }

  return {
    now: () => now,
    epoch: () => START + now,
    get pending() {
      return timers.live;
    },
    after(ms, callback): Timer {
      const entry: Entry = { at: now + Math.max(0, ms), order: order++, callback, cancelled: false };
      timers.add(entry);
      return { cancel: () => timers.cancel(entry) };
    },
    soon(callback) {
      soon++;
      setImmediate(() => {
        soon--;
        callback();
      });
    },
    async advance(ms) {
      const end = now + ms;
      await settle();
      for (let at = timers.next(); at !== null && at <= end; at = timers.next()) {
        fire(at);
        await settle();
      }
      now = end;
    },
    async run(until, maxMs = Infinity) {
      const outcome: { over: boolean } = { over: false };
      const end = now + maxMs;
      const mark = (): void => {
        outcome.over = true;
      };
      until.then(mark, mark);
      await settle();
      while (!outcome.over) {
        const at = timers.next();
        if (at === null && (await patience(() => outcome.over))) continue;
        if (at === null) throw new Error(`nothing is left to wait for at ${now} ms, and the promise has not settled`);
        if (at > end) throw new Error(`the promise has not settled within ${maxMs} ms`);
        fire(at);
        await settle();
      }
      return until;
    },
  };
}

/** Chance that repeats itself: mulberry32. 0 ≤ x < 1. */
export function seededRandom(seed: number): () => number {
  let state = seed | 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
