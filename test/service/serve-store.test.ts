/** Which store `skein serve` opens, by flags and by the variables of linked containers, and what it says of it. No store is reached for. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { type ServeParts, serveCommand } from "../../src/cli/commands/serve.ts";
import { CrawlError } from "../../src/core/errors.ts";
import type { JobsOptions } from "../../src/jobs/jobs.ts";
import { fakeIo } from "../cli/fake-io.ts";

const root = mkdtempSync(join(tmpdir(), "skein-serve-store-"));
after(() => rmSync(root, { recursive: true, force: true }));

/** How jobs would be opened, and what was said by then. */
async function opening(argv: readonly string[], env: Record<string, string> = {}): Promise<{ given: JobsOptions; err: string }> {
  const io = fakeIo({ cwd: mkdtempSync(join(root, "cwd-")), env });
  const seen: JobsOptions[] = [];
  const parts: ServeParts = {
    openJobs: async (options) => {
      seen.push(options);
      throw new CrawlError("internal", "far enough");
    },
    openService: async ({ jobs }) => {
      if (typeof jobs === "function") await jobs();
      throw new Error("no service was to open");
    },
  };
  await assert.rejects(
    serveCommand(["--port", "0", ...argv], io, async () => parts),
    /far enough/,
  );
  assert.ok(seen[0] !== undefined);
  return { given: seen[0], err: io.err() };
}

const LINKED = { REDIS_PORT_6379_TCP_ADDR: "172.17.0.3", REDIS_PORT_6379_TCP_PORT: "6380" };

test("the flag wins over the variables of containers, REDIS_URL over those of a link, and it is said which it was, without a password", async () => {
  const flag = await opening(["--store", "redis://:s3cret@store:6379/1", "--state", "jobs"], { REDIS_URL: "redis://other:1", ...LINKED });
  assert.deepEqual(flag.given.store, { url: "redis://:s3cret@store:6379/1", looksOn: false });
  assert.match(flag.err, /^crawls live in the store at store:6379\/1 \(--store\)/m);
  assert.doesNotMatch(flag.err, /s3cret/);
  const url = await opening([], { REDIS_URL: "redis://given:6379", ...LINKED });
  assert.deepEqual(url.given.store, { url: "redis://given:6379", looksOn: false });
  assert.match(url.err, /store at given:6379 \(REDIS_URL\)/);
  const linked = await opening([], LINKED);
  assert.equal(linked.given.store?.url, "redis://172.17.0.3:6380");
  assert.match(linked.err, /store at 172\.17\.0\.3:6380 \(REDIS_PORT_6379_TCP_ADDR\)/);
});

test("who names a directory and no store wants the directory, whatever the container was linked to", async () => {
  const { given, err } = await opening(["--state", "jobs"], { REDIS_URL: "redis://:s3cret@given:6379" });
  assert.equal(given.store, null);
  assert.match(err, /--state is given: crawls live there, and the Redis at given:6379 \(REDIS_URL\) is not used/);
  assert.doesNotMatch(err, /s3cret/);
  assert.equal((await opening([])).given.store, null);
  assert.equal((await opening([], { SKEIN_STATE: "elsewhere", REDIS_URL: "redis://given:6379" })).given.store?.url, "redis://given:6379");
});

test("--workers 0 takes jobs that wait without a store, and with one only looks on", async () => {
  const waits = await opening(["--workers", "0"]);
  assert.deepEqual([waits.given.store, waits.given.maxRunning], [null, 0]);
  const looks = await opening(["--workers", "0", "--store", "redis://store"]);
  assert.deepEqual([looks.given.store, looks.given.maxRunning], [{ url: "redis://store", looksOn: true }, undefined]);
});
