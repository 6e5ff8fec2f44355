/** A store that fell back to before the service's drain began: the job is opened again and goes on, and has each result once. needs: redis-server */
import assert from "node:assert/strict";
import { readdirSync, statSync, truncateSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { silentLog } from "../../src/core/log.ts";
import { connectRedis } from "../../src/store/redis/connect.ts";
import { skipRedis, startServer } from "../../src/store/redis/server-for-tests.ts";
import { fakeSite } from "../../src/testing/site.ts";
import { bench, created, ENDLESS, job, someRequests, textsOf, until, urlsOf } from "./bench.ts";
import { soon } from "./shared-service.ts";

const PAGES = 81;

/** A site whose pages come as far as they are let. */
function tapped() {
  const waiting: (() => void)[] = [];
  let asked = 0;
  let most = 0;
  return {
    let(to: number): void {
      most = to;
      for (const go of waiting.splice(0)) go();
    },
    async pass(): Promise<void> {
      const turn = ++asked;
      while (turn > most) await new Promise<void>((resolve) => waiting.push(resolve));
    },
  };
}

/** A job half done by a service that had followed another one, and a store that is taken back to what it was in the first one's time. */
async function fallBack(t: TestContext, meanwhile: (jobs: Awaited<ReturnType<typeof bench>>["jobs"]) => Promise<void>) {
  const redis = await startServer(["--appendfsync", "always", "--auto-aof-rewrite-percentage", "0", "--maxmemory-policy", "noeviction"]);
  const link = await connectRedis(redis.url, { log: silentLog });
  const said: string[] = [];
  const tap = tapped();
  const site = await fakeSite({
    "/": ENDLESS["/"],
    async "/page"() {
      await tap.pass();
      return "<p>page";
    },
  });
  const b = await bench({
    store: { url: redis.url, looksOn: false },
    log: (level, message, fields) => said.push(`${level} ${message} ${String(fields?.["why"])}`),
  });
  t.after(async () => {
    await b[Symbol.asyncDispose]();
    await site[Symbol.asyncDispose]();
    await link.close();
    await redis.stop();
  });
  await soon(
    async () => (/aof_rewrite_in_progress:0\r\naof_rewrite_scheduled:0/.test(String(await link.command("INFO", "persistence"))) ? true : null),
    "the log",
  );
  const written = () => textsOf(b.jobs, 0, "pages");
  const cursor = async () => String(await link.command("HGET", "{skein}:1:sink", "cursor"));
  await created(b.jobs, job([site.url], { perHost: { concurrency: 2 } }));
  await soon(async () => ((await link.command("HEXISTS", "{skein}:1:m", "seed")) === 1 ? true : null), "the crawl");
  await link.command("HSET", "{skein}:1:m", "lease", 1_000);
  tap.let(5);
  await soon(async () => ((await written()).length >= 6 ? true : null), "six records");
  const folder = join(redis.dir, "appendonlydir");
  const log = join(folder, readdirSync(folder).find((name) => name.endsWith(".incr.aof")) ?? "");
  const { size } = statSync(log);
  const then = await cursor();
  tap.let(12);
  await soon(async () => ((await cursor()) !== then && (await written()).length >= 13 ? true : null), "seven more");
  await b.jobs.pause(0);
  tap.let(14);
  await b.reopen();
  await b.jobs.resume(0);
  await someRequests(site, site.requests.length + 2);
  await meanwhile(b.jobs);
  await redis.kill();
  truncateSync(log, size);
  await redis.start();
  tap.let(Infinity);
  await soon(() => said.find((line) => /a job waits for its store.*lost its last moments/.test(line)) ?? null, "that the store fell back");
  return { b, written };
}

async function checkWhole({ b, written }: Awaited<ReturnType<typeof fallBack>>): Promise<void> {
  const view = await until(b.jobs, 0);
  assert.deepEqual([view.state, view.finishReason, view.counts.pages, view.counts.inProgress], ["completed", "finished", PAGES, 0]);
  const urls = urlsOf(await written());
  assert.equal(urls.length, PAGES);
  assert.equal(new Set(urls).size, PAGES);
}

const options = { skip: skipRedis, timeout: 160_000 };

test("a service whose store fell back to before it had begun opens the job again and goes on with it", options, async (t) => {
  await checkWhole(await fallBack(t, async () => undefined));
});

test("a paused job of such a service stays paused, and goes on when it is told to", options, async (t) => {
  const fallen = await fallBack(t, async (jobs) => void (await jobs.pause(0)));
  const { jobs } = fallen.b;
  assert.equal((await jobs.get(0))?.state, "paused");
  await jobs.resume(0);
  await checkWhole(fallen);
});
