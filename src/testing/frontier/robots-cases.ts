/** Cases on robots.txt as requests of the frontier. */
import assert from "node:assert/strict";
import type { Lease, RobotsAnswer } from "../../core/frontier.ts";
import { caseOf, type FrontierBench, type FrontierCase, settledAs } from "./bench.ts";

const A = "http://a.test";
const HOUR = 3_600_000;

const answer = (bench: FrontierBench, lease: Lease, robots: RobotsAnswer) => bench.frontier.settle([settledAs(lease, { kind: "robots", answer: robots })], []);

export const robotsCases: readonly FrontierCase[] = [
  caseOf("robots", "while an origin is unknown, its robots.txt is handed out and nothing else of it", { robots: true }, async (hand, { frontier }) => {
    await hand.seed(`${A}/1`, `${A}/2`);
    const { request } = await hand.one();
    const { url, hop, depth, host, rest } = request;
    assert.deepEqual({ url, hop, depth, host, for: rest?.robotsFor }, { url: `${A}/robots.txt`, hop: "robots", depth: 0, host: "a.test", for: A });
    assert.equal((await hand.wait()).cause, "robots");
    const counts = await frontier.counts();
    assert.deepEqual([counts.robotsLeased, counts.leased, counts.queued, counts.seen], [1, 0, 2, 2]);
  }),
  caseOf("robots", "once it is known, the pages follow and carry the state; it is asked for once", { robots: true }, async (hand, bench) => {
    await hand.seed(`${A}/1`, `${A}/2`);
    await answer(bench, await hand.one(), { kind: "rules", text: "User-agent: *", ttlMs: HOUR });
    const leases = await hand.claim();
    assert.deepEqual(
      leases.map((lease) => lease.request.url),
      [`${A}/1`, `${A}/2`],
    );
    const state = leases[0]!.robots;
    assert.equal(state?.kind === "rules" ? state.text : null, "User-agent: *");
    assert.equal((await bench.frontier.robotsOf(A))?.kind, "rules");
    assert.equal(await bench.frontier.robotsOf("https://a.test"), null);
  }),
  caseOf("robots", "robots.txt that is itself a page of the crawl is fetched as one too", { robots: true }, async (hand) => {
    await hand.seed(`${A}/robots.txt`);
    const first = await hand.one();
    assert.equal(first.request.hop, "robots");
    await hand.robots(first);
    assert.equal((await hand.one()).request.hop, "link");
  }),
  caseOf(
    "robots",
    "http, https and ports of a host are asked apart, on the host's one clock",
    { robots: true, perHostDelayMs: 100 },
    async (hand, { advance }) => {
      await hand.seed("http://a.test/1", "https://a.test/2", "http://a.test:8080/3");
      const starts: string[] = [];
      for (let i = 0; i < 8; i++) {
        for (const lease of await hand.claim()) {
          starts.push(lease.request.url);
          if (lease.request.hop === "robots") await hand.robots(lease);
          else await hand.done(lease);
        }
        await advance(100);
      }
      assert.deepEqual(
        starts.filter((url) => !url.includes("8080")),
        ["http://a.test/robots.txt", "http://a.test/1", "https://a.test/robots.txt", "https://a.test/2"],
      );
      assert.deepEqual(
        starts.filter((url) => url.includes("8080")),
        ["http://a.test:8080/robots.txt", "http://a.test:8080/3"],
      );
    },
  ),
  caseOf("robots", "a page starts the delay after its robots.txt, crawl delay included", { robots: true, perHostDelayMs: 100 }, async (hand, bench) => {
    await hand.seed(`${A}/1`);
    const settled = settledAs(
      await hand.one(),
      { kind: "robots", answer: { kind: "allow-all", ttlMs: HOUR } },
      { sinceStartMs: 30, host: { crawlDelayMs: 500 } },
    );
    await bench.frontier.settle([settled], []);
    assert.equal((await hand.wait()).waitMs, 470);
  }),
  caseOf("robots", "when the answer has expired it is asked for again, with a new version", { robots: true }, async (hand, bench) => {
    await hand.seed(`${A}/1`, `${A}/2`);
    await answer(bench, await hand.one(), { kind: "allow-all", ttlMs: 1_000 });
    const first = await hand.one();
    await bench.advance(1_001);
    assert.equal(await bench.frontier.robotsOf(A), null);
    const again = await hand.one();
    assert.equal(again.request.hop, "robots");
    await answer(bench, again, { kind: "unavailable", code: "robots-unavailable", why: "503", ttlMs: HOUR });
    const second = await hand.one();
    assert.equal(second.robots?.kind, "unavailable");
    assert.notEqual(second.robots?.version, first.robots?.version);
  }),
  caseOf(
    "robots",
    "a redirect of robots.txt is fetched on its own host's clock and answers for the first origin",
    { robots: true, perHostDelayMs: 100 },
    async (hand, bench) => {
      await hand.seed("http://b.test/1", `${A}/1`);
      const [b, a] = await hand.claim();
      await hand.robots(b!);
      const hop = hand.link("http://b.test/r.txt", { hop: "robots", rest: { robotsFor: A } });
      await answer(bench, a!, { kind: "redirect", request: hop });
      assert.deepEqual(await hand.urls(), [], "b.test rests");
      await bench.advance(100);
      const next = await hand.one();
      assert.deepEqual([next.request.url, next.request.hop, next.request.rest?.robotsFor], ["http://b.test/r.txt", "robots", A]);
      await answer(bench, next, { kind: "rules", text: "x", ttlMs: HOUR });
      assert.equal((await bench.frontier.robotsOf(A))?.kind, "rules");
      assert.equal((await bench.frontier.robotsOf("http://b.test"))?.kind, "allow-all");
      assert.deepEqual(await hand.urls(), [`${A}/1`]);
    },
  ),
  caseOf("robots", "a redirect of robots.txt to a host nobody knows asks nothing more of that host", { robots: true }, async (hand, bench) => {
    await hand.seed(`${A}/1`);
    await answer(bench, await hand.one(), { kind: "redirect", request: hand.link("http://c.test/r.txt", { hop: "robots", rest: { robotsFor: A } }) });
    const hop = await hand.one();
    assert.equal(hop.request.url, "http://c.test/r.txt");
    await hand.robots(hop);
    await hand.done(await hand.one());
    assert.equal(await hand.kind(), "drained");
  }),
  caseOf("robots", "retry and returned bring robots.txt back, and only that", { robots: true }, async (hand, { advance }) => {
    await hand.seed(`${A}/1`);
    await hand.returned(await hand.one());
    const again = await hand.one();
    assert.deepEqual([again.request.hop, again.attempt], ["robots", 0]);
    await hand.retry(again, 100);
    const wait = await hand.wait();
    assert.deepEqual([wait.waitMs, wait.cause], [100, "retry"]);
    await advance(100);
    const third = await hand.one();
    assert.deepEqual([third.request.hop, third.attempt], ["robots", 1]);
    await hand.robots(third);
    assert.deepEqual(await hand.urls(), [`${A}/1`]);
    await hand.balance();
  }),
  caseOf(
    "robots",
    "robots.txt whose lease is lost three times is unavailable for five minutes, without a record",
    { robots: true, leaseMs: 1_000 },
    async (hand, bench) => {
      await hand.seed(`${A}/1`);
      for (let crashes = 0; crashes < 3; crashes++) {
        const lease = await hand.one();
        assert.deepEqual([lease.request.hop, lease.crashes], ["robots", crashes]);
        await bench.advance(1_001);
      }
      const page = await hand.one();
      assert.equal(page.robots?.kind, "unavailable");
      assert.deepEqual(bench.outputs(), []);
      await bench.advance(299_000);
      assert.equal((await bench.frontier.robotsOf(A))?.kind, "unavailable");
      await bench.advance(2_000);
      assert.equal(await bench.frontier.robotsOf(A), null);
    },
  ),
  caseOf("robots", "robots requests take no place of the page limit and are not counted", { robots: true, limitPages: 1 }, async (hand, { frontier }) => {
    await hand.seed(`${A}/1`, "http://b.test/1");
    const robots = await hand.claim();
    assert.equal(robots.length, 2);
    for (const lease of robots) await hand.robots(lease);
    const pages = await hand.claim();
    assert.equal(pages.length, 1);
    await hand.done(pages[0]!);
    const counts = await frontier.counts();
    assert.deepEqual([counts.counted, counts.done, counts.completed], [1, 1, true]);
  }),
  caseOf("robots", "the crawl is not drained while a robots.txt is leased", { robots: true, limitPages: 1 }, async (hand) => {
    await hand.seed(`${A}/1`, "http://b.test/1");
    const [a, b] = await hand.claim();
    await hand.robots(a!);
    await hand.done(await hand.one());
    assert.equal(await hand.kind(), "wait");
    await hand.robots(b!);
    assert.equal(await hand.kind(), "drained");
  }),
  caseOf("robots", "robots.txt counts in the slots and in the rate", { robots: true, perHostConcurrency: 1, ratePerMinute: 600 }, async (hand, { advance }) => {
    await hand.seed(`${A}/1`, "http://b.test/1");
    const robots = await hand.one();
    assert.equal((await hand.wait()).cause, "rate");
    await advance(100);
    await hand.robots(robots);
    assert.equal((await hand.one()).request.hop, "robots");
    assert.equal((await hand.wait()).waitMs, 100);
  }),
  caseOf("robots", "without robots nothing is asked and leases carry no state", { robots: false }, async (hand) => {
    await hand.seed(`${A}/1`);
    const lease = await hand.one();
    assert.deepEqual([lease.request.hop, lease.robots], ["link", null]);
  }),
];
