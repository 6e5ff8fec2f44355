/** `skein serve --store`: jobs in the hands of workers elsewhere come out as those of the embedded store, whoever is killed meanwhile. needs: redis-server */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { silentLog } from "../../src/core/log.ts";
import { connectRedis } from "../../src/store/redis/connect.ts";
import { freePort, skipRedis, startServer, type TestServer } from "../../src/store/redis/server-for-tests.ts";
import type { Running } from "../cluster/processes.ts";
import { runCommand } from "../crawl/kills.ts";
import { fromPage, type Gate, gated, type Served, serve, tree } from "../crawl/served.ts";
import { jobSite, resultsOf, type Service, SPEC, soon, startService, startWorker } from "./shared-service.ts";

const root = mkdtempSync(join(tmpdir(), "skein-shared-jobs-"));
const folder = () => mkdtempSync(join(root, "d-"));
let redis: TestServer | null = null;
const store = (): string => redis?.url ?? "";
const running: Running[] = [];
const kept = <T extends Running | Service>(one: T): T => {
  running.push("process" in one ? one.process : one);
  return one;
};

before(async () => {
  if (skipRedis === false) redis = await startServer(["--maxmemory-policy", "noeviction"]);
});
after(async () => {
  for (const one of running) if (!one.over) await one.kill();
  await redis?.stop();
  rmSync(root, { recursive: true, force: true });
});

const shared = async (cwd: string, ...more: string[]) => kept(await startService(["--store", store(), "--state", "jobs", ...more], cwd));
const worker = (...more: string[]) => kept(startWorker(store(), folder(), ...more));
const started = (service: Service, site: Served, spec: object = SPEC) => service.post("/v1/jobs", { seeds: [`${site.origin}/`], ...spec });
const asked = (site: Served, count: number) => soon(() => (site.arrivals.length >= count ? true : null), `request ${count}`);

/** Of two workers without another loop beside them: one alone asks for six pages at once. */
const bothHavePages = (gate: Gate) => soon(() => (gate.waiting() > 6 ? true : null), "pages of both workers");

async function gone(...processes: readonly Running[]): Promise<void> {
  for (const one of processes) if (!one.over) await one.kill();
}

/** The job of one site on the embedded store, and then on a store by `wild`, which answers the service to ask. */
async function checkEqual(pages: number, wild: (site: Served, cwd: string, gate: Gate) => Promise<Service>): Promise<void> {
  const gate = gated(jobSite(pages), fromPage(20));
  await using site = await serve(gate.answer);
  const alone = kept(await startService(["--state", "jobs"], folder()));
  await started(alone, site);
  const calm = await alone.until(0);
  assert.equal(calm.state, "completed");
  const expected = await resultsOf(alone, 0);
  await gone(alone.process);
  const service = await wild(site, folder(), gate);
  const end = await service.until(0);
  assert.deepEqual([end.state, end.finishReason], ["completed", "finished"]);
  assert.deepEqual(await resultsOf(service, 0), expected);
  for (const figure of ["total", "completed", "inProgress", "queued", "pages", "items", "images", "failed"])
    assert.equal(end.counts[figure], calm.counts[figure], figure);
  const { lines } = await service.get(`/v1/jobs/0/explain?url=${encodeURIComponent(`${site.origin}/p1`)}`);
  assert.match(lines.join("\n"), /fetched/i);
  await gone(service.process);
}

test("a job that only workers elsewhere work on ends as on the embedded store, record for record", { skip: skipRedis, timeout: 160_000 }, async () => {
  await checkEqual(120, async (site, cwd, gate) => {
    const service = await shared(cwd, "--workers", "0");
    const helpers = [worker(), worker()];
    gate.shut();
    await started(service, site);
    await bothHavePages(gate);
    gate.open();
    const end = await service.until(0);
    assert.equal(end.counts.inProgress, 0);
    for (const helper of helpers) helper.signal("SIGTERM");
    for (const helper of helpers) {
      assert.equal(await helper.ended, 0, helper.stderr());
      assert.match(helper.stderr(), /left: [1-9]\d* requests/);
    }
    return service;
  });
});

test("a service that is killed and started again goes on with what workers did meanwhile", { skip: skipRedis, timeout: 160_000 }, async () => {
  await checkEqual(150, async (site, cwd) => {
    const first = await shared(cwd);
    const helper = worker();
    const before = site.arrivals.length;
    await started(first, site);
    await asked(site, before + 40);
    await first.process.kill();
    // Workers go on meanwhile.
    await asked(site, before + 60);
    const second = await shared(cwd, "--workers", "0");
    await second.until(0);
    await gone(helper);
    return second;
  });
});

test("what a worker held that is killed is done by others", { skip: skipRedis, timeout: 160_000 }, async () => {
  await checkEqual(100, async (site, cwd, gate) => {
    const service = await shared(cwd, "--workers", "0");
    const [victim, other] = [worker(), worker()];
    gate.shut();
    await started(service, site);
    await bothHavePages(gate);
    await victim.kill();
    gate.open();
    await service.until(0);
    await gone(other);
    return service;
  });
});

/** Requests stop coming: none for so long. Answers when the last one came. */
async function quiet(site: Served, ms = 1_500): Promise<number> {
  return soon(() => {
    const last = site.arrivals.at(-1)?.at ?? 0;
    return performance.now() - last > ms ? last : null;
  }, "silence");
}

test("pause, resume, stop and cancel reach a worker elsewhere at once; what is deleted leaves no key", { skip: skipRedis, timeout: 160_000 }, async () => {
  // A second is what is promised; tests share their machine.
  const SOON_MS = 10_000;
  await using site = await serve(tree(100_000));
  const service = await shared(folder(), "--workers", "0");
  const helper = worker();
  const slow = { perHost: { concurrency: 2, delay: "10ms" } };
  await started(service, site, slow);
  await asked(site, 20);
  const pausedAt = performance.now();
  assert.equal((await service.post("/v1/jobs/0/pause")).state, "paused");
  assert.ok((await quiet(site)) - pausedAt < SOON_MS);
  const count = site.arrivals.length;
  assert.equal((await service.post("/v1/jobs/0/resume")).state, "running");
  await asked(site, count + 10);
  const [host] = Object.values((await service.get("/v1/jobs/0/hosts")) as { host: string; settled: number }[]);
  assert.ok(host !== undefined && host.settled > 0);
  const patchedAt = performance.now();
  const patched = (paused: boolean) => service.patch("/v1/jobs/0/hosts", { [host.host]: { paused } });
  await patched(true);
  assert.ok((await quiet(site)) - patchedAt < SOON_MS);
  await patched(false);
  await asked(site, site.arrivals.length + 5);
  const stoppedAt = performance.now();
  await service.post("/v1/jobs/0/stop", { mode: "flight", reason: "enough" });
  const stopped = await service.until(0);
  assert.deepEqual([stopped.state, stopped.detail, stopped.counts.completed], ["stopped", "enough", stopped.counts.total]);
  assert.ok((await quiet(site)) - stoppedAt < SOON_MS);

  await started(service, site, slow);
  const before = site.arrivals.length;
  await asked(site, before + 10);
  const cancelledAt = performance.now();
  assert.equal((await service.ask("/v1/jobs/1", { method: "DELETE" })).status, 200);
  assert.equal((await service.until(1)).state, "cancelled");
  assert.ok((await quiet(site)) - cancelledAt < SOON_MS);
  const pages = (await resultsOf(service, 1))["pages"]?.length ?? 0;
  assert.ok(pages > 0);

  await started(service, site, { ...slow, limits: { pages: 23 } });
  const limited = await service.until(2);
  assert.deepEqual([limited.state, limited.finishReason, limited.counts.pages], ["completed", "limit-pages", 23]);

  const link = await connectRedis(store(), { log: silentLog });
  const keysOf = async (crawl: number) => ((await link.command("KEYS", `{skein}:${crawl}:*`)) as Buffer[]).map(String); // KEYS
  const mine = ((await link.command("ZRANGE", "{skein}:all", 0, -1)) as Buffer[]).map(Number).slice(-3); // ZRANGE
  for (const crawl of mine) assert.ok((await keysOf(crawl)).length > 0);
  for (const job of [0, 1, 2]) assert.equal((await service.ask(`/v1/jobs/${job}`, { method: "DELETE" })).status, 204);
  for (const crawl of mine) assert.deepEqual(await keysOf(crawl), []);
  assert.equal((await service.ask("/v1/jobs/0")).status, 404);
  await link.close();
  await gone(helper, service.process);
});

test("while the store is away the service says so, answers what it can, and goes on when it is back", { skip: skipRedis, timeout: 160_000 }, async () => {
  await checkEqual(150, async (site, cwd) => {
    const service = await shared(cwd);
    const helper = worker();
    const before = site.arrivals.length;
    await started(service, site);
    await asked(site, before + 30);
    await redis?.kill();
    const unready = await soon(async () => {
      const response = await service.ask("/readyz");
      return response.status === 503 ? await response.json() : null;
    }, "a 503 of /readyz");
    assert.deepEqual(unready, { status: "unavailable", detail: "the store does not answer" });
    assert.equal((await service.ask("/healthz")).status, 200);
    assert.equal((await service.get("/v1/jobs/0")).state, "running");
    assert.equal((await service.ask("/v1/jobs/0/pages", { headers: { accept: "application/x-ndjson" } })).status, 200);
    for (const [path, method] of [
      ["/v1/jobs/0/pause", "POST"],
      ["/v1/jobs/0/hosts", "GET"],
      ["/v1/jobs/0/explain?url=http://a.example/", "GET"],
    ] as const) {
      const refused = await service.ask(path, { method });
      assert.deepEqual([refused.status, refused.headers.get("content-type")], [503, "application/problem+json"], path);
      assert.match(refused.headers.get("retry-after") ?? "", /^\d+$/);
    }
    await redis?.start();
    await soon(async () => ((await service.ask("/readyz")).status === 200 ? true : null), "a 200 of /readyz");
    await service.until(0);
    await gone(helper);
    return service;
  });
});

test("a store that is not there: status 5; a data directory that another service has: 7", { skip: skipRedis, timeout: 60_000 }, async () => {
  const cwd = folder();
  const service = await shared(cwd, "--workers", "0");
  const beside = await runCommand(["serve", "--port", "0", "--store", store(), "--state", "jobs"], cwd, null);
  assert.equal(beside.code, 7, beside.stderr);
  await gone(service.process);
  const port = await freePort();
  const { code, stderr } = await runCommand(["serve", "--port", "0", "--store", `redis://:s3cret@127.0.0.1:${port}`], folder(), null);
  assert.equal(code, 5, stderr);
  assert.match(stderr, new RegExp(`crawls live in the store at 127\\.0\\.0\\.1:${port} \\(--store\\)[^]*127\\.0\\.0\\.1:${port} did not answer within 10 s`));
  assert.doesNotMatch(stderr, /s3cret/);
});
