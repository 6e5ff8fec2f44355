/** Values that several parts of the page watch, and hooks around them. */
import { useEffect, useState } from "preact/hooks";

export interface Store<T> {
  get(): T;
  set(value: T): void;
  subscribe(listener: () => void): () => void;
}

export function createStore<T>(initial: T): Store<T> {
  let value = initial;
  const listeners = new Set<() => void>();
  return {
    get: () => value,
    set(next) {
      if (Object.is(next, value)) return;
      value = next;
      for (const listener of [...listeners]) listener();
    },
    subscribe(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
  };
}

export function useStore<T>(store: Store<T>): T {
  const [value, setValue] = useState(store.get());
  useEffect(() => {
    const update = () => setValue(() => store.get());
    update();
    return store.subscribe(update);
  }, [store]);
  return value;
}

/** What a screen reader says next; the region that holds it is in app.tsx. */
export const announcement = createStore("");
export const announce = (text: string): void => announcement.set(text);

/** Resolves after so long, or at once when the signal is aborted. */
export function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve();
    const done = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal.addEventListener("abort", done);
  });
}

/** Resolves once the page is looked at. */
function seen(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const check = () => {
      if (document.hidden && !signal.aborted) return;
      document.removeEventListener("visibilitychange", check);
      resolve();
    };
    document.addEventListener("visibilitychange", check);
    signal.addEventListener("abort", check, { once: true });
    check();
  });
}

const LONGEST_WAIT_MS = 15_000;
/** Longer after every failure in a row, with some chance so that pages do not all come at once. */
export const waitAfter = (failures: number): number => Math.min(LONGEST_WAIT_MS, 1_000 * 2 ** Math.min(failures - 1, 6)) * (0.75 + Math.random() / 2);

export interface Polled<T> {
  readonly value: T | null;
  readonly problem: string | null;
  reload(): void;
}

/**
 * Loads again and again while the page is looked at, anew when `key` changes; `everyMs` null: once. A function of what came must be the same at every rendering.
 * Where `load` gives the same value again nothing is drawn, and the next look is a little later each time.
 */
export function usePoll<T>(key: string, everyMs: number | null | ((value: T) => number), load: (signal: AbortSignal) => Promise<T>): Polled<T> {
  const [state, setState] = useState<{ key: string; value: T | null; problem: string | null }>({ key, value: null, problem: null });
  const [round, setRound] = useState(0);
  useEffect(() => {
    const end = new AbortController();
    const { signal } = end;
    let last: { readonly value: T } | null = null;
    const run = async () => {
      for (let failures = 0, waitMs = 0; !signal.aborted; ) {
        try {
          const value = await load(signal);
          if (signal.aborted) return;
          const usualMs = typeof everyMs === "function" ? everyMs(value) : (everyMs ?? 0);
          const same = failures === 0 && last !== null && last.value === value;
          waitMs = same ? Math.min(Math.max(usualMs, LONGEST_WAIT_MS), waitMs * 1.5) : usualMs;
          failures = 0;
          last = { value };
          if (!same) setState({ key, value, problem: null });
        } catch (error) {
          if (signal.aborted) return;
          failures++;
          // That nobody answers stands in the banner already.
          const problem = error instanceof Error ? (error.name === "Unreachable" ? null : error.message) : String(error);
          setState((old) => ({ key, value: old.key === key ? old.value : null, problem }));
        }
        if (everyMs === null && failures === 0) return;
        await pause(failures > 0 ? waitAfter(failures) : waitMs, signal);
        await seen(signal);
      }
    };
    void run();
    return () => end.abort();
  }, [key, everyMs, round]);
  const current = state.key === key;
  return { value: current ? state.value : null, problem: current ? state.problem : null, reload: () => setRound((old) => old + 1) };
}
