/** A worker of a store in several threads: each is a worker of its own with its share of the requests, and this one looks after the others. Lazily loaded. */
import { Worker } from "node:worker_threads";
import { CrawlError } from "../core/errors.ts";
import { moduleFlags } from "../parse/scrape/thread.ts";
import { receivedError, type SentError } from "../threads/messages.ts";
import { builtFile } from "../threads/seat.ts";
import type { WorkOptions, WorkRun, WorkSummary } from "./work.ts";

/** With what a thread starts (`workerData`). */
export type WorkStart = Omit<WorkOptions, "log" | "clock">;

export type FromWork =
  | { readonly kind: "log"; readonly level: Parameters<WorkOptions["log"]>[0]; readonly message: string; readonly fields: Parameters<WorkOptions["log"]>[2] }
  | { readonly kind: "done"; readonly summary: WorkSummary }
  | { readonly kind: "failed"; readonly error: SentError };

/** Deaths of one thread's place, one after the other, before it is left empty. */
const MAX_DEATHS = 10;

/** `own`: the worker of this thread. What a thread held when it died comes back to the store by itself, as with dead processes. */
export function workTogether(options: WorkOptions & { readonly threads: number }, own: (options: WorkOptions) => WorkRun): WorkRun {
  const { log, clock: _clock, threads, ...plain } = options;
  const count = Math.min(threads, options.concurrency);
  const share = (place: number): number => Math.floor(options.concurrency / count) + (place < options.concurrency % count ? 1 : 0);
  const workers = new Set<Worker>();
  let leaving = false;

  /** Resolves when the place is left in good order. */
  function startThread(place: number, deaths = 0): Promise<WorkSummary> {
    const start: WorkStart = { ...plain, concurrency: share(place) };
    const worker = new Worker(builtFile("work-worker", "work-thread", import.meta.url), {
      workerData: start,
      execArgv: moduleFlags(process.execArgv),
      name: "skein work",
    });
    workers.add(worker);
    return new Promise((resolve, reject) => {
      let why: string | null = null;
      let said = false;
      worker.on("message", (message: FromWork) => {
        if (message.kind === "log") return log(message.level, message.message, message.fields);
        said = true;
        if (message.kind === "done") resolve(message.summary);
        else reject(receivedError(message.error));
      });
      worker.on("error", (error) => {
        why = error.message;
      });
      worker.on("exit", (code) => {
        workers.delete(worker);
        if (said) return;
        why ??= `exit code ${code}`;
        if (leaving) return resolve({ crawls: 0, requests: 0, ids: [] });
        if (deaths + 1 >= MAX_DEATHS) return reject(new CrawlError("internal", `a thread of the worker died ${MAX_DEATHS} times: ${why}`));
        log("warn", "a thread was replaced", { why });
        resolve(startThread(place, deaths + 1));
      });
    });
  }

  const mine = own({ ...options, concurrency: share(0) });
  const all = [mine.done, ...Array.from({ length: count - 1 }, (_, i) => startThread(i + 1))];

  function leave(): void {
    leaving = true;
    mine.leave();
    for (const worker of workers) worker.postMessage("leave");
  }

  async function run(): Promise<WorkSummary> {
    try {
      const summaries = await Promise.all(all);
      const ids = [...new Set(summaries.flatMap((one) => one.ids))];
      return { ids, crawls: ids.length, requests: summaries.reduce((sum, { requests }) => sum + requests, 0) };
    } catch (error) {
      leave();
      await Promise.allSettled(all);
      throw error;
    } finally {
      await Promise.all([...workers].map((worker) => worker.terminate()));
    }
  }
  return { done: run(), leave };
}
