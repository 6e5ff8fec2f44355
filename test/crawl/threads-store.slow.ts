/** Threads on a real Redis: of the crawl that writes the outputs, of a worker, and of one whose thread is lost. needs: redis-server */
import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { skipRedis } from "../../src/store/redis/server-for-tests.ts";
import { startCommand, until } from "../cluster/processes.ts";
import { redisSuite } from "../cluster/suite.ts";
import { comparable, faultySite, runCommand } from "./kills.ts";
import { fromPage, gated, serve } from "./served.ts";

const suite = redisSuite("threads-store");
const { folder } = suite;

const FILES = ["pages.jsonl", "skipped.jsonl"] as const;
const outputs = ["-o", FILES[0], "--skipped", FILES[1]];

for (const kill of [false, true]) {
  test(`two threads of a crawl and two of a worker${kill ? " that is killed" : ""} leave the records of one loop in memory`, { skip: skipRedis }, async () => {
    const gate = gated(faultySite(200), fromPage(20));
    await using server = await serve(gate.answer);
    const calm = folder();
    const undisturbed = await runCommand(["crawl", server.origin, "-d", "30", ...outputs], calm, null);
    assert.equal(undisturbed.code, 0, undisturbed.stderr);
    const url = suite.redis.url;
    const cwd = folder();
    const asked = server.arrivals.length;
    gate.shut();
    const threads = ["--store", url, "--threads", "2"];
    const crawl = startCommand(["crawl", server.origin, "-d", "30", ...threads, "-c", "4", "--per-host", "32", ...outputs], cwd);
    await until("the crawl is under way", () => server.arrivals.length > asked, [crawl]);
    const worker = startCommand(["work", ...threads, "--allow-address", "127.0.0.1", "--exit-when-idle", "3s", "-c", "8"], folder());
    // More than the crawl itself asks for at once: the rest is the worker's.
    await until("the worker has pages", () => gate.waiting() > 4, [crawl, worker]);
    if (kill) await worker.kill();
    gate.open();
    assert.equal(await crawl.ended, 0, crawl.stderr());
    assert.equal(await worker.ended, kill ? null : 0, worker.stderr());
    if (!kill) assert.match(worker.stderr(), /left: [1-9]\d* requests? for 1 crawl\n/);
    for (const file of FILES) assert.deepEqual(comparable(join(cwd, file)), comparable(join(calm, file)), file);
  });
}
