/** A worker's part in a crawl that others created: the loop alone, without seeds, outputs and an end of its own. */
import type { StopMode } from "../core/events.ts";
import type { ValueChange } from "../core/frontier.ts";
import { limitReached, spentOf } from "../rules/limits.ts";
import { RUN_STOP, type StopAsked } from "../rules/values.ts";
import { type LimitWatch, NO_LIMITS } from "./limit-watch.ts";
import { lookOut } from "./look-out.ts";
import type { Parts } from "./parts.ts";
import { CONTROL, type LoopView, startLoop } from "./run.ts";
import { createValues } from "./values.ts";

export interface WorkerRun {
  /** Resolves when the crawl is over, or the worker has left. Rejects when we fail. */
  readonly done: Promise<void>;
  /** Claims no more; what is in flight is finished and settled. */
  leave(abort?: boolean): void;
  /** What is in flight is aborted, or finished, as after a stop of the crawl. */
  stop(mode: StopMode): Promise<void>;
  /** Something changed outside: claim again. */
  wake(): void;
  /** Values as others have changed them. */
  apply(changes: readonly ValueChange[]): void;
  view(): Pick<LoopView, "inFlight" | "requests" | "scraping">;
}

export interface WorkerOptions {
  /** Asked before every claim: several crawls share a worker. */
  readonly concurrency: () => number;
  readonly once: boolean;
  /** False: it is told of values that change elsewhere (`apply`); else it looks for them now and then. */
  readonly watches?: boolean;
  /** Absent: they are looked after elsewhere. */
  readonly limits?: LimitWatch;
  /** Ms for which the crawl has been worked on; null: who created it looks after its limits. Absent: somebody always does. */
  readonly elapsedMs?: () => Promise<number | null>;
}

export async function startWorker(parts: Parts, options: WorkerOptions): Promise<WorkerRun> {
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
    limits: options.limits ?? NO_LIMITS,
    async onValues(changes) {
      values.apply(changes);
      const asked = changes.findLast(({ key }) => key === RUN_STOP)?.value ?? null;
      if (asked !== null) await stop((JSON.parse(asked) as StopAsked).mode); // written by engine/scrape.ts
    },
  });

  const learns = scraping !== null && options.watches !== false;
  const { limits } = parts.spec;
  const limited = options.elapsedMs !== undefined && [limits.bytes, limits.errors, limits.items, limits.time].some((limit) => limit !== null);

  /** Why it ends is seen anew by who creates its outputs, from the same counters. */
  async function heedLimits(): Promise<void> {
    const elapsedMs = (await options.elapsedMs?.()) ?? null;
    if (elapsedMs === null) return;
    const { tally, control } = await frontier.counts();
    if (control === "drain" || control === "now") return;
    const reason = limitReached(limits, spentOf(tally), elapsedMs);
    if (reason === null) return;
    parts.log("info", "a limit of the crawl is reached, and who created it is away: it is stopped", { limit: reason });
    await stop("flight");
  }

  async function look(): Promise<void> {
    if (learns) values.refresh(await frontier.values());
    if (limited) await heedLimits();
  }

  const watch = learns || limited ? lookOut(parts.clock, look) : null;

  async function run(): Promise<void> {
    try {
      await loop.done;
    } finally {
      watch?.cancel();
      await scraping?.[Symbol.asyncDispose]();
      await Promise.allSettled([fetcher[Symbol.asyncDispose](), frontier[Symbol.asyncDispose]()]);
    }
  }
  return { done: run(), leave: loop.leave, stop: loop.stop, wake: loop.wake, apply: values.apply, view: loop.view };
}

/** Records of crashed pages are made by whoever writes the outputs. */
function crashedHere(): never {
  throw new Error("a worker writes no records");
}
