/** Rules of stores that outlive their process: what a restart must find again, and what it must not repeat. */
import assert from "node:assert/strict";
import type { Cookie } from "../../core/frontier.ts";
import { MAX_CRASHES } from "../../core/frontier.ts";
import type { Once, SkippedRecord } from "../../core/records.ts";
import type { CrawlRequest } from "../../core/request.ts";
import { makeSkip } from "../../rules/admit.ts";
import { type DurableBench, type Hand, outputFor, type RestartCase, restartCaseOf, settledAs } from "./bench.ts";
import { modelRestartCases } from "./model-cases.ts";
import { valueRestartCases } from "./value-cases.ts";

const A = "http://a.test/";
const HOW = ["closed", "killed"] as const;

/** One case for each way in which a process may end. */
function both(rule: string, name: string, config: RestartCase["config"], run: (hand: Hand, bench: DurableBench, how: "closed" | "killed") => Promise<void>) {
  return HOW.map((how) => restartCaseOf(rule, `${name} (${how})`, config ?? {}, (hand, bench) => run(hand, bench, how)));
}

const skipOf = (bench: DurableBench, url: string): Once<SkippedRecord> =>
  makeSkip(bench.frontier.seed, { url, referrer: null, depth: 1, reason: "out-of-scope" });
const cookie: Cookie = { name: "c", value: "1", domain: "a.test", hostOnly: true, path: "/", secure: false, expiresAt: null };

const queueCases: readonly RestartCase[] = [
  ...both("I9", "what is queued is there again, in its order and whole", {}, async (hand, bench, how) => {
    const rest = { method: "POST", body: new Uint8Array([0, 255, 10]), headers: { a: "b" }, fromSeed: true };
    const sent: CrawlRequest[] = [
      hand.link(`${A}1`, { referrer: `${A}page`, depth: 3 }),
      hand.link(`${A}2`, { referrer: "https://other.test/x", hop: "sitemap", rest }),
      hand.link(`${A}${"long/".repeat(300)}`),
      hand.link(`${A}0`, { priority: 99 }),
      hand.link(`${A}9`, { priority: -99, hop: "seed" }),
    ];
    await hand.seed(...sent);
    await bench.restart(how);
    const leases = await hand.claim();
    assert.deepEqual(
      leases.map((lease) => lease.request),
      [sent[3], sent[0], sent[1], sent[2], sent[4]],
    );
  }),
  ...both("I8", "what is settled stays settled, and is counted", {}, async (hand, bench, how) => {
    await hand.seed(`${A}1`, `${A}2`, `${A}3`);
    await hand.done(await hand.one(), [], { tally: [["pages", 7]] });
    await hand.dropped(await hand.one());
    const before = await bench.frontier.counts();
    await bench.restart(how);
    assert.deepEqual(await bench.frontier.counts(), before);
    await hand.balance();
    assert.deepEqual(await bench.frontier.add([hand.link(`${A}1`), hand.link(`${A}2`)]), { added: 0, known: 2, lowered: 0 });
    assert.deepEqual(await hand.urls(), [`${A}3`]);
    assert.deepEqual(hand.pages(), [`${A}1`, `${A}2`]);
  }),
  ...both("I8", "with nothing left to do, what was seen is known still", {}, async (hand, bench, how) => {
    await bench.frontier.add([hand.link(`${A}1`)]);
    await hand.done(await hand.one());
    await bench.restart(how);
    assert.deepEqual(await bench.frontier.add([hand.link(`${A}1`), hand.link(`${A}2`)]), { added: 1, known: 1, lowered: 0 });
  }),
  ...both("I4", "links of a settle are there, with the page that brought them", {}, async (hand, bench, how) => {
    await hand.seed(`${A}1`);
    await hand.done(await hand.one(), [hand.link(`${A}2`), hand.link("http://b.test/")]);
    await bench.restart(how);
    assert.deepEqual((await hand.urls()).sort(), [`${A}2`, "http://b.test/"]);
  }),
  ...both("retry", "a retry waits for its time, and its attempts are counted", {}, async (hand, bench, how) => {
    await hand.seed(`${A}1`);
    await hand.retry(await hand.one(), 500);
    await bench.restart(how);
    assert.equal((await bench.frontier.counts()).delayed, 1);
    assert.deepEqual([await hand.kind(), (await hand.wait()).waitMs], ["wait", 500]);
    await bench.advance(500);
    assert.equal((await hand.one()).attempt, 1);
  }),
  ...both("seeds", "a crawl whose seeds are complete ends, one whose seeds are not does not", {}, async (hand, bench, how) => {
    await bench.frontier.add([hand.link(A)]);
    await hand.done(await hand.one());
    await bench.restart(how);
    assert.equal(await hand.kind(), "wait");
    await bench.frontier.seedsComplete();
    assert.equal(await hand.kind(), "drained");
    await bench.restart(how);
    assert.equal(await hand.kind(), "drained");
  }),
  ...both("I7", "pages counted before use up the limit", { limitPages: 3 }, async (hand, bench, how) => {
    await hand.seed(`${A}1`, `${A}2`, `${A}3`, `${A}4`, `${A}5`);
    for (const lease of await hand.claim(2)) await hand.done(lease);
    await bench.restart(how);
    const leases = await hand.claim();
    assert.equal(leases.length, 1);
    await hand.done(leases[0]!);
    assert.equal(await hand.kind(), "drained");
  }),
  ...both("redirect", "a redirect's target owes the records of its chain, once", {}, async (hand, bench, how) => {
    await hand.seed(`${A}1`);
    const lease = await hand.one();
    const target = hand.link(`${A}2`, { hop: "redirect", rest: { owed: [outputFor(`${A}1`)], redirects: [{ url: `${A}1`, status: 301 }] } });
    await bench.frontier.settle([settledAs(lease, { kind: "done", counted: false, output: outputFor(`${A}1`, { page: null }) })], [target]);
    await bench.restart(how);
    const next = await hand.one();
    assert.deepEqual(next.request.rest, target.rest);
    await bench.frontier.settle([settledAs(next, { kind: "done", counted: true, output: outputFor(`${A}2`, { owed: next.request.rest?.owed ?? [] }) })], []);
    assert.deepEqual(hand.pages(), [`${A}1`, `${A}2`]);
  }),
  ...both("redirect", "a URL opened again has its place again", {}, async (hand, bench, how) => {
    await hand.seed(`${A}1`);
    await hand.done(await hand.one(), [hand.link(`${A}1`, { hop: "redirect", rest: { reopen: true } })]);
    await bench.restart(how);
    await hand.balance();
    const again = await hand.one();
    assert.equal(again.request.url, `${A}1`);
    await hand.done(again);
    await hand.balance();
    assert.equal(await hand.kind(), "drained");
  }),
];

const crashCases: readonly RestartCase[] = [
  restartCaseOf("crash", "a lease that a dead process held counts as a crash, the third drops the request with its record", {}, async (hand, bench) => {
    await hand.seed(`${A}1`, `${A}2`);
    for (let crash = 0; crash < MAX_CRASHES; crash++) {
      const lease = await hand.one();
      assert.deepEqual([lease.request.url, lease.crashes], [`${A}1`, crash]);
      await bench.advance(1_000);
      // By now the state knows of the lease.
      await hand.claim();
      await bench.restart("killed");
    }
    assert.equal(hand.pages().filter((url) => url === `${A}1`).length, 1);
    assert.equal(bench.outputs().find((output) => output.page?.url === `${A}1`)?.page?.error?.code, "crashed");
    await hand.balance();
    await bench.restart("killed");
    assert.equal(hand.pages().filter((url) => url === `${A}1`).length, 1);
    assert.equal((await hand.urls()).includes(`${A}1`), false);
  }),
  restartCaseOf("crash", "a process that ends in good order hands back what it holds: no crash, no attempt", {}, async (hand, bench) => {
    await hand.seed(`${A}1`);
    for (let n = 0; n < MAX_CRASHES + 1; n++) {
      const lease = await hand.one();
      assert.deepEqual([lease.crashes, lease.attempt], [0, 0]);
      await bench.advance(1_000);
      // By now the state knows of the lease.
      assert.equal(await hand.kind(), "wait");
      await bench.restart("closed");
    }
  }),
  restartCaseOf("crash", "what a dead process held goes before everything else of its host", {}, async (hand, bench) => {
    await hand.seed(`${A}1`, `${A}2`, `${A}3`, `${A}4`);
    const [first, second, third] = await hand.claim(3);
    await hand.done(third!);
    const { lost } = await bench.restart("killed");
    assert.deepEqual([...lost].sort(), [first!.request.url, second!.request.url]);
    assert.deepEqual(await hand.urls(), [`${A}1`, `${A}2`, `${A}4`]);
  }),
];

const onceCases: readonly RestartCase[] = [
  ...both("once", "a skipped URL and a found link are written once, whatever happened between", {}, async (hand, bench, how) => {
    await hand.seed(`${A}1`, `${A}2`);
    const skipped = () => [skipOf(bench, "http://x.test/")];
    const found = () => [{ ...skipOf(bench, "http://y.test/"), value: "http://y.test/" }];
    for (let n = 0; n < 2; n++) {
      const lease = await hand.one();
      const output = outputFor(lease.request.url, { skipped: skipped(), found: found() });
      await bench.frontier.settle([settledAs(lease, { kind: "done", counted: true, output })], []);
      await bench.restart(how);
    }
    assert.equal(bench.outputs().flatMap((output) => output.skipped).length, 1);
    assert.equal(bench.outputs().flatMap((output) => output.found).length, 1);
    assert.equal((await bench.frontier.counts()).tally.get("skip:out-of-scope"), 1);
  }),
];

const learntCases: readonly RestartCase[] = [
  ...both("robots", "a robots answer is kept until it expires", { robots: true }, async (hand, bench, how) => {
    await hand.seed(`${A}1`, `${A}2`);
    const asked = await hand.one();
    assert.equal(asked.request.hop, "robots");
    await bench.frontier.settle([settledAs(asked, { kind: "robots", answer: { kind: "rules", text: "User-agent: *", ttlMs: 10_000 } })], []);
    await bench.restart(how);
    const lease = await hand.one();
    assert.deepEqual([lease.request.url, lease.robots?.kind], [`${A}1`, "rules"]);
    await hand.done(lease);
    await bench.advance(10_000);
    assert.equal((await hand.one()).request.hop, "robots");
  }),
  ...both("robots", "a robots request that was under way is made again", { robots: true }, async (hand, bench, how) => {
    await hand.seed(`${A}1`);
    assert.equal((await hand.one()).request.hop, "robots");
    await bench.restart(how);
    assert.equal((await hand.one()).request.hop, "robots");
  }),
  ...both("cookies", "cookies are kept", {}, async (hand, bench, how) => {
    await hand.seed(`${A}1`, `${A}2`);
    await hand.done(await hand.one(), [], { setCookies: [cookie] });
    await bench.restart(how);
    assert.deepEqual((await hand.one()).cookies, [cookie]);
  }),
  ...both("seeds", "URLs that became seeds are told to the next process", {}, async (hand, bench, how) => {
    await hand.seed(`${A}1`, `${A}2`);
    await hand.done(await hand.one(), [], { newSeeds: ["http://moved.test/"] });
    await bench.restart(how);
    const claim = await bench.frontier.claim(1);
    assert.deepEqual(claim.kind === "leases" ? claim.seeds : null, ["http://moved.test/"]);
  }),
  ...both("seeds", "what was noted of the scope is told to the next process, once", {}, async (hand, bench, how) => {
    await bench.frontier.noteSeeds(["http://a.test/", "http://b.test/"]);
    await hand.seed(`${A}1`, `${A}2`);
    await bench.restart(how);
    const claim = await bench.frontier.claim(1);
    assert.deepEqual(claim.kind === "leases" ? [...claim.seeds].sort() : null, ["http://a.test/", "http://b.test/"]);
    const next = await bench.frontier.claim(1);
    assert.deepEqual(next.kind === "leases" ? next.seeds : null, []);
  }),
  ...both("I6", "a host rests for its delay after a restart: nobody knows when it was last asked", { perHostDelayMs: 1_000 }, async (hand, bench, how) => {
    await hand.seed(`${A}1`, `${A}2`);
    await hand.done(await hand.one());
    await bench.advance(400);
    await bench.restart(how);
    assert.equal(await hand.kind(), "wait");
    await bench.advance(999);
    assert.equal(await hand.kind(), "wait");
    await bench.advance(1);
    await hand.one();
  }),
  ...both("I6", "a crawl delay and a Retry-After hold", {}, async (hand, bench, how) => {
    await hand.seed(`${A}1`, "http://b.test/1", "http://b.test/2");
    await bench.frontier.tune("a.test", { notBeforeMs: 5_000 });
    await bench.frontier.tune("b.test", { crawlDelayMs: 3_000 });
    await bench.advance(1_000);
    await bench.restart(how);
    await bench.advance(3_000);
    assert.deepEqual(await hand.urls(), ["http://b.test/1"]);
    await bench.advance(999);
    assert.deepEqual(await hand.urls(), []);
    await bench.advance(1);
    assert.deepEqual(await hand.urls(), [`${A}1`]);
  }),
  ...both("I6", "a host that pushed back is left alone for as long as it was to be", { perHostDelayMs: "auto" }, async (hand, bench, how) => {
    await hand.seed(`${A}1`, `${A}2`);
    await hand.done(await hand.one(), [], { answer: { kind: "pushback", latencyMs: 1 } });
    const { waitMs } = await hand.wait();
    await bench.restart(how);
    assert.ok((await hand.wait()).waitMs >= waitMs - 1);
  }),
  ...both("rate", "the rate of the whole crawl holds", { ratePerMinute: 60 }, async (hand, bench, how) => {
    await hand.seed(`${A}1`, "http://b.test/");
    await hand.done(await hand.one());
    await bench.restart(how);
    assert.equal(await hand.kind(), "wait");
    await bench.advance(1_000);
    await hand.one();
  }),
];

const depthCases: readonly RestartCase[] = [
  ...both("depth", "the smallest depth is known, and levels go on where they were", { levels: true }, async (hand, bench, how) => {
    await hand.seed(hand.link(`${A}0`, { depth: 0 }), hand.link(`${A}5`, { depth: 5 }), hand.link(`${A}3`, { depth: 3 }));
    await bench.frontier.add([hand.link(`${A}5`, { depth: 4 })]);
    await bench.restart(how);
    await hand.balance();
    assert.deepEqual([(await bench.frontier.counts()).queued, (await bench.frontier.counts()).level], [3, 0]);
    const first = await hand.one();
    assert.deepEqual([first.request.url, await hand.urls()], [`${A}0`, []]);
    await hand.done(first);
    const leases = await hand.claim();
    assert.deepEqual(
      leases.map(({ request }) => [request.url, request.depth]),
      [
        [`${A}3`, 3],
        [`${A}5`, 4],
      ],
    );
  }),
  ...both("depth", "a page fetched at too great a depth is fetched again for its links, and recorded once", { levels: true }, async (hand, bench, how) => {
    await hand.seed(hand.link(`${A}0`), hand.link(`${A}1`, { depth: 1 }), hand.link(`${A}2`, { depth: 1 }));
    const leases = await hand.claim();
    await hand.done(leases.find(({ request }) => request.url === `${A}1`)!);
    await bench.frontier.add([hand.link(`${A}1`, { depth: 0 })]);
    await bench.restart(how);
    await hand.balance();
    for (let again = await hand.claim(); again.length > 0; again = await hand.claim()) for (const lease of again) await hand.done(lease);
    assert.equal(hand.pages().filter((url) => url === `${A}1`).length, 1);
    const { seen, done, queued } = await bench.frontier.counts();
    assert.deepEqual([seen, done, queued], [3, 3, 0]);
  }),
];

/** For stores whose bench can `restart`. */
export const restartCases: readonly RestartCase[] = [
  ...queueCases,
  ...crashCases,
  ...onceCases,
  ...learntCases,
  ...depthCases,
  ...valueRestartCases,
  ...modelRestartCases,
];
