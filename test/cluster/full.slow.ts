/** What is wished of a crawl or a job while its store is full or away: the last word counts, however late and in whatever order the store hears. needs: redis-server */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, type TestContext, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { silentLog } from "../../src/core/log.ts";
import { crawl } from "../../src/crawl.ts";
import { connectRedis, type Link } from "../../src/store/redis/connect.ts";
import { skipRedis, startServer, type TestServer } from "../../src/store/redis/server-for-tests.ts";
import { type FakeSite, fakeSite } from "../../src/testing/site.ts";
import { bench, created, job, someRequests, until } from "../jobs/bench.ts";
import { soon, startService } from "../jobs/shared-service.ts";

const options = { skip: skipRedis, timeout: 120_000 };
/** Longer than the longest pause between two tries of a call that finds no room. */
const TRIES_MS = 4_000;

const root = mkdtempSync(join(tmpdir(), "skein-full-"));
after(() => rmSync(root, { recursive: true, force: true }));

interface Store {
  readonly redis: TestServer;
  readonly link: Link;
  readonly site: FakeSite;
  fill(): Promise<void>;
  empty(): Promise<void>;
  /** What the store has been told last of that crawl. */
  control(crawl?: number): Promise<string>;
  becomes(control: string, crawl?: number): Promise<unknown>;
  /** Pages go on being asked for. */
  goesOn(): Promise<void>;
}

async function store(t: TestContext): Promise<Store> {
  const redis = await startServer(["--maxmemory-policy", "noeviction"]);
  const link = await connectRedis(redis.url, { log: silentLog });
  // Each page has a new one: it ends when it is told to.
  const site = await fakeSite({
    "/": "<a href=/page?n=1>1</a>",
    "/page": ({ query }) => ({ body: `<a href=/page?n=${Number(query.get("n")) + 1}>next</a>`, delayMs: 10 }),
  });
  t.after(async () => {
    await link.close();
    await site[Symbol.asyncDispose]();
    await redis.stop();
  });
  const control = async (id = 1): Promise<string> => String(await link.command("HGET", `{skein}:${id}:m`, "ctl"));
  return {
    ...{ redis, link, site, control },
    fill: async () => void (await link.command("CONFIG", "SET", "maxmemory", "1")),
    empty: async () => void (await link.command("CONFIG", "SET", "maxmemory", "0")),
    becomes: (to, id) => soon(async () => ((await control(id)) === to ? true : null), `control ${to}`, 20_000),
    goesOn: () => someRequests(site, site.requests.length + 5),
  };
}

const crawlIt = ({ redis, site }: Store) => crawl({ seeds: [site.url], store: redis.url, addresses: { allow: ["127.0.0.0/8"] }, traps: { all: null } });

test("a crawl that was paused on a full store and is resumed once there is room goes on", options, async (t) => {
  const at = await store(t);
  await using run = crawlIt(at);
  run.done.catch(() => undefined);
  await at.goesOn();
  await at.fill();
  const paused = run.pause();
  await sleep(TRIES_MS);
  await at.empty();
  const resumed = run.resume();
  await Promise.all([paused, resumed]);
  await sleep(TRIES_MS);
  assert.equal(await at.control(), "run");
  await at.goesOn();
});

test("a crawl that was paused on a full store, and is to do what is queued, is not paused after that", options, async (t) => {
  const at = await store(t);
  await using run = crawlIt(at);
  const { done } = run;
  await at.goesOn();
  await at.fill();
  const paused = run.pause();
  await sleep(TRIES_MS);
  await at.empty();
  await Promise.all([paused, run.stop({ mode: "queue" })]);
  await done;
  assert.equal(await at.control(), "finish");
});

test("while its store is full a service says so and changes nothing; when there is room it pauses and resumes as ever", options, async (t) => {
  const at = await store(t);
  const cwd = mkdtempSync(join(root, "d-"));
  const service = await startService(["--store", at.redis.url, "--state", "jobs"], cwd);
  t.after(() => service.process.kill());
  await service.post("/v1/jobs", { seeds: [`${at.site.url}page?n=0`], limits: { pages: 1 } });
  await service.until(0);
  const spec = { seeds: [at.site.url], traps: { all: null } };
  assert.equal((await service.post("/v1/jobs", spec)).id, 1);
  await at.goesOn();
  await at.fill();
  // Before anybody has found that it is full, too.
  const early = await service.ask("/v1/jobs/1/pause", { method: "POST" });
  assert.equal(early.status, 503);
  const unready = await soon(async () => {
    const response = await service.ask("/readyz");
    return response.status === 503 ? await response.json() : null;
  }, "a 503 of /readyz");
  assert.deepEqual(unready, { status: "unavailable", detail: "the store takes no writes" });
  assert.equal((await service.ask("/healthz")).status, 200);
  for (const [path, method, body] of [
    ["/v1/jobs/1/pause", "POST", "{}"],
    ["/v1/jobs/1/resume", "POST", "{}"],
    ["/v1/jobs/1/stop", "POST", "{}"],
    ["/v1/jobs/1", "DELETE", null],
    ["/v1/jobs/1/hosts", "PATCH", '{"a.example":{"paused":true}}'],
  ] as const) {
    const refused = await service.ask(path, { method, ...(body === null ? {} : { body, headers: { "content-type": "application/json" } }) });
    assert.deepEqual([refused.status, refused.headers.get("content-type")], [503, "application/problem+json"], path);
    assert.match(refused.headers.get("retry-after") ?? "", /^\d+$/);
    assert.equal(JSON.parse(await refused.text()).detail, "the store with the crawls of jobs takes no writes now: nothing was changed", path);
  }
  // What only looks is answered, new jobs are taken, and a job that has ended may be deleted, which makes room.
  assert.equal((await service.get("/v1/jobs/1")).state, "running");
  assert.equal((await service.get("/v1/jobs/1/hosts")).length, 1);
  assert.equal((await service.get(`/v1/jobs/1/explain?url=${encodeURIComponent(at.site.url)}`)).url, at.site.url);
  assert.equal((await service.post("/v1/jobs", { ...spec, limits: { pages: 3 } })).id, 2);
  assert.equal((await service.ask("/v1/jobs/0", { method: "DELETE" })).status, 204);
  assert.equal(await at.link.command("EXISTS", "{skein}:1:m"), 0);
  await at.empty();
  await soon(async () => ((await service.ask("/readyz")).status === 200 ? true : null), "a 200 of /readyz");
  assert.equal((await service.post("/v1/jobs/1/pause")).state, "paused");
  await at.becomes("pause", 2);
  assert.equal((await service.post("/v1/jobs/1/resume")).state, "running");
  await at.becomes("run", 2);
  await at.goesOn();
  assert.deepEqual((await service.until(2)).counts.pages, 3);
});

test("what a dead service has not told the store of a pause the next one tells it", options, async (t) => {
  const at = await store(t);
  await using b = await bench({ store: { url: at.redis.url, looksOn: false } });
  await created(b.jobs, job([at.site.url], { traps: { all: null } }));
  await at.goesOn();
  await b.jobs.pause(0);
  await at.becomes("pause");
  await b.reopen();
  await at.becomes("pause");
  // As if the pause had not come so far before the service was killed.
  await b.jobs.close();
  await at.link.command("HSET", "{skein}:1:m", "ctl", "run");
  await at.fill();
  // It begins once there is room, or not at all.
  const opening = b.reopen();
  await sleep(TRIES_MS);
  await at.empty();
  await opening;
  await at.becomes("pause");
  assert.equal((await b.jobs.get(0))?.state, "paused");
  await b.jobs.resume(0);
  await at.becomes("run");
  await at.goesOn();
  await b.jobs.cancel(0);
  await until(b.jobs, 0);
});

test("a service resumes what was to be paused by one that died, though the store hears of both late", options, async (t) => {
  const at = await store(t);
  await using b = await bench({ store: { url: at.redis.url, looksOn: false } });
  await created(b.jobs, job([at.site.url], { traps: { all: null } }));
  await at.goesOn();
  await b.jobs.pause(0);
  await at.becomes("pause");
  await b.jobs.close();
  await at.link.command("HSET", "{skein}:1:m", "ctl", "run");
  await b.reopen();
  await at.fill();
  // Its word to the store may wait for room by now.
  await sleep(TRIES_MS);
  await at.empty();
  await soon(async () => {
    const answer = await b.jobs.resume(0).catch(() => null);
    return answer?.kind === "done" ? true : null;
  }, "resume");
  await sleep(TRIES_MS);
  await at.becomes("run");
  await at.goesOn();
  await b.jobs.cancel(0);
  await until(b.jobs, 0);
});

test("a store that lost its last moments is told again whether a job is paused", options, async (t) => {
  const at = await store(t);
  await using b = await bench({ store: { url: at.redis.url, looksOn: false } });
  const loses = async (control: string): Promise<void> => {
    await at.link.command("HSET", "{skein}:1:m", "ctl", control);
    await at.redis.kill();
    await at.redis.start();
  };
  await created(b.jobs, job([at.site.url], { traps: { all: null } }));
  await at.goesOn();
  await b.jobs.pause(0);
  await at.becomes("pause");
  await loses("run");
  await at.becomes("pause");
  await soon(async () => ((await b.jobs.health()).ready ? true : null), "the store");
  await b.jobs.resume(0);
  await at.becomes("run");
  await loses("pause");
  await at.becomes("run");
  await at.goesOn();
  await b.jobs.cancel(0);
  await until(b.jobs, 0);
});
