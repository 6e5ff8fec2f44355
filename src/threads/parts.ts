/** What part of a crawl each of its threads has, and what they come to together. */
import { availableParallelism } from "node:os";
import type { CrawlSpec } from "../core/spec.ts";
import type { LoopView } from "../engine/run.ts";
import type { Batch } from "./messages.ts";
import type { Seat } from "./seat.ts";

/** What a thread is to do: the same crawl, without what is written, and with its part of the parse workers. */
export function specOf(spec: CrawlSpec, threads: number): CrawlSpec {
  const module = spec.scraper !== null;
  const workers = spec.parseWorkers ?? (module ? availableParallelism() - 1 : 0);
  return {
    ...spec,
    seeds: [],
    stateDir: null,
    outputs: [],
    pagesFile: null,
    skippedFile: null,
    changesFile: null,
    cookies: null,
    // Asked where all that is found comes together (links.ts).
    traps: { all: null },
    parseWorkers: workers === 0 && !(module && spec.parseWorkers === null) ? 0 : Math.max(1, Math.ceil(workers / threads)),
  };
}

export function viewOf(seats: readonly Seat[], requestsBefore: number, waitingFor: LoopView["waitingFor"]): LoopView {
  const views = seats.map(({ view }) => view);
  const sum = (of: (view: Batch["view"]) => number): number => views.reduce((total, view) => total + of(view), 0);
  const scraping = views.some((view) => view.scraping !== null)
    ? {
        workers: sum((view) => view.scraping?.workers ?? 0),
        busy: sum((view) => view.scraping?.busy ?? 0),
        waiting: sum((view) => view.scraping?.waiting ?? 0),
        waitingBytes: sum((view) => view.scraping?.waitingBytes ?? 0),
        cpuShare: sum((view) => view.scraping?.cpuShare ?? 0) / Math.max(1, views.length),
      }
    : null;
  const cpuShare = Math.max(0, ...seats.filter(({ ready, gone }) => ready && !gone).map((seat) => seat.cpuShare()));
  return { inFlight: sum((view) => view.inFlight), requests: requestsBefore + sum((view) => view.requests), waitingFor, scraping, cpuShare };
}
