/** Seeds that are added while a crawl runs: meanwhile it cannot drain. Those it starts with: feed.ts. */
import type { Frontier } from "../core/frontier.ts";
import { BATCH, createSeedTaker, type SeedLines } from "./feed.ts";
import type { Parts } from "./parts.ts";

export interface AddedSeeds {
  readonly added: number;
  /** Had been added or found before. */
  readonly known: number;
  /** No URLs. */
  readonly bad: number;
}

export interface Adder {
  /** The seeds that the crawl began with are in. */
  fed(to: Frontier): Promise<void>;
  /** Null: the crawl is over or stops; what was added by then stays. */
  add(to: Frontier, lines: SeedLines): Promise<AddedSeeds | null>;
}

/** `over`: the crawl stops or has ended; `closed`: its store takes nothing any more. */
export function createAdder(input: { readonly parts: Parts; readonly over: () => boolean; readonly closed: () => boolean; readonly wake: () => void }): Adder {
  const { parts, over, closed, wake } = input;
  let fed = false;
  let adding = 0;

  async function completeIfLast(to: Frontier): Promise<void> {
    if (!fed || adding > 0) return;
    await to.seedsComplete();
    wake();
  }

  async function addAll(to: Frontier, lines: SeedLines): Promise<AddedSeeds | null> {
    const taker = createSeedTaker(parts);
    let added = 0;
    let known = 0;
    async function flush(): Promise<boolean> {
      if (over()) return false;
      if (taker.batch.length === 0) return true;
      const counts = await taker.add(to);
      added += counts.added;
      known += counts.known;
      wake();
      await new Promise<void>((resolve) => parts.clock.soon(resolve));
      return !over();
    }
    for await (const line of lines) {
      taker.take(line);
      if (taker.batch.length >= BATCH && !(await flush())) return null;
    }
    return (await flush()) ? { added, known, bad: taker.bad } : null;
  }

  return {
    async fed(to) {
      fed = true;
      await completeIfLast(to);
    },
    async add(to, lines) {
      adding++;
      try {
        if (fed) await to.seedsComplete(false);
        return (await to.counts()).completed ? null : await addAll(to, lines);
      } catch (error) {
        // It ended in between and its store was closed.
        if (over()) return null;
        throw error;
      } finally {
        adding--;
        // A store that failed or was closed has told its crawl.
        if (!closed()) await completeIfLast(to).catch(() => undefined);
      }
    },
  };
}
