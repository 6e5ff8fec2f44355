/** How long a crawl has been worked on, and when that reaches its limit of time, also while nothing settles: what a pause takes is part of neither. */
import type { Clock, Timer } from "../core/clock.ts";
import { createStopwatch } from "../core/stopwatch.ts";

export interface WorkTime {
  /** Over all resumes of the run. */
  elapsedMs(): number;
  /** The limit is looked after from now on. `beforeMs`: what the run was worked on before this process. */
  start(beforeMs: number): void;
  hold(): void;
  go(): void;
  /** Nothing counts any more. */
  end(): void;
}

/** `onLimit` is called once at most for each time that it goes on. */
export function createWorkTime(clock: Clock, limitMs: number | null, onLimit: () => void): WorkTime {
  const worked = createStopwatch(clock);
  let before = 0;
  let timer: Timer | null = null;
  let state: "opening" | "runs" | "held" | "over" = "opening";
  const elapsedMs = (): number => before + worked.ms();

  function arm(): void {
    timer?.cancel();
    timer = state === "runs" && limitMs !== null ? clock.after(Math.max(0, limitMs - elapsedMs()), onLimit) : null;
  }

  return {
    elapsedMs,
    start(beforeMs) {
      before = beforeMs;
      if (state === "opening") state = "runs";
      arm();
    },
    hold() {
      if (state === "over") return;
      state = "held";
      worked.hold();
      arm();
    },
    go() {
      if (state !== "held") return;
      state = "runs";
      worked.go();
      arm();
    },
    end() {
      state = "over";
      worked.hold();
      arm();
    },
  };
}
