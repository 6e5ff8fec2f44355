/** Cases on host clocks, slots, back-off, rate and fairness. */
import assert from "node:assert/strict";
import type { HostAnswer, Lease } from "../../core/frontier.ts";
import { caseOf, type FrontierCase, type Hand, outputFor, settledAs } from "./bench.ts";

const A = "http://a.test";
const good: HostAnswer = { kind: "good", latencyMs: 10 };
const pushback: HostAnswer = { kind: "pushback", latencyMs: 10 };

const many = (host: string, n: number): string[] => Array.from({ length: n }, (_, i) => `http://${host}/${i}`);

/** Claims all that is due, says that each has started, and settles each with the answer. */
async function round(hand: Hand, answer: HostAnswer, more: { readonly notBeforeMs?: number } = {}): Promise<number> {
  const leases = await hand.claim();
  for (const lease of leases) await hand.started(lease);
  for (const lease of leases) {
    if (answer.kind === "good") await hand.done(lease, [], { answer });
    else await hand.retry(lease, 0, { answer, host: more.notBeforeMs === undefined ? null : { notBeforeMs: more.notBeforeMs } });
  }
  return leases.length;
}

export const politeCases: readonly FrontierCase[] = [
  caseOf("I6", "a host has at most its number of requests in flight", { perHostConcurrency: 3 }, async (hand) => {
    await hand.seed(...many("a.test", 9), ...many("b.test", 2));
    assert.equal((await hand.claim()).filter((lease) => lease.request.host === "a.test").length, 3);
    const wait = await hand.wait();
    assert.equal(wait.cause, "host-slots");
  }),
  caseOf("I6", "the number of requests in flight of a host can be given by host", { hosts: new Map([["a.test", { concurrency: 2 }]]) }, async (hand) => {
    await hand.seed(...many("a.test", 9));
    assert.equal((await hand.claim()).length, 2);
  }),
  caseOf("progress", "the slot returns when the response has ended, before the page is settled", { perHostConcurrency: 1 }, async (hand) => {
    await hand.seed(...many("a.test", 3));
    const first = await hand.one();
    await hand.started(first);
    assert.deepEqual(await hand.urls(), []);
    await hand.ended(first);
    const second = await hand.one();
    await hand.done(first);
    await hand.ended(first);
    assert.deepEqual(await hand.urls(), [], "the slot was given back once, not twice");
    await hand.done(second);
    assert.equal((await hand.claim()).length, 1, "settling gives the slot back when nothing had");
  }),
  caseOf("I1", "a host that was full goes on as soon as a slot is free, with everything it has", { perHostConcurrency: 2 }, async (hand, { frontier }) => {
    await hand.seed(...many("a.test", 40));
    let got = 0;
    for (let leases = await hand.claim(); leases.length > 0; leases = await hand.claim()) {
      assert.ok(leases.length <= 2);
      got += leases.length;
      for (const lease of leases) await hand.done(lease);
      await hand.balance();
    }
    assert.equal(got, 40);
    assert.equal((await frontier.counts()).completed, true);
  }),
  caseOf("I1", "hostsWaiting counts each host with something queued once", {}, async (hand, { frontier }) => {
    await frontier.add([...many("a.test", 5), ...many("b.test", 1), ...many("c.test", 3)].map((url) => hand.link(url)));
    assert.equal((await frontier.counts()).hostsWaiting, 3);
    await frontier.add([hand.link("http://a.test/x")]);
    assert.equal((await frontier.counts()).hostsWaiting, 3);
    await hand.claim();
    assert.equal((await frontier.counts()).hostsWaiting, 0);
  }),
  caseOf("delay", "two starts on a host are at least the delay apart, counted from start to start", { perHostDelayMs: 100 }, async (hand, { advance }) => {
    await hand.seed(...many("a.test", 3));
    const first = await hand.one();
    assert.deepEqual(await hand.urls(), []);
    await advance(30);
    await hand.started(first);
    await advance(60);
    await hand.ended(first);
    await hand.done(first);
    await advance(39);
    assert.equal((await hand.wait()).waitMs, 1);
    await advance(1);
    assert.equal((await hand.claim()).length, 1);
  }),
  caseOf("delay", "a slow connect neither shrinks nor stretches the gap", { perHostDelayMs: 100 }, async (hand, { advance }) => {
    await hand.seed(...many("a.test", 3));
    const first = await hand.one();
    await advance(5_000);
    assert.deepEqual(await hand.urls(), [], "until the start is known nothing else starts");
    await hand.started(first, 20);
    assert.equal((await hand.wait()).waitMs, 80);
  }),
  caseOf(
    "delay",
    "a start that only the settle tells of counts too; a host that was not contacted owes no rest",
    { perHostDelayMs: 100 },
    async (hand, { advance }) => {
      await hand.seed(...many("a.test", 4));
      const first = await hand.one();
      await advance(500);
      await hand.done(first, [], { sinceStartMs: 40 });
      assert.equal((await hand.wait()).waitMs, 60);
      await advance(60);
      await hand.done(await hand.one(), [], { sinceStartMs: null });
      assert.equal((await hand.claim()).length, 1, "the host was not contacted");
    },
  ),
  caseOf("delay", "a host whose queue ran empty keeps its clock (F096)", { perHostDelayMs: 100 }, async (hand, { frontier, advance }) => {
    await frontier.add([hand.link(`${A}/1`)]);
    const first = await hand.one();
    await hand.started(first);
    await hand.ended(first);
    await advance(50);
    await frontier.add([hand.link(`${A}/2`)]);
    assert.equal((await hand.wait()).waitMs, 50);
  }),
  caseOf("delay", "http and https of a host share its clock; a port of its own does not", { perHostDelayMs: 100 }, async (hand) => {
    await hand.seed("http://a.test/", "https://a.test/", "http://a.test:8080/");
    assert.deepEqual((await hand.urls()).sort(), ["http://a.test/", "http://a.test:8080/"]);
  }),
  caseOf("delay", "a retry waits for the host's clock", { perHostDelayMs: 1_000 }, async (hand, { advance }) => {
    await hand.seed(`${A}/1`);
    const first = await hand.one();
    await hand.started(first);
    await hand.retry(first, 10);
    await advance(500);
    assert.equal((await hand.wait()).waitMs, 500);
    await advance(500);
    assert.equal((await hand.claim()).length, 1);
  }),
  caseOf("delay", "a redirect to the same host waits for its clock", { perHostDelayMs: 1_000 }, async (hand) => {
    await hand.seed(`${A}/1`);
    await hand.done(await hand.one(), [hand.link(`${A}/2`, { hop: "redirect" })], { sinceStartMs: 5 });
    assert.equal((await hand.wait()).waitMs, 995);
  }),
  caseOf(
    "delay",
    "a delay by host holds in place of the general one",
    { perHostDelayMs: 100, hosts: new Map([["a.test", { delayMs: 700 }]]) },
    async (hand) => {
      await hand.seed(...many("a.test", 2));
      await hand.done(await hand.one());
      assert.equal((await hand.wait()).waitMs, 700);
    },
  ),
  caseOf(
    "delay",
    "of crawl delay and configured delay the larger holds, up to the longest wait",
    { perHostDelayMs: 100, maxWaitMs: 5_000 },
    async (hand, { frontier }) => {
      await hand.seed(...many("a.test", 3), ...many("b.test", 3), ...many("c.test", 3));
      await frontier.tune("a.test", { crawlDelayMs: 400 });
      await frontier.tune("b.test", { crawlDelayMs: 50 });
      await frontier.tune("c.test", { crawlDelayMs: 60_000 });
      for (const lease of await hand.claim()) await hand.done(lease);
      const due = new Map((await frontier.hosts(9)).map((view) => [view.host, view.dueInMs]));
      assert.deepEqual([due.get("a.test"), due.get("b.test"), due.get("c.test")], [400, 100, 5_000]);
    },
  ),
  caseOf("delay", "a crawl delay makes an auto host take one request at a time", { perHostDelayMs: "auto" }, async (hand, { frontier }) => {
    await hand.seed(...many("a.test", 3));
    await frontier.tune("a.test", { crawlDelayMs: 1_000 });
    await hand.done(await hand.one());
    assert.equal((await hand.wait()).waitMs, 1_000);
  }),
  caseOf("jitter", "a delay is lengthened by a share up to the jitter, never shortened", { perHostDelayMs: 1_000, jitter: 0.5 }, async (hand, { advance }) => {
    await hand.seed(...many("a.test", 12));
    const gaps = new Set<number>();
    for (let i = 0; i < 10; i++) {
      await hand.done(await hand.one());
      const { waitMs } = await hand.wait();
      assert.ok(waitMs >= 1_000 && waitMs <= 1_500, `${waitMs} lies between the delay and half as much again`);
      gaps.add(Math.round(waitMs));
      await advance(waitMs);
    }
    assert.ok(gaps.size > 3, "the gaps differ");
  }),
  caseOf("Retry-After", "nothing starts on a host before its Retry-After is over; of two the larger holds", {}, async (hand, { advance }) => {
    await hand.seed(...many("a.test", 4));
    const [first, second] = await hand.claim(2);
    await hand.retry(first!, 0, { answer: pushback, host: { notBeforeMs: 5_000 } });
    await hand.retry(second!, 0, { answer: pushback, host: { notBeforeMs: 2_000 } });
    assert.equal((await hand.wait()).waitMs, 5_000);
    await advance(4_999);
    assert.deepEqual(await hand.urls(), []);
    await advance(1);
    assert.ok((await hand.claim()).length > 0);
  }),
  caseOf("Retry-After", "a block holds for a host that was not contacted too", {}, async (hand, { frontier }) => {
    await hand.seed(...many("a.test", 4));
    await frontier.tune("a.test", { notBeforeMs: 900 });
    assert.equal((await hand.wait()).waitMs, 900);
  }),
  caseOf("Retry-After", "a Retry-After beyond the longest wait is cut to it", { maxWaitMs: 3_000 }, async (hand) => {
    await hand.seed(...many("a.test", 2));
    await hand.retry(await hand.one(), 0, { answer: pushback, host: { notBeforeMs: 86_400_000 } });
    assert.ok((await hand.wait()).waitMs <= 3_000);
  }),
  caseOf(
    "back-off",
    "a host that pushes back without saying for how long is left alone, longer each time (F102)",
    { perHostConcurrency: 10 },
    async (hand, { advance }) => {
      await hand.seed(...many("localhost", 100));
      let requests = 0;
      for (let ms = 0; ms < 10_000; ms += 50) {
        requests += await round(hand, pushback);
        await advance(50);
      }
      assert.ok(requests < 60, `${requests} requests in 10 s of outage`);
      assert.ok(requests > 3, "it is tried again now and then");
      let got = 0;
      for (let ms = 0; got < 100 && ms < 300_000; ms += 500) {
        got += await round(hand, good);
        await advance(500);
      }
      assert.equal(got, 100);
    },
  ),
  caseOf("back-off", "one burst is one step, however many requests of it are refused", { perHostConcurrency: 8 }, async (hand, { frontier }) => {
    await hand.seed(...many("a.test", 20));
    const leases = await hand.claim();
    assert.equal(leases.length, 8);
    for (const lease of leases) await hand.retry(lease, 0, { answer: pushback });
    const due = (await frontier.hosts(1))[0]!.dueInMs;
    assert.ok(due > 0 && due <= 1_000, `${due} ms is one step of back-off`);
  }),
  caseOf("back-off", "the back-off never exceeds the longest wait, and a good answer ends it", { maxWaitMs: 4_000 }, async (hand, { frontier, advance }) => {
    await hand.seed(...many("a.test", 30));
    for (let i = 0; i < 10; i++) {
      assert.ok((await round(hand, pushback)) > 0);
      const due = (await frontier.hosts(1))[0]!.dueInMs;
      assert.ok(due > 0 && due <= 4_000, `${due} ms`);
      await advance(4_000);
    }
    await round(hand, good);
    assert.ok((await hand.claim()).length > 1);
  }),
  caseOf(
    "auto",
    "a public host starts with two in flight and gains one for every twenty good answers",
    { perHostDelayMs: "auto", perHostConcurrency: 4 },
    async (hand) => {
      await hand.seed(...many("a.test", 200));
      const widths: number[] = [];
      for (let i = 0; i < 40; i++) widths.push(await round(hand, good));
      assert.equal(widths[0], 2);
      assert.deepEqual([...new Set(widths)], [2, 3, 4], "it grows one by one up to the limit");
      assert.equal(widths.indexOf(3), 10);
    },
  ),
  caseOf("auto", "a public host that pushes back gets half as many in flight", { perHostDelayMs: "auto", perHostConcurrency: 8 }, async (hand, { advance }) => {
    await hand.seed(...many("a.test", 400));
    for (let i = 0; i < 60; i++) await round(hand, good);
    assert.equal(await round(hand, pushback, { notBeforeMs: 10 }), 8);
    await advance(10);
    assert.equal((await hand.claim()).length, 4);
  }),
  caseOf(
    "auto",
    "a local host starts at the limit, by its name or when the worker says so",
    { perHostDelayMs: "auto", perHostConcurrency: 8 },
    async (hand, { frontier }) => {
      const local = ["localhost:3000", "x.localhost", "127.0.0.1", "10.1.2.3:81", "192.168.0.1", "172.16.3.4", "[::1]:8080"];
      for (const host of local) {
        await frontier.add(many(host, 9).map((url) => hand.link(url)));
        assert.equal((await hand.claim()).length, 8, host);
      }
      for (const host of ["a.test", "172.32.0.1", "10.example.com", "1.1.1.1", "localhost.example.com"]) {
        await frontier.add(many(host, 9).map((url) => hand.link(url)));
        assert.equal((await hand.claim()).length, 2, host);
      }
      await frontier.tune("b.test", { local: true });
      await frontier.add(many("b.test", 9).map((url) => hand.link(url)));
      assert.equal((await hand.claim()).length, 8, "tuned");
    },
  ),
  caseOf("rate", "starts of the whole crawl are spaced evenly", { ratePerMinute: 60 }, async (hand, { advance }) => {
    await hand.seed(...many("a.test", 4), ...many("b.test", 4));
    await hand.one();
    const wait = await hand.wait();
    assert.deepEqual([wait.cause, wait.waitMs], ["rate", 1_000]);
    await advance(999);
    assert.deepEqual(await hand.urls(), []);
    await advance(1);
    assert.equal((await hand.urls()).length, 1);
    await advance(10_000);
    assert.equal((await hand.urls()).length, 1, "time that was not used is not made up for in a burst");
  }),
  caseOf("fair", "due hosts take turns: twenty hosts share a claim", { perHostConcurrency: 64 }, async (hand) => {
    await hand.seed(...many("h0.test", 500), ...Array.from({ length: 19 }, (_, i) => many(`h${i + 1}.test`, 5)).flat());
    const byHost = Map.groupBy(await hand.claim(64), (lease: Lease) => lease.request.host);
    assert.equal(byHost.size, 20);
    for (const [host, leases] of byHost) assert.ok(leases.length <= 5, `${host} got ${leases.length}`);
  }),
  caseOf("fair", "a host that had its turn goes behind the hosts that are due", { perHostDelayMs: 10 }, async (hand, { advance }) => {
    await hand.seed(...many("a.test", 9), ...many("b.test", 9), ...many("c.test", 9));
    const order: string[] = [];
    for (let i = 0; i < 9; i++) {
      const lease = await hand.one();
      order.push(lease.request.host);
      await hand.done(lease);
      await advance(10);
    }
    for (let i = 0; i < 9; i += 3) assert.equal(new Set(order.slice(i, i + 3)).size, 3, order.join(" "));
  }),
  caseOf("fair", "a slow host with a long queue holds no other back (F097)", { perHostConcurrency: 2 }, async (hand) => {
    await hand.seed(...many("slow.test", 500), ...many("fast.test", 40));
    let fast = 0;
    for (let i = 0; i < 60 && fast < 40; i++) {
      for (const lease of await hand.claim(4)) {
        if (lease.request.host === "slow.test") continue;
        fast++;
        await hand.done(lease);
      }
    }
    assert.equal(fast, 40);
  }),
  caseOf(
    "wait",
    "a claim says how long nothing is due: until the first host",
    { perHostDelayMs: 1_000, hosts: new Map([["b.test", { delayMs: 300 }]]) },
    async (hand) => {
      await hand.seed(...many("a.test", 2), ...many("b.test", 2));
      for (const lease of await hand.claim()) await hand.done(lease);
      const wait = await hand.wait();
      assert.deepEqual([wait.waitMs, wait.cause], [300, "delay"]);
    },
  ),
  caseOf(
    "hosts",
    "a host's view tells what is queued, in flight and settled, and how fast it answers",
    { perHostConcurrency: 2 },
    async (hand, { frontier }) => {
      await hand.seed(...many("a.test", 5), ...many("b.test", 1));
      const [first] = await hand.claim();
      await frontier.settle(
        [settledAs(first!, { kind: "done", counted: true, output: outputFor(first!.request.url) }, { answer: { kind: "good", latencyMs: 40 } })],
        [],
      );
      const view = (await frontier.hosts(1))[0]!;
      assert.deepEqual([view.host, view.queued, view.inFlight, view.settled, view.meanLatencyMs, view.concurrency], ["a.test", 3, 1, 1, 40, 2]);
    },
  ),
];
