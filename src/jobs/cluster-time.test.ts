import assert from "node:assert/strict";
import { test } from "node:test";
import type { WorkerView } from "../store/redis/workers.ts";
import { type Unseen, unseenMs } from "./cluster-time.ts";

const worker = (kind: string, ageMs: number, crawl = 3): WorkerView => ({
  ...{ id: kind, host: "h", pid: 1, kind, ageMs, silentMs: 1_000 },
  shares: [{ crawl, inFlight: 1, taken: 9, pagesPerSecond: null, limitedBy: "nothing", claims: [] }],
});
const at = { id: 3, control: "run", endedAt: null } as const;
const given: Unseen = { owner: { leftMs: 6_000 }, at, workers: [worker("work", 60_000)], now: 100_000 };

test("time in which workers went on after a service was killed counts since it was last heard of", () => {
  assert.equal(unseenMs(given), 9_000);
  assert.equal(unseenMs({ ...given, workers: [worker("work", 3_000)] }), 4_000, "not from before the first of them came");
  assert.equal(unseenMs({ ...given, at: { ...at, endedAt: 97_000 }, workers: [] }), 6_000, "until the crawl was at its end");
  assert.equal(unseenMs({ ...given, at: { ...at, endedAt: 80_000 } }), 0);
});

test("nothing is added where nobody worked, where the service left in order, or where the job was paused", () => {
  assert.equal(unseenMs({ ...given, workers: [worker("serve", 60_000), worker("work", 60_000, 4)] }), 0);
  assert.equal(unseenMs({ ...given, owner: null }), 0);
  assert.equal(unseenMs({ ...given, at: { ...at, control: "pause" } }), 0);
});
