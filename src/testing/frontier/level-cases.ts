/** Cases on depth: the smallest one wins, and with levels a page runs once no shorter way to it can appear. */
import assert from "node:assert/strict";
import { caseOf, type FrontierCase, noRecord, outputFor, settledAs } from "./bench.ts";

const A = "http://a.test";
const on = { levels: true, perHostConcurrency: 100 } as const;

export const levelCases: readonly FrontierCase[] = [
  caseOf("depth", "without levels a claim hands out the smallest depth known", {}, async (hand, { frontier }) => {
    await frontier.add([hand.link(`${A}/1`, { depth: 5 })]);
    assert.deepEqual(await frontier.add([hand.link(`${A}/1`, { depth: 2 }), hand.link(`${A}/1`, { depth: 3 })]), { added: 0, known: 2, lowered: 1 });
    assert.equal((await hand.one()).request.depth, 2);
    assert.deepEqual(await hand.urls(), [], "it is handed out once");
  }),
  caseOf("depth", "a retry is handed out with the smallest depth known by then", {}, async (hand, { frontier, advance }) => {
    await frontier.add([hand.link(`${A}/1`, { depth: 5 })]);
    await hand.retry(await hand.one(), 10);
    await frontier.add([hand.link(`${A}/1`, { depth: 1 })]);
    await advance(10);
    assert.equal((await hand.one()).request.depth, 1);
  }),
  caseOf("levels", "two levels run at a time: level 2 waits for the whole of level 0", on, async (hand, { frontier }) => {
    await hand.seed(`${A}/0a`, "http://b.test/0b");
    const [a, b] = await hand.claim();
    await hand.done(a!, [hand.link(`${A}/1`, { depth: 1 })]);
    const one = await hand.one();
    assert.equal(one.request.url, `${A}/1`, "level 1 runs beside level 0");
    await hand.done(one, [hand.link(`${A}/2`, { depth: 2 })]);
    assert.deepEqual(await hand.urls(), []);
    assert.equal((await hand.wait()).cause, "level");
    assert.equal((await frontier.counts()).level, 0);
    await hand.done(b!);
    assert.deepEqual(await hand.urls(), [`${A}/2`]);
  }),
  caseOf("levels", "a delayed request of a level holds back the level after the next", on, async (hand, { advance }) => {
    await hand.seed(`${A}/0`, "http://b.test/0");
    const [a, b] = await hand.claim();
    await hand.done(a!, [hand.link(`${A}/1`, { depth: 1 })]);
    await hand.done(await hand.one(), [hand.link(`${A}/2`, { depth: 2 })]);
    await hand.retry(b!, 500);
    assert.deepEqual(await hand.urls(), []);
    await advance(500);
    assert.deepEqual(await hand.urls(), ["http://b.test/0"]);
  }),
  caseOf("levels", "one dead seed among a hundred holds no other's level 1 back", on, async (hand) => {
    await hand.seed(...Array.from({ length: 100 }, (_, i) => `http://h${i}.test/`));
    const [dead, ...others] = await hand.claim();
    for (const lease of others) await hand.done(lease, [hand.link(`${lease.request.url}1`, { depth: 1 })]);
    assert.equal((await hand.claim()).length, 99);
    assert.ok(dead !== undefined);
  }),
  caseOf("levels", "levels come before priority", on, async (hand, { frontier }) => {
    await frontier.add([hand.link(`${A}/0`, { priority: -5 }), hand.link(`${A}/1`, { depth: 1, priority: 9 })]);
    assert.deepEqual(await hand.urls(), [`${A}/0`, `${A}/1`]);
  }),
  caseOf("levels", "a queued URL that is lowered runs at its true level, once, and is counted once", on, async (hand, { frontier }) => {
    await frontier.add([hand.link(`${A}/x`, { depth: 5 }), hand.link(`${A}/0`), hand.link(`${A}/9`, { depth: 9 })]);
    assert.deepEqual(await frontier.add([hand.link(`${A}/x`, { depth: 1, referrer: `${A}/0` })]), { added: 0, known: 1, lowered: 1 });
    assert.equal((await frontier.counts()).queued, 3);
    const leases = await hand.claim();
    assert.deepEqual(
      leases.map((lease) => [lease.request.url, lease.request.depth]),
      [
        [`${A}/0`, 0],
        [`${A}/x`, 1],
      ],
    );
    for (const lease of leases) await hand.done(lease);
    await hand.balance();
    assert.deepEqual(await hand.urls(), [`${A}/9`]);
    await hand.balance();
    assert.deepEqual((await frontier.counts()).queued, 0);
  }),
  caseOf("levels", "the old entry of a lowered URL holds no level back", on, async (hand, { frontier }) => {
    await frontier.add([hand.link(`${A}/x`, { depth: 2 }), hand.link(`${A}/0`), hand.link(`${A}/4`, { depth: 4 })]);
    await frontier.add([hand.link(`${A}/x`, { depth: 1 })]);
    for (const lease of await hand.claim()) await hand.done(lease);
    assert.deepEqual(await hand.urls(), [`${A}/4`], "level 2 holds nothing any more");
  }),
  caseOf("levels", "a redirect target keeps its level", on, async (hand) => {
    await hand.seed(`${A}/0`, "http://b.test/0");
    const [a] = await hand.claim(1);
    await hand.done(a!, [hand.link(`${A}/to`, { depth: 0, hop: "redirect" })]);
    assert.equal((await hand.claim()).find((lease) => lease.request.url === `${A}/to`)?.request.depth, 0);
  }),
  caseOf("re-expansion", "a settled page that a redirect lowers is fetched once more for its links: not counted, not written", on, async (hand, bench) => {
    const { frontier } = bench;
    await hand.seed(`${A}/0`, "http://b.test/0");
    const [a, b] = await hand.claim();
    await hand.done(a!, [hand.link(`${A}/x`, { depth: 1 })]);
    const x = await hand.one();
    await hand.done(x, [hand.link(`${A}/y`, { depth: 2 })]);
    const counted = (await frontier.counts()).counted;
    const owed = [outputFor("http://b.test/0")];
    const target = hand.link(`${A}/x`, { depth: 0, hop: "redirect", rest: { owed, redirects: [{ url: "http://b.test/0", status: 301 }] } });
    await frontier.settle([settledAs(b!, { kind: "done", counted: false, output: noRecord })], [target]);
    await hand.balance();
    const again = await hand.one();
    assert.deepEqual([again.request.url, again.request.depth, again.request.rest?.owed ?? []], [`${A}/x`, 0, []]);
    assert.deepEqual(await hand.remaining(), [`${A}/y`]);
    await hand.done(again, [hand.link(`${A}/y`, { depth: 1 })], { tally: [["x", 1]] });
    const after = await frontier.counts();
    assert.deepEqual([after.counted, after.tally.get("x")], [counted, undefined]);
    assert.deepEqual(hand.pages(), [`${A}/0`, `${A}/x`, "http://b.test/0"]);
    assert.equal((await hand.one()).request.depth, 1, "y is one link from a seed");
    await hand.balance();
  }),
  caseOf("re-expansion", "a page that is lowered while it is leased is expanded again too", on, async (hand, { frontier }) => {
    await hand.seed(`${A}/0`, "http://b.test/0");
    const [a, b] = await hand.claim();
    await hand.done(a!, [hand.link(`${A}/x`, { depth: 1 })]);
    const x = await hand.one();
    await hand.done(b!, [hand.link(`${A}/x`, { depth: 0, hop: "redirect" })]);
    await hand.done(x, [hand.link(`${A}/y`, { depth: 2 })]);
    await hand.balance();
    const again = await hand.one();
    assert.deepEqual([again.request.url, again.request.depth], [`${A}/x`, 0]);
    await hand.done(again, [hand.link(`${A}/y`, { depth: 1 })]);
    const y = await hand.one();
    assert.equal(y.request.depth, 1);
    await hand.done(y);
    const counts = await frontier.counts();
    assert.deepEqual([counts.counted, counts.done, counts.seen, counts.completed], [4, 4, 4, true]);
    assert.equal(hand.pages().filter((url) => url === `${A}/x`).length, 1);
  }),
  caseOf("redirect", "a queued redirect target that is lowered pays what its chain owes, once", on, async (hand, { frontier }) => {
    const owed = [outputFor("http://b.test/0")];
    await hand.seed(`${A}/0`, "http://b.test/0", hand.link(`${A}/8`, { depth: 8 }));
    const [a, b] = await hand.claim();
    const target = hand.link(`${A}/x`, { depth: 3, hop: "redirect", rest: { owed, redirects: [{ url: "http://b.test/0", status: 301 }] } });
    await frontier.settle([settledAs(b!, { kind: "done", counted: false, output: noRecord })], [target]);
    assert.deepEqual(hand.pages(), []);
    await hand.done(a!, [hand.link(`${A}/x`, { depth: 1 })]);
    assert.deepEqual(hand.pages(), ["http://b.test/0", `${A}/0`]);
    const x = await hand.one();
    assert.deepEqual([x.request.depth, x.request.rest?.owed ?? []], [1, []]);
    await hand.done(x);
    await hand.done(await hand.one());
    assert.deepEqual(hand.pages(), ["http://b.test/0", `${A}/0`, `${A}/x`, `${A}/8`]);
    assert.equal(await hand.kind(), "drained");
  }),
];
