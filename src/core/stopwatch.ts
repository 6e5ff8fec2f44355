/** Time that counts only while something is worked on: held while it is paused. */
import type { Clock } from "./clock.ts";

export interface Stopwatch {
  /** Ms that have counted so far, those before it was made included. */
  ms(): number;
  /** Neither does anything twice. */
  hold(): void;
  go(): void;
}

/** Runs at once. */
export function createStopwatch(clock: Clock, beforeMs = 0): Stopwatch {
  let counted = beforeMs;
  /** Null: it is held. */
  let since: number | null = clock.now();
  return {
    ms: () => counted + (since === null ? 0 : clock.now() - since),
    hold() {
      if (since !== null) counted += clock.now() - since;
      since = null;
    },
    go() {
      since ??= clock.now();
    },
  };
}
