/** A worker's part in a crawl that others created: the loop alone, without seeds, outputs and an end of its own. */
import type { StopMode } from "../core/events.ts";
import { RUN_STOP, type StopAsked } from "../rules/values.ts";
import type { Parts } from "./parts.ts";
import { CONTROL, startLoop } from "./run.ts";
import { createValues } from "./values.ts";

export interface WorkerRun {
  /** Resolves when the crawl is over, or the worker has left. Rejects when we fail. */
  readonly done: Promise<void>;
  /** Claims no more; what is in flight is finished and settled. */
  leave(): void;
  view(): { readonly inFlight: number; readonly requests: number };
}

const WATCH_MS = 1_000;

/** `concurrency` is asked before every claim: several crawls share a worker. */
export async function startWorker(parts: Parts, options: { readonly concurrency: () => number; readonly once: boolean }): Promise<WorkerRun> {
  const scraping = (await parts.openScraping?.()) ?? null;
  const fetcher = await parts.openFetcher();
  const { frontier } = await parts.openStore({ write: () => undefined, crashed: crashedHere }, () => undefined);
  const values = createValues(await frontier.values(), scraping);
  const stop = async (mode: StopMode): Promise<void> => {
    await frontier.control(CONTROL[mode]);
    loop.wake();
  };
  const loop = startLoop({
    parts,
    frontier,
    fetcher,
    scraping,
    values,
    book: null,
    gate: { open: () => true, onOpen: () => undefined },
    concurrency: options.concurrency,
    once: options.once,
    afterSettle: () => null,
    onLimit: async () => undefined,
    async onValues(changes) {
      values.apply(changes);
      const asked = changes.findLast(({ key }) => key === RUN_STOP)?.value ?? null;
      if (asked !== null) await stop((JSON.parse(asked) as StopAsked).mode); // written by engine/scrape.ts
    },
  });

  let timer: { cancel(): void } | null = null;
  let over = false;
  function watch(): void {
    if (over || scraping === null) return;
    // A store that is away is the loop's affair.
    const look = () =>
      frontier
        .values()
        .then(values.refresh)
        .catch(() => undefined)
        .then(watch);
    timer = parts.clock.after(WATCH_MS, () => void look());
  }
  watch();

  async function run(): Promise<void> {
    try {
      await loop.done;
    } finally {
      over = true;
      timer?.cancel();
      await scraping?.[Symbol.asyncDispose]();
      await Promise.allSettled([fetcher[Symbol.asyncDispose](), frontier[Symbol.asyncDispose]()]);
    }
  }
  return { done: run(), leave: loop.leave, view: loop.view };
}

/** Records of crashed pages are made by whoever writes the outputs. */
function crashedHere(): never {
  throw new Error("a worker writes no records");
}
