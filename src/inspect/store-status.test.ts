import assert from "node:assert/strict";
import { test } from "node:test";
import type { WorkerView } from "../store/redis/workers.ts";
import { elapsedOf } from "./store-status.ts";

const worker = (kind: string, ageMs: number, silentMs = 1_000): WorkerView => ({ id: kind, host: "h", pid: 1, kind, ageMs, silentMs, shares: [] });

function crawlOf(kind: string, elapsed: number | null) {
  const info = new Map([["kind", kind], ...(elapsed === null ? [] : [["elapsed", String(elapsed)] as const])]);
  return { info, over: false, createdAt: 100_000, endedAt: null, aliveAt: 100_500 };
}

test("time of work: what is noted while it goes on is all of it, however long its creator has been there", () => {
  assert.equal(elapsedOf(crawlOf("crawl", 20_000), 190_000, [worker("work", 60_000), worker("crawl", 9_000)]), 20_000);
  assert.equal(elapsedOf(crawlOf("serve", 10_000), 112_000, [worker("serve", 500_000)]), 12_000, "the note is up to five seconds old");
  assert.equal(elapsedOf(crawlOf("crawl", 10_000), 112_900, [worker("crawl", 11_900)]), 12_900);
  assert.equal(elapsedOf(crawlOf("serve", 25_000), 190_000, [worker("serve", 4_000)]), 25_000);
});

test("time of work: before anything is noted it counts since its creator came, and not since before the crawl", () => {
  assert.equal(elapsedOf(crawlOf("crawl", null), 110_000, [worker("crawl", 9_000)]), 10_000);
  assert.equal(elapsedOf(crawlOf("serve", null), 112_000, [worker("serve", 500_000)]), 12_000);
  assert.equal(elapsedOf(crawlOf("serve", null), 190_000, [worker("serve", 4_000)]), 5_000);
});

test("time of work: what a pause takes is no part of it, and nothing is noted meanwhile", () => {
  assert.equal(elapsedOf(crawlOf("serve", 10_000), 190_000, [worker("serve", 500_000)]), 15_000, "at most what is noted next");
});

test("time of work: without its creator, what was noted, else until it ended or was last worked on", () => {
  assert.equal(elapsedOf(crawlOf("serve", 25_000), 190_000, [worker("work", 4_000)]), 25_000);
  assert.equal(elapsedOf(crawlOf("crawl", null), 190_000, []), 500);
  assert.equal(elapsedOf({ ...crawlOf("crawl", null), over: true, endedAt: 103_000 }, 190_000, []), 3_000);
});
