/** The two-level window: what is live at each level, and which levels may run (design: depth). Without levels everything is level 0 and open. */

export interface Levels {
  readonly on: boolean;
  /** The lowest level that still has something queued, delayed or leased. */
  readonly base: number;
  isOpen(level: number): boolean;
  add(level: number): void;
  drop(level: number): void;
}

/** `opened` is called after the window moved up. */
export function createLevels(on: boolean, opened: () => void): Levels {
  const live: number[] = [];
  let base = 0;

  /** Moves the window up to the lowest level that has something; when none has, it stays, so that `level` shows the last one. */
  function rise(): void {
    let next = base;
    while (next < live.length && live[next] === 0) next++;
    if (next === live.length || next === base) return;
    base = next;
    opened();
  }

  return {
    on,
    get base() {
      return base;
    },
    isOpen: (level) => level <= base + 1,
    add(level) {
      if (!on) return;
      while (live.length <= level) live.push(0);
      live[level]!++;
      if (level < base) base = level;
      else rise();
    },
    drop(level) {
      if (!on) return;
      live[level]!--;
      rise();
    },
  };
}
