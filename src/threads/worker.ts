/** The entry of a thread of a crawl: one whole loop, whose frontier lies in the thread that started it (threads.ts). */
import { parentPort, workerData } from "node:worker_threads";
import { assemble } from "../assemble.ts";
import { realClock } from "../core/clock.ts";
import { noteSeed } from "../engine/feed.ts";
import { createThreadLimits, nothingSpent } from "../engine/limit-watch.ts";
import type { SeedGrowth } from "../engine/parts.ts";
import { startWorker, type WorkerRun } from "../engine/worker.ts";
import type { Spent } from "../rules/limits.ts";
import { type FromThread, sentError, type ThreadStart, type ToThread } from "./messages.ts";
import { createPortFrontier } from "./port.ts";

// `as`: seat.ts starts this file, with these data.
const start = workerData as ThreadStart;

const tell = (message: FromThread): void => parentPort?.postMessage(message);

// What a scraper prints goes to stderr: stdout is for data.
process.stdout.write = process.stderr.write.bind(process.stderr);

let run: WorkerRun | null = null;
/** What the crawl has spent without this thread. */
let others: Spent = nothingSpent();
const port = createPortFrontier({
  seed: start.seed,
  allLinks: start.spec.skippedAll,
  clock: realClock,
  tell,
  view: () => run?.view() ?? { inFlight: 0, requests: 0, scraping: null },
});
const parts = assemble(start.spec, {
  cwd: start.cwd,
  log: (level, message, fields = {}) => tell({ kind: "log", level, message, fields }),
  onEvent: (event) => tell({ kind: "event", event }),
  async joins() {
    // By now what belongs together as one site is known (assemble.ts).
    for (const one of start.growth) grow(one);
    return port;
  },
});

function grow({ scope, seed }: SeedGrowth): void {
  if (scope !== null) parts.admit.scope.addSeed(scope);
  if (seed !== null) noteSeed(parts.identity, seed);
}

function hear(message: ToThread): void {
  switch (message.kind) {
    case "news": {
      const { growth, values } = message.news;
      if (message.news.others !== null) others = message.news.others;
      for (const one of growth) grow(one);
      if (values.length > 0) run?.apply(values.map(([key, value]) => ({ op: "set", key, value })));
      port.hear(message.news);
      run?.wake();
      break;
    }
    case "answer":
      port.hearAnswer(message.id, message.answer);
      break;
    case "stop":
      port.stop(message.mode);
      // Its frontier is not told: it is where the stop comes from.
      void run?.stop(message.mode);
      break;
    case "leave":
      port.stop("flight");
      run?.leave(message.abort);
      break;
    case "over":
      port.over();
      run?.wake();
      break;
    case "ping":
      tell({ kind: "pong" });
      break;
  }
}

parentPort?.on("message", hear);
try {
  const limits = createThreadLimits(start.spec.limits, () => others);
  run = await startWorker(parts, { concurrency: () => start.concurrency, once: false, watches: start.shared, limits });
  tell({ kind: "ready" });
  await run.done;
  tell({ kind: "left" });
} catch (error) {
  tell({ kind: "failed", error: sentError(error) });
}
parentPort?.close();
