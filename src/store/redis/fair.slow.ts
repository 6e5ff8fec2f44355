/** One hot host and one slow one hold nobody back: a simulation of workers in the store's own time, on the real server. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Frontier, Lease } from "../../core/frontier.ts";
import { makeRequest } from "../../rules/admit.ts";
import { outputFor, settledAs } from "../../testing/frontier/bench.ts";
import { caseConfig } from "../../testing/frontier-cases.ts";
import { openRedisBench } from "./bench-for-tests.ts";
import { skipRedis, startServer, type TestServer } from "./server-for-tests.ts";

let server: TestServer;
before(async () => {
  if (skipRedis === false) server = await startServer(["--appendonly", "no"]);
});
after(() => server?.stop());

const HOSTS = 50;
const URLS = 40;
const EACH_MS = 50;
const CONCURRENCY = 2;
const SLOTS = 128;

test("a host with 20,000 URLs and one that answers after 2 s: fifty hosts of 40 URLs end within 5 % of their ideal time", { skip: skipRedis }, async () => {
  const bench = await openRedisBench(server.url, { ...caseConfig, perHostConcurrency: CONCURRENCY, leaseMs: 60_000 });
  try {
    const workers: readonly Frontier[] = [bench.frontier, await bench.second()];
    const [first] = workers;
    const names = [
      ...Array.from({ length: 20_000 }, (_, n) => `http://hot.test/${n}`),
      ...Array.from({ length: 200 }, (_, n) => `http://slow.test/${n}`),
      ...Array.from({ length: HOSTS * URLS }, (_, n) => `http://h${n % HOSTS}.test/${n}`),
    ];
    await first!.add(names.map((url) => makeRequest(url, first!.seed, { hop: "seed", depth: 0, referrer: null })));
    await first!.seedsComplete();
    let now = 0;
    let left = HOSTS * URLS;
    let flight: { readonly endsAt: number; readonly lease: Lease; readonly by: number }[] = [];
    const free = workers.map(() => SLOTS / workers.length);
    const endOf = new Map<string, number>();
    while (left > 0) {
      for (const [by, worker] of workers.entries()) {
        for (;;) {
          const claim = free[by]! > 0 ? await worker.claim(free[by]!) : null; // by < length
          if (claim?.kind !== "leases") break;
          free[by]! -= claim.leases.length;
          for (const lease of claim.leases) flight.push({ endsAt: now + (lease.request.host === "slow.test" ? 2_000 : EACH_MS), lease, by });
        }
      }
      const next = Math.min(...flight.map(({ endsAt }) => endsAt));
      await bench.advance(next - now);
      now = next;
      const ended = flight.filter(({ endsAt }) => endsAt <= now);
      flight = flight.filter(({ endsAt }) => endsAt > now);
      for (const [by, worker] of workers.entries()) {
        const mine = ended.filter((one) => one.by === by);
        free[by]! += mine.length;
        const pages = mine.map(({ lease }) => settledAs(lease, { kind: "done", counted: true, output: outputFor(lease.request.url) }));
        if (pages.length > 0) await worker.settle(pages, []);
      }
      for (const { lease } of ended) {
        if (!/^h\d/.test(lease.request.host)) continue;
        left--;
        endOf.set(lease.request.host, now);
      }
    }
    const ideal = (URLS / CONCURRENCY) * EACH_MS;
    const last = Math.max(...endOf.values());
    assert.equal(endOf.size, HOSTS);
    assert.ok(last <= ideal * 1.05, `${last} ms of ${ideal} ms`);
  } finally {
    await bench.close();
  }
});
