/** Waits for whatever comes first: a word from outside, or a time. */
import type { Clock } from "../core/clock.ts";

export interface Waker {
  /** Ends the wait; without one, the next. */
  wake(): void;
  /** `wake` once what is ready now was handled: what else has come by then is seen together with it. */
  soon(): void;
  /** What came before this does not end the next wait. */
  forget(): void;
  /** Resolves at the next `wake` since `forget`, or after so many ms. */
  next(ms: number): Promise<void>;
}

export function createWaker(clock: Clock): Waker {
  let end: (() => void) | null = null;
  let woken = false;
  let asked = false;
  function wake(): void {
    woken = true;
    end?.();
  }
  return {
    wake,
    soon() {
      if (asked) return;
      asked = true;
      clock.soon(() => {
        asked = false;
        wake();
      });
    },
    forget() {
      woken = false;
    },
    next(ms) {
      if (woken) return Promise.resolve();
      return new Promise((resolve) => {
        const timer = ms === Infinity ? null : clock.after(ms, wake);
        end = () => {
          timer?.cancel();
          end = null;
          resolve();
        };
      });
    },
  };
}
