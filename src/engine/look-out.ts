/** Looks for what others have changed, now and then. */
import type { Clock } from "../core/clock.ts";

const EVERY_MS = 1_000;

/** The first look is in a second, each other one a second after the one before has ended; one that fails is followed by the next: a store that is away is the loop's affair. */
export function lookOut(clock: Clock, look: () => Promise<void>): { cancel(): void } {
  let timer: { cancel(): void } | null = null;
  let over = false;
  function arm(): void {
    if (over) return;
    timer = clock.after(
      EVERY_MS,
      () =>
        void look()
          .catch(() => undefined)
          .then(arm),
    );
  }
  arm();
  return {
    cancel() {
      over = true;
      timer?.cancel();
    },
  };
}
