/** A crawl of several worker processes that are killed all the time, on a Redis that is killed too; for tests only. */
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { silentLog } from "../../core/log.ts";
import { makeRequest } from "../../rules/admit.ts";
import { seededRandom } from "../../testing/clock.ts";
import { crashedOutput } from "../../testing/frontier/bench.ts";
import { caseConfig } from "../../testing/frontier-cases.ts";
import { connectRedis } from "./connect.ts";
import { createCrawls } from "./crawls.ts";
import { scanInvariants } from "./doctor.ts";
import { openRedisFrontier } from "./frontier.ts";
import { openOutbox } from "./outbox.ts";
import { startServer } from "./server-for-tests.ts";

const WORKERS = 3;

export interface KillRound {
  readonly workersKilled: number;
  readonly serversKilled: number;
  readonly frozen: number;
}

/** Fails unless every page has one record, the invariants hold, and the crawl has ended once. */
export async function killRound(seed: number, pages: number): Promise<KillRound> {
  const random = seededRandom(seed);
  const server = await startServer(["--appendfsync", "always"]);
  const link = await connectRedis(server.url, { log: silentLog, prefix: "kills" });
  const id = await createCrawls(link).create({});
  const frontier = await openRedisFrontier({ ...caseConfig, leaseMs: 700, perHostConcurrency: 4 }, { link, id });
  // All are told of at the start: a page that is given up after three kills brings no links.
  await frontier.add(
    Array.from({ length: pages }, (_, n) => makeRequest(`http://h${n % 9}.test/${n}`, frontier.seed, { hop: "seed", depth: 0, referrer: null })),
  );
  await frontier.seedsComplete();
  const start = (): ChildProcess =>
    spawn(process.execPath, [`${import.meta.dirname}/worker-for-tests.ts`, server.url, "kills", String(id), String(pages)], { stdio: "inherit" });
  const workers = Array.from({ length: WORKERS }, start);
  let workersKilled = 0;
  let serversKilled = 0;
  let frozen = 0;
  while (!(await frontier.counts()).completed) {
    // The pace of the kills is what is tested here, not what is waited for.
    await sleep(400 + random() * 600);
    const draw = random();
    const at = Math.floor(random() * WORKERS);
    const worker = workers[at]!; // at < WORKERS
    if (draw < 0.45) {
      worker.kill("SIGKILL");
      workers[at] = start();
      workersKilled++;
    } else if (draw < 0.6) {
      await server.kill();
      await server.start();
      serversKilled++;
    } else if (draw < 0.7) {
      worker.kill("SIGSTOP");
      setTimeout(() => worker.kill("SIGCONT"), 1_200);
      frozen++;
    }
  }
  for (const worker of workers) {
    const gone = once(worker, "exit");
    if (worker.exitCode === null && worker.signalCode === null) {
      worker.kill("SIGKILL");
      await gone;
    }
  }
  const outbox = await openOutbox(link, id, { crashed: crashedOutput });
  const urls: (string | undefined)[] = [];
  for (let batch = await outbox.read(); batch !== null; batch = await outbox.read()) urls.push(...batch.outputs.map(({ page }) => page?.url));
  assert.deepEqual([urls.length, new Set(urls).size], [pages, pages]);
  assert.deepEqual((await scanInvariants(link, id)).faults, []);
  assert.deepEqual((await createCrawls(link).ends("0-0")).length, 1);
  await frontier[Symbol.asyncDispose]();
  await link.close();
  await server.stop();
  return { workersKilled, serversKilled, frozen };
}
