/** Cases on the page limit, lost leases and control. */
import assert from "node:assert/strict";
import { caseOf, type FrontierCase, noRecord, outputFor, settledAs } from "./bench.ts";

const A = "http://a.test";
const pages = (n: number): string[] => Array.from({ length: n }, (_, i) => `${A}/${i}`);

export const limitCases: readonly FrontierCase[] = [
  caseOf("I7", "never more leases than the limit has places", { limitPages: 5, perHostConcurrency: 100 }, async (hand) => {
    await hand.seed(...pages(20));
    const leases = await hand.claim();
    assert.equal(leases.length, 5);
    assert.equal((await hand.wait()).cause, "limit");
    await hand.done(leases[0]!);
    assert.deepEqual(await hand.urls(), []);
  }),
  caseOf("I7", "a page that does not count gives its place back", { limitPages: 2, perHostConcurrency: 100 }, async (hand, { frontier }) => {
    await hand.seed(...pages(20));
    const [first, second] = await hand.claim();
    await hand.uncounted(first!);
    await hand.dropped(second!);
    const more = await hand.claim();
    assert.equal(more.length, 2);
    await hand.retry(more[0]!, 60_000);
    const last = await hand.one();
    await hand.done(last);
    await hand.done(more[1]!);
    const counts = await frontier.counts();
    assert.deepEqual([counts.counted, counts.completed], [2, true]);
    assert.equal(await hand.kind(), "drained");
    assert.equal((await hand.remaining()).length, counts.queued + counts.delayed);
  }),
  ...[1, 37, 100].map((limit) =>
    caseOf(
      "I7",
      `a limit of ${limit} is met exactly when every third page fails`,
      { limitPages: limit, perHostConcurrency: 1_000 },
      async (hand, { frontier }) => {
        await hand.seed(...pages(300));
        let n = 0;
        for (let leases = await hand.claim(16); leases.length > 0; leases = await hand.claim(16)) {
          for (const lease of leases) {
            const { counted, leased } = await frontier.counts();
            assert.ok(counted + leased <= limit);
            await (n++ % 3 === 0 ? hand.uncounted(lease) : hand.done(lease));
          }
        }
        assert.equal((await frontier.counts()).counted, limit);
        assert.equal(await hand.kind(), "drained");
      },
    ),
  ),
  caseOf("I7", "the limit can be raised, also after it was met", { limitPages: 1 }, async (hand, { frontier }) => {
    await hand.seed(...pages(4));
    await hand.done(await hand.one());
    assert.equal(await hand.kind(), "drained");
    await frontier.setPageLimit(3);
    assert.equal((await hand.claim()).length, 2);
    await frontier.setPageLimit(null);
    assert.equal((await hand.claim()).length, 1);
  }),
  caseOf(
    "lease",
    "a lease that is not renewed is lost: the request is handed out again, first, with one crash more",
    { leaseMs: 1_000 },
    async (hand, { advance }) => {
      await hand.seed(...pages(3));
      const lost = await hand.one();
      assert.equal(lost.expiresInMs, 1_000);
      await advance(1_001);
      const again = await hand.one();
      assert.deepEqual([again.request.url, again.crashes, again.attempt], [lost.request.url, 1, 0]);
      assert.deepEqual(await hand.done(lost), ["stale"]);
      assert.deepEqual(hand.pages(), []);
      assert.deepEqual(await hand.done(again), ["applied"]);
    },
  ),
  caseOf("lease", "a renewed lease lives on; renew names the lost ones and the control state", { leaseMs: 1_000 }, async (hand, { frontier, advance }) => {
    await hand.seed(...pages(2));
    const [kept, lost] = await hand.claim();
    await advance(700);
    assert.deepEqual(await frontier.renew([kept!.token]), { lost: [], control: "run" });
    await advance(700);
    const again = await hand.claim();
    assert.deepEqual(
      again.map((lease) => lease.request.url),
      [lost!.request.url],
    );
    const renewed = await frontier.renew([kept!.token, lost!.token, "unknown"]);
    assert.deepEqual([...renewed.lost].sort(), [lost!.token, "unknown"].sort());
    assert.deepEqual(await hand.done(kept!), ["applied"]);
  }),
  caseOf(
    "lease",
    "a lost lease gives its host's slot and its place back",
    { leaseMs: 1_000, perHostConcurrency: 1, limitPages: 1 },
    async (hand, { advance }) => {
      await hand.seed(...pages(2));
      await hand.one();
      assert.equal((await hand.wait()).waitMs, 1_000);
      await advance(1_001);
      assert.equal((await hand.claim()).length, 1);
    },
  ),
  caseOf(
    "lease",
    "where a delay holds, a lease that never told of its start holds its host until it expires",
    { leaseMs: 1_000, perHostDelayMs: 10 },
    async (hand, { advance }) => {
      await hand.seed(...pages(2));
      await hand.one();
      await advance(999);
      assert.equal((await hand.wait()).waitMs, 1);
      await advance(2);
      assert.equal((await hand.claim()).length, 1);
    },
  ),
  caseOf("crash", "a request whose lease is lost three times is dropped, with its record and what it owes", { leaseMs: 1_000 }, async (hand, bench) => {
    const { frontier } = bench;
    const rest = { owed: [outputFor(`${A}/from`)], redirects: [{ url: `${A}/from`, status: 301 }] };
    await hand.seed(hand.link(`${A}/1`, { hop: "redirect", rest }));
    for (let crashes = 0; crashes < 3; crashes++) {
      assert.equal((await hand.one()).crashes, crashes);
      await hand.balance();
      await bench.advance(1_001);
    }
    assert.equal(await hand.kind(), "drained");
    assert.deepEqual(hand.pages(), [`${A}/from`, `${A}/1`]);
    assert.equal(bench.outputs().at(-1)?.page?.error?.code, "crashed");
    assert.equal((await frontier.counts()).dropped, 1);
    await hand.balance();
  }),
  caseOf("control", "paused: nothing is handed out, settles are taken; run goes on", {}, async (hand, { frontier }) => {
    await hand.seed(...pages(3));
    const first = await hand.one();
    await frontier.control("pause");
    assert.deepEqual(await frontier.claim(1), { kind: "held", why: "paused" });
    assert.equal((await frontier.renew([])).control, "pause");
    await hand.done(first, [hand.link(`${A}/new`, { depth: 1 })]);
    assert.equal((await frontier.counts()).control, "pause");
    await frontier.control("run");
    assert.equal((await hand.claim()).length, 3);
  }),
  caseOf("control", "finish: no new links, but what is queued is done, retries and redirects included", {}, async (hand, { frontier, advance }) => {
    await hand.seed(...pages(2));
    const first = await hand.one();
    await frontier.control("finish");
    await hand.done(first, [hand.link(`${A}/new`, { depth: 1 }), hand.link(`${A}/to`, { hop: "redirect" })]);
    assert.equal((await frontier.add([hand.link(`${A}/other`)])).added, 0);
    const [second, target] = await hand.claim();
    assert.equal(target?.request.url, `${A}/to`);
    await hand.retry(second!, 10);
    await hand.done(target!);
    await advance(10);
    await hand.done(await hand.one());
    assert.equal(await hand.kind(), "drained");
    assert.deepEqual(hand.pages(), [`${A}/0`, `${A}/to`, `${A}/1`]);
  }),
  caseOf("control", "finish outlasts a pause: paused and run again, the crawl still takes no new links", {}, async (hand, { frontier }) => {
    await hand.seed(...pages(2));
    const first = await hand.one();
    await frontier.control("finish");
    await frontier.control("pause");
    assert.equal(await hand.kind(), "held");
    await hand.done(first, [hand.link(`${A}/new`, { depth: 1 })]);
    await frontier.control("run");
    assert.equal((await frontier.renew([])).control, "finish");
    await hand.done(await hand.one(), [hand.link(`${A}/newer`, { depth: 1 })]);
    assert.equal(await hand.kind(), "drained");
  }),
  caseOf("control", "drain: nothing starts any more, what is in flight settles, then the crawl is over", {}, async (hand, { frontier }) => {
    await hand.seed(...pages(3));
    const first = await hand.one();
    await frontier.control("drain");
    assert.deepEqual(await frontier.claim(1), { kind: "held", why: "stopping" });
    assert.equal((await frontier.renew([first.token])).control, "drain");
    await hand.done(first, [hand.link(`${A}/new`, { depth: 1 })]);
    assert.equal((await frontier.counts()).completed, true);
    assert.equal(await hand.kind(), "drained");
    assert.equal((await hand.remaining()).length, 3);
  }),
  caseOf("control", "now: all leases are lost; only handing them back is still taken", {}, async (hand, { frontier }) => {
    await hand.seed(...pages(3));
    const [first, second] = await hand.claim(2);
    await frontier.control("now");
    const renewed = await frontier.renew([first!.token, second!.token]);
    assert.deepEqual([renewed.lost.length, renewed.control], [2, "now"]);
    assert.deepEqual(await hand.returned(first!), ["applied"]);
    assert.deepEqual(await hand.returned(first!), ["stale"]);
    assert.deepEqual(await hand.done(second!), ["stale"]);
    assert.deepEqual(hand.pages(), []);
    const counts = await frontier.counts();
    assert.deepEqual([counts.leased, counts.queued, counts.completed], [0, 3, true]);
    assert.deepEqual(await hand.remaining(), pages(3));
    assert.equal(await hand.kind(), "drained");
  }),
  caseOf("control", "a stop also ends a crawl whose seeds are not complete", {}, async (hand, { frontier }) => {
    await frontier.add([hand.link(`${A}/1`)]);
    await frontier.settle([settledAs(await hand.one(), { kind: "done", counted: true, output: noRecord })], []);
    await frontier.control("drain");
    assert.equal(await hand.kind(), "drained");
  }),
];
