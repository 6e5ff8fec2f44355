/** Renews what a loop holds, once a second at most, and passes on what the store says: lost leases and the control state. */
import type { Clock, Timer } from "../core/clock.ts";
import type { Control, Frontier, Token } from "../core/frontier.ts";

export interface Renewal {
  /** Starts renewing, if leases expire at all. Idempotent. */
  start(expiresInMs: number): void;
  stop(): void;
}

export function createRenewal(
  frontier: Frontier,
  clock: Clock,
  loop: { held: () => readonly Token[]; lost: (tokens: readonly Token[]) => void; control: (control: Control) => void; fail: (error: unknown) => void },
): Renewal {
  let timer: Timer | null = null;
  let stopped = false;
  let last: Control = "run";

  async function renew(): Promise<void> {
    const { lost, control } = await frontier.renew(loop.held());
    if (stopped) return;
    if (lost.length > 0) loop.lost(lost);
    if (control !== last) loop.control(control);
    last = control;
  }

  function arm(everyMs: number): void {
    timer = clock.after(everyMs, () => {
      renew().then(() => {
        if (!stopped) arm(everyMs);
      }, loop.fail);
    });
  }

  return {
    start(expiresInMs) {
      if (timer !== null || stopped || expiresInMs === Infinity) return;
      arm(Math.min(1_000, expiresInMs / 3));
    },
    stop() {
      stopped = true;
      timer?.cancel();
    },
  };
}
