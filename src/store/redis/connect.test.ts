/** What a connection makes of a server's answers: versions, its words within a script, refusals. The server is one of a few lines; real ones are met in connect.slow.ts. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type Socket } from "node:net";
import { type TestContext, test } from "node:test";
import { CrawlError } from "../../core/errors.ts";
import { type Logger, silentLog } from "../../core/log.ts";
import { freePort } from "../../testing/free-port.ts";
import { connectRedis, type Link } from "./connect.ts";
import { STORE_VERSION } from "./server.ts";

type Reply = (command: readonly string[]) => string | null;

/** Commands as the protocol sends them: arrays of bulk strings, ASCII here. */
function commandsIn(text: string): string[][] {
  const lines = text.split("\r\n");
  const found: string[][] = [];
  for (let at = 0; lines[at]?.startsWith("*"); ) {
    const count = Number(lines[at++]?.slice(1));
    found.push(Array.from({ length: count }, (_, n) => lines[at + 2 * n + 1] ?? ""));
    at += 2 * count;
  }
  return found;
}

const bulk = (text: string): string => `$${Buffer.byteLength(text)}\r\n${text}\r\n`;

/** Answers as a server of this INFO does; `reply` goes first, "" leaves it to the rest, null says nothing. */
async function serverOf(t: TestContext, info: string, reply: Reply = () => ""): Promise<string> {
  const sockets = new Set<Socket>();
  const usual = ([name]: readonly string[]): string => (name === "INFO" ? bulk(info) : name === "PING" ? "+PONG\r\n" : name === "GET" ? "$-1\r\n" : "+OK\r\n");
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => undefined);
    socket.on("data", (bytes) => {
      for (const [name = "", ...args] of commandsIn(bytes.toString("latin1"))) {
        const command = [name.toUpperCase(), ...args];
        const said = reply(command);
        if (said !== null) socket.write(said || usual(command));
      }
    });
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const address = server.address();
  assert.ok(typeof address === "object" && address !== null);
  return `redis://127.0.0.1:${address.port}`;
}

const OF_62 = "redis_version:6.2.14\r\nredis_mode:standalone\r\nrun_id:a\r\naof_enabled:1\r\nmaxmemory:0\r\n";

async function linked(t: TestContext, url: string): Promise<Link> {
  const link = await connectRedis(url, { log: silentLog, startWithinMs: 5_000 });
  t.after(() => link.close());
  return link;
}

const refusedFor = (pattern: RegExp) => (error: unknown) => error instanceof CrawlError && error.code === "invalid-options" && pattern.test(error.message);

test("servers older than 6.2 and nodes of a Cluster are refused; 6.2 and Valkey are taken", async (t) => {
  const old = await serverOf(t, OF_62.replace("6.2.14", "6.0.16"));
  await assert.rejects(connectRedis(old, { log: silentLog }), refusedFor(/is Redis 6\.0\.16; 6\.2 is the oldest that will do, or Valkey/));
  const node = await serverOf(t, OF_62.replace("standalone", "cluster"));
  await assert.rejects(connectRedis(node, { log: silentLog }), refusedFor(/node of a Redis Cluster/));
  assert.deepEqual((await linked(t, await serverOf(t, OF_62))).server.version, "6.2.14");
  const valkey = await linked(t, await serverOf(t, `${OF_62.replace("6.2.14", "7.2.4")}server_name:valkey\r\nvalkey_version:8.0.1\r\n`));
  assert.deepEqual([valkey.server.kind, valkey.server.version], ["valkey", "8.0.1"]);
});

test("a store of a newer layout is refused with both versions; one without a word is marked before the first write, and not by who only looks", async (t) => {
  const holds =
    (version: string): Reply =>
    ([name, key]) =>
      name === "GET" && key === "{skein}:version" ? bulk(version) : "";
  await assert.rejects(
    connectRedis(await serverOf(t, OF_62, holds("9")), { log: silentLog }),
    refusedFor(new RegExp(`a newer version of this program under \\{skein\\} \\(store version 9; this one knows ${STORE_VERSION}\\)`)),
  );
  await linked(t, await serverOf(t, OF_62, holds(String(STORE_VERSION))));
  const sent: string[] = [];
  const bare = await serverOf(t, OF_62, (command) => {
    sent.push(command.join(" "));
    return "";
  });
  const link = await linked(t, bare);
  await link.command("HGETALL", "{skein}:1:info");
  await link.script("views", ["{skein}", "{skein}:1"], ["", "1"]);
  const written = sent.filter((line) => /^(?:SET|BGREWRITEAOF)/.test(line));
  assert.deepEqual(written, []);
  await link.script("create", ["{skein}"], [""]);
  const mark = sent.indexOf(`SET {skein}:version ${STORE_VERSION} NX`);
  assert.ok(mark > 0 && mark < sent.findLastIndex((line) => line.startsWith("EVALSHA")), sent.join("\n"));
});

const within = (word: string): string => `-ERR Error running script (call to f_1a2b): @user_script:3: @user_script: 3: -${word}\r\n`;
const FULL = "OOM command not allowed when used memory > 'maxmemory'.";

test("a full server of 6.2, which says so within a script's words, is waited for; an offer is not", async (t) => {
  let refusals = 2;
  const url = await serverOf(t, OF_62, ([name]) => (name === "EVALSHA" ? (refusals-- > 0 ? within(FULL) : ":1\r\n") : ""));
  const link = await linked(t, url);
  assert.equal(await link.script("counts", ["{skein}", "{skein}:1"], ["", "1"]), 1);
  refusals = 1;
  assert.equal(await link.offer("cache-put", ["{skein}"], []), FULL);
  assert.equal(await link.offer("cache-put", ["{skein}"], []), null);
});

test("a command that the login may not use is said with the prefix in use and what is needed, also within a script", async (t) => {
  for (const word of [within("NOPERM this user has no permissions to run the 'xadd' command"), "-NOPERM no permission\r\n"]) {
    const link = await linked(t, await serverOf(t, OF_62, ([name]) => (name === "EVALSHA" ? word : "")));
    await assert.rejects(
      link.script("counts", ["{skein}", "{skein}:1"], ["", "1"]),
      (error) =>
        error instanceof CrawlError &&
        error.code === "store-unreachable" &&
        /refused a call: NOPERM .*The prefix in use is skein .*the default user needs/.test(error.message),
    );
  }
});

const READONLY = "-READONLY You can't write against a read only replica.\r\n";
const AFTER_MASTER = /is a read-only replica of 10\.1\.2\.3:6380 and takes no writes: name its master, redis:\/\/10\.1\.2\.3:6380, or the Sentinels .*--store/;
const isWrite = ([name = ""]: readonly string[]): boolean => name === "SET" || name === "EVALSHA" || name === "EVAL";

/** What was logged, but for the rewriting of a file that each of these servers seems to need. */
function lines(): { readonly log: Logger; readonly said: string[] } {
  const said: string[] = [];
  return {
    said,
    log: (level, message, fields) => void (level === "debug" || message.includes("being rewritten") || said.push(`${message} ${JSON.stringify(fields)}`)),
  };
}

test("a replica is told at the start with its master to whoever writes, and read by who only looks", async (t) => {
  const replica = `${OF_62}role:slave\r\nmaster_host:10.1.2.3\r\nmaster_port:6380\r\n`;
  const url = await serverOf(t, replica, (command) => (isWrite(command) ? READONLY : ""));
  await assert.rejects(connectRedis(url, { log: silentLog, writes: true, startWithinMs: 20_000 }), unreachable(AFTER_MASTER));
  const link = await linked(t, url);
  assert.equal(String(await link.command("HGET", "{skein}:1:m", "x")), "OK");
  await assert.rejects(link.script("create", ["{skein}"], [""]), unreachable(AFTER_MASTER));
  const silent = await linked(t, await serverOf(t, OF_62, (command) => (isWrite(command) ? READONLY : "")));
  await assert.rejects(
    silent.script("create", ["{skein}"], [""]),
    unreachable(/is a read-only replica and takes no writes: name its master, redis:\/\/HOST:PORT/),
  );
});

test("a server that becomes a replica in mid-run is waited for, and that is said once while reads go on", { timeout: 60_000 }, async (t) => {
  let demoted = false;
  const url = await serverOf(t, OF_62, (command) => (isWrite(command) ? (demoted ? READONLY : ":1\r\n") : ""));
  const { log, said } = lines();
  const link = await connectRedis(url, { log, writes: true });
  t.after(() => link.close());
  demoted = true;
  const write = link.script("create", ["{skein}"], [""]);
  const connections = link.connections;
  const waits = (): number => said.filter((line) => line.startsWith("the store does not take calls; waiting")).length;
  // The name may lead to another server by now: it is connected to anew.
  while (waits() < 1 || link.connections < connections + 3) {
    await link.command("HGET", "{skein}:1:m", "x");
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  assert.equal(said.length, 1, said.join("\n"));
  assert.match(said[0] ?? "", /READONLY/);
  demoted = false;
  assert.equal(await write, 1);
  assert.match(said[1] ?? "", /^the store answers again/);
});

test("a server that is full at the start is not waited for without end; what needs no room is done there", { timeout: 60_000 }, async (t) => {
  const url = await serverOf(t, OF_62, (command) => (isWrite(command) ? `-${FULL}\r\n` : ""));
  const took = unreachable(
    /took no writes within \d+ s: OOM command not allowed when used memory > 'maxmemory'\. It is full: raise maxmemory; or name another/,
  );
  await assert.rejects(connectRedis(url, { log: silentLog, writes: true, startWithinMs: 500 }), took);
  const link = await connectRedis(url, { log: silentLog, startWithinMs: 500 });
  t.after(() => link.close());
  assert.equal(String(await link.command("UNLINK", "{skein}:cache")), "OK");
  await assert.rejects(link.script("create", ["{skein}"], [""]), took);
});

test("a server that cannot save, which refuses PING too, is read by who only looks", { timeout: 60_000 }, async (t) => {
  const url = await serverOf(t, OF_62, (command) => (isWrite(command) || command[0] === "PING" ? "-MISCONF Errors writing to the AOF file\r\n" : ""));
  const link = await connectRedis(url, { log: silentLog, startWithinMs: 500 });
  t.after(() => link.close());
  assert.equal(String(await link.command("HGET", "{skein}:1:m", "x")), "OK");
});

test("what a call was told counts no more once it was answered, or hangs: a frozen server is not said to be full", { timeout: 60_000 }, async (t) => {
  for (const again of [":1\r\n", null]) {
    const answers = [`-${FULL}\r\n`, again];
    const leaving = Promise.withResolvers<void>();
    const url = await serverOf(t, OF_62, ([name]) => (name === "EVALSHA" ? (answers.shift() ?? null) : ""));
    const { log, said } = lines();
    const link = await connectRedis(url, { log, writes: true, leaving: leaving.promise });
    t.after(() => link.close());
    const calls = (async () => {
      for (;;) await link.script("create", ["{skein}"], [""]);
    })();
    const ended = assert.rejects(calls, unreachable(/was closed/));
    while (answers.length > 0) await new Promise((resolve) => setTimeout(resolve, 5));
    // From here on it hangs, for longer than a call that is only slow.
    await new Promise((resolve) => setTimeout(resolve, 1_200));
    leaving.resolve();
    while (said.length < 1) await new Promise((resolve) => setTimeout(resolve, 5));
    assert.match(said[0] ?? "", /^the store does not answer: waiting \d+ s more for it .*"why":"no answer"/);
    await link.close();
    await ended;
  }
});

/** Says these bytes to whoever comes, when they have said something. */
async function portThatSays(t: TestContext, bytes: Buffer | string): Promise<number> {
  const server = createServer((socket) => {
    socket.on("error", () => undefined);
    socket.once("data", () => socket.end(bytes));
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => server.close());
  const address = server.address();
  assert.ok(typeof address === "object" && address !== null);
  return address.port;
}

const unreachable = (pattern: RegExp) => (error: unknown) => {
  assert.ok(error instanceof CrawlError && error.code === "store-unreachable", String(error));
  assert.match(error.message, pattern);
  return true;
};

test("a port where something else answers is refused at once, and what it is is said", async (t) => {
  const web = await portThatSays(t, "HTTP/1.1 400 Bad Request\r\n\r\n");
  for (const scheme of ["redis", "rediss"]) {
    await assert.rejects(
      connectRedis(`${scheme}://127.0.0.1:${web}`, { log: silentLog, startWithinMs: 20_000 }),
      unreachable(
        new RegExp(`the store at 127.0.0.1:${web} cannot be used: what answers there is not Redis \\(it says "HTTP/1.1 400 Bad Request"\\)\\. .*--store`),
      ),
    );
  }
});

test("rediss:// to a Redis without TLS says so", async (t) => {
  const plain = (await serverOf(t, OF_62)).replace("redis:", "rediss:");
  await assert.rejects(
    connectRedis(plain, { log: silentLog, startWithinMs: 20_000 }),
    unreachable(/is Redis without TLS\. Write redis:\/\/ in place of rediss:\/\//),
  );
});

test("Sentinels that know no such master, are none, or do not answer are told apart", async (t) => {
  const knowsNone = new URL(await serverOf(t, "", ([name]) => (name === "SENTINEL" ? "*-1\r\n" : ""))).port;
  await assert.rejects(
    connectRedis(`redis+sentinel://127.0.0.1:${knowsNone}/mian`, { log: silentLog, startWithinMs: 20_000 }),
    unreachable(
      new RegExp(
        `mian of the sentinels .* cannot be found: 127\\.0\\.0\\.1:${knowsNone} knows no master of that name\\. The store's URL names Sentinels and master: redis\\+sentinel:`,
      ),
    ),
  );
  const none = new URL(await serverOf(t, "", ([name]) => (name === "SENTINEL" ? "-ERR unknown command 'SENTINEL'\r\n" : ""))).port;
  await assert.rejects(
    connectRedis(`redis+sentinel://127.0.0.1:${none}/main`, { log: silentLog, startWithinMs: 20_000 }),
    unreachable(/is a Redis, not a Sentinel/),
  );
  const port = await freePort();
  await assert.rejects(
    connectRedis(`redis+sentinel://127.0.0.1:${port}/main`, { log: silentLog, startWithinMs: 500 }),
    unreachable(new RegExp(`cannot be found: 127\\.0\\.0\\.1:${port} does not answer \\(ECONNREFUSED\\)`)),
  );
});

test("a store that does not answer is told of with the option that names it and what to do", async () => {
  const port = await freePort();
  await assert.rejects(
    connectRedis(`redis://127.0.0.1:${port}`, { log: silentLog, startWithinMs: 500 }),
    unreachable(
      /did not answer within \d+ s: connect ECONNREFUSED \S+\. Nothing listens there: start Redis; or name another store with --store \(or SKEIN_STORE\)$/,
    ),
  );
});

test("a Redis that turns everybody away before it is asked anything is told of in its own words", async (t) => {
  for (const [word, pattern] of [
    ["DENIED Redis is running in protected mode because protected mode is enabled", /lets nobody in: DENIED Redis is running in protected mode/],
    ["ERR max number of clients reached", /did not let this process in: ERR max number of clients reached\. Raise maxclients there; or name another store/],
  ] as const) {
    const server = createServer((socket) => {
      socket.on("error", () => undefined);
      socket.end(`-${word}\r\n`);
    }).listen(0, "127.0.0.1");
    await once(server, "listening");
    t.after(() => server.close());
    const address = server.address();
    assert.ok(typeof address === "object" && address !== null);
    await assert.rejects(connectRedis(`redis://127.0.0.1:${address.port}`, { log: silentLog, startWithinMs: 1_500 }), unreachable(pattern));
  }
});
