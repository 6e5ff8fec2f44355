/** For tests only: a process that writes outputs and tells its checkpoints on stdout, to be killed or to run out of disk. Arguments: file, table, state or null, outputs done, checkpoints or not. */
import { writeSync } from "node:fs";
import { CrawlError } from "../core/errors.ts";
import { outputAt } from "../testing/sink-cases.ts";
import { openAt, TABLES } from "./bench-for-tests.ts";

const MOST = 200_000;
const [path = "", table = "0", state = "null", done = "0", durable = "true"] = process.argv.slice(2);
const sink = openAt(path, TABLES[Number(table)]!, JSON.parse(state));

try {
  for (let n = Number(done), step = 0; n < MOST; step++) {
    const size = (step * 7) % 23;
    sink.write(Array.from({ length: size }, (_, index) => outputAt(n + index)));
    n += size;
    if (durable === "true" && step % 3 === 0) writeSync(1, `${JSON.stringify({ done: n, state: sink.checkpoint?.(false) })}\n`);
  }
  sink.flush();
} catch (error) {
  if (!(error instanceof CrawlError)) throw error;
  await sink.close();
  writeSync(1, `${JSON.stringify({ error: error.code, message: error.message })}\n`);
}
