/** The user's scraper in the loop's own thread: for closures, and for crawls without parse workers. A page at a time, but for what handlers await. */
import type { ScrapeLog, ScrapeOutcome, Scraping } from "../../core/scraping.ts";
import { spellDuration } from "../../core/units.ts";
import type { ScraperModule } from "./module.ts";
import { runPage } from "./run.ts";

export interface InlineOptions {
  readonly log: ScrapeLog;
  /** Pages that may be under way: more are taken, but `full` says that none should come. */
  readonly maxPending: number;
  /** A handler that is still awaiting something after so long is given up; one that computes without end holds the whole loop, which only a parse worker survives. */
  readonly parseTimeoutMs: number;
}

export function createInlineScraping(module: ScraperModule, options: InlineOptions): Scraping {
  const values = new Map<string, string>();
  const pending = new Map<object, { readonly since: number; readonly give: (outcome: ScrapeOutcome) => void }>();
  let waiting: (() => void)[] = [];

  const full = () => pending.size >= options.maxPending;

  function tellOfSpace(): void {
    if (waiting.length === 0 || full()) return;
    const callbacks = waiting;
    waiting = [];
    for (const callback of callbacks) callback();
  }

  function abort(): void {
    for (const { give } of [...pending.values()]) give({ kind: "aborted" });
  }

  const overdue = () => [...pending.values()].filter(({ since }) => performance.now() - since >= options.parseTimeoutMs);

  function judge(): void {
    for (const { give } of overdue()) give({ kind: "threw", message: `took longer than ${spellDuration(options.parseTimeoutMs)}`, stack: null });
  }
  /** What a handler waits for may have come while the loop was busy: it is heard first. */
  function watch(): void {
    if (overdue().length > 0) setImmediate(judge);
  }
  // It must not keep the process from ending.
  const watching = setInterval(watch, Math.min(1_000, Math.max(10, options.parseTimeoutMs / 4))).unref();

  return {
    kind: module.kind,
    version: module.version,
    first: module.first,
    run(task) {
      const page = {};
      let controller: AbortController | null = null;
      const { promise, resolve } = Promise.withResolvers<ScrapeOutcome>();
      const end = (outcome: ScrapeOutcome): void => {
        if (!pending.delete(page)) return;
        resolve(outcome);
        tellOfSpace();
      };
      const give = (outcome: ScrapeOutcome): void => {
        end(outcome);
        controller?.abort();
      };
      pending.set(page, { since: performance.now(), give });
      const signal = (): AbortSignal => {
        controller ??= new AbortController();
        if (!pending.has(page)) controller.abort();
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
    abort,
    async [Symbol.asyncDispose]() {
      clearInterval(watching);
      abort();
    },
  };
}

export function learnValues(values: Map<string, string>, changes: Iterable<readonly [key: string, value: string | null]>): void {
  for (const [key, value] of changes) {
    if (value === null) values.delete(key);
    else values.set(key, value);
  }
}
