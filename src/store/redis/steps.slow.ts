/** Workers that die, stall or leave at each step of a page, a limit that holds meanwhile, and a server whose clock or scripts are changed below them. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Frontier, Lease } from "../../core/frontier.ts";
import { makeRequest } from "../../rules/admit.ts";
import { seededRandom } from "../../testing/clock.ts";
import { handOf, noRecord, outputFor, settledAs } from "../../testing/frontier/bench.ts";
import { caseConfig } from "../../testing/frontier-cases.ts";
import { openRedisBench, type RedisBench } from "./bench-for-tests.ts";
import { scanInvariants } from "./doctor.ts";
import { skipRedis, startServer, type TestServer } from "./server-for-tests.ts";

let server: TestServer;
before(async () => {
  if (skipRedis === false) server = await startServer(["--appendonly", "no"]);
});
after(() => server?.stop());

const LEASE_MS = 10_000;

async function withBench(config: Partial<Parameters<typeof openRedisBench>[1]>, run: (bench: RedisBench, hand: ReturnType<typeof handOf>) => Promise<void>) {
  const bench = await openRedisBench(server.url, { ...caseConfig, leaseMs: LEASE_MS, ...config });
  try {
    await run(bench, handOf(bench));
    assert.deepEqual((await scanInvariants(bench.link, bench.id)).faults, []);
  } finally {
    await bench.close();
  }
}

async function claimed(frontier: Frontier, max: number): Promise<readonly Lease[]> {
  const claim = await frontier.claim(max);
  return claim.kind === "leases" ? claim.leases : [];
}

const urls = (n: number): string[] => Array.from({ length: n }, (_, i) => `http://h${i % 5}.test/${i}`);

test("a worker that dies between its links and its settle: the links stand once, the page is done once", { skip: skipRedis }, async () => {
  await withBench({}, async (bench, hand) => {
    await hand.seed("http://a.test/");
    const dead = await bench.second();
    const [lease] = await claimed(dead, 1);
    assert.ok(lease !== undefined);
    const links = urls(300).map((url) => hand.link(url, { depth: 1 }));
    // More than a settle takes along goes before it.
    await dead.add(links);
    await bench.advance(LEASE_MS + 1);
    const again = (await hand.claim(10)).find(({ request }) => request.url === lease.request.url);
    assert.equal(again?.crashes, 1);
    assert.deepEqual(await hand.done(again!, links), ["applied"]);
    const { seen, queued, leased, done } = await bench.frontier.counts();
    assert.deepEqual([seen, queued + leased, done], [301, 300, 1]);
  });
});

test("a worker that stood still beyond its lease: its settles are stale, nothing of them is written, and its aborts return nothing", {
  skip: skipRedis,
}, async () => {
  await withBench({}, async (bench, hand) => {
    await hand.seed("http://a.test/1", "http://a.test/2");
    const frozen = await bench.second();
    const held = await claimed(frozen, 2);
    await bench.advance(LEASE_MS + 1);
    const mine = await hand.claim(2);
    assert.equal(mine.length, 2);
    const link = hand.link("http://a.test/only-the-frozen-one-saw-it", { depth: 1 });
    const [one, two] = held;
    assert.deepEqual(await frozen.settle([settledAs(one!, { kind: "done", counted: true, output: outputFor("http://a.test/wrong") })], [link]), ["stale"]);
    assert.deepEqual(await frozen.settle([settledAs(two!, { kind: "returned" })], []), ["stale"]);
    assert.deepEqual((await frozen.renew(held.map(({ token }) => token))).lost.length, 2);
    for (const lease of mine) await hand.done(lease);
    // A link is a fact, whoever tells of it.
    assert.deepEqual(await hand.urls(), [link.url]);
    assert.deepEqual(hand.pages().toSorted(), ["http://a.test/1", "http://a.test/2"]);
  });
});

for (const how of ["returned", "done"] as const) {
  test(`a redirect settled in vain under a lost lease, in one step with its new lease that is ${how}: its record is written once`, {
    skip: skipRedis,
  }, async () => {
    await withBench({}, async (bench, hand) => {
      await hand.seed("http://a.test/1");
      const lost = await hand.one();
      await bench.advance(LEASE_MS + 1);
      const again = await hand.one();
      const target = () =>
        hand.link("http://a.test/2", { hop: "redirect", rest: { owed: [outputFor("http://a.test/1")], redirects: [{ url: "http://a.test/1", status: 302 }] } });
      const hop = (lease: Lease) => settledAs(lease, { kind: "done", counted: false, output: noRecord });
      const mine = how === "done" ? hop(again) : settledAs(again, { kind: "returned" });
      await bench.frontier.settle([hop(lost), mine], how === "done" ? [target(), target()] : [target()]);
      if (how === "returned") {
        const third = (await hand.claim(2)).find(({ request }) => request.url === "http://a.test/1");
        await bench.frontier.settle([hop(third!)], [target()]);
      }
      await bench.advance(LEASE_MS + 1);
      for (const lease of await hand.claim(2)) {
        const output = outputFor(lease.request.url, { owed: lease.request.rest?.owed ?? [] });
        await bench.frontier.settle([settledAs(lease, { kind: "done", counted: true, output })], []);
      }
      assert.equal(await hand.kind(), "drained");
      // Told by the store itself: a drain would leave out what comes again.
      assert.equal(String(await bench.link.command("HGET", `${bench.link.tag}:${bench.id}:m`, "oin")), "2");
      assert.deepEqual(hand.pages().toSorted(), ["http://a.test/1", "http://a.test/2"]);
    });
  });
}

test("all workers are gone: the first new one goes on with everything, what they held first", { skip: skipRedis }, async () => {
  await withBench({}, async (bench, hand) => {
    await hand.seed(...urls(40));
    for (let n = 0; n < 3; n++) assert.equal((await claimed(await bench.second(), 10)).length, 10);
    await bench.advance(LEASE_MS + 1);
    const late = await bench.second();
    const first = await claimed(late, 30);
    assert.ok(first.every(({ crashes }) => crashes === 1));
    for (let leases = first; leases.length > 0; leases = await claimed(late, 30)) {
      await late.settle(
        leases.map((lease) => settledAs(lease, { kind: "done", counted: true, output: outputFor(lease.request.url) })),
        [],
      );
    }
    const counts = await late.counts();
    assert.deepEqual([counts.done, counts.completed], [40, true]);
  });
});

test("a worker that leaves in good order gives back what it holds: to the front, at once, and as no crash", { skip: skipRedis }, async () => {
  await withBench({}, async (bench, hand) => {
    await hand.seed("http://a.test/1", "http://a.test/2", "http://a.test/3");
    const leaving = await bench.second();
    await claimed(leaving, 2);
    await leaving[Symbol.asyncDispose]();
    const leases = await hand.claim(3);
    assert.deepEqual(
      leases.map(({ request, crashes, attempt }) => [request.url, crashes, attempt]),
      [1, 2, 3].map((n) => [`http://a.test/${n}`, 0, 0]),
    );
  });
});

test("scripts that the server has forgotten are sent again", { skip: skipRedis }, async () => {
  await withBench({}, async (bench, hand) => {
    await hand.seed(...urls(12));
    for (let n = 0; n < 12; n++) {
      await bench.link.command("SCRIPT", "FLUSH");
      const [lease] = await hand.claim(1);
      await bench.link.command("SCRIPT", "FLUSH");
      assert.deepEqual(await hand.done(lease!), ["applied"]);
    }
    assert.equal(await hand.kind(), "drained");
  });
});

for (const jumpMs of [-600_000, 600_000]) {
  test(`the server's clock jumps by ${jumpMs / 60_000} minutes: leases or delays are off by as much, and nothing else`, { skip: skipRedis }, async () => {
    let now = 1_000_000;
    const bench = await openRedisBench(server.url, { ...caseConfig, leaseMs: LEASE_MS, perHostDelayMs: 1_000 });
    // The bench's clock goes one way only: the jump is that of a second worker's moments.
    const { openRedisFrontier } = await import("./frontier.ts");
    const frontier = await openRedisFrontier({ ...caseConfig }, { link: bench.link, id: bench.id, nowMs: () => now, pollMs: Infinity });
    try {
      await frontier.add(urls(15).map((url) => makeRequest(url, frontier.seed, { hop: "seed", depth: 0, referrer: null })));
      await frontier.seedsComplete();
      const done = new Set<string>();
      const limit = now + Math.abs(jumpMs) + 60_000;
      let jumped = false;
      for (let claim = await frontier.claim(4); claim.kind !== "drained"; claim = await frontier.claim(4)) {
        assert.ok(now < limit, "it goes on within the jump");
        if (claim.kind !== "leases") {
          now += 250;
          continue;
        }
        if (done.size >= 5 && !jumped) {
          now += jumpMs;
          jumped = true;
        }
        for (const lease of claim.leases) {
          const [answer] = await frontier.settle([settledAs(lease, { kind: "done", counted: true, output: outputFor(lease.request.url) })], []);
          if (answer !== "applied") continue;
          assert.ok(!done.has(lease.request.url));
          done.add(lease.request.url);
        }
      }
      assert.deepEqual([done.size, jumped], [15, true]);
      assert.deepEqual((await scanInvariants(bench.link, bench.id)).faults, []);
    } finally {
      await frontier[Symbol.asyncDispose]();
      await bench.close();
    }
  });
}

for (const limit of [1, 37, 100, 200, 300, 400, 500, 600, 700, 800, 900]) {
  test(`a limit of ${limit} with failures, uncounted pages, retries and workers that die: never passed, never missed`, { skip: skipRedis }, async () => {
    await withBench({ limitPages: limit, perHostConcurrency: 64 }, async (bench) => {
      const random = seededRandom(limit);
      const workers = await Promise.all([bench.second(), bench.second(), bench.second()]);
      const all = Array.from({ length: limit * 2 + 60 }, (_, i) => `http://h${i % 7}.test/${i}`);
      const [first] = workers;
      await first!.add(all.map((url) => makeRequest(url, first!.seed, { hop: "seed", depth: 0, referrer: null })));
      await first!.seedsComplete();
      let dead = 0;
      let over = false;
      while (!over) {
        const leases = await Promise.all(workers.map((worker) => worker.claim(1 + Math.floor(random() * 40))));
        const sample = await first!.counts();
        assert.ok(sample.counted + sample.leased <= limit, `${sample.counted} counted and ${sample.leased} leased`);
        over = leases.some(({ kind }) => kind === "drained");
        for (const [n, claim] of leases.entries()) {
          if (claim.kind !== "leases") continue;
          if (random() < 0.15 && dead < 6) {
            // It dies with all it holds; nobody else hears of that before its leases end.
            dead++;
            continue;
          }
          const pages = claim.leases.map((lease) => {
            const draw = random();
            const output = outputFor(lease.request.url);
            if (draw < 0.7) return settledAs(lease, { kind: "done", counted: true, output });
            if (draw < 0.8) return settledAs(lease, { kind: "done", counted: false, output });
            if (draw < 0.86) return settledAs(lease, { kind: "dropped", output });
            if (draw < 0.93 && lease.attempt < 2) return settledAs(lease, { kind: "retry", afterMs: random() * 200 });
            return settledAs(lease, { kind: "returned" });
          });
          await workers[n]!.settle(pages, []);
        }
        await bench.advance(leases.every(({ kind }) => kind !== "leases") ? LEASE_MS / 4 : 20);
      }
      const { counted, completed } = await first!.counts();
      assert.deepEqual([counted, completed], [limit, true]);
      for (const worker of workers) await worker[Symbol.asyncDispose]();
    });
  });
}
