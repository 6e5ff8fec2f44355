/** What dies and what stalls: the server killed below a crawl, answers that are lost, memory that is full, workers that never come back. */
import assert from "node:assert/strict";
import { readdirSync, statSync, truncateSync } from "node:fs";
import { join } from "node:path";
import { after, before, type TestContext, test } from "node:test";
import type { Frontier, Lease } from "../../core/frontier.ts";
import { silentLog } from "../../core/log.ts";
import type { CrawlRequest } from "../../core/request.ts";
import { makeRequest } from "../../rules/admit.ts";
import { seededRandom } from "../../testing/clock.ts";
import { crashedOutput, outputFor, settledAs } from "../../testing/frontier/bench.ts";
import { caseConfig, frontierCases } from "../../testing/frontier-cases.ts";
import { openRedisBench, type RedisBench } from "./bench-for-tests.ts";
import { connectRedis } from "./connect.ts";
import { createCrawls } from "./crawls.ts";
import { scanInvariants } from "./doctor.ts";
import { openRedisFrontier } from "./frontier.ts";
import { openOutbox } from "./outbox.ts";
import { startProxy } from "./proxy-for-tests.ts";
import { skipRedis, startServer, type TestServer } from "./server-for-tests.ts";

let server: TestServer;
before(async () => {
  if (skipRedis === false) server = await startServer(["--appendfsync", "always"]);
});
after(() => server?.stop());

async function withBench(config: Parameters<typeof openRedisBench>[1], run: (bench: RedisBench) => Promise<void>, options = {}): Promise<void> {
  const bench = await openRedisBench(server.url, config, options);
  try {
    await run(bench);
    assert.deepEqual((await scanInvariants(bench.link, bench.id)).faults, []);
  } finally {
    await bench.close();
  }
}

/** A connection, and one over a wire that can be cut; closed with the test, whatever comes of it. */
async function wires(t: TestContext, prefix: string) {
  const proxy = await startProxy(server.port);
  const direct = await connectRedis(server.url, { log: silentLog, prefix });
  const cut = await connectRedis(`redis://127.0.0.1:${proxy.port}`, { log: silentLog, prefix });
  t.after(async () => {
    await cut.close();
    await direct.close();
    await proxy.close();
  });
  return { proxy, direct, cut };
}

const link = (frontier: Frontier, url: string, depth = 0): CrawlRequest => makeRequest(url, frontier.seed, { hop: "link", depth, referrer: null });
const many = (host: string, n: number): string[] => Array.from({ length: n }, (_, i) => `http://${host}/${i}`);
const done = (frontier: Frontier, lease: Lease, links: readonly CrawlRequest[] = []) =>
  frontier.settle([settledAs(lease, { kind: "done", counted: true, output: outputFor(lease.request.url) })], links);

async function claimed(frontier: Frontier, max = 16): Promise<readonly Lease[]> {
  const claim = await frontier.claim(max);
  return claim.kind === "leases" ? claim.leases : [];
}

/** Works until nothing is left; each page has links to the next two of a tree of `size` pages. Answers the URLs in the order of their settles. */
async function crawlTree(frontier: Frontier, size: number): Promise<void> {
  const url = (n: number) => `http://h${n % 3}.test/${n}`;
  await frontier.add([link(frontier, url(1))]);
  await frontier.seedsComplete();
  for (let claim = await frontier.claim(8); claim.kind !== "drained"; claim = await frontier.claim(8)) {
    for (const lease of claim.kind === "leases" ? claim.leases : []) {
      const n = Number(lease.request.url.split("/").at(-1));
      const links = [2 * n, 2 * n + 1, 1 + (n >> 1)].filter((to) => to <= size).map((to) => link(frontier, url(to), lease.request.depth + 1));
      await done(frontier, lease, links);
    }
  }
}

for (const seed of [3, 8, 20]) {
  const walk = frontierCases.find(({ name }) => name.includes(`(seed ${seed})`));
  test(`the server is killed below random steps (seed ${seed}): nothing of what it acknowledged is lost (F106)`, { skip: skipRedis }, async () => {
    assert.ok(walk !== undefined);
    const random = seededRandom(seed);
    let kills = 0;
    const before_ = async (): Promise<void> => {
      if (random() > 0.015 || kills >= 6) return;
      kills++;
      await server.kill();
      await server.start();
    };
    await withBench(
      { ...caseConfig, ...walk.config },
      async (bench) => {
        const { restart: _, ...shown } = bench;
        await walk.run(shown);
      },
      { before: before_ },
    );
    assert.ok(kills > 0);
  });
}

test("answers that are lost: a settle is stale the second time and nothing is done twice, a claim leaves leases that run out", {
  skip: skipRedis,
}, async (t) => {
  const { proxy, direct, cut } = await wires(t, "lost");
  const id = await createCrawls(direct).create({});
  let now = 1_000;
  const env = { id, nowMs: () => now, pollMs: Infinity };
  const frontier = await openRedisFrontier({ ...caseConfig, leaseMs: 1_000 }, { ...env, link: cut });
  await frontier.add(many("a.test", 3).map((url) => link(frontier, url)));
  await frontier.seedsComplete();
  const [first] = await claimed(frontier, 1);
  assert.ok(first !== undefined);
  // By now the server knows the script: the answer that is lost is that of the step.
  await frontier.settle([], []);

  proxy.swallowNext();
  assert.deepEqual(await done(frontier, first, [link(frontier, "http://a.test/new", 1)]), ["stale"]);
  let counts = await frontier.counts();
  assert.deepEqual([counts.done, counts.seen, counts.counted, counts.leased], [1, 4, 1, 0]);

  // The first claim after an outage tells the server again what it may have forgotten; the answer that is to be lost is that of a claim.
  const [back] = await claimed(frontier, 1);
  await frontier.settle([settledAs(back!, { kind: "returned" })], []);
  proxy.swallowNext();
  const second = await claimed(frontier, 1);
  counts = await frontier.counts();
  assert.deepEqual([second.length, counts.leased], [1, 2], "the lease whose answer was lost is out");
  await frontier.renew([second[0]!.token]);
  now += 1_001;
  const again = await claimed(frontier, 4);
  assert.ok(again.some((lease) => lease.crashes === 1));
  assert.equal(again.length, 3);
  for (const lease of again) await done(frontier, lease);
  for (const lease of await claimed(frontier, 4)) await done(frontier, lease);
  assert.equal((await frontier.claim(1)).kind, "drained");

  const outbox = await openOutbox(direct, id, { crashed: crashedOutput });
  const urls = (await outbox.read(1_000))?.outputs.map((output) => output.page?.url);
  assert.deepEqual(urls?.length, 4);
  assert.equal(new Set(urls).size, 4);
  assert.deepEqual((await scanInvariants(direct, id)).faults, []);
  await frontier[Symbol.asyncDispose]();
});

test("connections that break all the time: the crawl ends with every page once (F106)", { skip: skipRedis }, async (t) => {
  const { proxy, direct, cut } = await wires(t, "cuts");
  const id = await createCrawls(direct).create({});
  let now = 1_000;
  const random = seededRandom(5);
  const frontier = await openRedisFrontier({ ...caseConfig, leaseMs: 500 }, { id, link: cut, nowMs: () => (now += 40), pollMs: Infinity });
  const outages = proxy.cutAtRandom(random, 0.04);
  await crawlTree(frontier, 120);
  outages();
  const outbox = await openOutbox(direct, id, { crashed: crashedOutput });
  const urls = (await outbox.read(1_000))?.outputs.map((output) => output.page?.url) ?? [];
  assert.deepEqual([urls.length, new Set(urls).size, proxy.cuts > 0], [120, 120, true]);
  assert.deepEqual((await scanInvariants(direct, id)).faults, []);
  assert.deepEqual(
    (await createCrawls(direct).ends("0-0")).map((end) => end.id),
    [id],
    "it has ended once",
  );
  await frontier[Symbol.asyncDispose]();
});

test("a server that is full refuses whole steps or takes them whole; what it refused is done once there is room (F108)", { skip: skipRedis }, async () => {
  await withBench({ ...caseConfig, perHostConcurrency: 100 }, async ({ frontier, link: to, id }) => {
    await frontier.add(many("a.test", 30).map((url) => link(frontier, url)));
    const leases = await claimed(frontier, 10);
    await to.command("CONFIG", "SET", "maxmemory", "1");
    const before_ = await scanInvariants(to, id);
    let settled = false;
    const waiting = done(
      frontier,
      leases[0]!,
      many("b.test", 300).map((url) => link(frontier, url, 1)),
    ).then((answer) => {
      settled = true;
      return answer;
    });
    const claiming = frontier.claim(5);
    // Two calls that are answered after those two were refused.
    for (let n = 0; n < 5; n++) await to.command("PING");
    assert.equal(settled, false, "a refusal is no acknowledgement");
    assert.deepEqual({ ...(await scanInvariants(to, id)), faults: [] }, before_);
    await to.command("CONFIG", "SET", "maxmemory", "0");
    assert.deepEqual(await waiting, ["applied"]);
    assert.equal((await claiming).kind, "leases");
    const counts = await frontier.counts();
    assert.deepEqual([counts.seen, counts.done], [330, 1]);
  });
});

test("two workers on one crawl: no request is given twice, and the limit holds exactly (F104, F105, F109)", { skip: skipRedis }, async () => {
  await withBench({ ...caseConfig, limitPages: 37, perHostConcurrency: 50 }, async (bench) => {
    const { frontier } = bench;
    const other = await bench.second();
    await Promise.all([frontier, other].map((one) => one.add(many("a.test", 100).map((url) => link(one, url)))));
    await frontier.seedsComplete();
    const given = new Set<string>();
    let n = 0;
    const work = async (one: Frontier): Promise<void> => {
      for (let leases = await claimed(one, 3); leases.length > 0; leases = await claimed(one, 3)) {
        for (const lease of leases) {
          assert.ok(!given.has(lease.request.url), "given once");
          given.add(lease.request.url);
          const counted = n++ % 3 > 0;
          await one.settle([settledAs(lease, { kind: "done", counted, output: outputFor(lease.request.url) })], []);
        }
      }
    };
    await Promise.all([work(frontier), work(other)]);
    // One of them may have found the limit used up by what the other held.
    await work(frontier);
    assert.equal((await frontier.counts()).counted, 37);
    assert.deepEqual([(await frontier.claim(1)).kind, (await other.claim(1)).kind], ["drained", "drained"]);
    await other[Symbol.asyncDispose]();
  });
});

test("a worker that never comes back: its leases run out by the server's clock, whatever the clocks of workers say (F104, F110)", {
  skip: skipRedis,
}, async (t) => {
  const { direct: to } = await wires(t, "clocks");
  const id = await createCrawls(to).create({});
  const config = { ...caseConfig, leaseMs: 60_000 };
  const dead = await openRedisFrontier(config, { id, link: to });
  await dead.add(many("a.test", 4).map((url) => link(dead, url)));
  const [held] = await claimed(dead, 1);
  const real = Date.now;
  Date.now = () => real() + 600_000;
  try {
    const ahead = await openRedisFrontier(config, { id, link: to });
    const others = await claimed(ahead, 9);
    assert.ok(!others.some((lease) => lease.request.url === held?.request.url), "ten minutes ahead is no reason to take a lease over");
    assert.equal(others.length, 3);
  } finally {
    Date.now = real;
  }
});

test("an append-only file whose end is torn off anywhere: the crawl goes on from whole steps, and every page is there once (I9)", {
  skip: skipRedis,
}, async (t) => {
  const torn = await startServer(["--appendfsync", "always", "--auto-aof-rewrite-percentage", "0"]);
  t.after(() => torn.stop());
  const random = seededRandom(9);
  const link_ = await connectRedis(torn.url, { log: silentLog, prefix: "torn" });
  t.after(() => link_.close());
  const id = await createCrawls(link_).create({});
  let now = 1_000;
  const frontier = await openRedisFrontier({ ...caseConfig, leaseMs: 200 }, { id, link: link_, nowMs: () => (now += 40), pollMs: Infinity });
  // What a step did may be undone: so it is told of the seed once more after each loss.
  let lost = 0;
  // Redis 7.0 does not start again when it dies while it rewrites a log whose end it had to cut off: that is no power cut which a store could survive by itself.
  const isRewritten = async (): Promise<boolean> => {
    const info = String(await link_.command("INFO"));
    const runId = /run_id:(\w+)/.exec(info)?.[1];
    return /aof_rewrite_in_progress:0\r\naof_rewrite_scheduled:0/.test(info) && String(await link_.command("GET", "{torn}:run")) === runId;
  };
  const lose = async (): Promise<void> => {
    while (!(await isRewritten()));
    await torn.kill();
    const folder = join(torn.dir, "appendonlydir");
    // While a rewrite is on its way there are two: only the end of the newer one can be torn.
    const generation = (name: string) => Number(/\.(\d+)\.incr\.aof$/.exec(name)?.[1] ?? 0);
    const file = readdirSync(folder).reduce((last, name) => (generation(name) > generation(last) ? name : last), "");
    const path = join(folder, file);
    const { size } = statSync(path);
    truncateSync(path, Math.max(0, size - Math.floor(random() * Math.min(6_000, size / 4))));
    await torn.start();
    lost++;
    assert.deepEqual((await scanInvariants(link_, id)).faults, []);
  };
  const url = (n: number) => `http://h${n % 3}.test/${n}`;
  let settles = 0;
  await frontier.add([link(frontier, url(1))]);
  await frontier.seedsComplete();
  for (let claim = await frontier.claim(8); claim.kind !== "drained"; claim = await frontier.claim(8)) {
    for (const lease of claim.kind === "leases" ? claim.leases : []) {
      const n = Number(lease.request.url.split("/").at(-1));
      await done(
        frontier,
        lease,
        [2 * n, 2 * n + 1].filter((to) => to <= 90).map((to) => link(frontier, url(to), 1)),
      );
      if (++settles % 25 === 0 && lost < 3) await lose();
    }
  }
  const outbox = await openOutbox(link_, id, { crashed: crashedOutput });
  const urls = (await outbox.read(1_000))?.outputs.map((output) => output.page?.url) ?? [];
  assert.deepEqual([urls.length, new Set(urls).size, lost], [90, 90, 3]);
  assert.deepEqual((await scanInvariants(link_, id)).faults, []);
});

test("what one worker says is told to the others at once", { skip: skipRedis }, async (t) => {
  const { direct } = await wires(t, "push");
  const id = await createCrawls(direct).create({});
  const heard = Promise.withResolvers<string>();
  const ear = await openRedisFrontier(caseConfig, { id, link: direct, onControl: heard.resolve });
  const mouth = await openRedisFrontier(caseConfig, { id, link: direct });
  // Until the ear is open: a message to nobody is lost, and `renew` tells of it.
  for (let told = false; !told; ) {
    await mouth.control("pause");
    told = await Promise.race([heard.promise.then(() => true), mouth.counts().then(() => false)]);
  }
  assert.equal(await heard.promise, "pause");
  await ear[Symbol.asyncDispose]();
});

test("new seeds reach every worker once, and a pause said by one holds for the other", { skip: skipRedis }, async () => {
  await withBench(caseConfig, async (bench) => {
    const { frontier } = bench;
    const other = await bench.second();
    await frontier.add(many("a.test", 8).map((url) => link(frontier, url)));
    const [lease] = await claimed(frontier, 1);
    await frontier.settle([settledAs(lease!, { kind: "done", counted: true, output: outputFor(lease!.request.url) }, { newSeeds: ["http://n.test/"] })], []);
    const seeds = async (one: Frontier) => {
      const claim = await one.claim(1);
      return claim.kind === "leases" ? claim.seeds : null;
    };
    assert.deepEqual(await seeds(frontier), ["http://n.test/"]);
    assert.deepEqual(await seeds(other), ["http://n.test/"]);
    assert.deepEqual([await seeds(frontier), await seeds(other)], [[], []]);
    await other.control("pause");
    assert.deepEqual(await frontier.claim(1), { kind: "held", why: "paused" });
    assert.equal((await frontier.renew([])).control, "pause");
    await frontier.control("now");
    await other[Symbol.asyncDispose]();
  });
});

test("crawls of one store share the clocks of hosts: the larger delay and the smaller number in flight hold (F111)", { skip: skipRedis }, async (t) => {
  const { direct: to } = await wires(t, "shared");
  const crawls = createCrawls(to);
  let now = 1_000_000;
  const open = async (config: Partial<typeof caseConfig>) =>
    openRedisFrontier({ ...caseConfig, ...config }, { link: to, id: await crawls.create({}), nowMs: () => now, pollMs: Infinity });
  const slow = await open({ perHostDelayMs: 1_000 });
  const fast = await open({ perHostDelayMs: 100 });
  const starts: { at: number; who: string }[] = [];
  // `alive` is kept by the server's clock at creation and by the frontier's afterwards; both workers are at it.
  for (const one of [slow, fast]) await one.add(many("a.test", 20).map((url) => link(one, url)));
  for (; now < 1_012_000; now += 50) {
    for (const [who, one] of [
      ["slow", slow],
      ["fast", fast],
    ] as const) {
      await one.renew([]);
      for (const lease of await claimed(one, 4)) {
        starts.push({ at: now, who });
        await one.progress([{ token: lease.token, sinceMs: 0 }], []);
        await done(one, lease);
      }
    }
  }
  const gaps = starts.slice(1).map(({ at }, n) => at - starts[n]!.at);
  assert.ok(Math.min(...gaps.slice(2)) >= 1_000, `gaps ${gaps}`);
  assert.ok(
    starts.filter(({ who }) => who === "slow").length >= 3 && starts.filter(({ who }) => who === "fast").length >= 3,
    starts.map(({ who }) => who).join(" "),
  );

  const wide = await open({ perHostConcurrency: 10 });
  const narrow = await open({ perHostConcurrency: 2 });
  for (const one of [wide, narrow]) await one.add(many("b.test", 20).map((url) => link(one, url)));
  const held = [...(await claimed(narrow, 10)), ...(await claimed(wide, 10))];
  assert.equal(held.length, 2);
});
