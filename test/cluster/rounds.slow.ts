/**
 * One round of everything that may die below a crawl on Redis; rounds.long.ts has many. needs: redis-server
 *
 * What happens when (frontier design, section 9), and where it is shown for one store:
 *   worker killed before its claim's answer came        src/store/redis/lives.slow.ts "answers that are lost"
 *   worker killed while it fetches; the third time      here, src/store/redis/kills.slow.ts, shared cases "crash"
 *   worker killed after it added links, before settle   src/store/redis/steps.slow.ts
 *   settle sent, its answer lost                        src/store/redis/lives.slow.ts "answers that are lost"
 *   worker frozen beyond its lease                      here, src/store/redis/steps.slow.ts, src/engine/leases.test.ts
 *   worker leaves politely                              test/cluster/shared.slow.ts, here ("sent away"), src/store/redis/steps.slow.ts
 *   all workers gone                                    src/store/redis/steps.slow.ts
 *   Redis killed                                        here, src/store/redis/kills.slow.ts, lives.slow.ts, test/cluster/shared.slow.ts
 *   power cut: a tail is undone                         here ("torn off"), src/store/redis/lives.slow.ts, src/store/redis/undone.slow.ts
 *   torn tail, second restart                           src/store/redis/lives.slow.ts (three in a row), here
 *   Redis out of memory                                 src/store/redis/lives.slow.ts, src/store/redis/full.slow.ts
 *   script cache flushed                                src/store/redis/steps.slow.ts
 *   sink: after append, before checkpoint               src/store/redis/undone.slow.ts, here ("creator killed")
 *   clock of the server jumps                           src/store/redis/steps.slow.ts
 * A coordinator, masters of a Cluster and shards: not with one shard.
 *
 * Tests that must pass (section 12), on Redis:
 *   1 workers killed all the time    src/store/redis/kills.slow.ts, kills.long.ts; whole commands: rounds.long.ts
 *   2 kill at each step              src/store/redis/steps.slow.ts, lives.slow.ts      3 frozen beyond the lease   steps.slow.ts, rounds.long.ts
 *   4 server killed                  src/store/redis/kills.long.ts, lives.slow.ts      5 torn log   lives.slow.ts, undone.slow.ts, rounds.long.ts
 *   7 limits 1, 37, 100 … 900        src/store/redis/steps.slow.ts, lives.slow.ts; shared.slow.ts
 *   8 politeness                     polite.slow.ts (200 hosts: polite.long.ts)        9 fairness   src/store/redis/fair.slow.ts
 *   10 order, 11 depth               shared cases (frontier.slow.ts); depths here
 *   13 pause, resume, stops          stops.slow.ts                                     15 sinks     undone.slow.ts, here; full disks: src/sinks/faults.slow.ts
 *   16 memory ceiling                src/store/redis/full.slow.ts, field.slow.ts       17 mutants   src/store/redis/mutants.slow.ts
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { skipRedis } from "../../src/store/redis/server-for-tests.ts";
import { openRounds } from "./rounds.ts";

test("workers, creator, Redis and connections die at random: pages, items, skipped URLs and links are those of a calm crawl, each once (F104, F106)", {
  skip: skipRedis,
}, async (t) => {
  await using rounds = await openRounds();
  const { troubles, ms } = await rounds.run(17);
  t.diagnostic(`${[...troubles].map(([what, times]) => `${times} × ${what}`).join(", ")}; ${Math.round(ms)} ms`);
  assert.ok(troubles.size > 0);
});
