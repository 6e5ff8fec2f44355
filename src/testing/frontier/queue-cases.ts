/** Cases on what is queued, handed out once, settled and counted. */
import assert from "node:assert/strict";
import { caseOf, type FrontierCase, noRecord, outputFor, settledAs } from "./bench.ts";

const A = "http://a.test";

export const queueCases: readonly FrontierCase[] = [
  caseOf("add", "a request added twice is handed out once", {}, async (hand, { frontier }) => {
    assert.deepEqual(await hand.seed(`${A}/1`, `${A}/1`, `${A}/2`), { added: 2, known: 1, lowered: 0 });
    assert.deepEqual(await frontier.add([hand.link(`${A}/1`)]), { added: 0, known: 1, lowered: 0 });
    assert.deepEqual(await hand.urls(), [`${A}/1`, `${A}/2`]);
    assert.deepEqual(await frontier.add([hand.link(`${A}/2`)]), { added: 0, known: 1, lowered: 0 });
    assert.deepEqual(await hand.urls(), []);
  }),
  caseOf("add", "a request is handed out as it was added, long and odd URLs included", { perHostConcurrency: 100 }, async (hand, { frontier }) => {
    const rest = { method: "POST", body: new Uint8Array([1, 2]), sentAs: "http://a.test/%7e", headers: { "x-a": "1" } };
    const added = [
      hand.link(`${A}/plain`, { depth: 3, priority: 0, referrer: `${A}/from` }),
      hand.link(`${A}/rest`, { rest }),
      hand.link(`https://a.test/${"x".repeat(3_000)}`, { referrer: `${A}/${"y".repeat(3_000)}` }),
      hand.link("http://a.test:443/odd", { hop: "sitemap" }),
      hand.link(`${A}/long-rest/${"z".repeat(3_000)}`, { rest, depth: 70_000 }),
      ...Array.from({ length: 40 }, (_, i) => hand.link(`${A}/${"p".repeat(i * 11)}`, { referrer: i % 3 === 0 ? null : `${A}/r${i >> 2}` })),
    ];
    await frontier.add(added);
    assert.deepEqual(
      (await hand.claim()).map((lease) => lease.request),
      added,
    );
  }),
  caseOf("I3", "a leased request is not handed out again", {}, async (hand) => {
    await hand.seed(`${A}/1`);
    await hand.one();
    assert.deepEqual(await hand.urls(), []);
  }),
  caseOf("claim", "a claim gives at most as many leases as were asked for", {}, async (hand) => {
    await hand.seed(`${A}/1`, `${A}/2`, `${A}/3`);
    assert.equal((await hand.claim(2)).length, 2);
  }),
  caseOf("I4", "tokens never repeat", {}, async (hand) => {
    await hand.seed(...Array.from({ length: 20 }, (_, i) => `${A}/${i}`));
    const tokens = new Set<string>();
    for (let i = 0; i < 20; i++) {
      const lease = await hand.one();
      assert.ok(!tokens.has(lease.token), "a token was given before");
      tokens.add(lease.token);
      await hand.done(lease);
    }
  }),
  caseOf("I3", "a token settles once; its second use is stale and writes nothing", {}, async (hand, { frontier }) => {
    await hand.seed(`${A}/1`);
    const lease = await hand.one();
    assert.deepEqual(await hand.done(lease), ["applied"]);
    assert.deepEqual(await hand.done(lease), ["stale"]);
    assert.deepEqual(hand.pages(), [`${A}/1`]);
    assert.equal((await frontier.counts()).counted, 1);
  }),
  caseOf("I3", "a token used twice in one batch settles once", {}, async (hand, { frontier }) => {
    await hand.seed(`${A}/1`);
    const lease = await hand.one();
    const settled = settledAs(lease, { kind: "done", counted: true, output: outputFor(`${A}/1`) });
    assert.deepEqual(await frontier.settle([settled, settled], []), ["applied", "stale"]);
    assert.deepEqual(hand.pages(), [`${A}/1`]);
  }),
  caseOf("settle", "a stale settle changes nothing but the links", {}, async (hand, { frontier }) => {
    await hand.seed(`${A}/1`, `${A}/2`);
    const lease = await hand.one();
    await hand.done(lease);
    const more = { tally: [["x", 5] as const], newSeeds: ["http://n.test/"] };
    assert.deepEqual(await hand.done(lease, [hand.link(`${A}/3`, { depth: 1 })], more), ["stale"]);
    const counts = await frontier.counts();
    assert.equal(counts.tally.get("x"), undefined);
    assert.equal(counts.seen, 3, "the link was kept");
  }),
  caseOf("I5", "links are in the frontier before their page is acknowledged: the crawl does not end between the two", {}, async (hand, { frontier }) => {
    await hand.seed(`${A}/1`);
    await hand.done(await hand.one(), [hand.link(`${A}/2`, { depth: 1 })]);
    assert.equal((await frontier.counts()).completed, false);
    assert.deepEqual(await hand.urls(), [`${A}/2`]);
  }),
  caseOf("output", "outputs are written in settle order, one call or many", {}, async (hand, { frontier }) => {
    await hand.seed(...[1, 2, 3, 4].map((n) => `${A}/${n}`));
    const leases = await hand.claim();
    const page = (i: number) => settledAs(leases[i]!, { kind: "done", counted: true, output: outputFor(leases[i]!.request.url) });
    await frontier.settle([page(2), page(0)], []);
    await frontier.settle([page(3), page(1)], []);
    assert.deepEqual(
      hand.pages(),
      [3, 1, 4, 2].map((n) => `${A}/${n}`),
    );
  }),
  caseOf("output", "when the sinks refuse, the settle rejects, its pages are not acknowledged, and a later try writes everything", {}, async (hand, bench) => {
    const { frontier } = bench;
    await hand.seed(`${A}/1`);
    const lease = await hand.one();
    const skip = { idHi: 9, idLo: 9, value: { url: `${A}/s`, referrer: null, depth: 1, reason: "excluded" as const } };
    const page = settledAs(lease, { kind: "done", counted: true, output: outputFor(`${A}/1`, { skipped: [skip] }) }, { tally: [["x", 1]] });
    bench.refuseWrites(true);
    await assert.rejects(frontier.settle([page], []));
    bench.refuseWrites(false);
    const before = await frontier.counts();
    assert.deepEqual([before.leased, before.counted, before.done, before.tally.size], [1, 0, 0, 0]);
    assert.deepEqual(await frontier.settle([page], []), ["applied"]);
    assert.deepEqual(
      bench.outputs().map((output) => output.skipped.length),
      [1],
    );
    assert.deepEqual(Object.fromEntries((await frontier.counts()).tally), { x: 1, "skip:excluded": 1 });
  }),
  caseOf("once", "a skipped URL and a found link are written once a run, and counted once", {}, async (hand, bench) => {
    const { frontier } = bench;
    await hand.seed(`${A}/1`, `${A}/2`);
    const skip = (id: number, reason: "excluded" | "depth") => ({ idHi: id, idLo: 0, value: { url: `${A}/s${id}`, referrer: null, depth: 1, reason } });
    const found = (id: number) => ({ idHi: id, idLo: 0, value: `${A}/s${id}` });
    const [first, second] = await hand.claim();
    const one = outputFor(`${A}/1`, { skipped: [skip(1, "excluded"), skip(2, "depth"), skip(1, "excluded")], found: [found(1)] });
    const two = outputFor(`${A}/2`, { skipped: [skip(2, "depth"), skip(3, "depth")], found: [found(1), found(2)] });
    await frontier.settle([settledAs(first!, { kind: "done", counted: true, output: one })], []);
    await frontier.settle([settledAs(second!, { kind: "done", counted: true, output: two })], []);
    assert.deepEqual(
      bench.outputs().flatMap((output) => output.skipped.map((entry) => entry.idHi)),
      [1, 2, 3],
    );
    assert.deepEqual(
      bench.outputs().flatMap((output) => output.found.map((entry) => entry.idHi)),
      [1, 2],
    );
    assert.deepEqual(Object.fromEntries((await frontier.counts()).tally), { "skip:excluded": 1, "skip:depth": 2 });
  }),
  caseOf("tally", "named counters are raised in the step that settles", {}, async (hand, { frontier }) => {
    await hand.seed(`${A}/1`, `${A}/2`);
    for (const lease of await hand.claim())
      await hand.done(lease, [], {
        tally: [
          ["bytes", 7],
          ["pages", 1],
        ],
      });
    assert.deepEqual(Object.fromEntries((await frontier.counts()).tally), { bytes: 14, pages: 2 });
  }),
  caseOf("seeds", "URLs that became seeds are told to the next claim, once", {}, async (hand, { frontier }) => {
    await hand.seed(`${A}/1`, `${A}/2`, `${A}/3`);
    await hand.done(await hand.one(), [], { newSeeds: ["http://n.test/"] });
    const next = await frontier.claim(1);
    assert.deepEqual(next.kind === "leases" ? next.seeds : null, ["http://n.test/"]);
    const last = await frontier.claim(1);
    assert.deepEqual(last.kind === "leases" ? last.seeds : null, []);
  }),
  caseOf("cookies", "a cookie set by a page travels with later leases of its host; the same name, domain and path replaces", {}, async (hand) => {
    await hand.seed(`${A}/1`, `${A}/2`, `${A}/3`, "http://b.test/");
    const cookie = { name: "s", value: "1", domain: "a.test", hostOnly: true, path: "/", secure: false, expiresAt: null };
    const first = await hand.one();
    assert.equal(first.cookies, null);
    await hand.done(first, [], { setCookies: [cookie, { ...cookie, name: "t" }] });
    await hand.done(first, [], { setCookies: [{ ...cookie, name: "stale" }] });
    const jar = new Map((await hand.claim(2)).map((lease) => [lease.request.host, lease]));
    assert.deepEqual(
      jar
        .get("a.test")
        ?.cookies?.map((one) => one.name)
        .sort(),
      ["s", "t"],
    );
    assert.equal(jar.get("b.test")?.cookies, null);
    await hand.done(jar.get("a.test")!, [], { setCookies: [{ ...cookie, value: "2" }] });
    const last = await hand.one();
    assert.deepEqual(last.cookies?.find((one) => one.name === "s")?.value, "2");
    assert.equal(last.cookies?.length, 2);
  }),
  caseOf("order", "larger priority first, then arrival", {}, async (hand, { frontier }) => {
    const priorities = [0, 5, -99, 5, 99, 0, -1];
    await frontier.add(priorities.map((priority, i) => hand.link(`${A}/${i}`, { priority })));
    const order: string[] = [];
    for (let i = 0; i < priorities.length; i++) {
      const lease = await hand.one();
      order.push(lease.request.url.slice(A.length + 1));
      await hand.done(lease);
    }
    assert.deepEqual(order, ["4", "1", "3", "0", "5", "6", "2"]);
  }),
  caseOf("order", "bfs: hundreds of requests of one host come in the order of arrival", { perHostConcurrency: 1_000 }, async (hand) => {
    const urls = Array.from({ length: 700 }, (_, i) => `${A}/${i}`);
    await hand.seed(...urls);
    const got: string[] = [];
    while (got.length < 700) for (const lease of await hand.claim(100)) got.push(lease.request.url) && (await hand.done(lease));
    assert.deepEqual(got, urls);
  }),
  caseOf("order", "dfs: the newest of equal priority first", { order: "dfs" }, async (hand) => {
    await hand.seed(`${A}/1`, `${A}/2`);
    await hand.done(await hand.one(), [hand.link(`${A}/3`, { depth: 1 }), hand.link(`${A}/4`, { depth: 1 })]);
    const order: string[] = [];
    for (let i = 0; i < 3; i++) {
      const lease = await hand.one();
      order.push(lease.request.url);
      await hand.done(lease);
    }
    assert.deepEqual(order, [`${A}/4`, `${A}/3`, `${A}/1`]);
  }),
  caseOf(
    "order",
    "dfs: hundreds of requests come newest first, also when pushes and pops alternate",
    { order: "dfs", perHostConcurrency: 1_000 },
    async (hand, { frontier }) => {
      const stack: string[] = [];
      for (let round = 0; round < 40; round++) {
        const urls = Array.from({ length: 20 }, (_, i) => `${A}/${round}-${i}`);
        await frontier.add(urls.map((url) => hand.link(url)));
        stack.push(...urls);
        for (let i = 0; i < 12; i++) {
          const lease = await hand.one();
          assert.equal(lease.request.url, stack.pop());
          await hand.done(lease);
        }
      }
      assert.equal((await frontier.counts()).queued, stack.length);
    },
  ),
  ...(["bfs", "dfs"] as const).map((order) =>
    caseOf("order", `${order}: what was returned goes before everything else of its priority`, { order }, async (hand) => {
      await hand.seed(`${A}/1`, `${A}/2`, `${A}/3`);
      const lease = await hand.one();
      await hand.returned(lease);
      assert.equal((await hand.one()).request.url, lease.request.url);
    }),
  ),
  caseOf("settle", "returned: back to its queue, no attempt counted", {}, async (hand) => {
    await hand.seed(`${A}/1`);
    await hand.returned(await hand.one());
    const again = await hand.one();
    assert.deepEqual([again.attempt, again.crashes], [0, 0]);
    await hand.balance();
  }),
  caseOf("settle", "retry: handed out again after its wait, not before, with one attempt more", {}, async (hand, { frontier, advance }) => {
    await hand.seed(`${A}/1`);
    await hand.retry(await hand.one(), 500);
    await hand.balance();
    assert.equal((await frontier.counts()).delayed, 1);
    await advance(499);
    const wait = await hand.wait();
    assert.deepEqual([wait.cause, wait.waitMs], ["retry", 1]);
    await advance(1);
    const again = await hand.one();
    assert.equal(again.attempt, 1);
    await hand.retry(again, 100);
    await advance(100);
    assert.equal((await hand.one()).attempt, 2);
  }),
  caseOf("settle", "a retry that is due goes before what is queued", {}, async (hand, { advance }) => {
    await hand.seed(`${A}/1`, `${A}/2`, `${A}/3`);
    await hand.retry(await hand.one(), 100);
    await advance(100);
    assert.equal((await hand.one()).request.url, `${A}/1`);
  }),
  caseOf("settle", "dropped: not counted, written, never handed out again", {}, async (hand, { frontier }) => {
    await hand.seed(`${A}/1`);
    await hand.dropped(await hand.one());
    const counts = await frontier.counts();
    assert.deepEqual([counts.counted, counts.dropped, counts.done], [0, 1, 0]);
    assert.deepEqual(hand.pages(), [`${A}/1`]);
    assert.equal(await hand.kind(), "drained");
  }),
  caseOf("I8", "a crawl ends when nothing is queued, delayed or leased and the seeds are complete; not before", {}, async (hand, { frontier, advance }) => {
    assert.equal((await hand.wait()).cause, "seeds");
    await frontier.add([hand.link(`${A}/1`)]);
    const first = await hand.one();
    assert.equal((await hand.wait()).cause, "leased");
    await hand.retry(first, 50);
    assert.equal(await hand.kind(), "wait");
    await advance(50);
    const again = await hand.one();
    await hand.done(again);
    const seeds = await hand.wait();
    assert.deepEqual([seeds.cause, seeds.waitMs], ["seeds", Infinity]);
    assert.equal((await frontier.counts()).completed, false);
    await frontier.seedsComplete();
    assert.equal((await frontier.counts()).completed, true);
    assert.equal(await hand.kind(), "drained");
  }),
  caseOf("I8", "while a page is leased, the crawl is not drained: it may bring links", {}, async (hand) => {
    await hand.seed(`${A}/1`);
    const lease = await hand.one();
    assert.equal(await hand.kind(), "wait");
    await hand.done(lease);
    assert.equal(await hand.kind(), "drained");
  }),
  caseOf("I8", "a completed crawl takes nothing more", {}, async (hand, { frontier }) => {
    await hand.seed(`${A}/1`);
    await hand.done(await hand.one());
    assert.deepEqual(await frontier.add([hand.link(`${A}/2`)]), { added: 0, known: 1, lowered: 0 });
    assert.equal(await hand.kind(), "drained");
  }),
  caseOf("remaining", "what is queued or delayed remains; what is leased or settled does not", { order: "dfs" }, async (hand) => {
    await hand.seed(...Array.from({ length: 30 }, (_, i) => `http://h${i % 3}.test/${i}`));
    const all = new Set(await hand.remaining());
    assert.equal(all.size, 30);
    const [done, retry, leased] = await hand.claim(3);
    await hand.done(done!);
    await hand.retry(retry!, 1_000);
    all.delete(done!.request.url);
    all.delete(leased!.request.url);
    assert.deepEqual(await hand.remaining(), [...all].sort());
  }),
  caseOf("redirect", "a redirect whose target is known ends its chain: what it owes is written in that step", {}, async (hand, { frontier }) => {
    await hand.seed(`${A}/1`, `${A}/2`);
    const [first] = await hand.claim(1);
    const owed = [outputFor(`${A}/1`)];
    const target = hand.link(`${A}/2`, { hop: "redirect", rest: { owed, redirects: [{ url: `${A}/1`, status: 302 }] } });
    await frontier.settle([settledAs(first!, { kind: "done", counted: false, output: noRecord })], [target]);
    assert.deepEqual(hand.pages(), [`${A}/1`]);
    assert.equal((await frontier.counts()).queued, 1);
  }),
  caseOf("redirect", "a redirect to a new URL carries what it owes in its lease", {}, async (hand, { frontier }) => {
    await hand.seed(`${A}/1`);
    const owed = [outputFor(`${A}/1`)];
    const target = hand.link(`${A}/2`, { hop: "redirect", rest: { owed, redirects: [{ url: `${A}/1`, status: 302 }] } });
    await frontier.settle([settledAs(await hand.one(), { kind: "done", counted: false, output: noRecord })], [target]);
    assert.deepEqual(hand.pages(), []);
    assert.deepEqual((await hand.one()).request, target);
  }),
  caseOf(
    "redirect",
    "the target of a redirect that a lost lease brings owes nothing: its hop will be fetched again",
    {},
    async (hand, { frontier, advance }) => {
      await hand.seed(`${A}/1`);
      const lost = await hand.one();
      await advance(10_001);
      const again = await hand.one();
      const target = () => hand.link(`${A}/2`, { hop: "redirect", rest: { owed: [outputFor(`${A}/1`)], redirects: [{ url: `${A}/1`, status: 302 }] } });
      await frontier.settle([settledAs(lost, { kind: "done", counted: false, output: noRecord })], [target()]);
      await frontier.settle([settledAs(again, { kind: "done", counted: false, output: noRecord })], [target()]);
      assert.deepEqual(hand.pages(), [`${A}/1`]);
      assert.deepEqual((await hand.one()).request.rest?.owed ?? [], [], "the record was written when the second lease met the known target");
    },
  ),
  caseOf("reopen", "a URL that its own chain leads back to is handed out again, as a place of its own", {}, async (hand, { frontier }) => {
    await hand.seed(`${A}/1`);
    const back = hand.link(`${A}/1`, { hop: "redirect", rest: { reopen: true, redirects: [{ url: `${A}/1`, status: 302 }] } });
    await frontier.settle([settledAs(await hand.one(), { kind: "done", counted: false, output: noRecord })], [back]);
    await hand.balance();
    const again = await hand.one();
    assert.equal(again.request.url, `${A}/1`);
    await hand.done(again);
    const counts = await frontier.counts();
    assert.deepEqual([counts.seen, counts.done, counts.counted, counts.completed], [2, 2, 1, true]);
  }),
];
