/** Crawls with a cache by the real command: killed and resumed, two at once, looked at while they run. */
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import test, { after } from "node:test";
import type { PageRecord } from "../../src/core/records.ts";
import { viewCache } from "../../src/inspect/cache.ts";
import { faultySite, runCommand } from "../crawl/kills.ts";
import { serve } from "../crawl/served.ts";

const root = mkdtempSync(join(tmpdir(), "skein-cached-commands-"));
after(() => rmSync(root, { recursive: true, force: true }));
const folder = (name: string) => mkdtempSync(join(root, `${name}-`));

/** Without times, whence it came, and what a repeated request changes. */
function records(file: string): unknown[] {
  const pages = readFileSync(file, "utf8")
    .split("\n")
    .filter(Boolean)
    .map((line) => JSON.parse(line) as PageRecord);
  const timeless = pages.map(({ fetchedAt: _, durationMs: __, fromCache: ___, attempts: ____, ...rest }) => rest);
  return timeless.sort((a, b) => (a.url < b.url ? -1 : 1));
}

function checkWhole(dir: string): void {
  const db = new DatabaseSync(join(dir, "cache.db"), { readOnly: true });
  assert.deepEqual(
    db
      .prepare("PRAGMA integrity_check")
      .all()
      .map((row) => row["integrity_check"]),
    ["ok"],
  );
  db.close();
}

test("killed with its cache and resumed, a crawl ends as the undisturbed one, and all that was settled is there offline", async () => {
  const cwd = folder("kill");
  await using server = await serve(faultySite(90));
  const calm = await runCommand(["crawl", server.origin, "--state", "calm", "-o", "calm.jsonl"], cwd, null);
  assert.equal(calm.code, 0, calm.stderr);
  const args = ["crawl", server.origin, "--state", "state", "--cache", "1h", "-o", "out.jsonl"];
  for (const more of [20, 40]) {
    const before = server.targets().length;
    await runCommand(args, cwd, () => server.targets().length > before + more);
    checkWhole(join(cwd, "state"));
  }
  const done = await runCommand(args, cwd, null);
  assert.equal(done.code, 0, done.stderr);
  assert.deepEqual(records(join(cwd, "out.jsonl")), records(join(cwd, "calm.jsonl")));
  checkWhole(join(cwd, "state"));
  const asked = server.arrivals.length;
  const offline = await runCommand(["crawl", server.origin, "--state", "state", "--offline", "-o", "offline.jsonl"], cwd, null);
  assert.equal(offline.code, 0, offline.stderr);
  assert.equal(server.arrivals.length, asked);
  // Redirects that set a cookie are not kept, and nothing behind them is reached but by other ways.
  const missing = records(join(cwd, "offline.jsonl")).filter((page) => (page as PageRecord).outcome === "failed");
  assert.deepEqual(
    missing.filter((page) => !new URL((page as PageRecord).url).pathname.startsWith("/r/")),
    [],
  );
});

test("two crawls at once share ./.skein/cache, and a third asks for nothing that they kept", async () => {
  const cwd = folder("two");
  await using server = await serve(faultySite(60));
  const crawl = (name: string) => runCommand(["crawl", server.origin, "--cache", "1h", "-o", `${name}.jsonl`], cwd, null);
  for (const { code, stderr } of await Promise.all([crawl("a"), crawl("b")])) assert.equal(code, 0, stderr);
  assert.deepEqual(records(join(cwd, "a.jsonl")).length, records(join(cwd, "b.jsonl")).length);
  const dir = join(cwd, ".skein", "cache");
  checkWhole(dir);
  assert.ok(viewCache(dir).responses > 60);
  const before = server.targets().length;
  assert.equal((await crawl("c")).code, 0);
  // Redirects that set a cookie are not kept.
  assert.deepEqual(
    server
      .targets()
      .slice(before)
      .filter((target) => !target.startsWith("/r/")),
    [],
  );
});

test("offline without a cache every page fails, the command says so by status 4, and nobody is asked", async () => {
  const cwd = folder("nothing");
  await using server = await serve(faultySite(5));
  const { code, stderr } = await runCommand(["crawl", server.origin, "--offline", "-o", "out.jsonl"], cwd, null);
  assert.equal(code, 4, stderr);
  assert.match(stderr, /not in the cache: http:/);
  assert.equal(server.arrivals.length, 0);
});
