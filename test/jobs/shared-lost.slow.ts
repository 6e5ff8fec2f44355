/** A store that loses the crawl of a job: the job fails, and what was written of it stays readable, over a restart too. needs: redis-server */
import assert from "node:assert/strict";
import { appendFileSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { silentLog } from "../../src/core/log.ts";
import { connectRedis } from "../../src/store/redis/connect.ts";
import { skipRedis, startServer } from "../../src/store/redis/server-for-tests.ts";
import { fakeSite } from "../../src/testing/site.ts";
import { bench, created, ENDLESS, job, textsOf, until, urlsOf } from "./bench.ts";
import { soon } from "./shared-service.ts";

/** A job that has some records, and cannot come to its end. */
async function begun(t: TestContext) {
  const redis = await startServer(["--maxmemory-policy", "noeviction"]);
  const link = await connectRedis(redis.url, { log: silentLog });
  let asked = 0;
  const { promise: over, resolve: end } = Promise.withResolvers<void>();
  const site = await fakeSite({
    "/": { body: `${ENDLESS["/"]().body}<img src=/one.png>` },
    async "/page"() {
      if (++asked > 12) await over;
      return "<p>page";
    },
  });
  const b = await bench({ store: { url: redis.url, looksOn: false } });
  t.after(async () => {
    end();
    await b[Symbol.asyncDispose]();
    await site[Symbol.asyncDispose]();
    await link.close();
    await redis.stop();
  });
  await created(b.jobs, job([site.url], { images: true, perHost: { concurrency: 2, delay: 0 } }));
  const written = () => textsOf(b.jobs, 0, "pages");
  await soon(async () => ((await written()).length >= 13 ? true : null), "records");
  return { b, site, written, lose: () => link.command("FLUSHALL"), images: () => textsOf(b.jobs, 0, "images") };
}

const options = { skip: skipRedis, timeout: 120_000 };

test("a running job whose crawl is lost fails, and every record that was written is handed out, after a restart too", options, async (t) => {
  const { b, site, written, lose, images } = await begun(t);
  const before = await written();
  await lose();
  const { state, detail, counts } = await until(b.jobs, 0);
  assert.deepEqual([state, detail], ["failed", "its crawl is no longer in the store"]);
  const after = await written();
  assert.deepEqual(urlsOf(after.slice(0, before.length)), urlsOf(before));
  assert.equal(after.length, readFileSync(join(b.dir, "jobs", "0", "pages.jsonl"), "utf8").split("\n").length - 1);
  assert.deepEqual([counts.pages, counts.images], [after.length, 1]);
  assert.deepEqual(await images(), [JSON.stringify(`${site.url}one.png`)]);
  assert.match((await b.jobs.explain(0, site.url))?.lines.join("\n") ?? "", /fetched/i);
  await b.reopen();
  assert.deepEqual(urlsOf(await written()), urlsOf(after));
  // A service that has no store any more hands them out too.
  await b.reopen({ store: null });
  assert.deepEqual(urlsOf(await written()), urlsOf(after));
});

test("a crawl that is lost while the service is away: its job fails at the next start, with the figures of what is written", options, async (t) => {
  const { b, site, written, lose, images } = await begun(t);
  const before = await written();
  await b.jobs.close();
  await lose();
  // A process that was killed as it wrote.
  appendFileSync(join(b.dir, "jobs", "0", "pages.jsonl"), '{"url":"http://half.example/');
  await b.reopen();
  const { state, counts } = await until(b.jobs, 0);
  assert.equal(state, "failed");
  const after = await written();
  assert.ok(after.length >= before.length);
  assert.equal(new Set(urlsOf(after)).size, after.length);
  assert.deepEqual([counts.pages, counts.images, counts.byOutcome, counts.byStatus], [after.length, 1, { fetched: after.length }, { 200: after.length }]);
  assert.deepEqual(await images(), [JSON.stringify(`${site.url}one.png`)]);
});

test("a paused job whose crawl is lost hands out what was written before anybody resumes it", options, async (t) => {
  const { b, written, lose } = await begun(t);
  await b.jobs.pause(0);
  const before = await written();
  await b.jobs.close();
  await lose();
  await b.reopen();
  assert.equal((await b.jobs.get(0))?.state, "paused");
  const after = await written();
  assert.deepEqual(urlsOf(after.slice(0, before.length)), urlsOf(before));
});
