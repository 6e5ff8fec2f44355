/** Every route of a service whose store is away, on jobs in every state: what it answers is described, and only what the docs name is answered with 503. needs: redis-server */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import type { JobService } from "../../src/core/jobs.ts";
import { openapiDocument } from "../../src/service/openapi.ts";
import { skipRedis, startServer, type TestServer } from "../../src/store/redis/server-for-tests.ts";
import { fakeSite } from "../../src/testing/site.ts";
import { created, job, bench as jobsBench, SMALL, until } from "../jobs/bench.ts";
import { soon } from "../jobs/shared-service.ts";
import { bench } from "./harness.ts";

interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, { operationId: string; responses: Readonly<Record<string, { description: string }>> }>>>>;
}

let redis: TestServer | null = null;
before(async () => {
  if (skipRedis === false) redis = await startServer(["--maxmemory-policy", "noeviction"]);
});
after(async () => redis?.stop());

const document = openapiDocument() as Document; // as openapi.ts makes it
const places = Object.entries(document.paths).flatMap(([path, methods]) => Object.entries(methods).map(([method, operation]) => ({ path, method, operation })));
/** DELETE at the end: it may take a job away. */
const ordered = places.toSorted((a, b) => Number(a.method === "delete") - Number(b.method === "delete"));
const BODIES: Readonly<Record<string, string>> = {
  submit: '{"urls":["http://a.example/"]}',
  createJob: '{"seeds":["http://a.example/"]}',
  addUrls: '{"urls":["http://a.example/"]}',
  patchHosts: '{"a.example":{"paused":true}}',
};
/** A job of this runs until it is stopped: the host was asked just now, and hosts rest for all crawls of a store together. */
const WAITS = { perHost: { delay: 3_600_000 } };
/** Its crawl is in the store, and its seeds wait there. */
const fed = (jobs: JobService, id: number) => soon(async () => ((await jobs.hosts(id, 1))?.[0]?.queued === 3 ? true : null), `the crawl of job ${id}`);
const [ENDED, PAUSED, RUNNING, QUEUED] = [0, 1, 2, 3];

test("every answer while the store is away is described, and what has to reach a crawl is answered with 503 and Retry-After", {
  skip: skipRedis,
  timeout: 120_000,
}, async () => {
  await using site = await fakeSite(SMALL);
  const seeds = ["", "a", "b"].map((path) => site.url + path);
  await using home = await jobsBench({ store: { url: redis?.url ?? "", looksOn: false }, maxRunning: 1 });
  await created(home.jobs, job([site.url], { images: true }));
  await until(home.jobs, ENDED);
  await created(home.jobs, job(seeds, WAITS));
  await fed(home.jobs, PAUSED);
  await home.jobs.pause(PAUSED);
  // It is not run again: what it holds is asked of the store.
  await home.reopen();
  await created(home.jobs, job(seeds, WAITS));
  await fed(home.jobs, RUNNING);
  await created(home.jobs, job(seeds));
  assert.equal((await home.jobs.get(QUEUED))?.state, "queued");
  const { jobs } = home;
  await using at = await bench({ jobs });
  await redis?.kill();
  await soon(async () => ((await jobs.health()).ready ? null : true), "the outage");

  const answered: string[] = [];
  async function ask({ path, method, operation }: (typeof places)[number], id: number | null): Promise<void> {
    const target = path.replace("{id}", String(id)) + (operation.operationId === "explain" ? `?url=${site.url}` : "");
    const body = BODIES[operation.operationId] ?? null;
    const headers = body === null ? {} : { "content-type": "application/json" };
    const response = await fetch(at.url + target, { method: method.toUpperCase(), body, headers, redirect: "manual", signal: AbortSignal.timeout(20_000) });
    await response.body?.cancel();
    const { status } = response;
    assert.ok(operation.responses[status], `${operation.operationId} of ${id} answered ${status}, which is not described`);
    assert.ok(status !== 500, `${operation.operationId} of ${id}`);
    if (status !== 503) return;
    assert.match(response.headers.get("retry-after") ?? "", /^[1-9]\d*$/);
    answered.push(operation.operationId);
  }
  for (const place of ordered) await Promise.all((place.path.includes("{id}") ? [ENDED, PAUSED, RUNNING, QUEUED] : [null]).map((id) => ask(place, id)));
  const described = places.filter(({ operation }) => /store/.test(operation.responses[503]?.description ?? "")).map(({ operation }) => operation.operationId);
  assert.deepEqual([...new Set(answered)].sort(), [...described, "readyz"].sort());
  // The page for people names the same ones.
  const [, named = ""] = /^\| the store is away \|.*? is answered with 503 and `Retry-After` \((.*?)\)\./m.exec(readFileSync("docs/cluster.md", "utf8")) ?? [];
  const spelt = places.filter(({ operation }) => described.includes(operation.operationId)).map(({ path, method }) => `${method.toUpperCase()} ${path}`);
  assert.deepEqual([...named.matchAll(/`([A-Z]+ [^`]+)`/g)].map(([, name = ""]) => name.replace("…", "/v1/jobs/{id}")).sort(), spelt.sort());

  await redis?.start();
  await soon(async () => ((await jobs.health()).ready ? true : null), "the store");
  // Nothing was done to what had begun.
  assert.deepEqual(await Promise.all([ENDED, PAUSED, RUNNING].map(async (id) => (await jobs.get(id))?.state)), ["completed", "paused", "running"]);
});
