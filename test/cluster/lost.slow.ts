/** A real Redis that loses its crawls while commands work on them: what they say, with which status they end, and that the store is of use again. needs: redis-server */
import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { silentLog } from "../../src/core/log.ts";
import { connectRedis } from "../../src/store/redis/connect.ts";
import { skipRedis, startServer } from "../../src/store/redis/server-for-tests.ts";
import { html, serve } from "../crawl/served.ts";
import { killAll, startCommand, until } from "./processes.ts";

const root = mkdtempSync(join(tmpdir(), "skein-lost-"));
after(() => {
  killAll();
  rmSync(root, { recursive: true, force: true });
});

const PAGES = 8;

/** A server that keeps nothing on disk, and a site of a page with `PAGES` links whose pages from /3 on are answered once `release` is called. */
async function world() {
  const redis = await startServer(["--appendonly", "no", "--maxmemory-policy", "noeviction"]);
  const cwd = mkdtempSync(join(root, "d-"));
  const holding = Promise.withResolvers<void>();
  const site = await serve(async (request, response) => {
    const n = Number(request.url?.slice(1));
    if (n >= 3) await holding.promise;
    html(response, n > 0 ? "leaf" : Array.from({ length: PAGES }, (_, i) => `<a href="/${i + 1}">${i + 1}</a>`).join(""));
  });
  const link = await connectRedis(redis.url, { log: silentLog });
  return {
    ...{ redis, cwd, site, link },
    release: () => holding.resolve(),
    start: (...args: string[]) => startCommand([...args, "--store", redis.url], cwd),
    lines: (file: string): number => (existsSync(join(cwd, file)) ? readFileSync(join(cwd, file), "utf8").split("\n").length - 1 : 0),
    async [Symbol.asyncDispose]() {
      holding.resolve();
      killAll();
      await link.close();
      await site[Symbol.asyncDispose]();
      await redis.stop();
    },
  };
}

/** No words of ours for ourselves. */
function assertPlain(said: string): void {
  assert.doesNotMatch(said, /NOCRAWL|internal error|CrawlError|^ +at /m);
}

for (const how of ["is emptied", "starts anew without its data"]) {
  test(`when Redis ${how} in mid-crawl, the crawl ends with status 5 and says what is in its files; its worker goes on with what comes then`, {
    skip: skipRedis,
  }, async () => {
    await using at = await world();
    const command = ["crawl", at.site.origin, "-c", "2", "--per-host", "4", "-o", "pages.jsonl"];
    const one = at.start(...command);
    await until("three pages are written", () => at.lines("pages.jsonl") === 3, [one]);
    const worker = at.start("work", "-c", "2", "--allow-address", "127.0.0.0/8");
    await until("it works", () => /working on a crawl/.test(worker.stderr()), [worker]);
    if (how === "is emptied") await at.link.command("FLUSHALL");
    else {
      await at.redis.kill();
      await at.redis.start();
    }
    await until("the crawl has ended", () => one.over, [one]);
    assert.equal(await one.ended, 5, one.stderr());
    assertPlain(one.stderr());
    assert.match(one.stderr(), /^skein: crawl 1 is no longer in the store at 127\.0\.0\.1:\d+: .*emptied/m);
    assert.match(one.stderr(), /is in pages\.jsonl \(3 records\)\. The same command begins the crawl anew and replaces these files: move them away first/);
    assert.equal(at.lines("pages.jsonl"), 3);
    await until("the worker has seen it", () => /a crawl is no longer in the store/.test(worker.stderr()), [worker]);
    assertPlain(worker.stderr());
    // It has the number of the one before.
    const anew = at.start(...command);
    await until("the worker has joined", () => worker.stderr().match(/working on a crawl .*crawl 1/g)?.length === 2, [worker, anew]);
    at.release();
    assert.equal(await anew.ended, 0, anew.stderr());
    assert.equal(at.lines("pages.jsonl"), PAGES + 1);
  });
}

test("a worker that slept while the store was emptied and the crawl begun anew leaves what it took for the same one", {
  skip: skipRedis,
}, async () => {
  await using at = await world();
  const command = ["crawl", at.site.origin, "-c", "1", "--per-host", "1", "-o", "pages.jsonl"];
  const one = at.start(...command);
  await until("three pages are written", () => at.lines("pages.jsonl") === 3, [one]);
  const worker = at.start("work", "-c", "2", "--allow-address", "127.0.0.0/8");
  await until("it works", () => /working on a crawl/.test(worker.stderr()), [worker]);
  worker.signal("SIGSTOP");
  await one.kill();
  await at.link.command("FLUSHALL");
  const anew = at.start(...command, "--fresh");
  await until("the new one is at work", () => at.site.targets().filter((target) => target === "/3").length === 2, [anew]);
  worker.signal("SIGCONT");
  await until("the worker has seen it", () => /a crawl is no longer in the store/.test(worker.stderr()), [worker, anew]);
  at.release();
  assert.equal(await anew.ended, 0, anew.stderr());
  assert.equal(at.lines("pages.jsonl"), PAGES + 1);
});

test("an export that follows a crawl ends with status 5 when the store is emptied, and keeps what it wrote", { skip: skipRedis }, async () => {
  await using at = await world();
  const one = at.start("crawl", at.site.origin, "-c", "2", "--per-host", "4", "-o", "pages.jsonl");
  await until("three pages are written", () => at.lines("pages.jsonl") === 3, [one]);
  await one.kill();
  await at.link.command("DEL", `${at.link.tag}:1:own`); // as the end of its hold
  const rest = at.start("export", "--job", "1", "--follow", "-o", "rest.jsonl");
  await until("it writes", async () => (await at.link.command("EXISTS", `${at.link.tag}:1:own`)) === 1, [rest]);
  await until("its place is noted", async () => /rest\.jsonl/.test(String(await at.link.command("HGET", `${at.link.tag}:1:sink`, "states"))), [rest]);
  await at.link.command("FLUSHALL");
  await until("it has ended", () => rest.over, [rest]);
  assert.equal(await rest.ended, 5, rest.stderr());
  assertPlain(rest.stderr());
  assert.match(rest.stderr(), /^skein: crawl 1 is no longer in the store at .*rest\.jsonl \(0 records\)\. What was still to come is lost/m);
});
