/** Jobs on a store over restarts of their service: paused, added to, stopped, cancelled, closed in the middle of an outage. needs: redis-server */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { skipRedis, startServer, type TestServer } from "../../src/store/redis/server-for-tests.ts";
import { fakeSite } from "../../src/testing/site.ts";
import { type Bench, bench, created, ENDLESS, job, someRequests, textsOf, until, urlsOf } from "./bench.ts";

let redis: TestServer | null = null;
before(async () => {
  if (skipRedis === false) redis = await startServer(["--maxmemory-policy", "noeviction"]);
});
after(async () => redis?.stop());

const onStore = (): Promise<Bench> => bench({ store: { url: redis?.url ?? "", looksOn: false } });
const SLOW = { perHost: { concurrency: 2 } };
const options = { skip: skipRedis, timeout: 160_000 };

test("a paused job stays so over a restart, takes more URLs meanwhile, and has each page once when it has gone on", options, async () => {
  await using site = await fakeSite({ ...ENDLESS, "/more": "<a href=/deeper>d</a>", "/deeper": "x" });
  await using b = await onStore();
  await created(b.jobs, job([site.url], SLOW));
  await someRequests(site, 10);
  const running = await b.jobs.addUrls(0, [`${site.url}page?n=1000`, "nonsense", site.url]);
  assert.deepEqual("added" in running && [running.added, running.known, running.rejectedTotal], [1, 1, 1]);
  await b.jobs.pause(0);
  await b.reopen();
  const paused = await b.jobs.get(0);
  assert.equal(paused?.state, "paused");
  assert.ok(paused.counts.pages > 0 && paused.counts.inProgress === 0);
  assert.equal((await b.jobs.hosts(0, 3))?.length, 1);
  const waiting = await b.jobs.addUrls(0, [`${site.url}more`]);
  assert.deepEqual("added" in waiting && [waiting.added, waiting.known], [1, 0]);
  await b.jobs.resume(0);
  const view = await until(b.jobs, 0);
  assert.deepEqual([view.state, view.counts.pages, view.counts.total], ["completed", 84, 84]);
  assert.equal(new Set(urlsOf(await textsOf(b.jobs, 0, "pages"))).size, 84);
});

test("a stop that does what is queued goes on after a restart; a paused job is cancelled with what was found", options, async () => {
  await using site = await fakeSite(ENDLESS);
  await using b = await onStore();
  await created(b.jobs, job([site.url], SLOW));
  await someRequests(site, 10);
  await b.jobs.stop(0, "queue", "enough");
  await b.reopen();
  const stopped = await until(b.jobs, 0);
  assert.deepEqual([stopped.state, stopped.detail, stopped.counts.pages], ["stopped", "enough", 81]);
  await created(b.jobs, job([site.url], SLOW));
  await someRequests(site, site.requests.length + 10);
  await b.jobs.pause(1);
  await b.reopen();
  await b.jobs.cancel(1);
  const { state, counts } = await until(b.jobs, 1);
  assert.equal(state, "cancelled");
  assert.ok(counts.pages > 0 && counts.pages < 81);
  assert.equal((await textsOf(b.jobs, 1, "pages")).length, counts.pages);
});

test("a service that is closed while its store is away goes on with its jobs when both are back", options, async () => {
  await using site = await fakeSite(ENDLESS);
  await using b = await onStore();
  await created(b.jobs, job([site.url], SLOW));
  await someRequests(site, 10);
  await redis?.kill();
  await b.jobs.close();
  await redis?.start();
  await b.reopen();
  const view = await until(b.jobs, 0);
  assert.deepEqual([view.state, view.counts.pages], ["completed", 81]);
  assert.equal(new Set(urlsOf(await textsOf(b.jobs, 0, "pages"))).size, 81);
});
