/** The entry of a thread of `skein work --threads`: a worker of its own, told when to leave. */
import { parentPort, workerData } from "node:worker_threads";
import { sentError } from "../threads/messages.ts";
import { work } from "./work.ts";
import type { FromWork, WorkStart } from "./work-threads.ts";

const tell = (message: FromWork): void => parentPort?.postMessage(message);

// What a scraper prints goes to stderr, as in the worker's own thread.
process.stdout.write = process.stderr.write.bind(process.stderr);

// `as`: work-threads.ts starts this file, with these data.
const run = work({ ...(workerData as WorkStart), log: (level, message, fields) => tell({ kind: "log", level, message, fields }) });
parentPort?.on("message", () => run.leave());
try {
  tell({ kind: "done", summary: await run.done });
} catch (error) {
  tell({ kind: "failed", error: sentError(error) });
}
parentPort?.close();
