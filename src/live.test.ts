/** What a durable crawl notes of itself, and how often. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Clock } from "./core/clock.ts";
import type { Claim, FrontierCounts, HostView } from "./core/frontier.ts";
import { type LiveNote, noting, readLive } from "./live.ts";

const HOST: HostView = { host: "a.example", queued: 3, inFlight: 1, concurrency: 8, delayMs: 0, dueInMs: 0, settled: 4, meanLatencyMs: 20 };

/** `slow`: what looking through the hosts takes. */
function bench(slow = 0) {
  let now = 5_000;
  let pages = 0;
  const world = { answer: { kind: "drained" } as Claim, kept: [] as LiveNote[] };
  const clock: Clock = { now: () => now, epoch: () => 1_000_000 + now, after: () => ({ cancel: () => undefined }), soon: () => undefined };
  const frontier = {
    claim: async (_max: number) => world.answer,
    hosts: async () => {
      now += slow;
      return [HOST];
    },
    counts: async () => ({ leased: 7, tally: new Map([["outcome:fetched", pages]]) }) as unknown as FrontierCounts, // nothing else is read
  };
  const { frontier: noted, note } = noting(frontier, clock, (text) => {
    const read = readLive(text);
    if (read !== null) world.kept.push(read);
  });
  function pass(ms: number, more: number): void {
    now += ms;
    pages += more;
  }
  return { world, claim: () => noted.claim(1), note, pass };
}

test("a note comes with a claim, about once a second, and has the hosts, the recent rate and what is waited for", async () => {
  const { world, claim, pass } = bench();
  world.answer = { kind: "wait", waitMs: 10, cause: "delay" };
  pass(999, 5);
  await claim();
  assert.equal(world.kept.length, 0);
  pass(1, 5);
  await claim();
  pass(500, 10);
  await claim();
  pass(1_500, 10);
  // One that gave less than was asked for does not say why; the next one does.
  world.answer = { kind: "leases", leases: [], seeds: [] };
  await claim();
  assert.equal(world.kept.length, 1);
  world.answer = { kind: "wait", waitMs: 10, cause: "host-slots" };
  await claim();
  assert.deepEqual(
    world.kept.map(({ loopCpuShare, ...rest }) => rest),
    [
      { at: 1_006_000, pagesPerSecond: null, inFlight: 7, waitingFor: "delay", hosts: [HOST] },
      { at: 1_008_000, pagesPerSecond: 10, inFlight: 7, waitingFor: "host-slots", hosts: [HOST] },
    ],
  );
});

test("the more a note costs, the seldomer it is made", async () => {
  const { world, claim, pass } = bench(50);
  pass(1_000, 0);
  await claim();
  pass(4_900, 0);
  await claim();
  assert.equal(world.kept.length, 1);
  pass(100, 0);
  await claim();
  assert.equal(world.kept.length, 2);
});

test("what another version noted is none", () => {
  assert.equal(readLive(null), null);
  assert.equal(readLive("{}"), null);
});
