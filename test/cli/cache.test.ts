/** `skein cache` on the caches of real crawls. */
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test, { after } from "node:test";
import { main } from "../../src/cli/main.ts";
import { realClock } from "../../src/core/clock.ts";
import { openCache } from "../../src/store/cache/open.ts";
import { fakeCrawl } from "./fake-crawl.ts";
import { fakeIo } from "./fake-io.ts";

const root = mkdtempSync(join(tmpdir(), "skein-cli-cache-"));
after(() => rmSync(root, { recursive: true, force: true }));

async function run(cwd: string, argv: readonly string[], env = {}) {
  const io = fakeIo({ cwd, env });
  const status = await main(["cache", ...argv], io, fakeCrawl(async () => ({})).load);
  return { status, out: io.out(), err: io.err() };
}

function folder(): string {
  return mkdtempSync(join(root, "cwd-"));
}

function open(dir: string) {
  return openCache(dir, { maxBytes: 10_000_000, clock: realClock });
}

const response = { url: "http://a/", status: 200, headers: [], body: Buffer.alloc(50_000, "x"), wireBytes: 9, truncated: false, varied: {} };
const at = (ms: number) => ({ ...response, requestedAt: ms, respondedAt: ms });

test("stats and clear of ./.skein/cache, in text and JSON, while a crawl has it open", async () => {
  const cwd = folder();
  const dir = join(cwd, ".skein", "cache");
  assert.deepEqual(await run(cwd, ["stats"]), { status: 0, out: `there is no cache in ${dir}\n`, err: "" });
  assert.deepEqual(JSON.parse((await run(cwd, ["clear", "--json"])).out), {
    dir,
    exists: false,
    responses: 0,
    bodyBytes: 0,
    diskBytes: 0,
    oldest: null,
    newest: null,
  });
  await using cache = open(dir);
  await cache.put("GET http://a/1", at(Date.UTC(2026, 0, 1)));
  await cache.put("GET http://a/2", at(Date.UTC(2026, 1, 3, 4, 5, 6)));
  await cache.stats();
  const text = await run(cwd, ["stats"]);
  assert.match(
    text.out,
    /^cache {4}.*\nholds {4}2 responses\nbodies {3}\d+ B compressed\ndisk {5}\S+ [KM]B\noldest {3}2026-01-01 00:00:00 UTC\nnewest {3}2026-02-03 04:05:06 UTC\n$/,
  );
  const stats = JSON.parse((await run(cwd, ["stats", "--json"])).out);
  assert.deepEqual([stats.dir, stats.exists, stats.responses, stats.newest], [dir, true, 2, "2026-02-03T04:05:06.000Z"]);
  assert.deepEqual(await run(cwd, ["clear"]), { status: 0, out: `dropped 2 responses from ${dir}\n`, err: "" });
  assert.equal(await cache.get("GET http://a/1"), null);
  assert.match((await run(cwd, ["stats"])).out, /holds {4}0 responses\n/);
});

test("the cache of a state directory is named by --state or SKEIN_STATE", async () => {
  const cwd = folder();
  {
    await using cache = open(join(cwd, "state"));
    await cache.put("GET http://a/1", at(0));
  }
  assert.match((await run(cwd, ["stats", "--state", "state"])).out, /holds {4}1 response\n/);
  assert.match((await run(cwd, ["stats"], { SKEIN_STATE: "state" })).out, /holds {4}1 response\n/);
});

test("a damaged cache: stats says so with status 3, clear removes it; a file that is no cache is left alone", async () => {
  const cwd = folder();
  const dir = join(cwd, ".skein", "cache");
  {
    await using cache = open(dir);
    for (let n = 0; n < 50; n++) await cache.put(`GET http://a/${n}`, { ...at(n), body: Buffer.from(`${n}${Math.random()}`.repeat(50)) });
  }
  truncateSync(join(dir, "cache.db"), 6_000);
  const damaged = await run(cwd, ["stats"]);
  assert.deepEqual([damaged.status, damaged.out], [3, ""]);
  assert.match(damaged.err, /is damaged .*"skein cache clear" drops it\n$/);
  assert.equal((await run(cwd, ["clear"])).status, 0);
  assert.match((await run(cwd, ["stats"])).out, /^there is no cache in /);
  mkdirSync(join(cwd, "notes"));
  writeFileSync(join(cwd, "notes", "cache.db"), "my notes");
  for (const action of ["stats", "clear"]) {
    const refused = await run(cwd, [action, "--state", "notes"]);
    assert.equal(refused.status, 3);
    assert.match(refused.err, /is no cache of this program/);
  }
});

test("wrong usage has status 2", async () => {
  const cwd = folder();
  for (const [argv, said] of [
    [[], /^skein: skein cache: say stats or clear\n$/],
    [["purge"], /^skein: purge: say stats or clear\n$/],
    [["stats", "x"], /^skein: x: skein cache stats takes no more arguments/],
    [["clear", "--depth", "2"], /^skein: --depth: an option of skein crawl, not of skein cache\n$/],
  ] as const) {
    const { status, out, err } = await run(cwd, argv);
    assert.deepEqual([status, out], [2, ""]);
    assert.match(err, said);
  }
});
