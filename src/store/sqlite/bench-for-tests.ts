/** A durable frontier in a directory of its own, with a moved clock and sinks that remember; for tests only. */
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Frontier, FrontierConfig, FrontierHooks } from "../../core/frontier.ts";
import type { Output } from "../../core/records.ts";
import { createTestClock, seededRandom, type TestClock } from "../../testing/clock.ts";
import type { DurableBench } from "../../testing/frontier/bench.ts";
import { crashedOutput, flattenOwed } from "../../testing/frontier-cases.ts";
import { type DurableFrontier, type FaultPoint, openSqliteFrontier } from "./frontier.ts";
import { readState } from "./read.ts";

/** In memory where the system has such a place: thousands of files are synced here. */
const PLACE = existsSync("/dev/shm") ? "/dev/shm" : tmpdir();

export function makeDirectory(): string {
  return mkdtempSync(join(PLACE, "skein-state-"));
}

export const removeDirectory = (dir: string): void => rmSync(dir, { recursive: true, force: true });

/** What a process that dies now leaves behind. */
export function copyState(from: string, to: string): void {
  mkdirSync(to, { recursive: true });
  for (const name of readdirSync(from)) if (!name.startsWith("lock.db")) cpSync(join(from, name), join(to, name));
}

export interface SqliteBench extends DurableBench {
  /** The one that is open now; `frontier` passes every call on to it. */
  readonly current: DurableFrontier;
  readonly clock: TestClock;
  readonly dir: string;
  close(): Promise<void>;
}

export interface SqliteBenchOptions {
  readonly passing?: (point: FaultPoint) => void;
  readonly hooks?: (hooks: FrontierHooks) => FrontierHooks;
  readonly frontier?: (inner: DurableFrontier, bench: () => SqliteBench) => Partial<Frontier>;
  /** Changes what the process left before it is opened again. */
  readonly spoil?: (dir: string) => void;
}

export async function openSqliteBench(config: FrontierConfig, options: SqliteBenchOptions = {}): Promise<SqliteBench> {
  const clock = createTestClock();
  const dirs = [makeDirectory()];
  const written: Output[] = [];
  let refused = false;
  let limit = config.limitPages;
  let limitItems = config.limitItems ?? null;
  const own: FrontierHooks = {
    write(outputs) {
      if (refused) throw new Error("disk full");
      written.push(...flattenOwed(outputs));
    },
    crashed: crashedOutput,
  };
  // Without a checkpoint, as the cases have it, a write that was refused may be tried again.
  const hooks = options.hooks?.(own) ?? own;
  const counting: FrontierHooks = { ...hooks, checkpoint: () => new Map([["memory", { length: written.length }]]) };
  const random = seededRandom(1);
  const dir = (): string => dirs.at(-1) ?? "";
  const open = (given: FrontierHooks) =>
    openSqliteFrontier({
      dir: dir(),
      config: { ...config, limitPages: limit, limitItems },
      hooks: given,
      env: { clock, random, ...(options.passing === undefined ? {} : { passing: options.passing }) },
      durability: "normal",
    });
  let current = await open(hooks);

  /** Sinks are cut back to where the state says they stood. */
  async function reopen(): Promise<void> {
    current = await open(counting);
  }
  async function restart(how: "closed" | "killed") {
    const control = (await current.counts()).control;
    const reader = how === "killed" ? readState(dir()) : null;
    const lost = new Set<string>();
    for (const place of reader?.queue() ?? []) if (place.standing === "leased") lost.add(place.request.url);
    reader?.close();
    if (how === "killed") {
      const copy = makeDirectory();
      copyState(dir(), copy);
      const before = written.length;
      await current[Symbol.asyncDispose]();
      written.length = before;
      dirs.push(copy);
    } else await current[Symbol.asyncDispose]();
    options.spoil?.(dir());
    await reopen();
    // A restart begins a stopped crawl anew; these cases go on with it as it was.
    if (control !== "run") await current.control(control);
    return { lost };
  }

  const frontier: Frontier = {
    get seed() {
      return current.seed;
    },
    add: (requests) => inner().add(requests),
    seedsComplete: () => inner().seedsComplete(),
    claim: (max) => inner().claim(max),
    progress: (started, ended) => inner().progress(started, ended),
    renew: (held) => inner().renew(held),
    settle: (pages, links) => inner().settle(pages, links),
    tune: (host, tuning) => inner().tune(host, tuning),
    noteSeeds: (urls) => inner().noteSeeds(urls),
    addCookies: (cookies) => inner().addCookies(cookies),
    control: (to) => inner().control(to),
    async setPageLimit(to) {
      limit = to;
      await inner().setPageLimit(to);
    },
    async setItemLimit(to) {
      limitItems = to;
      await inner().setItemLimit(to);
    },
    values: () => inner().values(),
    setValues: (changes) => inner().setValues(changes),
    counts: () => inner().counts(),
    hosts: (max) => inner().hosts(max),
    robotsOf: (origin) => inner().robotsOf(origin),
    remaining: () => inner().remaining(),
    [Symbol.asyncDispose]: () => current[Symbol.asyncDispose](),
  };
  const inner = (): Frontier => ({ ...current, seed: current.seed, ...options.frontier?.(current, () => bench) });

  const bench: SqliteBench = {
    frontier,
    get current() {
      return current;
    },
    clock,
    get dir() {
      return dir();
    },
    advance: (ms) => clock.advance(ms),
    outputs: () => written,
    refuseWrites: (refuse) => {
      refused = refuse;
    },
    restart,
    async close() {
      await current[Symbol.asyncDispose]();
      for (const each of dirs) removeDirectory(each);
    },
  };
  return bench;
}
