/** One real timer for the deadlines of all exchanges. It ticks while something is watched and stops by itself; undici's own timers stay off. */
import type { Clock, Timer } from "../core/clock.ts";

/** What is watched. `place` belongs to the sweep: its index, −1 when it is not watched. */
export interface Watched {
  place: number;
}

export interface Sweep<T extends Watched> {
  watch(item: T): void;
  /** Unknown items: nothing. */
  unwatch(item: T): void;
  /** What is watched now, in no order. */
  items(): readonly T[];
}

/**
 * Calls `visit(item, now)` for every watched item each `tickMs`. A sweep costs one comparison per exchange in flight and tick, and nothing per byte or event,
 * which is less than keeping three timers an exchange in order. `visit` may unwatch the item it was given, and others.
 */
export function createSweep<T extends Watched>(clock: Clock, tickMs: number, visit: (item: T, now: number) => void): Sweep<T> {
  const items: T[] = [];
  let timer: Timer | null = null;
  const tick = () => {
    timer = null;
    const now = clock.now();
    for (let i = items.length - 1; i >= 0; i--) {
      const item = items[i];
      if (item) visit(item, now);
    }
    if (items.length > 0) timer ??= clock.after(tickMs, tick);
  };
  return {
    watch(item) {
      if (item.place >= 0) return;
      item.place = items.length;
      items.push(item);
      timer ??= clock.after(tickMs, tick);
    },
    unwatch(item) {
      if (item.place < 0) return;
      const last = items.pop();
      if (last && last !== item) {
        items[item.place] = last;
        last.place = item.place;
      }
      item.place = -1;
      if (items.length === 0) stop();
    },
    items: () => items,
  };

  function stop(): void {
    timer?.cancel();
    timer = null;
  }
}
