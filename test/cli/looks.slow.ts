/** Commands that only look at a store write nothing there, whatever it holds: every command that the server is sent is read. needs: redis-server */
import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { silentLog } from "../../src/core/log.ts";
import { connectRedis } from "../../src/store/redis/connect.ts";
import { onlyReads } from "../../src/store/redis/reads.ts";
import { skipRedis, startServer, type TestServer } from "../../src/store/redis/server-for-tests.ts";
import { run } from "../command.ts";
import { faultySite } from "../crawl/kills.ts";
import { serve } from "../crawl/served.ts";

const root = mkdtempSync(join(tmpdir(), "skein-looks-"));
const bin = join(import.meta.dirname, "../../bin/skein.js");
let redis: TestServer;

before(async () => {
  if (skipRedis === false) redis = await startServer(["--maxmemory-policy", "noeviction"]);
});
after(async () => {
  if (skipRedis === false) await redis.stop();
  rmSync(root, { recursive: true, force: true });
});

const skein = (...args: string[]) => run(process.execPath, [bin, ...args], root);
/** Of a connection, and the calls of scripts, whose own commands are told apart. */
const BESIDE = new Set(["CLIENT", "SELECT", "AUTH", "HELLO", "EVAL", "EVALSHA", "MONITOR"]);

/** Reads from now on what the server is sent, commands of scripts too; answers how to end it and those that write. */
async function watch(): Promise<() => Promise<readonly string[]>> {
  const socket: Socket = connect(redis.port, "127.0.0.1");
  let text = "";
  socket.on("data", (bytes) => {
    text += bytes.toString("latin1");
  });
  socket.write("MONITOR\r\n");
  while (!text.includes("+OK")) await once(socket, "data");
  return async () => {
    // What was sent before this is told before it.
    const end = connect(redis.port, "127.0.0.1");
    end.end("ECHO the-end\r\n");
    while (!text.includes("the-end")) await once(socket, "data");
    socket.destroy();
    end.destroy();
    const lines = text.split("\r\n").filter((line) => /^\+\d+\.\d+ \[/.test(line) && !line.includes("the-end"));
    assert.ok(
      lines.some((line) => /"info"/i.test(line)),
      "something was sent",
    );
    return lines.filter((line) => {
      const command = /\] "([^"]+)"/.exec(line)?.[1]?.toUpperCase() ?? line;
      return !BESIDE.has(command) && !onlyReads(command);
    });
  };
}

test("a prefix that is not in use stays so, whoever looks at it", { skip: skipRedis }, async () => {
  const store = `${redis.url}?prefix=nobody`;
  const writes = await watch();
  const [list, json, doctor, stats, ...refused] = await Promise.all([
    skein("status", "--store", store),
    skein("status", "--store", store, "--json"),
    skein("doctor", "--store", store),
    skein("cache", "stats", "--store", store),
    skein("cache", "clear", "--store", store),
    skein("status", "--store", store, "--job", "1"),
    skein("explain", "http://a.example/", "--store", store, "--job", "1"),
    skein("export", "--store", store, "--job", "1"),
    skein("export", "--store", store, "--job", "1", "--follow", "--drop"),
  ]);
  assert.deepEqual(await writes(), []);
  assert.equal(list.code, 0, list.stderr);
  assert.match(list.stdout, /^no crawls in the store at 127\.0\.0\.1:\d+\?prefix=nobody; others are named in its URL/);
  assert.equal(JSON.parse(json.stdout).store, `127.0.0.1:${redis.port}?prefix=nobody`);
  assert.equal(doctor.code, 0, doctor.stdout);
  assert.match(stats.stdout, /^there is no cache/);
  assert.deepEqual(
    refused.map(({ code }) => code),
    [0, 2, 2, 2, 2],
  );
  const usual = await skein("status", "--store", redis.url);
  assert.match(usual.stdout, /^no crawls in the store at 127\.0\.0\.1:\d+; these are database 0 and the prefix skein: others are named in its URL/);
});

test("nor does a look change a store with crawls, also after the server has started anew", { skip: skipRedis }, async () => {
  await using server = await serve(faultySite(30));
  const store = `${redis.url}/1?prefix=looked`;
  const crawl = await skein("crawl", server.origin, "--store", store, "--limit", "5", "--cache", "auto", "-o", "pages.jsonl");
  assert.equal(crawl.code, 0, crawl.stderr);
  await redis.kill();
  await redis.start();
  const writes = await watch();
  const looks = await Promise.all([
    skein("status", "--store", store),
    skein("status", "--store", store, "--job", "1"),
    skein("explain", `${server.origin}/`, `${server.origin}/p1`, `${server.origin}/p99999`, "--store", store, "--job", "1"),
    skein("doctor", "--store", store),
    skein("cache", "stats", "--store", store),
  ]);
  assert.deepEqual(await writes(), []);
  assert.deepEqual(
    looks.map(({ code }) => code),
    [0, 0, 8, 0, 0],
  );
  assert.equal(looks.map(({ stderr }) => stderr).join(""), "");
  assert.match(looks[1]?.stdout ?? "", /^hosts? +127\.0\.0\.1|^slowest +127/m);
  assert.match(looks[3]?.stdout ?? "", /^warn +rewrite +the server has started since anybody wrote here/m);
  // Who writes asks for what is needed then.
  const again = await skein("crawl", server.origin, "--store", store, "--limit", "6", "-o", "more.jsonl");
  assert.equal(again.code, 0, again.stderr);
  assert.match((await skein("doctor", "--store", store)).stdout, /^ok +rewrite +the server (?:has rewritten|is rewriting) its append-only file/m);
});

test("a store of a newer version is refused by those who only look, under the name by which it was given", { skip: skipRedis }, async () => {
  const store = `${redis.url}?prefix=newer`;
  const link = await connectRedis(store, { log: silentLog });
  await link.command("SET", "{newer}:version", "9");
  await link.close();
  const commands = [["status"], ["export", "--job", "1"], ["explain", "http://a.example/", "--job", "1"], ["cache", "stats"]];
  for (const { code, stderr } of await Promise.all(commands.map((command) => skein(...command, "--store", store)))) {
    assert.equal(code, 2, stderr);
    assert.match(stderr, /^skein: --store: 127\.0\.0\.1:\d+\?prefix=newer holds crawls of a newer version of this program under \{newer\}/);
  }
  const doctor = await skein("doctor", "--store", store);
  assert.equal(doctor.code, 1);
  assert.match(doctor.stdout, /^fail +store +.*newer version/m);
});

test("a replica is read, a failing line of doctor, and no store to crawl with", { skip: skipRedis }, async (t) => {
  const replica = await startServer(["--replicaof", "127.0.0.1", String(redis.port)]);
  t.after(() => replica.stop());
  const [status, doctor, ...writers] = await Promise.all([
    skein("status", "--store", replica.url),
    skein("doctor", "--store", replica.url),
    skein("crawl", "http://127.0.0.1:1/", "--store", replica.url),
    skein("work", "--store", replica.url),
    skein("serve", "--port", "0", "--store", replica.url),
  ]);
  assert.equal(status.code, 0, status.stderr);
  assert.equal(doctor.code, 1, doctor.stdout);
  assert.match(doctor.stdout, new RegExp(`^fail +role +a read-only replica of 127\\.0\\.0\\.1:${redis.port}`, "m"));
  for (const { code, stderr } of writers) {
    assert.equal(code, 5, stderr);
    assert.match(
      stderr,
      new RegExp(`is a read-only replica of 127\\.0\\.0\\.1:${redis.port} and takes no writes: name its master, redis://127\\.0\\.0\\.1:${redis.port}`),
    );
    assert.doesNotMatch(stderr, /waiting/);
  }
});

test("a server that cannot save is looked at all the same, and doctor says that it takes no writes", { skip: skipRedis }, async (t) => {
  const server = await startServer(["--appendonly", "no", "--save", "3600 1"]);
  t.after(() => server.stop());
  const link = await connectRedis(server.url, { log: silentLog });
  t.after(() => link.close());
  await link.command("SET", "{skein}:version", "1");
  rmSync(server.dir, { recursive: true });
  await link.command("BGSAVE");
  while (!String(await link.command("INFO", "persistence")).includes("rdb_last_bgsave_status:err"));
  const [status, doctor] = await Promise.all([skein("status", "--store", server.url), skein("doctor", "--store", server.url)]);
  assert.equal(status.code, 0, status.stderr);
  assert.equal(doctor.code, 1, doctor.stdout);
  assert.match(doctor.stdout, /^fail +persistence +.*takes no writes \(MISCONF\).*\n +next step: make room in the server's directory/m);
});
