/** Time as a value that is passed in, so that tests own it. The only reader of real time in the project. */

/** Milliseconds since 1970-01-01T00:00:00Z. */
export type EpochMs = number;

/** A pending call; `cancel` after it ran does nothing. */
export interface Timer {
  cancel(): void;
}

export interface Clock {
  /** Monotonic milliseconds with an arbitrary origin. */
  now(): number;
  epoch(): EpochMs;
  /** Calls back once after at least `ms`. */
  after(ms: number, callback: () => void): Timer;
  /** Calls back once the loop has handled what is ready now. */
  soon(callback: () => void): void;
}

export const realClock: Clock = {
  now: () => performance.now(),
  epoch: () => Date.now(),
  after(ms, callback) {
    const handle = setTimeout(callback, Math.min(ms, 0x7fffffff));
    return { cancel: () => clearTimeout(handle) };
  },
  soon: (callback) => void setImmediate(callback),
};
