/** A parse worker's thread: loads the scraper, runs it on one page at a time, tells what came of it. What it is given and when is decided by pool.ts. */
import { parentPort, workerData } from "node:worker_threads";
import { CrawlError } from "../../core/errors.ts";
import type { LogLevel } from "../../core/log.ts";
import type { ScrapeOutcome } from "../../core/scraping.ts";
import { SettledError } from "./context.ts";
import { learnValues } from "./inline.ts";
import { loadScraper } from "./load.ts";
import { factsOf, fieldsModule, type ScraperModule } from "./module.ts";
import { type FromWorker, sharedNow, sharedOf, type ToWorker, takeOut, type WorkerStart } from "./protocol.ts";
import { runPage, threw } from "./run.ts";

// `as`: pool.ts starts this file, with these data.
const start = workerData as WorkerStart;
const shared = sharedOf(start.shared);
const values = new Map<string, string>();
const queue: (ToWorker & { kind: "task" })[] = [];
let module: ScraperModule | null = null;
let running: { readonly id: number; readonly controller: () => AbortController; readonly end: (outcome: ScrapeOutcome) => void } | null = null;

function tell(message: FromWorker): void {
  parentPort?.postMessage(message);
}

function log(level: LogLevel, message: string, fields: Readonly<Record<string, unknown>>): void {
  tell({ kind: "log", level, message, fields: plainFields(fields) });
}

/** What can be posted: fields that cannot be written as JSON are described. */
function plainFields(fields: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const plain: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(fields)) {
    try {
      plain[name] =
        typeof value === "object"
          ? JSON.parse(JSON.stringify(value))
          : typeof value === "function"
            ? "[function]"
            : typeof value === "symbol"
              ? String(value)
              : value;
    } catch (error) {
      plain[name] = `[${error instanceof Error ? error.name : "error"}: cannot be written as JSON]`;
    }
  }
  return plain;
}

function next(): void {
  const { promise, resolve: end } = Promise.withResolvers<ScrapeOutcome>();
  const message = queue.shift();
  if (module === null || message === undefined) return;
  shared.begun[0] = sharedNow();
  if (!takeOut(shared, message.slot, message.id)) {
    next();
    return;
  }
  let controller: AbortController | null = null;
  const made = () => (controller ??= new AbortController());
  running = { id: message.id, controller: made, end };
  // It never rejects.
  void runPage(module, message.task, { values, log, signal: () => made().signal }).then(end);
  void promise.then((outcome) => {
    running = null;
    tell({ kind: "ended", id: message.id, outcome });
    next();
  });
}

/** Errors that nobody caught: of the page that runs, unless they say that theirs has ended. */
function stray(error: unknown): void {
  const { message, stack } = threw(error);
  if (running !== null && !(error instanceof SettledError)) running.end({ kind: "threw", message, stack });
  else log("error", "the scraper left an error uncaught", { error: message, stack });
}

// What a scraper prints goes to stderr: stdout is for data. (Read by the loop's thread, a stream of a thread would keep the process from ending.)
process.stdout.write = process.stderr.write.bind(process.stderr);
process.on("uncaughtException", stray);
process.on("unhandledRejection", stray);

parentPort?.on("message", (message: ToWorker) => {
  if (message.kind === "abort") {
    if (running?.id === message.id) running.controller().abort();
    return;
  }
  if (message.values !== null) learnValues(values, message.values);
  queue.push(message);
  if (running === null) next();
});

try {
  const { source, own } = start;
  module = source.kind === "file" ? await loadScraper(source.file, source.cwd, own) : await fieldsModule(source.extract);
  tell({ kind: "ready", facts: factsOf(module) });
} catch (error) {
  const problems = error instanceof CrawlError ? error.problems : [];
  tell({ kind: "unusable", message: error instanceof Error ? error.message : String(error), problems });
}
