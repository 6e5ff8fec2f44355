/** Crawls on a real Redis by the real commands: alone, with workers, with workers, creators and the server killed; equal to a crawl in memory. needs: redis-server */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { freePort, skipRedis } from "../../src/store/redis/server-for-tests.ts";
import { comparable, faultySite, runCommand } from "../crawl/kills.ts";
import { fromPage, type Gate, gated, serve } from "../crawl/served.ts";
import { startCommand, until } from "./processes.ts";
import { redisSuite } from "./suite.ts";

const suite = redisSuite("cluster");
const { folder } = suite;
const store = (): string => suite.redis.url;

const FILES = ["pages.jsonl", "skipped.jsonl", "links.jsonl"] as const;
const outputs = ["-o", FILES[0], "--skipped", FILES[1], "--links", FILES[2]];
const worker = (kill: Parameters<typeof runCommand>[2] = null) =>
  runCommand(["work", "--store", store(), "--allow-address", "127.0.0.1", "--exit-when-idle", "3s", "-c", "8"], folder(), kill);

/** The same site, crawled in memory first and then by `wild`, must leave the same lines. */
async function checkEqual(pages: number, wild: (origin: string, cwd: string, gate: Gate) => Promise<void>): Promise<void> {
  const gate = gated(faultySite(pages), fromPage(20));
  await using server = await serve(gate.answer);
  const calm = folder();
  const undisturbed = await runCommand(["crawl", server.origin, "-d", "30", ...outputs], calm, null);
  assert.equal(undisturbed.code, 0, undisturbed.stderr);
  const cwd = folder();
  await wild(server.origin, cwd, gate);
  for (const file of FILES) assert.deepEqual(comparable(join(cwd, file)), comparable(join(calm, file)), file);
}

const crawlArgs = (origin: string, ...more: string[]) => ["crawl", origin, "-d", "30", "--store", store(), ...outputs, ...more];

test("a crawl on Redis has the records, skipped URLs and links of one in memory", { skip: skipRedis }, async () => {
  await checkEqual(60, async (origin, cwd) => {
    const { code, stderr } = await runCommand(crawlArgs(origin), cwd, null);
    assert.equal(code, 0, stderr);
    assert.match(stderr, /finished: \d+ pages/);
  });
});

test("a worker that refuses the crawl's addresses hands its pages back and leaves them to others", { skip: skipRedis }, async () => {
  await checkEqual(60, async (origin, cwd, gate) => {
    gate.shut();
    const refuses = startCommand(["work", "--store", store(), "--exit-when-idle", "3s", "-c", "8"], folder());
    const crawl = runCommand(crawlArgs(origin, "-c", "1"), cwd, null);
    await until("the worker leaves the crawl to others", () => refuses.stderr().includes("left to others; --allow-address opens some"), [refuses]);
    gate.open();
    const { code, stderr } = await crawl;
    assert.equal(code, 0, stderr);
    assert.equal(await refuses.ended, 0, refuses.stderr());
    assert.equal(refuses.stderr().match(/working on a crawl/g)?.length, 1, refuses.stderr());
  });
});

test("workers join a crawl, one of them is killed, and every page is there once", { skip: skipRedis }, async () => {
  await checkEqual(200, async (origin, cwd, gate) => {
    gate.shut();
    let over = false;
    const helpers = [worker(), worker(() => over)];
    const crawl = runCommand(crawlArgs(origin, "-c", "4", "--per-host", "32"), cwd, null);
    // The crawl itself asks for 4 at once and a worker for 8: with 13 all three have some.
    await until("all three wait for pages", () => gate.waiting() >= 13);
    over = true;
    await helpers[1];
    gate.open();
    const { code, stderr } = await crawl;
    assert.equal(code, 0, stderr);
    const [stayed, killed] = await Promise.all(helpers);
    assert.equal(killed?.code, null, killed?.stderr);
    assert.equal(stayed?.code, 0, stayed?.stderr);
    assert.match(stayed?.stderr ?? "", /left: [1-9]\d* requests for [1-9]/);
  });
});

test("a creator that is killed goes on with the same command; a second one beside it is refused with 7", { skip: skipRedis }, async () => {
  await checkEqual(200, async (origin, cwd) => {
    const args = crawlArgs(origin, "--delay", "5ms");
    let over = false;
    const first = runCommand(args, cwd, () => over);
    const helper = worker();
    await new Promise((resolve) => setTimeout(resolve, 2_500));
    const second = await runCommand(args, cwd, null);
    over = true;
    await first;
    // The first one may have come to its end meanwhile on a fast machine: then the second is a crawl of its own.
    if (second.code !== 0) {
      assert.equal(second.code, 7, second.stderr);
      let third = await runCommand(args, cwd, null);
      // Its lease of the outputs ends within 15 s.
      for (let tries = 0; third.code === 7 && tries < 20; tries++) {
        await new Promise((resolve) => setTimeout(resolve, 1_000));
        third = await runCommand(args, cwd, null);
      }
      assert.equal(third.code, 0, third.stderr);
      assert.match(third.stderr, /resuming/);
    }
    await helper;
  });
});

test("Redis is killed and comes back, and nothing is lost or doubled", { skip: skipRedis }, async () => {
  await checkEqual(200, async (origin, cwd) => {
    const helper = worker();
    const crawl = runCommand(crawlArgs(origin, "-c", "4"), cwd, null);
    for (let i = 0; i < 2; i++) {
      await new Promise((resolve) => setTimeout(resolve, 1_500));
      await suite.redis.kill();
      await suite.redis.start();
    }
    const { code, stderr } = await crawl;
    assert.equal(code, 0, stderr);
    await helper;
  });
});

test("a limit is exact with several workers", { skip: skipRedis }, async () => {
  await using server = await serve(faultySite(120));
  const cwd = folder();
  const helpers = [worker(), worker()];
  const { code, stderr } = await runCommand(crawlArgs(server.origin, "--limit", "37", "-c", "4"), cwd, null);
  assert.equal(code, 0, stderr);
  assert.match(stderr, /ended by --limit 37: 37 pages/);
  await Promise.all(helpers);
});

test("a scraper that one worker cannot load is no reason for it to end", { skip: skipRedis }, async () => {
  await using server = await serve(faultySite(400));
  const [cwd, scrapers] = [folder(), folder()];
  writeFileSync(join(cwd, "shop.mjs"), "export default () => undefined;\n");
  writeFileSync(join(scrapers, "shop.mjs"), "export default 1;\n");
  let over = false;
  const crawl = runCommand(crawlArgs(server.origin, "-s", "shop.mjs", "--delay", "50ms"), cwd, () => over);
  while (server.arrivals.length < 5) await new Promise((resolve) => setTimeout(resolve, 50));
  const args = ["work", "--store", store(), "--allow-address", "127.0.0.1", "--exit-when-idle", "1s", "--scrapers", scrapers];
  const { code, stderr } = await runCommand(args, folder(), null);
  over = true;
  await crawl;
  assert.equal(code, 0, stderr);
  assert.match(stderr, /a crawl cannot be worked on .*shop\.mjs/s);
});

test("a store that is not there has exit status 5", async () => {
  const port = await freePort();
  const { code, stderr } = await runCommand(["crawl", "http://127.0.0.1:9/", "--store", `redis://:secret@127.0.0.1:${port}`], folder(), null);
  assert.equal(code, 5, stderr);
  assert.match(stderr, new RegExp(`127\\.0\\.0\\.1:${port} did not answer within 10 s`));
  assert.doesNotMatch(stderr, /secret/);
});
