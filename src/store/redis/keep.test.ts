/** What is kept beside the frontier: outputs until they are taken, crawls until they are deleted, responses until they are old; and arguments that no script takes. */
import assert from "node:assert/strict";
import { after, before, type TestContext, test } from "node:test";
import type { StoredResponse } from "../../core/cache.ts";
import { CrawlError, LostCrawl } from "../../core/errors.ts";
import type { Frontier, FrontierConfig } from "../../core/frontier.ts";
import { silentLog } from "../../core/log.ts";
import type { Output } from "../../core/records.ts";
import { makeRequest, makeSkip } from "../../rules/admit.ts";
import { crashedOutput, outputFor, settledAs } from "../../testing/frontier/bench.ts";
import { caseConfig } from "../../testing/frontier-cases.ts";
import { createRedisCache } from "./cache.ts";
import { connectRedis, type Link } from "./connect.ts";
import { createCrawls } from "./crawls.ts";
import { scanInvariants } from "./doctor.ts";
import { openRedisFrontier, type RedisFrontierEnv } from "./frontier.ts";
import { openRedisStore } from "./open.ts";
import { openOutbox } from "./outbox.ts";
import { packEntry } from "./pack.ts";
import { packOutputs, readOutputs } from "./packet.ts";
import { skipRedis, startServer, type TestServer } from "./server-for-tests.ts";

let server: TestServer;
before(async () => {
  if (skipRedis === false) server = await startServer(["--appendonly", "no"]);
});
after(() => server?.stop());

let prefixes = 0;
async function linked(t: TestContext): Promise<Link> {
  const link = await connectRedis(server.url, { log: silentLog, prefix: `keep${prefixes++}` });
  t.after(() => link.close());
  return link;
}

async function crawlOf(link: Link, config: Partial<FrontierConfig> = {}, env: Partial<RedisFrontierEnv> = {}): Promise<{ id: number; frontier: Frontier }> {
  const id = await createCrawls(link).create({ spec: "{}" });
  return { id, frontier: await openRedisFrontier({ ...caseConfig, perHostConcurrency: 1_000, ...config }, { link, id, ...env }) };
}

const linkTo = (frontier: Frontier, url: string) => makeRequest(url, frontier.seed, { hop: "link", depth: 0, referrer: null });

/** Adds and settles so many pages. */
async function settlePages(frontier: Frontier, from: number, to: number, outputOf: (url: string) => Output = outputFor): Promise<void> {
  await frontier.add(Array.from({ length: to - from }, (_, n) => linkTo(frontier, `http://a.test/${from + n}`)));
  const claim = await frontier.claim(to - from);
  for (const lease of claim.kind === "leases" ? claim.leases : []) {
    await frontier.settle([settledAs(lease, { kind: "done", counted: true, output: outputOf(lease.request.url) })], []);
  }
}

test("outputs come back from packets as they went in, long ones compressed", () => {
  const skip = makeSkip([1, 2, 3, 4], { url: "http://x.test/ü", referrer: "http://a.test/", depth: 3, reason: "depth", rule: "2" });
  const outputs: Output[] = [
    outputFor("http://a.test/1"),
    outputFor("http://a.test/2", { skipped: [skip], found: [{ ...skip, value: "http://x.test/ü" }], edges: [{ from: "a", to: "b", nofollow: true }] }),
    outputFor("http://a.test/3", { items: [{ type: "item", key: null, json: '{"a":"é"}' }] }),
    outputFor("http://a.test/4", { items: [], changes: [] }),
  ];
  const long = outputFor("http://a.test/5");
  const wide: Output = { ...long, page: { ...long.page!, links: Array.from({ length: 500 }, (_, n) => `http://a.test/some/path/${n}`) } };
  const packed = packOutputs([...outputs, wide]);
  assert.deepEqual(
    readOutputs(packed, () => outputFor("none")),
    [...outputs, wide],
  );
  assert.ok(packOutputs([wide]).length < JSON.stringify(wide).length / 4);
});

test("a drain begins after the last checkpoint, whoever wrote it; what is taken is trimmed", { skip: skipRedis }, async (t) => {
  const link = await linked(t);
  const { id, frontier } = await crawlOf(link);
  await settlePages(frontier, 0, 6);
  const urls = (batch: { outputs: readonly Output[] } | null) => batch?.outputs.map(({ page }) => page?.url.slice(-1)).join("");
  {
    await using outbox = await openOutbox(link, id, { crashed: crashedOutput });
    const batch = await outbox.read(2);
    assert.equal(urls(batch), "01");
    await outbox.checkpoint(batch!.cursor, new Map([["pages.jsonl", { length: 99 }]]));
    assert.equal(urls(await outbox.read(3)), "234", "read, and lost before it was checkpointed");
  }
  await using outbox = await openOutbox(link, id, { crashed: crashedOutput });
  assert.deepEqual([...outbox.states], [["pages.jsonl", { length: 99 }]]);
  const rest = await outbox.read();
  assert.equal(urls(rest), "2345");
  await outbox.checkpoint(rest!.cursor, outbox.states);
  assert.deepEqual([await outbox.read(), await link.command("XLEN", `${link.tag}:${id}:out`)], [null, 0]);
});

test("an outbox has one owner at a time; one that died is followed once its lease is over", { skip: skipRedis }, async (t) => {
  const link = await linked(t);
  const { id, frontier } = await crawlOf(link);
  await settlePages(frontier, 0, 1);
  const first = await openOutbox(link, id, { crashed: crashedOutput, leaseMs: 40 });
  const held = (error: unknown) => error instanceof CrawlError && error.code === "state-held";
  await assert.rejects(openOutbox(link, id, { crashed: crashedOutput }), held);
  const batch = await first.read();
  // The lease is the server's affair: it runs out by its clock.
  while ((await link.command("EXISTS", `${link.tag}:${id}:own`)) === 1) await link.command("PING");
  const second = await openOutbox(link, id, { crashed: crashedOutput });
  await assert.rejects(first.checkpoint(batch!.cursor, new Map()), held);
  assert.equal((await second.read())?.outputs.length, 1);
});

test("when nobody takes the outputs, claims are held back, and go on once they are taken", { skip: skipRedis }, async (t) => {
  const link = await linked(t);
  const { id, frontier } = await crawlOf(link, {}, { outbox: { most: 4, bytes: 1_000_000 } });
  await settlePages(frontier, 0, 4);
  await frontier.add([linkTo(frontier, "http://a.test/more")]);
  assert.deepEqual(await frontier.claim(1), { kind: "held", why: "outbox-full" });
  await using outbox = await openOutbox(link, id, { crashed: crashedOutput });
  const batch = await outbox.read(1);
  await outbox.checkpoint(batch!.cursor, new Map());
  assert.equal((await frontier.claim(1)).kind, "leases");
});

test("crawls have numbers that count up; an ended one leaves the live ones, is told of once, and goes when it is old and taken", {
  skip: skipRedis,
}, async (t) => {
  const link = await linked(t);
  const crawls = createCrawls(link);
  const { id, frontier } = await crawlOf(link, { levels: true, robots: true });
  const other = await crawls.create({ spec: '{"b":1}', owner: "me" });
  assert.deepEqual([id, other, await crawls.live(), await crawls.list(9)], [1, 2, [1, 2], [2, 1]]);
  await crawls.note(other, { owner: null, state: "paused" });
  assert.deepEqual(
    [...((await crawls.get(other))?.info ?? [])],
    [
      ["spec", '{"b":1}'],
      ["state", "paused"],
    ],
  );
  assert.equal(await crawls.get(3), null);

  await frontier.add(Array.from({ length: 200 }, (_, n) => linkTo(frontier, `http://h${n % 7}.test/${n}`)));
  await frontier.setValues([{ op: "set", key: "state:x", value: "1" }]);
  const claim = await frontier.claim(5);
  assert.equal(claim.kind, "leases");
  await frontier.control("now");
  assert.deepEqual([await crawls.live(), (await crawls.ends("0-0")).map((end) => end.id)], [[2], [1]]);
  assert.equal((await crawls.get(1))?.completed, true);
  assert.deepEqual(await crawls.retire(7), [], "it has just ended");
  assert.deepEqual(await crawls.retire(0), [], "what is left of it may be gone on with");
  await crawls.note(1, { finished: "stop-condition" });
  assert.deepEqual(await crawls.retire(0), [1]);
  const keys = ((await link.command("KEYS", `${link.tag}:1:*`)) as Buffer[]).map(String); // KEYS
  assert.deepEqual(keys, []);
  assert.deepEqual(await crawls.list(9), [2]);
  await assert.rejects(frontier.counts(), /there is no such crawl/);
  await crawls.delete(1);
});

test("a crawl whose outputs nobody has taken is not retired", { skip: skipRedis }, async (t) => {
  const link = await linked(t);
  const { id, frontier } = await crawlOf(link);
  await settlePages(frontier, 0, 1);
  await frontier.seedsComplete();
  assert.deepEqual(await createCrawls(link).retire(0), []);
  await using outbox = await openOutbox(link, id, { crashed: crashedOutput });
  await outbox.checkpoint((await outbox.read())!.cursor, new Map());
  assert.deepEqual(await createCrawls(link).retire(0), [id]);
});

test("scripts refuse arguments that they do not expect, before they write anything", { skip: skipRedis }, async (t) => {
  const link = await linked(t);
  const { id, frontier } = await crawlOf(link);
  await settlePages(frontier, 0, 2);
  await frontier.add([linkTo(frontier, "http://a.test/x")]);
  const claim = await frontier.claim(1);
  const token = claim.kind === "leases" ? claim.leases[0]!.token : "";
  const keys = [link.tag, `${link.tag}:${id}`];
  const dump = async () => {
    const names = ((await link.command("KEYS", `${link.tag}:*`)) as Buffer[]).map(String).sort(); // KEYS
    return Promise.all(names.map(async (name) => [name, String(await link.command("DUMP", name))]));
  };
  const entry = packEntry(linkTo(frontier, "http://b.test/1"));
  const good = Buffer.concat([Buffer.of(0, 0, 0, 0), entry]);
  const page = (kind: string, wait = "") => [token, kind, wait, "", "", "", "", "", "", "", "", ""];
  const group = (link_: Buffer) => ["b.test", Buffer.of(1, 0, 0, 0), link_];
  const calls: [Parameters<Link["script"]>[0], (string | Buffer)[]][] = [
    ["add", ["", "1", "x"]],
    ["add", ["", "1", "1", ...group(good), "more"]],
    ["add", ["", "1", "1", "b.test", Buffer.of(2, 0, 0, 0), good]],
    ["add", ["", "1", "1", ...group(good.subarray(0, 9))]],
    ["add", ["", "1", "1", ...group(Buffer.concat([Buffer.of(0, 0, 0, 100), entry]))]],
    ["settle", ["", "1", "1", "1", "0", ...group(good), ...page("q")]],
    ["settle", ["", "1", "1", "1", "0", ...group(good), ...page("r")]],
    ["settle", ["", "1", "1", "1", "0", ...group(good), ...page("o")]],
    ["settle", ["", "1", "1", "1", "0", ...group(good), ...page("d").slice(1)]],
    ["control", ["", "1", "what", "now"]],
  ];
  const before_ = await dump();
  const sound = before_.filter(([name]) => !name?.endsWith(":m"));
  for (const [name, args] of calls) {
    await assert.rejects(
      link.script(name, keys, args),
      (error) => error instanceof CrawlError && /BADARGS|BADKIND/.test(error.message),
      `${name} ${args.length}`,
    );
    assert.deepEqual(
      (await dump()).filter(([key]) => !key?.endsWith(":m")),
      sound,
    );
  }
  await assert.rejects(link.script("add", [link.tag, `${link.tag}:99`], ["", "1", "0"]), LostCrawl);
  assert.deepEqual((await scanInvariants(link, id)).faults, []);
});

function stored(path: string, body: string, at: number): StoredResponse {
  const headers = [["content-type", "text/html"]] as const;
  const url = `http://a.test${path}`;
  return { url, status: 200, headers, body: Buffer.from(body), wireBytes: 7, truncated: false, requestedAt: at, respondedAt: at + 1, varied: { x: null } };
}
const plain = (response: StoredResponse | null) => response && { ...response, body: Buffer.from(response.body) };

test("the cache gives back what was put, refreshes heads, and is cleared without a trace", { skip: skipRedis }, async (t) => {
  const link = await linked(t);
  let now = 1_000;
  const cache = createRedisCache(link, { nowMs: () => now++ });
  const one = stored("/1", "short", 5);
  const two = stored("/2", "long ".repeat(9_999), 6);
  await cache.put("GET 1", one);
  await cache.put("GET 2", two);
  assert.deepEqual([plain(await cache.get("GET 1")), plain(await cache.get("GET 2")), await cache.get("GET 3")], [one, two, null]);
  const head = { headers: [["etag", "x"]] as const, requestedAt: 50, respondedAt: 51 };
  await cache.refresh("GET 1", head);
  await cache.refresh("GET none", head);
  const all = [];
  for await (const [key, response] of cache.all()) all.push([key, plain(response)]);
  assert.deepEqual(all, [
    ["GET 2", two],
    ["GET 1", { ...one, ...head }],
  ]);
  const stats = await cache.stats();
  assert.deepEqual([stats.responses, stats.oldest, stats.newest], [2, 1_001, 1_002]);
  assert.ok(stats.bodyBytes < 2_000, `${stats.bodyBytes}`);
  await cache.delete("GET 2");
  assert.equal(await cache.get("GET 2"), null);
  await cache.clear();
  assert.deepEqual(((await link.command("KEYS", `${link.tag}:c*`)) as Buffer[]).map(String), []);
});

test("the cache stays below its size, the oldest going first, and keeps nothing for longer than it should", { skip: skipRedis }, async (t) => {
  const link = await linked(t);
  let now = 1_000;
  const noise = () => Array.from({ length: 200 }, () => Math.random().toString(36).slice(2, 7)).join("");
  const cache = createRedisCache(link, { nowMs: () => now++, maxBytes: 20_000, keepMs: 60_000 });
  for (let n = 0; n < 60; n++) await cache.put(`GET ${n}`, stored(`/${n}`, noise(), n));
  const { responses, bodyBytes } = await cache.stats();
  assert.ok(bodyBytes <= 20_000 && responses > 10, `${bodyBytes} bytes, ${responses} responses`);
  assert.deepEqual([await cache.get("GET 0"), (await cache.get("GET 59"))?.url], [null, "http://a.test/59"]);
  now += 60_000;
  assert.equal((await cache.stats()).responses, 0);
});

test("a store tells of its workers and its health", { skip: skipRedis }, async () => {
  await using store = await openRedisStore(server.url, { log: silentLog, prefix: "whole" });
  await store.workers.sayAlive({ id: "w1", host: "box", pid: 7, kind: "work", ageMs: 1, shares: [] });
  const [worker] = await store.workers.list();
  assert.deepEqual([worker?.id, worker?.host, worker?.kind], ["w1", "box", "work"]);
  await store.workers.sayGone("w1");
  assert.deepEqual(await store.workers.list(), []);
  const health = await store.health();
  assert.match(health.version, /^\d+\.\d+/);
  assert.ok(health.usedNow > 0);
  const ended = Promise.withResolvers<number>();
  const stop = await store.onEnd(ended.resolve);
  const id = await store.crawls.create({});
  const frontier = await store.openFrontier(id, caseConfig, {});
  const hear = async (): Promise<void> => {
    // The ear may open after the crawl has ended: another one ends then.
    for (let heard = false; !heard; ) {
      await frontier.setPageLimit(null);
      await frontier.seedsComplete();
      heard = await Promise.race([ended.promise.then(() => true), store.health().then(() => false)]);
      if (heard) return;
      const next = await store.openFrontier(await store.crawls.create({}), caseConfig, {});
      await next.seedsComplete();
    }
  };
  await hear();
  assert.ok((await ended.promise) >= id);
  await stop();
});
