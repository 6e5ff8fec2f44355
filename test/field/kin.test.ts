/** Whole crawls of what is akin to the cases of the field: further forms of the same faults, each found by trying. */
import assert from "node:assert/strict";
import test from "node:test";
import { page } from "../../src/fetch/raw-server.ts";
import { beside, closing, crawled, moved, plain, site } from "./field.ts";

test("a redirect whose body has no end is followed at once", async () => {
  const { at } = await beside(
    "/r",
    (_, socket) => {
      socket.write("HTTP/1.1 302 Found\r\nLocation: /there\r\n\r\nmoved");
      return null;
    },
    { "/there": "<p>there" },
    { timeout: "20s" },
  );
  assert.equal(at("/there").status, 200);
  assert.ok(at("/r").durationMs < 15_000);
});

for (const line of ["HTTP/1.2 200 OK", "HTTP/2 200", "HTTP/2.0 200 OK", "ICY 200 OK", "http/1.1  200  OK", "HTTP/1.1 200"]) {
  test(`a status line as browsers read it: ${line}`, async () => {
    const { record, targets } = await beside("/r", closing(`${line}\r\nContent-Type: text/html\r\nContent-Length: 19, 19\r\n\r\n<a href="/in">i</a>`), {
      "/in": "<p>in",
    });
    assert.equal(record.status, 200);
    assert.ok(targets.includes("/in"));
  });
}

test("a head of 200 KB is read, one without end is refused", async () => {
  assert.equal((await beside("/r", page("<p>big", [`X: ${"x".repeat(200_000)}`]))).record.status, 200);
  const { record } = await beside("/r", (_, socket) => {
    socket.write("HTTP/1.1 200 OK\r\n");
    const timer = setInterval(() => socket.write(`X: ${"x".repeat(50_000)}\r\n`), 1);
    socket.on("close", () => clearInterval(timer));
    return null;
  });
  assert.equal(record.error?.code, "protocol");
});

test("a Refresh field leads on as its meta element does", async () => {
  const { at } = await beside("/r", page("", ["Refresh: 0; url=/there"]), { "/there": "<p>there" });
  assert.equal(at("/there").status, 200);
});

test("two Content-Type lines are read as Fetch says", async () => {
  const body = Buffer.from(`<a href="/in?\xe9">i</a>`, "latin1");
  const { targets } = await beside("/r", page(body, ["Content-Type: text/html; charset=iso-8859-1", "Content-Type: text/html"]), { "/in?%E9": "<p>in" });
  assert.ok(targets.includes("/in?%E9"));
});

test("a bare host that is silent on https is crawled over http, without trying again and again", async () => {
  // The server waits for an HTTP head, which a TLS greeting never is.
  await using server = await site({ "/": `<a href="/in">i</a>`, "/in": "<p>in" });
  const { records, summary } = await crawled(server, { seeds: `127.0.0.1:${server.port}`, timeout: "1s", retry: { max: 5 } });
  assert.deepEqual(
    records.map(({ status }) => status),
    [200, 200],
  );
  assert.equal(summary.seedsReached, 1);
  // One that greets in TLS, one for robots.txt and the pages; each try of https would be one more.
  assert.ok(server.accepted() <= 3, `${server.accepted()} connections`);
});

test("a host to which no connection comes about in time fails with that, not for its robots.txt", async () => {
  await using server = await site({});
  const { records } = await crawled(server, { seeds: `https://127.0.0.1:${server.port}/`, timeout: "500ms", retry: { max: 0 } });
  assert.deepEqual(
    records.map(({ error }) => error?.code),
    ["timeout"],
  );
});

test("a robots.txt that redirects to a dead host is one that cannot be had", async () => {
  await using server = await site({ "/robots.txt": moved("http://127.0.0.1:1/robots.txt") }, "<p>x");
  const { outcomes } = await crawled(server, { retry: { max: 0 } });
  assert.deepEqual(outcomes(), { "/": "robots-unavailable" });
  await using broken = await site({ "/robots.txt": moved("/other"), "/other": page("x", [], "500 Oops") }, "<p>x");
  assert.deepEqual((await crawled(broken, { retry: { max: 0 } })).outcomes(), { "/": "robots-unavailable" });
});

test("robots.txt compressed, mislabelled, of any type, in any charset", async () => {
  const rules = "User-agent: *\nDisallow: /no\n";
  const files = [page(rules, ["Content-Type: image/png"]), page(rules, ["Content-Encoding: gzip"]), plain(Buffer.from(`# \xe9\n${rules}`, "latin1"))];
  for (const file of files) {
    await using server = await site({ "/robots.txt": file, "/": `<a href="/no">n</a>` }, "<p>x");
    assert.equal((await crawled(server)).at("/no").outcome, "disallowed");
  }
});

test("F103 a seed that leads to what may not be crawled says so", async () => {
  const said: unknown[] = [];
  await using server = await site({ "/": moved("/home") }, "<p>x");
  const { outcomes } = await crawled(server, { scope: { exclude: ["/home"] } }, { log: (level, message, fields) => said.push([level, message, fields?.to]) });
  assert.deepEqual(outcomes(), { "/": "→ /home" });
  assert.deepEqual(said, [["warn", "a seed leads to a URL that may not be crawled", `${server.origin}/home`]]);
});
