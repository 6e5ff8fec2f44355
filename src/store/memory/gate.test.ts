/** Crawls that share the clocks of hosts: what the hosts see of all of them together, on a clock that is moved by hand. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Timer } from "../../core/clock.ts";
import type { Frontier, FrontierConfig } from "../../core/frontier.ts";
import type { Output } from "../../core/records.ts";
import { makeRequest } from "../../rules/admit.ts";
import { createTestClock, seededRandom, type TestClock } from "../../testing/clock.ts";
import { outputFor, settledAs } from "../../testing/frontier/bench.ts";
import { caseConfig, crashedOutput, type FrontierBench, flattenOwed, frontierCases } from "../../testing/frontier-cases.ts";
import { createMemoryFrontier } from "../memory.ts";
import { createHostGate, type HostGate } from "./gate.ts";

interface Visit {
  readonly crawl: string;
  readonly host: string;
  readonly start: number;
  end: number;
}

interface CrawlOptions extends Partial<Omit<FrontierConfig, "hosts">> {
  readonly pages: number;
  readonly hosts?: readonly string[];
  readonly takesMs?: () => number;
  /** Requests in flight at most. */
  readonly most?: number;
}

interface Crawl {
  readonly frontier: Frontier;
  readonly done: Promise<void>;
  wake(): void;
}

/** A loop as the engine's: it waits as long as the claim says, or until it is woken. */
function crawlOf(name: string, options: CrawlOptions, { clock, gate, visits }: { clock: TestClock; gate: HostGate | null; visits: Visit[] }): Crawl {
  const { pages, hosts = ["a.example"], takesMs = () => 50, most = 64, ...config } = options;
  let asleep: Timer | null = null;
  let inFlight = 0;
  let turning = false;
  let again = false;
  const { promise: done, resolve, reject } = Promise.withResolvers<void>();
  const wake = (): void => {
    asleep?.cancel();
    asleep = null;
    clock.soon(() => void turn().catch(reject));
  };
  const frontier = createMemoryFrontier(
    { ...caseConfig, ...config, leaseMs: Infinity },
    { write: () => undefined, crashed: crashedOutput, wake },
    { clock, random: seededRandom(name.length), gate },
  );

  async function turn(): Promise<void> {
    if (turning) {
      again = true;
      return;
    }
    turning = true;
    do {
      again = false;
      if (inFlight >= most) break;
      const claim = await frontier.claim(most - inFlight);
      if (claim.kind === "drained") return resolve();
      if (claim.kind === "wait" && claim.waitMs !== Infinity) asleep ??= clock.after(claim.waitMs, wake);
      if (claim.kind !== "leases") continue;
      again = inFlight + claim.leases.length < most;
      for (const lease of claim.leases) {
        inFlight++;
        const visit: Visit = { crawl: name, host: lease.request.host, start: clock.now(), end: Infinity };
        visits.push(visit);
        void frontier.progress([{ token: lease.token, sinceMs: 0 }], []);
        clock.after(takesMs(), () => {
          visit.end = clock.now();
          inFlight--;
          const more = { sinceStartMs: clock.now() - visit.start };
          void frontier.settle([settledAs(lease, { kind: "done", counted: true, output: outputFor(lease.request.url) }, more)], []).then(wake, reject);
        });
      }
    } while (again);
    turning = false;
  }

  void (async () => {
    const requests = Array.from({ length: pages }, (_, n) =>
      makeRequest(`http://${hosts[n % hosts.length]}/${name}/${n}`, frontier.seed, { hop: "seed", depth: 0, referrer: null }),
    );
    await frontier.add(requests);
    await frontier.seedsComplete();
    wake();
  })();
  return { frontier, done: done.finally(() => frontier[Symbol.asyncDispose]()), wake };
}

function mostTogether(visits: readonly Visit[], host: string): number {
  const own = visits.filter((visit) => visit.host === host);
  return Math.max(...own.map(({ start }) => own.filter((other) => other.start <= start && other.end > start).length));
}

function leastGap(visits: readonly Visit[], host: string): number {
  const starts = visits.flatMap((visit) => (visit.host === host ? [visit.start] : [])).sort((a, b) => a - b);
  return Math.min(...starts.slice(1).map((start, n) => start - (starts[n] ?? 0)));
}

function world() {
  const clock = createTestClock();
  return { clock, gate: createHostGate(clock), visits: [] as Visit[] };
}

test("the smaller concurrency holds while both use the host, and each gets its share", async () => {
  const w = world();
  const a = crawlOf("a", { pages: 100, perHostConcurrency: 3 }, w);
  const b = crawlOf("b", { pages: 100, perHostConcurrency: 8 }, w);
  await w.clock.run(Promise.all([a.done, b.done]), 600_000);
  assert.equal(w.visits.length, 200);
  assert.ok(mostTogether(w.visits, "a.example") <= 3);
  const half = w.visits.slice(0, 100);
  const ofA = half.filter(({ crawl }) => crawl === "a").length;
  assert.ok(ofA >= 40 && ofA <= 60, `${ofA} of the first 100 are of the first crawl`);
  assert.ok(w.clock.now() < (200 / 3) * 50 * 1.2, `all took ${w.clock.now()} ms`);
});

test("once the stricter crawl has ended, the other goes at its own pace", async () => {
  const w = world();
  const a = crawlOf("a", { pages: 5, perHostDelayMs: 1_000 }, w);
  const b = crawlOf("b", { pages: 50, perHostDelayMs: 100 }, w);
  await w.clock.run(a.done, 600_000);
  const endOfA = w.clock.now();
  assert.ok(leastGap(w.visits, "a.example") >= 1_000);
  await w.clock.run(b.done, 600_000);
  assert.ok(w.clock.now() - endOfA < 50 * 110 + 1_000);
  assert.ok(leastGap(w.visits, "a.example") >= 100);
});

test("the larger delay holds between the starts of all crawls, turn by turn", async () => {
  const w = world();
  const runs = [
    crawlOf("a", { pages: 20, perHostDelayMs: 200 }, w),
    crawlOf("b", { pages: 20, perHostDelayMs: 50 }, w),
    crawlOf("c", { pages: 20, perHostDelayMs: 0 }, w),
  ];
  await w.clock.run(Promise.all(runs.map(({ done }) => done)), 600_000);
  const own = w.visits.map(({ start }) => start).sort((x, y) => x - y);
  const last = Math.max(...w.visits.filter(({ crawl }) => crawl === "a").map(({ start }) => start));
  const together = own.filter((start) => start <= last);
  assert.ok(Math.min(...together.slice(1).map((start, n) => start - (together[n] ?? 0))) >= 200);
  const early = w.visits.slice(0, 30);
  for (const name of ["a", "b", "c"]) assert.ok(early.filter(({ crawl }) => crawl === name).length >= 8, `${name} has its turns`);
});

test("a crawl of a million URLs does not hold up one of three", async () => {
  const w = world();
  const hosts = ["a.example", "b.example", "c.example"];
  const big = crawlOf("big", { pages: 3_000, hosts, perHostConcurrency: 2 }, w);
  await w.clock.advance(500);
  const began = w.clock.now();
  const small = crawlOf("small", { pages: 3, hosts, perHostConcurrency: 2 }, w);
  await w.clock.run(small.done, 600_000);
  assert.ok(w.clock.now() - began < 500, `it took ${w.clock.now() - began} ms`);
  await w.clock.run(big.done, 6_000_000);
  for (const host of hosts) assert.ok(mostTogether(w.visits, host) <= 2);
});

test("a paused crawl at the head of the line lets the others pass", async () => {
  const w = world();
  const a = crawlOf("a", { pages: 50, perHostConcurrency: 1 }, w);
  const b = crawlOf("b", { pages: 50, perHostConcurrency: 1 }, w);
  await w.clock.advance(300);
  await a.frontier.control("pause");
  const began = w.clock.now();
  await w.clock.run(b.done, 600_000);
  assert.ok(w.clock.now() - began < 50 * 50 + 500, `it took ${w.clock.now() - began} ms`);
  await a.frontier.control("run");
  a.wake();
  await w.clock.run(a.done, 600_000);
  assert.equal(w.visits.length, 100);
  assert.equal(mostTogether(w.visits, "a.example"), 1);
});

test("a crawl that is dropped in the middle gives back what it had under way", async () => {
  const w = world();
  const a = crawlOf("a", { pages: 50, perHostConcurrency: 2 }, w);
  const b = crawlOf("b", { pages: 20, perHostConcurrency: 2 }, w);
  a.done.catch(() => undefined);
  await w.clock.advance(220);
  await a.frontier[Symbol.asyncDispose]();
  await w.clock.run(b.done, 600_000);
  assert.equal(w.visits.filter(({ crawl }) => crawl === "b").length, 20);
});

test("what one crawl is told to wait (Retry-After), all wait", async () => {
  const w = world();
  const a = crawlOf("a", { pages: 1 }, w);
  await w.clock.run(a.done);
  const b = createMemoryFrontier(caseConfig, { write: () => undefined, crashed: crashedOutput }, { clock: w.clock, random: seededRandom(1), gate: w.gate });
  await b.add([makeRequest("http://a.example/x", b.seed, { hop: "seed", depth: 0, referrer: null })]);
  const claim = await b.claim(1);
  assert.ok(claim.kind === "leases" && claim.leases[0] !== undefined);
  await b.settle([settledAs(claim.leases[0], { kind: "retry", afterMs: 0 }, { host: { notBeforeMs: 5_000 } })], []);
  const began = w.clock.now();
  const c = crawlOf("c", { pages: 2 }, w);
  await w.clock.run(c.done, 600_000);
  assert.ok(w.visits.filter(({ crawl }) => crawl === "c").every(({ start }) => start >= began + 5_000));
});

test("many crawls with random rules on few hosts: never too many, never too soon, and all of them end", async () => {
  for (let seed = 1; seed <= 25; seed++) {
    const random = seededRandom(seed);
    const pick = <T>(of: readonly T[]): T => of[Math.floor(random() * of.length)]!;
    const w = world();
    const rules = Array.from({ length: 2 + Math.floor(random() * 6) }, () => ({ perHostConcurrency: pick([1, 2, 5]), perHostDelayMs: pick([0, 0, 30, 100]) }));
    const runs = rules.map((rule, n) =>
      crawlOf(
        `crawl-${n}`,
        {
          ...rule,
          pages: 10 + Math.floor(random() * 40),
          hosts: ["a.example", "b.example"],
          takesMs: () => 1 + Math.floor(random() * 120),
          most: pick([1, 3, 64]),
        },
        w,
      ),
    );
    await w.clock.run(Promise.all(runs.map(({ done }) => done)), 10_000_000);
    const most = Math.max(...rules.map(({ perHostConcurrency }) => perHostConcurrency));
    for (const host of ["a.example", "b.example"]) {
      assert.ok(mostTogether(w.visits, host) <= most, `seed ${seed}`);
      // While a crawl uses a host its own rules hold for everybody.
      for (const [n, { perHostConcurrency, perHostDelayMs }] of rules.entries()) {
        const own = w.visits.filter((visit) => visit.host === host && visit.crawl === `crawl-${n}`);
        const from = Math.min(...own.map(({ start }) => start));
        const to = Math.max(...own.map(({ start }) => start));
        const during = w.visits.filter((visit) => visit.host === host && visit.start >= from && visit.start <= to);
        if (during.length > 1 && perHostDelayMs > 0)
          assert.ok(leastGap(during, host) >= perHostDelayMs - 1e-6, `seed ${seed}: a gap of ${leastGap(during, host)} on ${host}`);
        for (const { start } of during) {
          const together = w.visits.filter((other) => other.host === host && other.start <= start && other.end > start).length;
          // What had started before the stricter crawl came is still under way.
          const before = w.visits.filter((other) => other.host === host && other.start < from && other.end > start).length;
          assert.ok(together - before <= perHostConcurrency, `seed ${seed}: ${together} together on ${host}, ${perHostConcurrency} allowed by crawl ${n}`);
        }
      }
    }
  }
});

function gatedBench(config: FrontierConfig): FrontierBench {
  const clock = createTestClock();
  const written: Output[] = [];
  let refused = false;
  const frontier = createMemoryFrontier(
    config,
    {
      write(outputs) {
        if (refused) throw new Error("disk full");
        written.push(...flattenOwed(outputs));
      },
      crashed: crashedOutput,
    },
    { clock, random: seededRandom(1), gate: createHostGate(clock) },
  );
  return {
    frontier,
    advance: (ms) => clock.advance(ms),
    outputs: () => written,
    refuseWrites: (refuse) => {
      refused = refuse;
    },
  };
}

for (const each of frontierCases) {
  test(`alone at a gate: ${each.rule}: ${each.name}`, () => each.run(gatedBench({ ...caseConfig, ...each.config })));
}

for (const [name, stricter] of [
  ["its own slots have become fewer", { gapMs: 0, slots: 1, another: false }],
  ["another crawl with a longer delay has come", { gapMs: 100, slots: 8, another: true }],
] as const)
  test(`who comes when it is called and may not start, since ${name}, is called again`, async () => {
    const clock = createTestClock();
    const gate = createHostGate(clock);
    // `as`: a host key is a branded text.
    const host = "a.example" as Parameters<ReturnType<HostGate["join"]>["use"]>[0];
    let calls = 0;
    const first = gate.join().use(host, () => undefined);
    const second = gate.join().use(host, () => void calls++);
    const { gapMs, slots, another } = stricter;
    for (let n = 0; n < 2; n++) {
      assert.equal(first.ask(0, 2, 0), null);
      first.started(clock.now());
    }
    assert.equal(second.ask(gapMs, another ? slots : 2, 0), "host-slots");
    first.ended();
    if (another) await clock.advance(gapMs);
    assert.equal(calls, 1);
    if (another)
      gate
        .join()
        .use(host, () => undefined)
        .ask(5_000, 8, 0);
    assert.notEqual(second.ask(gapMs, slots, 0), null);
    // Longer than the others wait for one that does not come.
    await clock.advance(1_000);
    first.ended();
    await clock.advance(5_000);
    assert.ok(calls >= 2, "it was never called again");
    assert.equal(second.ask(gapMs, slots, 0), null);
  });
