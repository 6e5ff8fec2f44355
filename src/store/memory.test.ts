/** The memory frontier walks the cases that every store must pass. */
import { test } from "node:test";
import type { FrontierConfig } from "../core/frontier.ts";
import type { Output } from "../core/records.ts";
import { createTestClock, seededRandom } from "../testing/clock.ts";
import { caseConfig, crashedOutput, type FrontierBench, flattenOwed, frontierCases } from "../testing/frontier-cases.ts";
import { createMemoryFrontier } from "./memory.ts";

function openBench(config: FrontierConfig): FrontierBench {
  const clock = createTestClock();
  const written: Output[] = [];
  let refused = false;
  const hooks = {
    write(outputs: readonly Output[]) {
      if (refused) throw new Error("disk full");
      written.push(...flattenOwed(outputs));
    },
    crashed: crashedOutput,
  };
  return {
    frontier: createMemoryFrontier(config, hooks, { clock, random: seededRandom(1) }),
    advance: (ms) => clock.advance(ms),
    outputs: () => written,
    refuseWrites: (refuse) => {
      refused = refuse;
    },
  };
}

for (const one of frontierCases) {
  test(`memory frontier, ${one.rule}: ${one.name}`, async () => {
    const bench = openBench({ ...caseConfig, ...one.config });
    await one.run(bench);
    await bench.frontier[Symbol.asyncDispose]();
  });
}
