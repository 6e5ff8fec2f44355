/** Whole crawls of servers that drip, hang, close, rest, refuse and move between hosts. Field cases F020 to F030; F027 (HEAD) does not apply, since only GET is sent. */
import assert from "node:assert/strict";
import { createServer } from "node:net";
import test from "node:test";
import { page } from "../../src/fetch/raw-server.ts";
import { type Answer, beside, crawled, moved, site, withLookup } from "./field.ts";

/** Writes the head and then bytes for ever; `gone` counts sockets that the crawler closed. */
function endless(head: string, piece: Uint8Array, everyMs: number): { answer: Answer; gone(): number } {
  let gone = 0;
  return {
    answer(_, socket) {
      socket.write(`HTTP/1.1 200 OK\r\n${head}\r\n\r\n`);
      const timer = setInterval(() => socket.write(piece), everyMs);
      socket.on("close", () => {
        gone++;
        clearInterval(timer);
      });
      return null;
    },
    gone: () => gone,
  };
}

test("F020 an audio stream that never ends is closed after its head", async () => {
  for (const type of ["audio/mpeg", "video/mp4", "application/octet-stream", "multipart/x-mixed-replace; boundary=x", "image/png"]) {
    const stream = endless(`Content-Type: ${type}`, Buffer.alloc(16_384), 20);
    const { record } = await beside("/live", stream.answer, {}, { timeout: "15s" });
    assert.deepEqual([record.outcome, record.bodySkipped], ["fetched", true], type);
    assert.ok(record.durationMs < 10_000);
    assert.equal(stream.gone(), 1);
  }
});

test("F020 text without end is cut at the size limit", async () => {
  const stream = endless("Content-Type: text/html", Buffer.alloc(65_536, 32), 1);
  const { record } = await beside("/live", stream.answer, {}, { maxBodySize: "1MB", timeout: "15s" });
  assert.deepEqual([record.outcome, record.truncated, record.bytesDecoded], ["fetched", true, 1_000_000]);
  assert.equal(stream.gone(), 1);
});

test("F021 a body that drips for ever ends at the total time", async () => {
  const stream = endless("Content-Type: text/html", Buffer.from("x"), 100);
  const { record } = await beside("/drip", stream.answer, {}, { timeout: "1s", retry: { max: 0 } });
  assert.deepEqual([record.outcome, record.error?.code], ["failed", "timeout"]);
  assert.ok(record.durationMs < 15_000, `${record.durationMs} ms`);
  assert.equal(stream.gone(), 1);
});

test("F021 a head that drips, one that never comes and a server that says nothing are timeouts too", async () => {
  const heads: Answer[] = [
    (_, socket) => {
      const timer = setInterval(() => socket.write("X-A: b\r\n"), 50);
      socket.on("close", () => clearInterval(timer));
      return "HTTP/1.1 200 OK\r\n";
    },
    () => null,
    () => "HTTP/1.1 100 Continue\r\n\r\n",
  ];
  await Promise.all(
    heads.map(async (odd) => {
      const { record } = await beside("/drip", odd, {}, { timeout: "1s", retry: { max: 0 } });
      assert.deepEqual([record.outcome, record.error?.code], ["failed", "timeout"]);
      assert.ok(record.durationMs < 15_000, `${record.durationMs} ms`);
    }),
  );
});

test("F022 a kept connection that is closed at its next request costs neither a page nor a retry", async () => {
  for (const end of ["destroy", "reset", "half"] as const) {
    await using server = await site({ "/": Array.from({ length: 19 }, (_, i) => `<a href="/${i}">x</a>`).join("") }, ({ turn }, socket) => {
      if (turn === 0) return page("<p>fresh");
      if (end === "destroy") setTimeout(() => socket.destroy(), 5);
      else if (end === "reset") setTimeout(() => socket.resetAndDestroy(), 5);
      else socket.end();
      return null;
    });
    const { records } = await crawled(server, { concurrency: 1, retry: { max: 0 } });
    assert.deepEqual(
      records.map(({ status }) => status),
      Array(20).fill(200),
      end,
    );
    assert.ok(records.every(({ attempts }) => attempts === 1));
  }
});

test("F023 a 429 with Retry-After is asked again after it, and another host goes on meanwhile", async () => {
  for (const status of ["429 Too Many Requests", "503 Service Unavailable"]) {
    let first = 0;
    let second = 0;
    await using other = await site({}, "<p>other");
    await using server = await site({
      "/x": () => {
        if (first === 0) {
          first = performance.now();
          return page("later", ["Retry-After: 1"], status);
        }
        second ||= performance.now();
        return page("<p>at last");
      },
    });
    let otherAt = 0;
    const result = await crawled(
      server,
      { seeds: ["/x", `${other.origin}/`] },
      {
        onEvent: (event) => {
          if (event.kind === "settled" && event.output.page?.url.startsWith(other.origin)) otherAt = performance.now();
        },
      },
    );
    assert.equal(result.at("/x").status, 200);
    assert.ok(second - first >= 975, `${second - first} ms`);
    assert.ok(otherAt < second);
  }
});

test("F024 a Retry-After of a day gives the page up at once, and says so", async () => {
  for (const value of ["86400", "99999999999999999999", "Fri, 31 Dec 9999 23:59:59 GMT"]) {
    const { record, asked } = await beside("/x", page("no", [`Retry-After: ${value}`], "503 Service Unavailable"));
    assert.deepEqual([record.outcome, record.status, record.error?.code, asked], ["failed", 503, "rate-limited", 1]);
    assert.match(record.error?.message ?? "", /Retry-After/);
  }
});

test("F024 a Retry-After that cannot be read is as if there were none", async () => {
  for (const value of ["soon", "-1", "", "1e3", "Mon, 99 Foo 2020 00:00:00 GMT"]) {
    const { record, asked } = await beside("/x", page("no", [`Retry-After: ${value}`], "500 Oops"), {}, { retry: { max: 1 } });
    assert.deepEqual([record.outcome, record.status, asked], ["failed", 500, 2], value);
  }
});

test("F025 status 999 stands in the record as received, as an error", async () => {
  const { record, asked, summary } = await beside("/l", page("denied", [], "999 Request denied"));
  assert.deepEqual([record.outcome, record.status, record.error?.code], ["failed", 999, "http"]);
  assert.ok(asked <= 3);
  assert.equal(summary.pages, 2);
});

test("F026 a 304 nobody asked for is a record without a body, and the connection goes on", async () => {
  for (const status of ["304 Not Modified", "204 No Content", "205 Reset Content"]) {
    const answer = `HTTP/1.1 ${status}\r\nConnection: keep-alive\r\n${status.startsWith("205") ? "Content-Length: 0\r\n" : ""}\r\n`;
    const { record } = await beside("/n", answer, {}, { concurrency: 1, timeout: "15s" });
    assert.deepEqual([record.outcome, record.status, record.bytes, record.links, record.error], ["fetched", Number(status.slice(0, 3)), 0, [], undefined]);
    assert.ok(record.durationMs < 10_000);
  }
});

test("F028 a host that does not resolve is one failed record", async () => {
  await using server = await site({ "/": `<a href="http://does-not-exist.invalid/">x</a><a href="/ok">o</a>`, "/ok": "<p>ok" });
  const { outcomes } = await crawled(server, { scope: { preset: "any" } });
  assert.deepEqual(outcomes(), { "/": 200, "/ok": 200, "http://does-not-exist.invalid/": "dns" });
});

test("F028 a refused connection is one failed record", async () => {
  const free = createServer();
  await new Promise<void>((resolve) => free.listen(0, "127.0.0.1", resolve));
  const address = free.address();
  const port = typeof address === "object" ? address?.port : 0;
  await new Promise((resolve) => free.close(resolve));
  await using server = await site({ "/": `<a href="http://127.0.0.1:${port}/">x</a><a href="/ok">o</a>`, "/ok": "<p>ok" });
  const { outcomes } = await crawled(server, { scope: { preset: "any" } });
  assert.deepEqual(outcomes(), { "/": 200, "/ok": 200, [`http://127.0.0.1:${port}/`]: "connect" });
});

test("F029 a host with a dead IPv6 address is reached by its IPv4 one", async () => {
  await using server = await site({ "/": `<a href="/in">i</a>`, "/in": "<p>in" });
  const seeds = `http://dual.example:${server.port}/`;
  const lookup = withLookup((_, callback) =>
    callback(null, [
      { address: "::1", family: 6 },
      { address: "127.0.0.1", family: 4 },
    ]),
  );
  const { records } = await crawled(server, { seeds }, lookup);
  assert.deepEqual(
    records.map(({ status }) => status),
    [200, 200],
  );
  assert.ok(records.every(({ durationMs }) => durationMs < 5_000));
});

test("F030 credentials stay with their host over a redirect, and cookies with their name", async () => {
  await using b = await site({ "/x": "<p>b" });
  const there = `http://localhost:${b.port}/x`;
  const cookie = page("<p>a", ["Set-Cookie: sid=1"]);
  await using a = await site({
    "/": page(`<a href="/r">r</a><a href="/port">p</a><a href="/same">s</a>`, ["Set-Cookie: sid=1"]),
    "/r": moved(there),
    "/same": moved("/home"),
    "/home": cookie,
    "/port": moved(`${b.origin}/x`),
  });
  const { at } = await crawled(a, { headers: { Authorization: "Bearer T", Cookie: "own=1" }, scope: { preset: "any" }, concurrency: 1 });
  assert.equal(at(there).status, 200);
  assert.equal(at(`${b.origin}/x`).status, 200);
  for (const { headers } of b.requests) {
    assert.equal(headers.get("authorization"), undefined);
    // What a server sets is for all ports of its name (RFC 6265 §8.5); what the user gave is for the seed's host and port.
    const isName = headers.get("host")?.startsWith("localhost");
    assert.equal(headers.get("cookie"), isName || headers.get("cookie") === undefined ? undefined : "sid=1");
  }
  for (const { headers, target } of a.requests) assert.equal(headers.get("authorization"), "Bearer T", target);
  assert.equal(a.requests.at(-1)?.headers.get("cookie"), "own=1; sid=1");
});

test("F030 user and password of a host go to it alone, those in a Location to nobody else", async () => {
  await using b = await site({}, "<p>b");
  await using a = await site({ "/": moved(`http://u:p@127.0.0.1:${b.port}/x`) });
  const { at } = await crawled(a, { auth: { [`127.0.0.1:${a.port}`]: "me:secret" } });
  assert.equal(at(`${b.origin}/x`).status, 200);
  assert.equal(a.requests.at(-1)?.headers.get("authorization"), `Basic ${btoa("me:secret")}`);
  assert.ok(b.requests.every(({ headers }) => headers.get("authorization") !== `Basic ${btoa("me:secret")}`));
});

test("F030 a seed that moves to another host takes neither Authorization nor Cookie along", async () => {
  await using b = await site({ "/x": `<a href="/in">i</a>` }, "<p>b");
  await using a = await site({ "/r": moved(`${b.origin}/x`) });
  const { at } = await crawled(a, { seeds: "/r", headers: { Authorization: "Bearer T", Cookie: "own=1", "X-Plain": "y" } });
  assert.equal(at(`${b.origin}/in`).status, 200);
  for (const { headers } of b.requests)
    assert.deepEqual([headers.get("authorization"), headers.get("cookie"), headers.get("x-plain")], [undefined, undefined, "y"]);
  for (const { headers } of a.requests) assert.equal(headers.get("authorization"), "Bearer T");
});
