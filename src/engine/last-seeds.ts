/** A stop of mode queue while seeds are still read: those that were given are queued first, then the store is told to take no new links. Until then none is taken here. */
import type { Frontier } from "../core/frontier.ts";
import type { CrawlRequest } from "../core/request.ts";
import type { Gate } from "../core/sink.ts";

export interface LastSeeds {
  /** Such a stop was asked for, and the store has not been told: seeds are missing. */
  readonly waits: boolean;
  /** They are in. */
  set(): void;
  /** Closed meanwhile: what is asked for before the crawl has begun finds no page whose links could be taken. Its caller wakes the loop. */
  gate(gate: Gate): Gate;
  frontier(frontier: Frontier): Frontier;
}

export function createLastSeeds(asked: () => boolean): LastSeeds {
  let seedsAreIn = false;
  const waits = (): boolean => !seedsAreIn && asked();
  // As the stores do once they are told.
  const taken = (links: readonly CrawlRequest[]): readonly CrawlRequest[] =>
    waits() ? links.filter(({ hop }) => hop === "redirect" || hop === "seed") : links;
  return {
    get waits() {
      return waits();
    },
    set() {
      seedsAreIn = true;
    },
    gate: (gate) => ({
      open: () => !waits() && gate.open(),
      onOpen(callback) {
        if (!waits()) gate.onOpen(callback);
      },
    }),
    frontier: (frontier) => ({ ...frontier, settle: (pages, links) => frontier.settle(pages, taken(links)) }),
  };
}
