/** Threads on a real Redis: of the crawl that writes the outputs, of a worker, and of one whose thread is lost. needs: redis-server */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { skipRedis, startServer, type TestServer } from "../../src/store/redis/server-for-tests.ts";
import { comparable, faultySite, runCommand } from "./kills.ts";
import { serve } from "./served.ts";

const root = mkdtempSync(join(tmpdir(), "skein-threads-store-"));
const folder = () => mkdtempSync(join(root, "d-"));
let redis: TestServer | null = null;

before(async () => {
  if (skipRedis === false) redis = await startServer(["--maxmemory-policy", "noeviction"]);
});
after(async () => {
  await redis?.stop();
  rmSync(root, { recursive: true, force: true });
});

const FILES = ["pages.jsonl", "skipped.jsonl"] as const;
const outputs = ["-o", FILES[0], "--skipped", FILES[1]];

for (const kill of [false, true]) {
  test(`two threads of a crawl and two of a worker${kill ? " that is killed" : ""} leave the records of one loop in memory`, { skip: skipRedis }, async () => {
    await using server = await serve(faultySite(200));
    const calm = folder();
    const undisturbed = await runCommand(["crawl", server.origin, "-d", "30", ...outputs], calm, null);
    assert.equal(undisturbed.code, 0, undisturbed.stderr);
    const url = redis?.url ?? "";
    const asked = server.arrivals.length;
    const work = ["work", "--store", url, "--threads", "2", "--allow-address", "127.0.0.1", "--exit-when-idle", "3s", "-c", "8"];
    const worker = runCommand(work, folder(), kill ? () => server.arrivals.length > asked + 60 : null);
    const cwd = folder();
    const { code, stderr } = await runCommand(["crawl", server.origin, "-d", "30", "--store", url, "--threads", "2", "-c", "4", ...outputs], cwd, null);
    assert.equal(code, 0, stderr);
    const left = await worker;
    assert.equal(left.code, kill ? null : 0, left.stderr);
    if (!kill) assert.match(left.stderr, /left: \d+ requests? for 1 crawl\n/);
    for (const file of FILES) assert.deepEqual(comparable(join(cwd, file)), comparable(join(calm, file)), file);
  });
}
