/** The cache's file: what goes in comes out, it stays small, several processes share it, and it survives being killed. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import test, { after } from "node:test";
import type { PageCache, StoredResponse } from "../../core/cache.ts";
import { realClock } from "../../core/clock.ts";
import { createTestClock } from "../../testing/clock.ts";
import { clearCache, readCacheStats } from "./look.ts";
import { openCache } from "./open.ts";

const root = mkdtempSync(join(tmpdir(), "skein-cache-"));
after(() => rmSync(root, { recursive: true, force: true }));
const folder = (name: string) => mkdtempSync(join(root, `${name}-`));
const open = (dir: string, maxBytes = 100_000_000) => openCache(dir, { maxBytes, clock: realClock });

function stored(path: string, body: string | Uint8Array, at = 1_000): StoredResponse {
  return {
    url: `http://a.test${path}`,
    status: 200,
    headers: [
      ["content-type", "text/html"],
      ["set-cookie", "a=1"],
      ["set-cookie", "b=ü"],
    ],
    body: Buffer.from(body),
    wireBytes: 7,
    truncated: false,
    requestedAt: at + 0.25,
    respondedAt: at + 1.5,
    varied: { "accept-language": "en", "x-none": null },
  };
}

const keyOf = ({ url }: StoredResponse) => `GET ${url}`;
const put = (cache: PageCache, response: StoredResponse) => cache.put(keyOf(response), response);
const plain = (response: StoredResponse | null) => response && { ...response, body: Buffer.from(response.body) };
const filler = (bytes: number) => Buffer.from(Array.from({ length: bytes / 8 }, () => Math.random().toString(36).slice(2, 10)).join(""));

test("what was put comes back whole, before and after it is written", async () => {
  const dir = folder("whole");
  const responses = [
    stored("/", ""),
    stored("/a", "short"),
    stored("/b", "long ".repeat(9_999)),
    { ...stored("/c", filler(5_000)), url: "http://other.test/" },
  ];
  {
    await using cache = open(dir);
    for (const [n, response] of responses.entries()) await cache.put(`GET ${n}`, response);
    for (const [n, response] of responses.entries()) assert.deepEqual(plain(await cache.get(`GET ${n}`)), response);
    assert.equal(await cache.get("GET none"), null);
  }
  await using cache = open(dir);
  for (const [n, response] of responses.entries()) assert.deepEqual(plain(await cache.get(`GET ${n}`)), response);
  const all = [];
  for await (const [key, response] of cache.all()) all.push([key, plain(response)]);
  assert.deepEqual(
    all,
    responses.map((response, n) => [`GET ${n}`, response]),
  );
});

test("a put keeps nothing of the caller's buffer", async () => {
  await using cache = open(folder("copy"));
  const body = Buffer.from("tiny");
  await cache.put("GET 1", { ...stored("/", ""), body });
  body.fill(0);
  assert.equal(Buffer.from((await cache.get("GET 1"))?.body ?? []).toString(), "tiny");
});

test("equal bodies are kept once, and go with the last response that has them", async () => {
  await using cache = open(folder("once"));
  const body = filler(40_000);
  for (let n = 0; n < 20; n++) await put(cache, stored(`/${n}`, body));
  const { responses, bodyBytes } = await cache.stats();
  assert.equal(responses, 20);
  assert.ok(bodyBytes < 42_000, `${bodyBytes}`);
  await put(cache, stored("/0", "another"));
  await put(cache, stored("/1", body));
  for (let n = 1; n < 19; n++) await cache.delete(`GET http://a.test/${n}`);
  assert.ok((await cache.stats()).bodyBytes > 20_000);
  await cache.delete("GET http://a.test/19");
  assert.equal((await cache.stats()).bodyBytes, 7);
});

test("refresh changes the head, not the body, and makes the response the youngest", async () => {
  await using cache = open(folder("refresh"));
  for (const path of ["/1", "/2"]) await put(cache, stored(path, `body of ${path}`));
  await cache.stats();
  const head = { headers: [["etag", "x"]] as const, requestedAt: 5_000, respondedAt: 5_001 };
  await cache.refresh("GET http://a.test/1", head);
  await cache.refresh("GET nothing", head);
  const expected = { ...stored("/1", "body of /1"), ...head };
  assert.deepEqual(plain(await cache.get("GET http://a.test/1")), expected);
  const order = [];
  for await (const [key] of cache.all()) order.push(key);
  assert.deepEqual(order, ["GET http://a.test/2", "GET http://a.test/1"]);
});

test("the file stays below its size: the oldest responses go, also one by one over many batches", async () => {
  const dir = folder("size");
  const limit = 2_000_000;
  await using cache = open(dir, limit);
  const size = () => ["", "-wal", "-shm"].reduce((sum, suffix) => sum + (statSync(join(dir, `cache.db${suffix}`), { throwIfNoEntry: false })?.size ?? 0), 0);
  let largest = 0;
  for (let n = 0; n < 1_500; n++) {
    await put(cache, stored(`/${n}`, filler(8_000)));
    if (n % 25 === 0) largest = Math.max(largest, size());
  }
  assert.ok(largest <= limit, `${largest} bytes`);
  const { responses } = await cache.stats();
  assert.ok(responses > 100, `${responses} are left`);
  assert.equal(await cache.get("GET http://a.test/0"), null);
  assert.notEqual(await cache.get("GET http://a.test/1499"), null);
  // One response of a quarter of it is not worth the others.
  await put(cache, stored("/large", filler(1_000_000)));
  assert.equal(await cache.get("GET http://a.test/large"), null);
  await cache.clear();
  assert.ok(size() < 150_000, `${size()} bytes after clear`);
});

test("a batch is written after a second, without another call", async () => {
  const dir = folder("later");
  const clock = createTestClock();
  await using cache = openCache(dir, { maxBytes: 1_000_000, clock });
  await put(cache, stored("/", "x"));
  assert.equal(readCacheStats(dir)?.responses, 0);
  await clock.advance(1_000);
  assert.deepEqual(readCacheStats(dir)?.responses, 1);
});

test("two have it open and see each other's responses", async () => {
  const dir = folder("two");
  await using one = open(dir);
  await using two = open(dir);
  await put(one, stored("/1", "one"));
  await put(two, stored("/1", "two"));
  await put(two, stored("/2", "two"));
  await one.stats();
  assert.equal((await two.stats()).responses, 2);
  assert.equal(Buffer.from((await one.get("GET http://a.test/1"))?.body ?? []).toString(), "two");
});

const WRITER = `
  import { openCache } from ${JSON.stringify(join(import.meta.dirname, "open.ts"))};
  import { realClock } from ${JSON.stringify(join(import.meta.dirname, "../../core/clock.ts"))};
  const [dir, name, count] = process.argv.slice(2);
  const cache = openCache(dir, { maxBytes: 1_500_000, clock: realClock });
  for (let n = 0; n < Number(count); n++) {
    const body = Buffer.from(name + n + " " + Array.from({ length: 500 }, () => Math.random().toString(36)).join(""));
    await cache.put("GET " + name + (n % 700), { url: name, status: 200, headers: [], body, wireBytes: 0, truncated: false, requestedAt: n, respondedAt: n, varied: {} });
    if (n % 60 === 0) { await cache.stats(); process.stdout.write("."); await new Promise(setImmediate); }
  }
  await cache[Symbol.asyncDispose]();
`;

function startWriter(dir: string, name: string, count: number) {
  const file = join(dir, `${name}.mjs`);
  writeFileSync(file, WRITER);
  const child = spawn(process.execPath, [file, join(dir, "cache"), name, String(count)], { stdio: ["ignore", "pipe", "pipe"] });
  let errors = "";
  child.stderr.on("data", (piece) => {
    errors += String(piece);
  });
  return { child, errors: () => errors, ended: once(child, "exit") };
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
  const wrong = db.prepare("SELECT count(*) AS n FROM body WHERE responses <> (SELECT count(*) FROM response WHERE body = body.id) OR responses < 1");
  assert.equal(wrong.get()?.["n"], 0);
  assert.equal(db.prepare("SELECT count(*) AS n FROM response WHERE body NOT IN (SELECT id FROM body)").get()?.["n"], 0);
  db.close();
}

test("killed at any moment it stays whole, and goes on", async () => {
  const dir = folder("kill");
  for (let round = 0; round < 4; round++) {
    const { child, errors, ended } = startWriter(dir, "w", 100_000);
    let dots = 0;
    child.stdout.on("data", (piece: Buffer) => {
      dots += piece.length;
      if (dots > 2 + round * 3) child.kill("SIGKILL");
    });
    await ended;
    assert.equal(errors(), "");
    checkWhole(join(dir, "cache"));
  }
  await using cache = open(join(dir, "cache"));
  let read = 0;
  for await (const [, { body }] of cache.all()) read += Buffer.from(body).toString().startsWith("w") ? 1 : 0;
  assert.equal(read, (await cache.stats()).responses);
  assert.ok(read > 0);
});

test("two processes that create it and write at once both come to their end", async () => {
  const dir = folder("race");
  const writers = ["a", "b"].map((name) => startWriter(dir, name, 400));
  for (const { ended, errors } of writers) assert.deepEqual([(await ended)[0], errors()], [0, ""]);
  checkWhole(join(dir, "cache"));
});

test("what is no cache is refused and left alone; a damaged one says so, and clear drops it", async () => {
  const dir = folder("foreign");
  const file = join(dir, "cache.db");
  writeFileSync(file, "dear diary");
  assert.throws(() => open(dir), { code: "state-unwritable", message: /is no cache of this program/ });
  assert.throws(() => clearCache(dir), { code: "state-unwritable", message: /is no cache of this program/ });
  assert.equal(readFileSync(file, "utf8"), "dear diary");
  rmSync(file);
  const other = new DatabaseSync(file);
  other.exec("CREATE TABLE mine (x)");
  other.close();
  assert.throws(() => open(dir), { message: /is no cache of this program/ });
  assert.throws(() => clearCache(dir), { message: /is no cache of this program/ });
  rmSync(file);
  {
    await using cache = open(dir);
    for (let n = 0; n < 50; n++) await put(cache, stored(`/${n}`, filler(20_000)));
  }
  truncateSync(file, 5_000);
  assert.throws(() => open(dir), { code: "state-unwritable", message: /is damaged .*"skein cache clear" drops it/ });
  assert.equal(clearCache(dir), true);
  assert.equal(readCacheStats(dir), null);
  await using cache = open(dir);
  assert.equal((await cache.stats()).responses, 0);
});

test("a cache of another version is refused, and clear drops it", async () => {
  const dir = folder("version");
  await open(dir)[Symbol.asyncDispose]();
  const db = new DatabaseSync(join(dir, "cache.db"));
  db.exec("PRAGMA user_version = 99");
  db.close();
  assert.throws(() => open(dir), { code: "state-unwritable", message: /another version of this program \(99/ });
  assert.equal(clearCache(dir), true);
  assert.equal(clearCache(join(dir, "none")), false);
  await open(dir)[Symbol.asyncDispose]();
});
