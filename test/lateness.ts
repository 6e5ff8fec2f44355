/** How late this process comes to its work: by so much a gap between two arrivals may look shorter than it was where they were sent. For tests that judge gaps. */
import { monitorEventLoopDelay } from "node:perf_hooks";

export interface Lateness extends Disposable {
  /** What a gap may have lost since the watch began, ms: twice the longest that anything here has waited for its turn, and what timers are inexact by. */
  slackMs(): number;
}

const EVERY_MS = 5;
const INEXACT_MS = 20;

/** Begins to watch. */
export function lateness(): Lateness {
  const watch = monitorEventLoopDelay({ resolution: EVERY_MS });
  watch.enable();
  return {
    slackMs: () => INEXACT_MS + 2 * Math.max(0, watch.max / 1e6 - EVERY_MS),
    [Symbol.dispose]: () => void watch.disable(),
  };
}
