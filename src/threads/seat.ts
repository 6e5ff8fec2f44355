/** One thread of a crawl as the thread that keeps the frontier sees it: what it holds, what it is to be told, how it ended. Which leases it gets is decided in threads.ts. */
import { Worker } from "node:worker_threads";
import type { EpochMs } from "../core/clock.ts";
import type { Lease, Settled, Token } from "../core/frontier.ts";
import type { Fingerprint } from "../core/request.ts";
import { addSpent, nothingSpent } from "../engine/limit-watch.ts";
import type { SeedGrowth } from "../engine/parts.ts";
import { moduleFlags } from "../parse/scrape/thread.ts";
import type { Spent } from "../rules/limits.ts";
import { originOf } from "../rules/url.ts";
import { type Batch, createRobotsTold, type FromThread, type SentLease, type ThreadStart, type ToThread } from "./messages.ts";

export interface Seat {
  /** Given out and not settled. */
  readonly held: Map<Token, Lease>;
  /** Leases that it has room for. */
  room: number;
  ready: boolean;
  /** It has ended in good order, or is dead. */
  gone: boolean;
  /** Only what may have killed a thread is given to it, one page at a time. */
  onTrial: boolean;
  view: Batch["view"];
  give(lease: Lease): void;
  tellSeeds(urls: readonly string[]): void;
  tellGrowth(growth: SeedGrowth): void;
  tellValue(key: string, value: string | null): void;
  /** The links of one more batch are in the frontier, but for those that were refused. */
  tellTaken(refused: readonly Fingerprint[]): void;
  /** A page that it held is settled. */
  settled(page: Settled): void;
  /** Sends what there is to be told, if it cannot wait for the next leases. `spent`: by all threads together; null: no limit looks at it. */
  flush(now: EpochMs, spent: Spent | null): void;
  post(message: ToThread): void;
  /** Share of one core since it was ready, 0 … 1. */
  cpuShare(): number;
  end(why: string | null): Promise<void>;
}

export interface SeatEvents {
  heard(message: FromThread): void;
  /** The thread is no more; once. Everything it said before has been heard. */
  ended(why: string): void;
}

/** The file of a thread: in the checkout the source; in the build an entry of its own (scripts/build.mjs), beside the folder of chunks that this code may lie in. */
export function builtFile(source: string, entry: string, here: string = import.meta.url): URL {
  if (here.endsWith(".ts")) return new URL(`${source}.ts`, here);
  return new URL(`${new URL(".", here).pathname.endsWith("/chunks/") ? "../" : "./"}${entry}.js`, here);
}

export function openSeat(start: ThreadStart, { heard, ended }: SeatEvents): Seat {
  const worker = new Worker(builtFile("worker", "thread"), { workerData: start, execArgv: moduleFlags(process.execArgv), name: "skein loop" });
  const robots = createRobotsTold();
  const idle = { inFlight: 0, requests: 0, scraping: null };
  let news = emptyNews();
  let urgent = false;
  const own = nothingSpent();
  let why: string | null = null;
  worker.on("message", heard);
  worker.on("messageerror", (error) => {
    why ??= `said what cannot be read: ${error.message}`;
    void worker.terminate();
  });
  worker.on("error", (error) => {
    const noMemory = "code" in error && error.code === "ERR_WORKER_OUT_OF_MEMORY";
    why ??= noMemory ? "ran out of memory" : `failed: ${error.message}`;
  });
  worker.on("exit", (code) => {
    seat.gone = true;
    ended(why ?? `ended (exit code ${code})`);
  });

  const seat: Seat = {
    held: new Map(),
    room: 0,
    ready: false,
    gone: false,
    onTrial: false,
    view: idle,
    give(lease) {
      seat.held.set(lease.token, lease);
      seat.room--;
      if (news.leases.length === 0) news.forgetRobots ||= robots.makeRoom();
      news.leases.push({ ...lease, robots: lease.robots === null ? null : robots.tell(originOf(lease.request.url), lease.robots) });
      urgent = true;
    },
    tellSeeds: (urls) => void news.seeds.push(...urls),
    tellGrowth: (growth) => void news.growth.push(growth),
    tellValue(key, value) {
      news.values.push([key, value]);
      urgent = true;
    },
    tellTaken(refused) {
      news.taken++;
      news.refused.push(...refused);
    },
    settled: (page) => addSpent(own, page),
    flush(now, spent) {
      if (!urgent || !seat.ready || seat.gone) return;
      const others = spent === null ? null : { bytes: spent.bytes - own.bytes, failed: spent.failed - own.failed, items: spent.items - own.items };
      seat.post({ kind: "news", news: { ...news, others, claimedAt: now } });
      news = emptyNews();
      urgent = false;
    },
    post: (message) => worker.postMessage(message),
    cpuShare: () => worker.performance.eventLoopUtilization().utilization,
    async end(reason) {
      why ??= reason;
      await worker.terminate();
    },
  };
  return seat;
}

function emptyNews() {
  return {
    leases: [] as SentLease[],
    seeds: [] as string[],
    growth: [] as SeedGrowth[],
    values: [] as (readonly [string, string | null])[],
    taken: 0,
    refused: [] as Fingerprint[],
    forgetRobots: false,
  };
}
