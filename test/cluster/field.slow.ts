/**
 * Field cases of kind redis by the real commands. F104: rounds.slow.ts, shared.slow.ts; F107: src/store/redis/connect.slow.ts; F110, F111: polite.slow.ts; the
 * same and others below a crawl: src/store/redis/lives.slow.ts. needs: redis-server
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { silentLog } from "../../src/core/log.ts";
import { connectRedis } from "../../src/store/redis/connect.ts";
import { skipRedis } from "../../src/store/redis/server-for-tests.ts";
import { type Answer, html, type Served, serve } from "../crawl/served.ts";
import { type Running, startCommand, until } from "./processes.ts";
import { redisSuite } from "./suite.ts";

const suite = redisSuite("field");
const { folder } = suite;
const worker = (...more: string[]): Running => startCommand(["work", "--store", suite.redis.url, "--allow-address", "127.0.0.1", "-c", "4", ...more], folder());
const urlsOf = (cwd: string): string[] =>
  readFileSync(join(cwd, "pages.jsonl"), "utf8")
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => new URL(JSON.parse(line).url).pathname)
    .sort();

async function crawl(answer: Answer, check: (about: { site: Served; creator: Running; cwd: string }) => Promise<void>): Promise<void> {
  await using site = await serve(answer);
  const cwd = folder();
  const creator = startCommand(["crawl", `${site.origin}/`, "--store", suite.redis.url, "-c", "2", "-o", "pages.jsonl"], cwd);
  try {
    await check({ site, creator, cwd });
  } finally {
    await creator.kill();
  }
}

/** 60 pages behind the first, 60 ms each. */
const wide: Answer = async (request, response) => {
  if (request.url === "/robots.txt") return html(response, "", 404);
  await sleep(60);
  html(response, request.url === "/" ? Array.from({ length: 60 }, (_, n) => `<a href="/${n}">${n}</a>`).join("") : `<p>${"é".repeat(2_000)}`);
};

test("F105 F109 F112 two workers end with the crawl; a page that many link at once and a redirect's target are fetched once", {
  skip: skipRedis,
}, async () => {
  const workers = [worker("--exit-when-idle=1s"), worker("--exit-when-idle=1s")];
  const answer: Answer = async (request, response) => {
    const { url } = request;
    if (url === "/robots.txt") return html(response, "", 404);
    await sleep(30);
    if (url === "/") html(response, Array.from({ length: 40 }, (_, n) => `<a href="/${n}">${n}</a>`).join(""));
    else if (url === "/old") response.writeHead(301, { location: "/new" }).end();
    else html(response, `<a href="/x">x</a><a href="/old">old</a>`);
  };
  await crawl(answer, async ({ site, creator, cwd }) => {
    assert.equal(await creator.ended, 0, creator.stderr());
    for (const one of workers) assert.equal(await one.ended, 0, one.stderr());
    const pages = ["/", ...Array.from({ length: 40 }, (_, n) => `/${n}`), "/x", "/old", "/new"].sort();
    assert.deepEqual(urlsOf(cwd), pages);
    assert.deepEqual(site.targets().toSorted(), pages);
  });
});

test("F106 Redis is away for 5 s and comes back: nobody ends, and everything is there once", { skip: skipRedis }, async () => {
  await crawl(wide, async ({ site, creator, cwd }) => {
    const workers = [worker(), worker()];
    await until("20 requests", () => site.targets().length >= 20, [creator]);
    await suite.redis.kill();
    await sleep(5_000);
    assert.ok(!creator.over && workers.every(({ over }) => !over), "a process ended");
    await suite.redis.start();
    assert.equal(await creator.ended, 0, creator.stderr());
    assert.match(creator.stderr(), /the store does not take calls; waiting/);
    assert.equal(new Set(urlsOf(cwd)).size, 61);
    assert.equal(urlsOf(cwd).length, 61);
    for (const one of workers) await one.kill();
  });
});

test("F108 Redis is full: nothing is lost, everybody says so and waits, and goes on when there is room", { skip: skipRedis }, async () => {
  const link = await connectRedis(suite.redis.url, { log: silentLog, waitMs: 30_000 });
  try {
    await crawl(wide, async ({ site, creator, cwd }) => {
      const helper = worker();
      await until("20 requests", () => site.targets().length >= 20, [creator]);
      await link.command("CONFIG", "SET", "maxmemory", 1);
      await until("the creator waits", () => /waiting/.test(creator.stderr()), [creator]);
      assert.match(creator.stderr(), /OOM/);
      const asked = site.targets().length;
      await sleep(1_000);
      // What was in flight is all that was asked for.
      assert.ok(site.targets().length <= asked + 8);
      assert.ok(!creator.over && !helper.over);
      await link.command("CONFIG", "SET", "maxmemory", 0);
      assert.equal(await creator.ended, 0, creator.stderr());
      assert.equal(urlsOf(cwd).length, 61);
      await helper.kill();
    });
  } finally {
    await link.command("CONFIG", "SET", "maxmemory", 0);
    await link.close();
  }
});

test("a store that is away for longer than a hold of the outputs lasts does not end the crawl that writes them", { skip: skipRedis }, async () => {
  await crawl(wide, async ({ site, creator, cwd }) => {
    await until("10 requests", () => site.targets().length >= 10, [creator]);
    await suite.redis.kill();
    await sleep(16_500);
    await suite.redis.start();
    assert.equal(await creator.ended, 0, creator.stderr());
    assert.equal(urlsOf(cwd).length, 61);
  });
});
