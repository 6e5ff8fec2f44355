/** What a server was told lately that nobody else would tell it again, such as seeds: after an outage, in which it may have lost its last moments, it is told once more. */

export interface Told {
  /** `tell`: may be called twice, and later. */
  note(tell: () => Promise<void>): void;
  /** Tells everything again, in its order, if the connection is a new one. */
  again(): Promise<void>;
}

/** Redis writes its log to the disk each second, and may be two behind. */
const KEPT_MS = 10_000;

/** `connections`: counts them. */
export function createTold(connections: () => number): Told {
  let known = connections();
  let lately: { readonly at: number; readonly tell: () => Promise<void> }[] = [];
  return {
    note(tell) {
      lately.push({ at: performance.now(), tell });
    },
    async again() {
      if (lately.length === 0) {
        known = connections();
        return;
      }
      if (known === connections()) {
        // Only while the server is there is what it was told as good as on its disk.
        const from = performance.now() - KEPT_MS;
        if (lately[0] !== undefined && lately[0].at < from) lately = lately.filter(({ at }) => at >= from);
        return;
      }
      known = connections();
      for (const { tell } of lately) await tell();
    },
  };
}
