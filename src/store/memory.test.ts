/** The memory frontier walks the cases that every store must pass. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { FrontierConfig } from "../core/frontier.ts";
import type { Output } from "../core/records.ts";
import { makeRequest } from "../rules/admit.ts";
import { createTestClock, seededRandom } from "../testing/clock.ts";
import { noRecord, settledAs } from "../testing/frontier/bench.ts";
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

test("of very many hosts the idle ones are forgotten; those with work, a running clock or a lesson are kept", async () => {
  const bench = openBench({ ...caseConfig, perHostDelayMs: 10 });
  const { frontier } = bench;
  const link = (name: string, path: string) => makeRequest(`http://${name}.test/${path}`, frontier.seed, { hop: "link", depth: 0, referrer: null });
  const visitAll = async (): Promise<void> => {
    for (let claim = await frontier.claim(128); claim.kind === "leases"; claim = await frontier.claim(128))
      await frontier.settle(
        claim.leases.map((lease) => settledAs(lease, { kind: "done", counted: true, output: noRecord })),
        [],
      );
  };
  await frontier.tune("slow.test", { crawlDelayMs: 60_000 });
  await frontier.add([link("slow", "1"), link("slow", "2"), link("slow", "3")]);
  for (let wave = 0; wave < 6; wave++) {
    await frontier.add(Array.from({ length: 10_000 }, (_, i) => link(`w${wave}-${i}`, "")));
    await visitAll();
    await bench.advance(11);
  }
  const views = await frontier.hosts(Infinity);
  assert.ok(views.length < 45_000, `${views.length} hosts are remembered`);
  assert.deepEqual([views[0]?.host, views[0]?.queued, views[0]?.delayMs], ["slow.test", 2, 60_000]);
  const { seen, done, queued } = await frontier.counts();
  assert.deepEqual([seen, done, queued], [60_003, 60_001, 2]);
});

test("a claim is one moment: a clock that moves while it runs does not end a host's turns", async () => {
  let now = 0;
  const clock = { ...createTestClock(), now: () => (now += 0.001) };
  const hooks = { write: () => undefined, crashed: crashedOutput };
  const frontier = createMemoryFrontier(caseConfig, hooks, { clock, random: seededRandom(1) });
  await frontier.add([1, 2, 3].map((n) => makeRequest(`http://a.test/${n}`, frontier.seed, { hop: "link", depth: 0, referrer: null })));
  const claim = await frontier.claim(3);
  assert.equal(claim.kind === "leases" ? claim.leases.length : 0, 3);
});
