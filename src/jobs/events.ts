/** What happens in a job, for those who watch it: a ring of the newest events, read at each watcher's own pace. Nothing is kept for a watcher. */

import type { FinishReason } from "../core/events.ts";
import type { JobCounts, JobEvent, JobState } from "../core/jobs.ts";

/** What is told of an event before it has its number. */
export type Happening =
  | { readonly kind: "state"; readonly state: JobState; readonly finishReason: FinishReason | null }
  | { readonly kind: "counts"; readonly counts: JobCounts }
  | { readonly kind: "page"; readonly page: Readonly<Record<string, unknown>> };

export interface EventHub {
  emit(happening: Happening): void;
  /** No more will come. */
  end(): void;
  /** From after the event `after` where it is still known; else `now` tells first how the job stands: something at least. */
  watch(after: string | null, signal: AbortSignal, now: () => readonly Happening[] | Promise<readonly Happening[]>): AsyncGenerator<JobEvent>;
}

const KEPT = 1_000;

const idOf = (event: JobEvent): number => Number(event.id);

/** `nextId` gives ascending numbers. */
export function createEventHub(nextId: () => number): EventHub {
  let ring: JobEvent[] = [];
  /** Up to this number nothing is kept any more, or was before this process began. */
  let gone = nextId();
  let over = false;
  const waiting = new Set<() => void>();

  function wakeAll(): void {
    for (const wake of [...waiting]) wake();
  }

  /** Index in the ring of the first event after `id`. */
  function indexAfter(id: number): number {
    let low = 0;
    let high = ring.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (idOf(ring[middle]!) <= id) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  function somethingNew(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const wake = (): void => {
        waiting.delete(wake);
        signal.removeEventListener("abort", wake);
        resolve();
      };
      waiting.add(wake);
      signal.addEventListener("abort", wake, { once: true });
    });
  }

  const numbered = (happening: Happening): JobEvent => ({ id: String(nextId()), ...happening });

  async function* watch(after: string | null, signal: AbortSignal, now: () => readonly Happening[] | Promise<readonly Happening[]>): AsyncGenerator<JobEvent> {
    let at = after !== null && /^\d{1,15}$/.test(after) ? Number(after) : -1;
    // One that was never given out says nothing.
    if (at > nextId()) at = -1;
    while (!signal.aborted) {
      // New, or too slow: what matters is how it stands now.
      if (at < gone) {
        for (const event of (await now()).map(numbered)) {
          at = Math.max(at, idOf(event));
          yield event;
          if (signal.aborted) return;
        }
        continue;
      }
      const event = ring[indexAfter(at)];
      if (event !== undefined) {
        at = idOf(event);
        yield event;
      } else if (over) return;
      else await somethingNew(signal);
    }
  }

  return {
    emit(happening) {
      if (over) return;
      ring.push(numbered(happening));
      if (ring.length >= KEPT * 2) {
        gone = idOf(ring[KEPT - 1]!);
        ring = ring.slice(KEPT);
      }
      wakeAll();
    },
    end() {
      over = true;
      wakeAll();
    },
    watch,
  };
}
