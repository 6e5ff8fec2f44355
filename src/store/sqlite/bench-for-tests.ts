/** A durable frontier in a directory of its own, with a moved clock and sinks that remember; for tests only. */
import { cpSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { FrontierConfig, FrontierHooks } from "../../core/frontier.ts";
import type { Output } from "../../core/records.ts";
import type { SinkState } from "../../core/sink.ts";
import { createTestClock, seededRandom, type TestClock } from "../../testing/clock.ts";
import { crashedOutput, type FrontierBench, flattenOwed } from "../../testing/frontier-cases.ts";
import { type DurableFrontier, type FaultPoint, openSqliteFrontier } from "./frontier.ts";

export function temporaryDirectory(): string & Disposable {
  return mkdtempSync(join(tmpdir(), "skein-state-")) as string & Disposable; // removed by `removeDirectory`
}

export const removeDirectory = (dir: string): void => rmSync(dir, { recursive: true, force: true });

export interface DurableBench extends FrontierBench {
  readonly frontier: DurableFrontier;
  readonly clock: TestClock;
  readonly dir: string;
  /** Closes the frontier and opens the directory again. */
  reopen(): Promise<void>;
  /** Opens a copy of the directory as it lies there now, as after `kill -9`; what the sinks took after the last commit is cut off. */
  kill(): Promise<void>;
  close(): Promise<void>;
}

export interface DurableBenchOptions {
  readonly passing?: (point: FaultPoint) => void;
  readonly hooks?: (hooks: FrontierHooks) => FrontierHooks;
}

/** `frontier` of the bench is the one that is open now. */
export async function openDurableBench(config: FrontierConfig, options: DurableBenchOptions = {}): Promise<DurableBench> {
  const clock = createTestClock();
  const dirs = [temporaryDirectory() as string];
  let written: Output[] = [];
  let refused = false;
  const own: FrontierHooks = {
    write(outputs) {
      if (refused) throw new Error("disk full");
      written.push(...flattenOwed(outputs));
    },
    crashed: crashedOutput,
  };
  const hooks = options.hooks?.(own) ?? own;
  const random = seededRandom(1);
  const open = () =>
    openSqliteFrontier({
      dir: dirs.at(-1)!,
      config,
      hooks,
      env: { clock, random, ...(options.passing === undefined ? {} : { passing: options.passing }) },
      durability: "normal",
    });
  let frontier = await open();
  return {
    get frontier() {
      return frontier;
    },
    clock,
    get dir() {
      return dirs.at(-1)!;
    },
    advance: (ms) => clock.advance(ms),
    outputs: () => written,
    refuseWrites: (refuse) => {
      refused = refuse;
    },
    async reopen() {
      await frontier[Symbol.asyncDispose]();
      frontier = await open();
    },
    async kill() {
      const before = dirs.at(-1)!;
      const copy = temporaryDirectory() as string;
      for (const name of readdirSync(before)) if (!name.startsWith("lock")) cpSync(join(before, name), join(copy, name));
      await frontier[Symbol.asyncDispose]();
      dirs.push(copy);
      frontier = await open();
      const committed = frontier.state.sinkStates().get("memory");
      if (committed !== undefined) written = written.slice(0, Number(committed.length));
    },
    async close() {
      await frontier[Symbol.asyncDispose]();
      for (const dir of dirs) removeDirectory(dir);
    },
  };
}

export const memorySink = (length: number): ReadonlyMap<string, SinkState> => new Map([["memory", { length }]]);
