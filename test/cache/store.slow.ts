/** The response cache in a store: shared by processes, kept apart from what else lies there, and never in a crawl's way. needs: redis-server */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import type { StoredResponse } from "../../src/core/cache.ts";
import { CrawlError } from "../../src/core/errors.ts";
import { type Logger, silentLog } from "../../src/core/log.ts";
import type { PageRecord } from "../../src/core/records.ts";
import { crawl } from "../../src/crawl.ts";
import { cacheInStore } from "../../src/inspect/cache.ts";
import { createRedisCache, type RedisCacheOptions } from "../../src/store/redis/cache.ts";
import { connectRedis, type Link } from "../../src/store/redis/connect.ts";
import { skipRedis, startServer, type TestServer } from "../../src/store/redis/server-for-tests.ts";
import { startCommand, until } from "../cluster/processes.ts";
import { redisSuite } from "../cluster/suite.ts";
import { faultySite, runCommand } from "../crawl/kills.ts";
import { gated, html, serve, tree } from "../crawl/served.ts";

const suite = redisSuite("store-cache");
const { folder } = suite;

let prefixes = 0;
/** A store of its own for each test. */
const ownStore = (of: TestServer = suite.redis): string => `${of.url}?prefix=t${prefixes++}`;

async function linked(t: TestContext, url: string, log: Logger = silentLog): Promise<Link> {
  const link = await connectRedis(url, { log });
  t.after(() => link.close());
  return link;
}

function records(file: string): PageRecord[] {
  const pages = readFileSync(file, "utf8").split("\n").filter(Boolean);
  return pages.map((line) => JSON.parse(line) as PageRecord).sort((a, b) => (a.url < b.url ? -1 : 1));
}

/** What does not depend on when and whence it came; the digest stands for the body, byte for byte. */
const timeless = ({ fetchedAt: _, durationMs: __, fromCache: ___, attempts: ____, referrer: _____, ...rest }: PageRecord) => rest;

const crawlArgs = (origin: string, store: string, file: string, ...more: string[]) => ["crawl", origin, "--store", store, "-o", file, ...more];
const workArgs = (store: string) => ["work", "--store", store, "--allow-address", "127.0.0.1", "--exit-when-idle", "2s"];
const worker = (store: string) => runCommand(workArgs(store), folder(), null);

test("a worker and a crawl share the store's cache: what either has fetched the next crawl asks for no more", { skip: skipRedis }, async (t) => {
  const cwd = folder();
  const store = ownStore();
  // Redirects that set a cookie are not kept: they are what both crawls ask for, and are kept waiting until the worker has some too.
  const gate = gated(faultySite(150), (target) => target.startsWith("/r/"));
  await using server = await serve(gate.answer);
  async function together(file: string) {
    gate.shut();
    const before = server.arrivals.length;
    const creator = startCommand(crawlArgs(server.origin, store, file, "--cache", "1h", "-c", "4", "--per-host", "16"), cwd);
    await until("the crawl is under way", () => server.arrivals.length > before, [creator]);
    const helper = startCommand(workArgs(store), folder());
    await until("the worker waits for a redirect", () => gate.waiting() > 4, [creator, helper]);
    gate.open();
    assert.equal(await creator.ended, 0, creator.stderr());
    assert.equal(await helper.ended, 0, helper.stderr());
    assert.match(helper.stderr(), /left: [1-9]\d* requests/);
  }
  await together("first.jsonl");
  const once = server.arrivals.length;
  await together("second.jsonl");
  const asked = server.arrivals.slice(once).filter(({ target }) => target !== "/robots.txt" && !target.startsWith("/r/"));
  assert.deepEqual(
    asked.map(({ target }) => target),
    [],
  );
  assert.deepEqual(records(join(cwd, "second.jsonl")).map(timeless), records(join(cwd, "first.jsonl")).map(timeless));
  const stats = await cacheInStore(store, "stats", silentLog);
  assert.ok(stats.responses > 150, `${stats.responses}`);
  const arrived = server.arrivals.length;
  const offline = await runCommand(crawlArgs(server.origin, store, "offline.jsonl", "--offline"), cwd, null);
  assert.equal(offline.code, 0, offline.stderr);
  assert.equal(server.arrivals.length, arrived, "robots.txt too comes from the cache");
  const link = await linked(t, store);
  const keys = ((await link.command("KEYS", "*")) as Buffer[]).map(String); // KEYS
  assert.deepEqual(
    keys.filter((key) => !/^\{t\d+\}:/.test(key)),
    [],
  );
});

test("a cached answer owes its host no delay, whichever worker serves it", { skip: skipRedis }, async () => {
  const cwd = folder();
  const store = ownStore();
  await using server = await serve(tree(40));
  const first = await runCommand(crawlArgs(server.origin, store, "first.jsonl", "--cache", "1h", "--no-robots"), cwd, null);
  assert.equal(first.code, 0, first.stderr);
  const once = server.arrivals.length;
  const startedAt = performance.now();
  const slow = crawlArgs(server.origin, store, "slow.jsonl", "--cache", "1h", "--no-robots", "--delay", "10s");
  const [second] = await Promise.all([runCommand(slow, cwd, null), worker(store)]);
  assert.equal(second.code, 0, second.stderr);
  assert.equal(server.arrivals.length, once);
  assert.equal(records(join(cwd, "slow.jsonl")).length, 40);
  // With its delay it would take 400 s.
  assert.ok(performance.now() - startedAt < 120_000);
});

test("errors are not cached, and auto keeps what RFC 9111 lets a shared cache keep", { skip: skipRedis }, async () => {
  const store = ownStore();
  await using server = await serve((request, response) => {
    if (request.url === "/robots.txt") return void response.writeHead(404).end();
    if (request.url === "/broken") return void response.writeHead(500).end("error");
    response.setHeader("cache-control", request.url === "/private" ? "private, max-age=1000" : "max-age=1000");
    html(response, `<a href="/private">p</a><a href="/broken">b</a><a href="/fresh">f</a>`);
  });
  const spec = { seeds: [`${server.origin}/`], cache: "auto", store, retry: { max: 0 } } as const;
  await crawl(spec).done;
  const once = server.targets().length;
  await crawl(spec).done;
  assert.deepEqual([...new Set(server.targets().slice(once))].sort(), ["/broken", "/private"]);
});

const stored = (path: string, bytes: number, at = 5): StoredResponse => ({
  url: `http://a.test${path}`,
  status: 200,
  headers: [["content-type", "text/html"]],
  body: Buffer.from(Array.from({ length: bytes / 8 }, () => Math.random().toString(36).slice(2, 10)).join("")),
  wireBytes: 7,
  truncated: false,
  requestedAt: at,
  respondedAt: at + 1,
  varied: {},
});

test("clear takes the cache away and nothing else: crawls, other prefixes and foreign keys stay", { skip: skipRedis }, async (t) => {
  const [store, other] = [ownStore(), ownStore()];
  const [link, apart] = [await linked(t, store), await linked(t, other)];
  await using server = await serve(tree(5));
  await crawl({ seeds: [server.origin], store, cache: 3_600_000 }).done;
  const many = createRedisCache(link);
  for (let n = 0; n < 450; n++) await many.put(`GET ${n}`, stored(`/${n}`, 64));
  await createRedisCache(apart).put("GET x", stored("/x", 64));
  await link.command("SET", "c:foreign", "1");
  await link.command("SET", `${link.tag}x:c:1`, "1");
  const keys = async (): Promise<string[]> => ((await link.command("KEYS", "*")) as Buffer[]).map(String).sort(); // KEYS
  const before = await keys();
  const cleared = await cacheInStore(store, "clear", silentLog);
  assert.ok(cleared.responses >= 455, `${cleared.responses}`);
  const isCached = (key: string) => key.startsWith(`${link.tag}:c:`) || [":cz", ":cs", ":cb"].some((end) => key === link.tag + end);
  assert.deepEqual(
    await keys(),
    before.filter((key) => !isCached(key)),
  );
  assert.equal((await cacheInStore(store, "stats", silentLog)).exists, false);
  assert.equal((await createRedisCache(apart).get("GET x"))?.url, "http://a.test/x");
});

async function cacheOf(t: TestContext, options: RedisCacheOptions = {}) {
  const link = await linked(t, ownStore());
  return { link, cache: createRedisCache(link, options) };
}

test("responses go after their time, each after its own, and are counted no more", { skip: skipRedis }, async (t) => {
  const { link, cache } = await cacheOf(t, { keepMs: 1_500 });
  await createRedisCache(link, { keepMs: 600_000 }).put("GET long", stored("/long", 64));
  await cache.put("GET short", stored("/short", 64));
  assert.equal((await cache.stats()).responses, 2);
  while ((await cache.get("GET short")) !== null);
  while ((await cache.stats()).responses > 1);
  assert.equal((await cache.get("GET long"))?.url, "http://a.test/long");
  const { bodyBytes, diskBytes } = await cache.stats();
  assert.ok(bodyBytes < diskBytes && diskBytes < 1_000, `${bodyBytes}, ${diskBytes}`);
});

test("bodies come back byte for byte, whatever is in them", { skip: skipRedis }, async (t) => {
  const { cache } = await cacheOf(t);
  const bodies = [
    Buffer.alloc(0),
    Buffer.from([0, 255, 13, 10, 1]),
    Buffer.alloc(3_000_000, "é"),
    Buffer.from(Uint8Array.from({ length: 5_000 }, (_, n) => (n * 7919) % 251)),
  ];
  for (const [n, body] of bodies.entries()) await cache.put(`GET ${n}`, { ...stored("/b", 64), body });
  for (const [n, body] of bodies.entries()) assert.ok(Buffer.from((await cache.get(`GET ${n}`))?.body ?? "none").equals(body), `${n}`);
});

test("a head that a 304 has renewed is not put on a body that another process has stored since", { skip: skipRedis }, async (t) => {
  const link = await linked(t, ownStore());
  const other = createRedisCache(link);
  // The other one's response comes between reading and writing.
  const cache = createRedisCache({
    ...link,
    get server() {
      return link.server;
    },
    async offer(...call) {
      await other.put("GET 1", { ...stored("/new", 64), headers: [["etag", "new"]] });
      return link.offer(...call);
    },
  });
  await other.put("GET 1", { ...stored("/old", 64), headers: [["etag", "old"]] });
  await cache.refresh("GET 1", { headers: [["etag", "old"]], requestedAt: 7, respondedAt: 8 });
  const kept = await other.get("GET 1");
  assert.deepEqual([kept?.url, kept?.headers], ["http://a.test/new", [["etag", "new"]]]);
});

function listening(): { readonly log: Logger; readonly said: string[] } {
  const said: string[] = [];
  return { said, log: (level, message) => void said.push(`${level} ${message}`) };
}

test("a full store is no trouble to a crawl with a cache: it goes on without, and says so once", { skip: skipRedis }, async (t) => {
  const full = await startServer(["--maxmemory-policy", "noeviction"]);
  t.after(() => full.stop());
  const { log, said } = listening();
  const link = await linked(t, ownStore(full), log);
  const cache = createRedisCache(link);
  await cache.put("GET kept", stored("/kept", 64));
  await link.command("CONFIG", "SET", "maxmemory", "1");
  const beganAt = performance.now();
  for (let n = 0; n < 20; n++) await cache.put(`GET ${n}`, stored(`/${n}`, 640));
  await cache.refresh("GET kept", { headers: [], requestedAt: 1, respondedAt: 2 });
  assert.ok(performance.now() - beganAt < 10_000, "nothing waited");
  assert.equal((await cache.get("GET kept"))?.url, "http://a.test/kept");
  assert.equal(await cache.get("GET 0"), null);
  assert.deepEqual(said.filter((line) => line.startsWith("warn the store takes no responses")).length, 1, said.join("\n"));
  await cache.makeRoom();
  assert.equal(await cache.get("GET kept"), null, "what can be fetched again makes room for what cannot");
});

test("a store that bodies have filled has room for its crawls again, and every page is there", { skip: skipRedis }, async (t) => {
  const small = await startServer(["--maxmemory-policy", "noeviction", "--maxmemory", "24mb"]);
  t.after(() => small.stop());
  const store = ownStore(small);
  const link = await linked(t, store);
  // What else lies there: no half is left for the cache, though it thinks so.
  for (let n = 0; n < 14; n++) await link.command("SET", `ballast${n}`, Buffer.alloc(1_000_000, "b"));
  const filler = () => Array.from({ length: 9_000 }, () => Math.random().toString(36)).join(" ");
  await using server = await serve((request, response) => {
    html(response, request.url === "/" ? Array.from({ length: 150 }, (_, n) => `<a href="/p${n}">p</a>`).join("") : filler());
  });
  const { log, said } = listening();
  const pages: PageRecord[] = [];
  const run = crawl({ seeds: [`${server.origin}/`], store, cache: 3_600_000, robots: false }, { log });
  for await (const page of run) pages.push(page);
  assert.equal((await run.done).finishReason, "finished");
  assert.equal(pages.filter(({ outcome, status }) => outcome === "fetched" && status === 200).length, 151, said.join("\n"));
  assert.ok((await cacheInStore(store, "stats", silentLog)).diskBytes < 12_000_000);
});

test("--incremental wants a state directory, whatever the store has", () => {
  assert.throws(
    () => crawl({ seeds: ["http://a.test/"], store: "redis://a", incremental: true }),
    (error) => error instanceof CrawlError && error.code === "invalid-options" && /--state DIR/.test(error.message),
  );
});
