/** The order in which leases expire. */
import assert from "node:assert/strict";
import test from "node:test";
import type { FrontierConfig } from "../../core/frontier.ts";
import type { Output } from "../../core/records.ts";
import { emptyOutput, makeRequest } from "../../rules/admit.ts";
import { createTestClock } from "../../testing/clock.ts";
import { createMemoryFrontier } from "../memory.ts";

const config: FrontierConfig = {
  ...{ limitPages: null, levels: false, order: "bfs", perHostConcurrency: 8, perHostDelayMs: 0, jitter: 0, hosts: new Map(), ratePerMinute: null },
  ...{ robots: false, maxWaitMs: 1_000, leaseMs: Infinity, startWithinMs: Infinity },
};

test("a lease that is abandoned counts as a crash at the next claim, the others stay; the third is the last", async () => {
  const written: Output[] = [];
  const hooks = { write: (outputs: readonly Output[]) => void written.push(...outputs), crashed: () => emptyOutput };
  const frontier = createMemoryFrontier(config, hooks, { clock: createTestClock(), random: () => 0.5, seed: [1, 2, 3, 4] });
  const request = (path: string) => makeRequest(`http://a.test/${path}`, frontier.seed, { hop: "seed", depth: 0, referrer: null });
  await frontier.add(["a", "b", "c"].map(request));
  await frontier.seedsComplete();
  const take = async (max: number) => {
    const claim = await frontier.claim(max);
    return claim.kind === "leases" ? claim.leases : [];
  };
  const first = await take(3);
  await frontier.abandon?.(["unknown", first[1]!.token]);
  for (const crashes of [1, 2]) {
    const [again] = await take(3);
    assert.equal(again?.request.url, "http://a.test/b");
    assert.equal(again?.crashes, crashes);
    await frontier.abandon?.([again?.token ?? ""]);
  }
  assert.deepEqual(await take(3), []);
  assert.equal(written.length, 1);
  const counts = await frontier.counts();
  assert.equal(counts.dropped, 1);
  assert.equal(counts.leased, 2);
});
