/**
 * Renews what a loop holds, once a second at most, and passes on what the store says: lost leases and the control state. A store that does not answer for as
 * long as a lease lasts, or a process that was stopped for so long, has lost them all: others may be at these pages already.
 */
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
  let doubt: Timer | null = null;
  let stopped = false;
  let last: Control = "run";

  /** Held for sure until so long after `since`, the moment at which the last renewal that was answered had been sent. */
  function sure(since: number, forMs: number): void {
    doubt?.cancel();
    doubt = clock.after(Math.max(0, since + forMs - clock.now()), () => {
      loop.lost(loop.held());
      sure(clock.now(), forMs);
    });
  }

  async function renew(expiresInMs: number): Promise<void> {
    const since = clock.now();
    const { lost, control } = await frontier.renew(loop.held());
    if (stopped) return;
    sure(since, expiresInMs);
    if (lost.length > 0) loop.lost(lost);
    if (control !== last) loop.control(control);
    last = control;
  }

  function arm(everyMs: number, expiresInMs: number): void {
    timer = clock.after(everyMs, () => {
      renew(expiresInMs).then(() => {
        if (!stopped) arm(everyMs, expiresInMs);
      }, loop.fail);
    });
  }

  return {
    start(expiresInMs) {
      if (timer !== null || stopped || expiresInMs === Infinity) return;
      sure(clock.now(), expiresInMs);
      arm(Math.min(1_000, expiresInMs / 3), expiresInMs);
    },
    stop() {
      stopped = true;
      timer?.cancel();
      doubt?.cancel();
    },
  };
}
