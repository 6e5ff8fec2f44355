/** Connections: reuse, dead ones, limits, names and addresses, aborts, and that nothing is left behind. */
import assert from "node:assert/strict";
import { createServer } from "node:net";
import { test } from "node:test";
import type { Lookup } from "./dns.ts";
import { page, type Script, startRawServer } from "./raw-server.ts";
import { bodyOf, exchangeFor, fetchOnce, openFetcher } from "./trial.ts";

const OK = page("<p>well");
/** Every name leads to these addresses. */
const allTo =
  (...addresses: string[]): Lookup =>
  (_, callback) =>
    callback(
      null,
      addresses.map((address) => ({ address, family: address.includes(":") ? 6 : 4 })),
    );

test("a connection is kept and used again", async () => {
  await using server = await startRawServer(() => OK);
  await using fetcher = openFetcher();
  for (let i = 0; i < 20; i++) assert.equal(bodyOf(await fetcher.fetch(exchangeFor(`${server.origin}/${i}`))), "<p>well");
  assert.equal(server.accepted(), 1);
});

test("a server that closes after each answer is asked again on new connections", async () => {
  await using server = await startRawServer((_, socket) => void socket.end(page("<p>well", ["Connection: close"])));
  await using fetcher = openFetcher();
  for (let i = 0; i < 5; i++) assert.equal(bodyOf(await fetcher.fetch(exchangeFor(`${server.origin}/${i}`))), "<p>well");
  assert.equal(server.accepted(), 5);
});

test("F022 a kept connection that is closed just as it is used again is replaced silently, once, and onStart is called once", async () => {
  await using server = await startRawServer((request, socket) => {
    if (request.turn === 0) return OK;
    setTimeout(() => socket.destroy(), 5);
    return null;
  });
  await using fetcher = openFetcher({ perHostConcurrency: 1 });
  for (let i = 0; i < 20; i++) {
    const exchange = exchangeFor(`${server.origin}/${i}`);
    assert.equal(bodyOf(await fetcher.fetch(exchange)), "<p>well");
    assert.deepEqual(exchange.calls, ["start", "end"]);
  }
  assert.equal(server.accepted(), 20);
});

test("the time since the start counts from the request that was answered", async () => {
  await using server = await startRawServer((request, socket) => {
    if (request.turn === 0) return OK;
    setTimeout(() => socket.destroy(), 100);
    return null;
  });
  await using fetcher = openFetcher();
  await fetcher.fetch(exchangeFor(`${server.origin}/`));
  const outcome = await fetcher.fetch(exchangeFor(`${server.origin}/again`));
  assert.equal(bodyOf(outcome), "<p>well");
  assert.ok(outcome.durationMs >= 90);
  assert.ok((outcome.sinceStartMs ?? Infinity) < outcome.durationMs - 80);
});

test("a connection that dies without an answer is not replaced when it is fresh, nor when a byte had come, nor for a POST", async () => {
  const dying: Script = (request, socket) => {
    if (request.target === "/ok") return OK;
    if (request.target === "/byte") socket.write("H");
    setTimeout(() => socket.destroy(), 5);
    return null;
  };
  await using server = await startRawServer(dying);
  assert.match(bodyOf(await fetchOnce(`${server.origin}/fresh`)), /^failed: reset/);
  assert.equal(server.requests.length, 1);
  await using fetcher = openFetcher();
  for (const [path, rest] of [
    ["/byte", undefined],
    ["/post", { method: "POST", body: Buffer.from("x") }],
  ] as const) {
    await fetcher.fetch(exchangeFor(`${server.origin}/ok`));
    const before: number = server.requests.length;
    assert.match(bodyOf(await fetcher.fetch(exchangeFor(server.origin + path, rest ? { rest } : {}))), /^failed: reset/);
    assert.equal(server.requests.length, before + 1);
  }
});

test("no more connections than allowed are opened to an origin, and what waits for one is served in turn", async () => {
  let most = 0;
  let inside = 0;
  await using server = await startRawServer((_, socket) => {
    most = Math.max(most, ++inside);
    setTimeout(() => {
      inside--;
      socket.write(OK);
    }, 5);
    return null;
  });
  await using fetcher = openFetcher({ perHostConcurrency: 3 });
  const outcomes = await Promise.all(Array.from({ length: 20 }, (_, i) => fetcher.fetch(exchangeFor(`${server.origin}/${i}`))));
  assert.ok(outcomes.every((outcome) => bodyOf(outcome) === "<p>well"));
  assert.deepEqual([most, server.accepted()], [3, 3]);
});

test("F028 a name that does not resolve is a dns failure, EAI_AGAIN too, and the host counts as not contacted", async () => {
  for (const code of ["ENOTFOUND", "EAI_AGAIN", "EAI_FAIL", "ENODATA"]) {
    const outcome = await fetchOnce("http://does-not-exist.invalid/", { lookup: (_, callback) => callback(Object.assign(new Error("no"), { code }), []) });
    assert.ok(outcome.kind === "failed");
    assert.deepEqual([outcome.code, outcome.retryable, outcome.sinceStartMs, outcome.answer], ["dns", true, null, null]);
  }
  assert.match(bodyOf(await fetchOnce("http://nothing.example/", { lookup: allTo() })), /^failed: dns/);
});

test("F028 the system's resolver says the same of a name under .invalid", async () => {
  const outcome = await fetchOnce("http://does-not-exist.invalid/");
  assert.match(bodyOf(outcome), /^failed: dns/);
});

test("F029 addresses are tried in order until one connects", async () => {
  await using server = await startRawServer(() => OK);
  for (const lookup of [allTo("::1", "127.0.0.1"), allTo("100::", "127.0.0.1"), allTo("127.0.0.2", "127.0.0.3", "127.0.0.1")]) {
    const outcome = await fetchOnce(`http://dual.example:${server.port}/`, { lookup });
    assert.equal(bodyOf(outcome), "<p>well");
    assert.ok(outcome.durationMs < 4_500);
  }
});

test("an address that does not answer holds up the next one only for a moment, and nothing is left open", async () => {
  await using server = await startRawServer(() => OK);
  const outcome = await fetchOnce(`http://slow.example:${server.port}/`, { lookup: allTo("192.0.2.1", "127.0.0.1") });
  assert.equal(bodyOf(outcome), "<p>well");
  assert.ok(outcome.durationMs < 4_500);
});

test("a refused connection is a connect failure that owes the host no rest", async () => {
  const closed = createServer();
  await new Promise<void>((resolve) => closed.listen(0, "127.0.0.1", resolve));
  const address = closed.address();
  const port = typeof address === "object" && address ? address.port : 0;
  await new Promise((resolve) => closed.close(resolve));
  const exchange = exchangeFor(`http://127.0.0.1:${port}/`);
  await using fetcher = openFetcher();
  const outcome = await fetcher.fetch(exchange);
  assert.ok(outcome.kind === "failed");
  assert.deepEqual([outcome.code, outcome.retryable, outcome.status, outcome.sinceStartMs, outcome.answer?.kind], ["connect", true, null, null, "none"]);
  assert.deepEqual(exchange.calls, []);
});

test("names are asked for once for all exchanges that need them", async () => {
  await using server = await startRawServer(() => OK);
  let asked = 0;
  await using fetcher = openFetcher({
    lookup: (_, callback) => {
      asked++;
      setImmediate(callback, null, [{ address: "127.0.0.1", family: 4 }]);
    },
  });
  await Promise.all(Array.from({ length: 8 }, (_, i) => fetcher.fetch(exchangeFor(`http://once.example:${server.port}/${i}`))));
  assert.equal(asked, 1);
});

test("F124 the address that was checked is the one connected to: the name is not asked for again", async () => {
  await using server = await startRawServer(() => OK);
  let asked = 0;
  const outcome = await fetchOnce(`http://rebind.example:${server.port}/`, {
    addresses: { refusePrivate: true, allow: ["127.0.0.1"] },
    lookup: (_, callback) => callback(null, [{ address: ++asked === 1 ? "127.0.0.1" : "10.0.0.1", family: 4 }]),
  });
  assert.equal(bodyOf(outcome), "<p>well");
  assert.equal(asked, 1);
});

test("F123 F124 addresses that are not public are refused before any connection, by name or by number", async () => {
  await using server = await startRawServer(() => OK);
  const options = { addresses: { refusePrivate: true, allow: [] }, lookup: allTo("127.0.0.1") };
  for (const host of ["127.0.0.1", "[::ffff:127.0.0.1]", "[::1]", "name.example", "localhost"]) {
    const exchange = exchangeFor(`http://${host}:${server.port}/`);
    await using fetcher = openFetcher(options);
    const outcome = await fetcher.fetch(exchange);
    assert.ok(outcome.kind === "failed", host);
    assert.deepEqual([outcome.code, outcome.retryable, outcome.sinceStartMs], ["blocked-address", false, null]);
    assert.deepEqual(exchange.calls, []);
  }
  assert.equal(server.accepted(), 0);
});

test("of a name's addresses only the public and the allowed ones are tried", async () => {
  await using server = await startRawServer(() => OK);
  const allowed = { addresses: { refusePrivate: true, allow: ["127.0.0.0/30"] }, lookup: allTo("10.0.0.1", "127.0.0.1") };
  assert.equal(bodyOf(await fetchOnce(`http://mixed.example:${server.port}/`, allowed)), "<p>well");
  const byName = { addresses: { refusePrivate: true, allow: ["Inside.Example"] }, lookup: allTo("127.0.0.1") };
  assert.equal(bodyOf(await fetchOnce(`http://inside.example:${server.port}/`, byName)), "<p>well");
});

test("an exchange is aborted while it waits, connects, expects an answer or reads one; others go on", async () => {
  const reached = Promise.withResolvers<void>();
  await using server = await startRawServer((request, socket) => {
    if (request.target === "/ok") return OK;
    if (request.target === "/body") socket.write("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 100\r\n\r\nhalf");
    reached.resolve();
    return null;
  });
  await using fetcher = openFetcher({ perHostConcurrency: 1, lookup: () => undefined });
  const urls = { resolving: "http://never.example/", head: `${server.origin}/head`, waiting: `${server.origin}/waiting` };
  const exchanges = Object.values(urls).map((url) => exchangeFor(url));
  const outcomes = exchanges.map((exchange) => fetcher.fetch(exchange));
  await reached.promise;
  for (const exchange of exchanges.toReversed()) fetcher.abort(exchange);
  assert.deepEqual(
    (await Promise.all(outcomes)).map((outcome) => [outcome.kind, outcome.answer]),
    exchanges.map(() => ["aborted", null]),
  );
  assert.deepEqual(
    exchanges.map((exchange) => exchange.calls.join()),
    ["", "start,end", ""],
  );
  fetcher.abort(exchanges[0]!); // over already: nothing happens
  assert.equal(bodyOf(await fetcher.fetch(exchangeFor(`${server.origin}/ok`))), "<p>well");
});

test("abortAll ends everything, disposal leaves no socket and no timer, and afterwards every exchange is aborted", async () => {
  await using server = await startRawServer(() => null);
  const fetcher = openFetcher({ lookup: () => undefined });
  const outcomes = [`${server.origin}/a`, `${server.origin}/b`, "http://never.example/"].map((url) => fetcher.fetch(exchangeFor(url)));
  fetcher.abortAll();
  assert.deepEqual(
    (await Promise.all(outcomes)).map((outcome) => outcome.kind),
    ["aborted", "aborted", "aborted"],
  );
  await fetcher[Symbol.asyncDispose]();
  await server.idle();
  assert.equal((await fetcher.fetch(exchangeFor(`${server.origin}/c`))).kind, "aborted");
  assert.deepEqual(
    process.getActiveResourcesInfo().filter((name) => name === "Timeout"),
    [],
  );
});

test("hosts without work are forgotten, oldest first, and their connections closed", async () => {
  await using server = await startRawServer(() => OK);
  await using fetcher = openFetcher({ lookup: allTo("127.0.0.1") });
  for (let i = 0; i < 200; i++) assert.equal(bodyOf(await fetcher.fetch(exchangeFor(`http://h${i}.example:${server.port}/`))), "<p>well");
  assert.ok(server.open() <= 130, `${server.open()} open`);
  assert.equal(bodyOf(await fetcher.fetch(exchangeFor(`http://h0.example:${server.port}/`))), "<p>well");
  assert.equal(server.accepted(), 201);
});

test("a long queue at a host that is refused is refused as well, each exchange once", async () => {
  await using fetcher = openFetcher({ perHostConcurrency: 1, addresses: { refusePrivate: true, allow: [] } });
  const outcomes = await Promise.all(Array.from({ length: 5_000 }, (_, i) => fetcher.fetch(exchangeFor(`http://127.0.0.1:1/${i}`))));
  assert.ok(outcomes.every((outcome) => outcome.kind === "failed" && outcome.code === "blocked-address"));
});
