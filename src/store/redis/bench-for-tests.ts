/** A frontier on a real Redis with a moved clock, and a drain that remembers; for tests only. */
import type { Frontier, FrontierConfig } from "../../core/frontier.ts";
import { silentLog } from "../../core/log.ts";
import type { Output } from "../../core/records.ts";
import { createTestClock, type TestClock } from "../../testing/clock.ts";
import type { DurableBench } from "../../testing/frontier/bench.ts";
import { crashedOutput } from "../../testing/frontier-cases.ts";
import { connectRedis, type Link } from "./connect.ts";
import { createCrawls } from "./crawls.ts";
import { openRedisFrontier } from "./frontier.ts";
import { type Outbox, openOutbox } from "./outbox.ts";
import { readEntry } from "./pack.ts";

export interface RedisBench extends DurableBench {
  readonly clock: TestClock;
  readonly link: Link;
  readonly id: number;
  /** Another worker's view of the same crawl. */
  second(): Promise<Frontier>;
  close(): Promise<void>;
}

export interface RedisBenchOptions {
  readonly waitMs?: number;
  readonly clock?: TestClock;
  /** Stands between the frontier and the server. */
  readonly wrap?: (link: Link) => Link;
  /** Before each call. */
  readonly before?: () => Promise<void>;
  /** Kills the server and starts it again. */
  readonly crash?: () => Promise<void>;
}

/** lua/places.lua has the layout. */
function urlOfLease(bytes: Buffer): string {
  const entryAt = 10 + bytes.readUInt16LE(8);
  return readEntry(bytes.subarray(entryAt), bytes.toString("utf8", 10, entryAt), 0, 0).request.url;
}

const METHODS = [
  "add",
  "seedsComplete",
  "claim",
  "progress",
  "renew",
  "settle",
  "tune",
  "noteSeeds",
  "addCookies",
  "control",
  "setPageLimit",
  "setItemLimit",
  "setValues",
] as const;
const WRITING: ReadonlySet<string> = new Set(["add", "claim", "settle"]);
let benches = 0;

export async function openRedisBench(url: string, config: FrontierConfig, options: RedisBenchOptions = {}): Promise<RedisBench> {
  const clock = options.clock ?? createTestClock();
  const direct = await connectRedis(url, { log: silentLog, waitMs: options.waitMs ?? 30_000, prefix: `bench${process.pid}.${benches++}` });
  const link = options.wrap?.(direct) ?? direct;
  const id = await createCrawls(link).create({ spec: "{}" });
  // Small numbers: the model compares moments to a millionth of a millisecond, which epoch times cannot tell apart.
  const nowMs = (): number => clock.now() + 1_000;
  const open = (): Promise<Frontier> => openRedisFrontier(config, { link, id, nowMs, pollMs: Infinity, seed: [1, 2, 3, 4] });
  let current = await open();
  const outbox: Outbox = await openOutbox(link, id, { crashed: crashedOutput });
  const written: Output[] = [];
  let refused = false;
  let full = false;

  async function drain(): Promise<void> {
    for (let batch = await outbox.read(); batch !== null; batch = await outbox.read()) {
      written.push(...batch.outputs);
      await outbox.checkpoint(batch.cursor, new Map([["memory", { length: written.length }]]));
    }
  }

  const calls = METHODS.map((name) => [
    name,
    async (...args: readonly never[]): Promise<unknown> => {
      await options.before?.();
      if (name === "settle" && full !== refused) {
        // A server that is full: what the sinks of other stores do when their disk is.
        await link.command("CONFIG", "SET", "maxmemory", refused ? "1" : "0");
        full = refused;
      }
      const method = current[name] as (...given: readonly never[]) => Promise<unknown>; // one of the frontier's methods, called with its own arguments
      const answer = await method(...args);
      if (WRITING.has(name)) await drain();
      return answer;
    },
  ]);
  const frontier: Frontier = {
    get seed() {
      return current.seed;
    },
    counts: () => current.counts(),
    values: () => current.values(),
    hosts: (max) => current.hosts(max),
    robotsOf: (origin) => current.robotsOf(origin),
    remaining: () => current.remaining(),
    [Symbol.asyncDispose]: () => current[Symbol.asyncDispose](),
    ...(Object.fromEntries(calls) as Pick<Frontier, (typeof METHODS)[number]>), // made of these names just above
  };

  /** Closed: the worker hands back what it holds. Killed: it does not, and its leases run out; the server dies with it. */
  async function restart(how: "closed" | "killed") {
    const lost = new Set<string>();
    if (how === "closed") await current[Symbol.asyncDispose]();
    else {
      // Their time is over, in the order in which it would have been.
      const tokens = (await link.command("ZRANGE", `${link.tag}:${id}:x`, 0, -1)) as Buffer[]; // ZRANGE
      for (const [n, token] of tokens.entries()) {
        lost.add(urlOfLease((await link.command("HGET", `${link.tag}:${id}:L`, token)) as Buffer)); // each deadline has its lease
        await link.command("ZADD", `${link.tag}:${id}:x`, String(nowMs() - 1 + n / 1_000), token);
      }
      await options.crash?.();
    }
    current = await open();
    // What has run out is taken back by the first claim, however little it asks for.
    if (how === "killed") await current.claim(0);
    await drain();
    return { lost };
  }

  return {
    frontier,
    clock,
    link,
    id,
    advance: (ms) => clock.advance(ms),
    outputs: () => written,
    refuseWrites: (refuse) => {
      refused = refuse;
    },
    restart,
    second: open,
    async close() {
      await current[Symbol.asyncDispose]();
      await link.close();
    },
  };
}
