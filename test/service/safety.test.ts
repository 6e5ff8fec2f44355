/** What the service refuses: strangers, other sites, too much, what is no HTTP; and what its answers never say. */
import assert from "node:assert/strict";
import { connect } from "node:net";
import { test } from "node:test";
import { CrawlError } from "../../src/core/errors.ts";
import { fakeJobs } from "./fake-jobs.ts";
import { bench } from "./harness.ts";

const SEEDS = { seeds: ["http://a.example/"] };
const TOKEN = "correct-horse-battery";

test("with a token everything but the page itself and the probes asks for it", async () => {
  await using at = await bench({ access: { token: TOKEN, names: [], network: false } });
  for (const path of ["/v1/jobs", "/v1/jobs/0", "/status/0", "/result/0", "/metrics", "/openapi.json", "/v1/jobs/0/events", "/nothing"]) {
    for (const headers of [
      {},
      { authorization: "Bearer wrong" },
      { authorization: `Basic ${TOKEN}` },
      { authorization: `Bearer ${TOKEN}x` },
      { authorization: "Bearer" },
      { cookie: `token=${TOKEN}` },
    ]) {
      const answer = await at.ask("GET", path, undefined, headers as Record<string, string>);
      assert.equal(answer.status, 401, path);
      assert.match(String(answer.headers["www-authenticate"]), /^Bearer/);
      assert.equal(answer.headers["content-type"], "application/problem+json");
    }
    assert.equal((await at.ask("GET", `${path}?token=${TOKEN}`)).status, 401);
  }
  for (const path of ["/", "/healthz", "/readyz"]) assert.equal((await at.ask("GET", path)).status, 200, path);
  assert.equal((await at.ask("POST", "/", "http://a.example/")).status, 401);
  assert.equal((await at.post("/v1/jobs", SEEDS)).status, 401);
  assert.equal((await at.post("/v1/jobs", SEEDS, { authorization: `Bearer ${TOKEN}` })).status, 202);
  assert.equal((await at.ask("GET", "/v1/jobs", undefined, { authorization: `bearer ${TOKEN}`, host: "any.example" })).status, 200);
  assert.doesNotMatch(JSON.stringify(at.logged), new RegExp(TOKEN));
});

test("without a token Host must be a name of this machine (DNS rebinding)", async () => {
  await using at = await bench({ access: { token: null, names: ["crawler.example"], network: false } });
  const get = async (host: string) => (await at.ask("GET", "/v1/jobs", undefined, { host })).status;
  for (const host of [
    "localhost",
    "localhost:5000",
    "LOCALHOST",
    "127.0.0.1:1",
    "127.9.9.9",
    "[::1]:5000",
    "a.localhost",
    "crawler.example",
    "crawler.example:80",
    "localhost.",
  ])
    assert.equal(await get(host), 200, host);
  for (const host of [
    "evil.example",
    "localhost.evil.example",
    "127.0.0.1.evil.example",
    "10.0.0.1",
    "[::2]",
    "evil.example:5000",
    "u@localhost",
    "localhost:x",
    "0.0.0.0",
    "2130706433",
  ])
    assert.ok([400, 403].includes(await get(host)), host);
  await using open = await bench({ access: { token: null, names: [], network: true } });
  for (const [host, status] of [
    ["10.0.0.1:5000", 200],
    ["service:5000", 200],
    ["evil.example", 403],
  ] as const)
    assert.equal((await open.ask("GET", "/v1/jobs", undefined, { host })).status, status, host);
});

test("pages of other origins cannot change anything", async () => {
  await using at = await bench();
  const host = `127.0.0.1:${at.port}`;
  for (const headers of [
    { origin: "http://evil.example" },
    { origin: "null" },
    { origin: `http://localhost:${at.port}` },
    { "sec-fetch-site": "cross-site" },
    { "sec-fetch-site": "same-site" },
  ] as Record<string, string>[])
    for (const type of ["text/plain", "application/json", "multipart/form-data; boundary=x"])
      assert.equal((await at.ask("POST", "/", "http://a.example/", { ...headers, host, "content-type": type })).status, 403, JSON.stringify(headers));
  assert.equal((await at.ask("DELETE", "/v1/jobs/0", undefined, { origin: "http://evil.example" })).status, 403);
  assert.equal((await at.post("/v1/jobs", SEEDS, { host, origin: `http://${host}`, "sec-fetch-site": "same-origin" })).status, 202);
  const preflight = await at.ask("OPTIONS", "/v1/jobs", undefined, { origin: "http://evil.example", "access-control-request-method": "POST" });
  assert.equal(preflight.status, 204);
  for (const name of Object.keys(preflight.headers)) assert.doesNotMatch(name, /^access-control/);
});

test("every answer has the headers that keep a browser from trusting it too much", async () => {
  await using at = await bench();
  for (const path of ["/", "/v1/jobs", "/nothing", "/healthz", "/metrics", "/openapi.json"]) {
    const { headers } = await at.ask("GET", path);
    assert.match(String(headers["content-security-policy"]), /default-src 'none'.*frame-ancestors 'none'/, path);
    assert.deepEqual(
      [headers["x-content-type-options"], headers["referrer-policy"], headers["access-control-allow-origin"]],
      ["nosniff", "no-referrer", undefined],
      path,
    );
    if (path !== "/") assert.equal(headers["cache-control"], "no-store");
  }
});

test("F125 a body past the limit: 413, the connection ends, memory stays flat", async () => {
  await using at = await bench({ limits: { uploadBytes: 2_000_000, jsonBytes: 1_000_000, lingerMs: 200 } });
  const before = process.memoryUsage().rss;
  for (const type of ["text/plain", "application/json", "multipart/form-data; boundary=x", "application/x-www-form-urlencoded"]) {
    const { status, headers } = await at.ask("POST", "/", Buffer.alloc(50_000_000, "a"), { "content-type": type, "content-length": "50000000" });
    assert.deepEqual([status, headers["connection"], headers["content-type"]], [413, "close", "application/problem+json"], type);
  }
  async function* endless(piece: string) {
    for (;;) yield piece;
  }
  const part = '--x\r\nContent-Disposition: form-data; name="urls"; filename="a"\r\n\r\n';
  for (const [type, piece] of [
    ["text/plain", "a".repeat(60_000)],
    ["text/plain", "http://a.example/\n".repeat(3_000)],
    ["text/plain", "\n".repeat(60_000)],
    ["application/json", `[${" ".repeat(60_000)}`],
    ["application/x-www-form-urlencoded", `urls=${"%41".repeat(20_000)}`],
    ["application/x-www-form-urlencoded", "=".repeat(60_000)],
    ["multipart/form-data; boundary=x", `${part}http://a.example/\r\n${"b".repeat(50_000)}`],
    ["multipart/form-data; boundary=x", "no part ".repeat(8_000)],
  ] as const) {
    const { status, headers } = await at.ask("POST", "/", endless(piece), { "content-type": type });
    assert.ok(status === 413 || status === 400, `${type}: ${status}`);
    assert.equal(headers["connection"], "close", type);
  }
  assert.equal(at.jobs.all.length, 0);
  const grown = process.memoryUsage().rss - before;
  // The 50 MB of the client are in this process too.
  assert.ok(grown < 250e6, `${grown / 1e6} MB`);
});

test("a client that asks first is told of its size before it sends anything", async () => {
  await using at = await bench({ limits: { uploadBytes: 1_000 } });
  const got = await at.raw("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\nContent-Length: 5000\r\nExpect: 100-continue\r\n\r\n");
  assert.match(got, /^HTTP\/1\.1 413 /);
});

test("requests past the rate get 429 with Retry-After, and the connection is not kept", async () => {
  await using at = await bench({ limits: { requestsPerSecond: 1, requestBurst: 5 } });
  const answers = [];
  for (let n = 0; n < 8; n++) answers.push(await at.ask("GET", "/healthz"));
  const refused = answers.find(({ status }) => status === 429);
  assert.ok(refused);
  assert.match(String(refused.headers["retry-after"]), /^[1-9]\d*$/);
  assert.equal(answers.filter(({ status }) => status === 200).length >= 5, true);
});

test("too many jobs: 429; too many URLs: 413", async () => {
  await using at = await bench({}, fakeJobs({ mostJobs: 1, mostUrls: 3 }));
  assert.equal((await at.post("/", { urls: ["http://a/", "http://b/", "http://c/", "http://d/"] })).status, 413);
  assert.equal((await at.post("/", { urls: ["http://a/"] })).status, 200);
  const refused = await at.post("/", { urls: ["http://a/"] });
  assert.deepEqual([refused.status, typeof refused.headers["retry-after"]], [429, "string"]);
});

test("an upload that breaks off makes no job", async () => {
  await using at = await bench();
  const socket = connect(at.port, "127.0.0.1");
  socket.write("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\nContent-Length: 1000\r\n\r\nhttp://a.example/\nhttp://b.exam");
  await new Promise((resolve) => setTimeout(resolve, 50));
  socket.destroy();
  while (!at.logged.some(({ message }) => message === "request")) await new Promise((resolve) => setImmediate(resolve));
  assert.equal(at.jobs.all.length, 0);
  const truncated = '--B\r\nContent-Disposition: form-data; name="urls"; filename="a"\r\n\r\nhttp://a.example/\r\nhttp://b';
  assert.equal((await at.ask("POST", "/", truncated, { "content-type": "multipart/form-data; boundary=B" })).status, 400);
  assert.equal(at.jobs.all.length, 0);
});

test("faults of ours are answered without their words", async () => {
  await using at = await bench();
  at.jobs.failure = new Error("cannot open /home/me/skein-data/jobs.db at 10.1.2.3");
  const fault = await at.ask("GET", "/v1/jobs/0");
  assert.deepEqual([fault.status, fault.json.title], [500, "Internal Server Error"]);
  at.jobs.failure = new CrawlError("state-unwritable", "no room on /home/me/skein-data");
  const full = await at.post("/v1/jobs", SEEDS);
  assert.deepEqual([full.status, typeof full.headers["retry-after"]], [503, "string"]);
  at.jobs.failure = new CrawlError("store-unreachable", "the store at 10.1.2.3:6379 does not answer");
  const away = await at.post("/v1/jobs", SEEDS);
  assert.deepEqual([away.status, typeof away.headers["retry-after"]], [503, "string"]);
  assert.match(away.json.detail, /^the store .*cannot be reached/);
  for (const { text } of [fault, full, away]) assert.doesNotMatch(text, /home|skein-data|10\.1|\.ts|at /);
  assert.match(JSON.stringify(at.logged), /skein-data/);
  const probe = await at.ask("GET", "/readyz");
  assert.deepEqual([probe.status, probe.json.status], [503, "unavailable"]);
});

test("what is no HTTP, too long, or of a method nobody knows, is answered and ended", async () => {
  await using at = await bench();
  for (const [bytes, status] of [
    ["nonsense\r\n\r\n", 400],
    ["GET / HTTP/1.1\r\n\r\n", 400],
    [`GET /${"x".repeat(20_000)} HTTP/1.1\r\nHost: localhost\r\n\r\n`, 431],
    ["POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n", 400],
    ["POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: -5\r\n\r\n", 400],
    ["TRACE / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", 501],
    ["GET http://[bad/ HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", 400],
    ["GET //evil.example/v1/jobs HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", 404],
    ["GET http://evil.example/v1/jobs HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", 200],
    ["GET /v1/jobs/%ff%00 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", 404],
    ["OPTIONS * HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", 400],
  ] as const)
    assert.match(await at.raw(bytes), new RegExp(`^HTTP/1\\.1 ${status} `), bytes.slice(0, 60));
});

test("a head that comes too slowly is cut off", async () => {
  await using at = await bench({ limits: { headersMs: 300 } });
  const got = await at.raw("GET /healthz HTTP/1.1\r\nHost: localhost\r\n");
  assert.match(got, /^HTTP\/1\.1 408 /);
});

test("more connections than there may be are not taken", async () => {
  await using at = await bench({ limits: { connections: 2 } });
  const held = [connect(at.port, "127.0.0.1"), connect(at.port, "127.0.0.1")];
  await Promise.all(held.map((socket) => new Promise<void>((resolve) => socket.once("connect", () => resolve()))));
  const third = connect(at.port, "127.0.0.1");
  third.on("error", () => undefined);
  await new Promise((resolve) => third.once("close", resolve));
  for (const socket of held) socket.destroy();
});

test("coded bodies, other types, other methods", async () => {
  await using at = await bench();
  assert.equal((await at.ask("POST", "/", "x", { "content-encoding": "br" })).status, 415);
  const type = await at.ask("POST", "/", "<x/>", { "content-type": "application/xml" });
  assert.deepEqual([type.status, typeof type.headers["accept"]], [415, "string"]);
  const method = await at.ask("PUT", "/v1/jobs/0", "{}");
  assert.deepEqual([method.status, method.headers["allow"]], [405, "GET, HEAD, DELETE, OPTIONS"]);
  assert.equal((await at.ask("POST", "/", `{"a":${"[".repeat(100_000)}}`, { "content-type": "application/json" })).status, 400);
});
