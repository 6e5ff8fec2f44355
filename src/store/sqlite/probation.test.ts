/** A page that kills the process, and pages that were only in flight beside it. */
import assert from "node:assert/strict";
import { join } from "node:path";
import test, { after } from "node:test";
import type { Lease, Settled } from "../../core/frontier.ts";
import type { Output } from "../../core/records.ts";
import { makeRequest } from "../../rules/admit.ts";
import { createTestClock } from "../../testing/clock.ts";
import { caseConfig, crashedOutput } from "../../testing/frontier-cases.ts";
import { copyState, makeDirectory, removeDirectory } from "./bench-for-tests.ts";
import { openSqliteFrontier } from "./frontier.ts";

const root = makeDirectory();
after(() => removeDirectory(root));

const SEED = [1, 2, 3, 4] as const;
const page = (name: string) => makeRequest(`http://a.test/${name}`, SEED, { hop: "seed", depth: 0, referrer: null });

/** A frontier over a copy of what the last process left, as if that one had been killed. */
async function open(from: string, to: string, outputs: Output[]) {
  if (from !== to) copyState(from, to);
  const clock = createTestClock();
  const hooks = { write: (written: readonly Output[]) => void outputs.push(...written), crashed: crashedOutput };
  return openSqliteFrontier({
    dir: to,
    config: { ...caseConfig, robots: false },
    hooks,
    env: { clock, random: () => 0.5 },
    durability: "normal",
    seed: SEED,
    probationMs: 5_000,
  });
}

const done = ({ token }: Lease): Settled => ({
  ...{ token, sinceStartMs: 1, answer: null, host: null, setCookies: null, newSeeds: null, tally: [] },
  settlement: { kind: "done", counted: true, output: { page: null, listed: false, skipped: [], found: [], edges: [] } },
});

async function leases(frontier: Awaited<ReturnType<typeof open>>): Promise<readonly Lease[]> {
  const claim = await frontier.claim(8);
  return claim.kind === "leases" ? claim.leases : [];
}

test("pages in flight beside a kill are tried one by one and never given up, however often that happens", async () => {
  const outputs: Output[] = [];
  const dir = (n: number) => join(root, `kill${n}`);
  const first = await open(dir(0), dir(0), outputs);
  await first.add(["a", "b", "c"].map(page));
  await first.seedsComplete();
  assert.equal((await leases(first)).length, 3);
  for (let run = 1; run <= 6; run++) {
    const again = await open(dir(run - 1), dir(run), outputs);
    const one = await leases(again);
    assert.equal(one.length, 1, "one at a time");
    assert.equal((await leases(again)).length, 0, "nothing beside it");
    // Something was settled before each kill: what is in flight then is not to blame.
    await again.add([page(`more${run}`)]);
    await again.settle([done(one[0]!)], []);
    assert.ok((await leases(again)).length > 0);
  }
  assert.equal(outputs.filter(({ page: record }) => record?.error?.code === "crashed").length, 0);
});

test("a page that kills every process that fetches it is given up as crashed at the third death, and the others are done", async () => {
  const outputs: Output[] = [];
  const dir = (n: number) => join(root, `poison${n}`);
  const first = await open(dir(0), dir(0), outputs);
  await first.add(["poison", "good"].map(page));
  await first.seedsComplete();
  assert.equal((await leases(first)).length, 2);
  let run = 1;
  for (; run < 10; run++) {
    const again = await open(dir(run - 1), dir(run), outputs);
    let died = false;
    for (let batch = await leases(again); batch.length > 0 && !died; batch = await leases(again)) {
      if (batch.some(({ request }) => request.url.endsWith("/poison"))) died = true;
      else await again.settle(batch.map(done), []);
    }
    if (!died) break;
  }
  const crashed = outputs.filter(({ page: record }) => record?.error?.code === "crashed");
  assert.deepEqual(
    crashed.map(({ page: record }) => record?.url),
    ["http://a.test/poison"],
  );
  assert.ok(run <= 5, `given up at start ${run}`);
});
