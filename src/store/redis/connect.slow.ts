/** Store URLs, what is refused at the door, and servers that come late, come never, or speak TLS. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { CrawlError } from "../../core/errors.ts";
import { type Logger, silentLog } from "../../core/log.ts";
import { parseRedisUrl } from "./address.ts";
import { connectRedis } from "./connect.ts";
import { createCrawls } from "./crawls.ts";
import { freePort, skipRedis, startServer, type TestServer } from "./server-for-tests.ts";

function lines(): { readonly log: Logger; readonly said: string[] } {
  const said: string[] = [];
  return { said, log: (level, message, fields) => void said.push(`${level} ${message} ${JSON.stringify(fields)}`) };
}

/** Stopped with its test, however that ends. */
async function started(t: TestContext, ...how: Parameters<typeof startServer>): Promise<TestServer> {
  const server = await startServer(...how);
  t.after(() => server.stop());
  return server;
}

const failsWith = (code: string, pattern: RegExp) => (error: unknown) => {
  assert.ok(error instanceof CrawlError, String(error));
  assert.equal(error.code, code);
  assert.match(error.message, pattern);
  return true;
};

test("store URLs say which server, database and login", () => {
  const plain = { host: "a", port: 6379, username: null, password: null, db: 0, tls: false, prefix: null, sentinels: null, shown: "a:6379" };
  assert.deepEqual(parseRedisUrl("redis://a"), plain);
  assert.deepEqual(parseRedisUrl("redis://u:p%40w:x@a:7000/3"), { ...plain, port: 7000, username: "u", password: "p@w:x", db: 3, shown: "a:7000/3" });
  assert.deepEqual(parseRedisUrl("redis://:secret@a/"), { ...plain, password: "secret" });
  assert.deepEqual(parseRedisUrl("rediss://[::1]:6380"), { ...plain, host: "::1", port: 6380, tls: true, shown: "[::1]:6380" });
  assert.deepEqual(parseRedisUrl("redis://a/2?prefix=shop-1"), { ...plain, db: 2, prefix: "shop-1", shown: "a:6379/2?prefix=shop-1" });
  assert.equal(parseRedisUrl("redis://a/0?prefix=skein").shown, "a:6379");
  const sentinels = {
    nodes: [
      { host: "s1", port: 26379 },
      { host: "s2", port: 1 },
    ],
    name: "main",
  };
  assert.deepEqual(parseRedisUrl("redis+sentinel://:pw@s1,s2:1/main/2"), {
    ...plain,
    host: "s1",
    port: 26379,
    password: "pw",
    db: 2,
    sentinels,
    shown: "main of the sentinels s1,s2:1/2",
  });
});

test("URLs that are none are refused without showing the password", () => {
  for (const url of [
    "http://a",
    "redis://",
    "redis://a/x",
    "redis://a/1/2",
    "redis://a:0",
    "redis://a?db=1",
    "redis://a?prefix=a/b",
    "redis://a?prefix=",
    "redis://u:secret@a?x?y",
    "redis://u:secret@a#x",
    "redis+sentinel://a",
    "redis://u:secret%@a",
  ]) {
    assert.throws(
      () => parseRedisUrl(url),
      (error) => failsWith("invalid-options", /store/)(error) && !String(error).includes("secret"),
      url,
    );
  }
});

test("a server that is not there is waited for, then it is an error with host and port, without the password (F107)", async () => {
  const port = await freePort();
  const { log, said } = lines();
  await assert.rejects(
    connectRedis(`redis://user:secret@127.0.0.1:${port}`, { log, startWithinMs: 2_500 }),
    (error) => failsWith("store-unreachable", new RegExp(`127\\.0\\.0\\.1:${port}.*ECONNREFUSED`))(error) && !String(error).includes("secret"),
  );
  assert.ok(said.some((line) => line.startsWith("warn the store does not take calls; waiting")));
  assert.ok(!said.join("").includes("secret"));
});

test("a server that starts later than the worker is found (F107)", { skip: skipRedis }, async (t) => {
  const port = await freePort();
  const { log, said } = lines();
  const connecting = connectRedis(`redis://127.0.0.1:${port}`, { log });
  await started(t, [], port);
  const link = await connecting;
  assert.ok(said.some((line) => line.startsWith("info the store answers again")) || !said.some((line) => line.startsWith("warn the store does not")));
  await link.close();
});

test("a server that would drop keys is refused, one that keeps nothing on disk is warned of", { skip: skipRedis }, async (t) => {
  const evicting = await started(t, ["--maxmemory", "50mb", "--maxmemory-policy", "allkeys-lru"]);
  await assert.rejects(connectRedis(evicting.url, { log: silentLog }), failsWith("invalid-options", /allkeys-lru.*noeviction/));
  const forgetful = await started(t, ["--appendonly", "no"]);
  const { log, said } = lines();
  await (await connectRedis(forgetful.url, { log })).close();
  assert.match(said.join("\n"), /warn the store keeps nothing on disk/);
});

test("a wrong password is an error at once; the right one with its database opens", { skip: skipRedis }, async (t) => {
  const server = await started(t, ["--requirepass", "secret"]);
  const at = `127.0.0.1:${server.port}`;
  for (const login of ["", ":wrong@"]) {
    await assert.rejects(
      connectRedis(`redis://${login}${at}`, { log: silentLog }),
      failsWith("store-unreachable", /refused the login: (NOAUTH|WRONGPASS).*redis:\/\/USER:PASSWORD@/),
    );
  }
  const link = await connectRedis(`redis://:secret@${at}/5`, { log: silentLog, prefix: "own" });
  await createCrawls(link).create({ spec: "{}" });
  const info = String(await link.command("INFO", "keyspace"));
  assert.match(info, /db5:/);
  assert.doesNotMatch(info, /db0:/);
  const keys = (await link.command("KEYS", "*")) as Buffer[]; // KEYS
  assert.deepEqual(
    keys.map(String).filter((key) => !key.startsWith("{own}:")),
    [],
    "no key lies outside of the prefix",
  );
  await link.close();
});

test("a database that the server does not have is refused, not replaced by the first one", { skip: skipRedis }, async (t) => {
  const server = await started(t, ["--databases", "4"]);
  await assert.rejects(connectRedis(`${server.url}/4`, { log: silentLog }), failsWith("invalid-options", /has no database 4/));
  const link = await connectRedis(`${server.url}/3`, { log: silentLog });
  await link.close();
});

test("an append-only file is rewritten once for each start of the server", { skip: skipRedis }, async (t) => {
  const server = await started(t, ["--appendfsync", "always"]);
  const rewrites = async (): Promise<number> => {
    const { log, said } = lines();
    const link = await connectRedis(server.url, { log });
    assert.equal(said.join(), "", "not before something is written");
    await createCrawls(link).create({ spec: "{}" });
    await link.close();
    return said.filter((line) => line.includes("being rewritten")).length;
  };
  assert.deepEqual([await rewrites(), await rewrites()], [1, 0]);
  await server.kill();
  await server.start();
  assert.deepEqual([await rewrites(), await rewrites()], [1, 0]);
});

test("a login without the keys of the prefix is told which prefix is in use, and what it needs", { skip: skipRedis }, async (t) => {
  const server = await started(t);
  const admin = await connectRedis(server.url, { log: silentLog });
  const all = ["on", ">pw", "resetkeys", "~{skein}", "~{skein}:*", "resetchannels", "&{skein}:*"];
  await admin.command("ACL", "SETUSER", "limited", ...all, "+@all");
  await admin.command("ACL", "SETUSER", "poor", ...all, "+@all", "-xadd", "-hset");
  await admin.close();
  const at = `127.0.0.1:${server.port}`;
  await assert.rejects(
    connectRedis(`redis://limited:pw@${at}?prefix=shop`, { log: silentLog }),
    failsWith(
      "store-unreachable",
      /refused a call: NOPERM .*The prefix in use is shop .*the user limited needs the keys ~\{shop\} and ~\{shop\}:\*; docs\/operations\.md/,
    ),
  );
  const link = await connectRedis(`redis://poor:pw@${at}`, { log: silentLog });
  t.after(() => link.close());
  await assert.rejects(
    createCrawls(link).create({ spec: "{}" }),
    failsWith("store-unreachable", /refused a call: NOPERM .*The prefix in use is skein .*the user poor needs that command/),
  );
  await link.close();
});

test("rediss:// checks the certificate, and redis:// to such a port is told what is missing", { skip: skipRedis }, async (t) => {
  const dir = mkdtempSync(join(tmpdir(), "skein-tls-"));
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  const [key, cert] = [join(dir, "key.pem"), join(dir, "cert.pem")];
  try {
    const subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"];
    execFileSync("openssl", ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-keyout", key, "-out", cert, ...subject], { stdio: "ignore" });
  } catch {
    t.skip("openssl is not on PATH");
    return;
  }
  const port = await freePort();
  const server = await started(t, [
    "--tls-port",
    String(port),
    "--tls-cert-file",
    cert,
    "--tls-key-file",
    key,
    "--tls-ca-cert-file",
    cert,
    "--tls-auth-clients",
    "no",
  ]).catch(() => null);
  if (server === null) {
    t.skip("this redis-server is built without TLS");
    return;
  }
  const url = `rediss://127.0.0.1:${port}`;
  await assert.rejects(connectRedis(url, { log: silentLog, startWithinMs: 2_500 }), failsWith("store-unreachable", /self.signed|certificate/i));
  const link = await connectRedis(url, { log: silentLog, ca: readFileSync(cert, "utf8") });
  assert.equal(String(await link.command("PING")), "PONG");
  await link.close();
  await assert.rejects(
    connectRedis(`redis://127.0.0.1:${port}`, { log: silentLog, startWithinMs: 20_000 }),
    failsWith("store-unreachable", /what answers there speaks TLS\. Write rediss:\/\/ in place of redis:\/\//),
  );
  await assert.rejects(
    connectRedis(`rediss://127.0.0.1:${server.port}`, { log: silentLog, startWithinMs: 20_000 }),
    failsWith("store-unreachable", /is Redis without TLS\. Write redis:\/\/ in place of rediss:\/\//),
  );
});

test("sentinels say where the master is, and after a failover where the new one is", { skip: skipRedis }, async (t) => {
  const master = await started(t, ["--repl-diskless-sync-delay", "0"]);
  await started(t, ["--replicaof", "127.0.0.1", String(master.port)]);
  // Sentinels look at a master when they start, and then only every ten seconds: by then it must have its replica.
  const direct = await connectRedis(master.url, { log: silentLog });
  const id = await createCrawls(direct).create({ spec: "1" });
  while (Number(await direct.command("WAIT", 1, 1_000)) < 1);
  await direct.close();
  const sentinel = await started(t, [], undefined, [
    `sentinel monitor main 127.0.0.1 ${master.port} 1`,
    // Less would take a master for dead that a busy machine holds up.
    "sentinel down-after-milliseconds main 1500",
    "sentinel failover-timeout main 3000",
  ]);
  await assert.rejects(
    connectRedis(`redis+sentinel://127.0.0.1:${sentinel.port}/mian`, { log: silentLog, startWithinMs: 20_000 }),
    failsWith("store-unreachable", /^the store at mian of the sentinels \S+ cannot be found: \S+ knows no master of that name\. /),
  );
  await assert.rejects(
    connectRedis(`redis+sentinel://127.0.0.1:${master.port}/main`, { log: silentLog, startWithinMs: 20_000 }),
    failsWith("store-unreachable", /is a Redis, not a Sentinel/),
  );
  const link = await connectRedis(`redis+sentinel://127.0.0.1:${sentinel.port}/main`, { log: silentLog });
  await createCrawls(link).note(id, { via: "sentinel" });
  while (Number(await link.command("WAIT", 1, 1_000)) < 1);
  await master.kill();
  assert.equal((await createCrawls(link).get(id))?.info.get("spec"), "1", "the replica has it, once it is the master");
  await createCrawls(link).note(id, { spec: "2" });
  assert.equal((await createCrawls(link).get(id))?.info.get("spec"), "2");
  await link.close();
});
