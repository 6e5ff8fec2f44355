/** The user's scraper in the loop's own thread: for closures, and for crawls without parse workers. A page at a time, but for what handlers await. */
import type { ScrapeLog, ScrapeOutcome, Scraping } from "../../core/scraping.ts";
import type { ScraperModule } from "./module.ts";
import { runPage } from "./run.ts";

export interface InlineOptions {
  readonly log: ScrapeLog;
  /** Pages that may be under way: more are taken, but `full` says that none should come. */
  readonly maxPending: number;
}

export function createInlineScraping(module: ScraperModule, options: InlineOptions): Scraping {
  const values = new Map<string, string>();
  /** Ends a page as aborted. */
  const pending = new Set<() => void>();
  let waiting: (() => void)[] = [];

  const full = () => pending.size >= options.maxPending;

  function tellOfSpace(): void {
    if (waiting.length === 0 || full()) return;
    const callbacks = waiting;
    waiting = [];
    for (const callback of callbacks) callback();
  }

  return {
    kind: module.kind,
    version: module.version,
    first: module.first,
    run(task) {
      let controller: AbortController | null = null;
      const { promise, resolve } = Promise.withResolvers<ScrapeOutcome>();
      const end = (outcome: ScrapeOutcome): void => {
        if (!pending.delete(abort)) return;
        resolve(outcome);
        tellOfSpace();
      };
      const abort = (): void => {
        end({ kind: "aborted" });
        controller?.abort();
      };
      pending.add(abort);
      const signal = (): AbortSignal => {
        controller ??= new AbortController();
        if (!pending.has(abort)) controller.abort();
        return controller.signal;
      };
      // It never rejects.
      void runPage(module, task, { values, log: options.log, signal }).then(end);
      return promise;
    },
    full,
    onSpace(callback) {
      waiting.push(callback);
      if (!full()) queueMicrotask(tellOfSpace);
    },
    learn(changes) {
      learnValues(values, changes);
    },
    view: () => ({ workers: 0, busy: pending.size, waiting: 0, waitingBytes: 0, cpuShare: 0 }),
    abort() {
      for (const abort of [...pending]) abort();
    },
    async [Symbol.asyncDispose]() {
      for (const abort of [...pending]) abort();
    },
  };
}

export function learnValues(values: Map<string, string>, changes: Iterable<readonly [key: string, value: string | null]>): void {
  for (const [key, value] of changes) {
    if (value === null) values.delete(key);
    else values.set(key, value);
  }
}
