/** Whole crawls of sites that speak HTTP in odd ways: redirects, bodies, heads. Field cases F001 to F019. */
import assert from "node:assert/strict";
import test from "node:test";
import { deflateRawSync, deflateSync, gzipSync } from "node:zlib";
import { page } from "../../src/fetch/raw-server.ts";
import { type Answer, beside, closing, moved } from "./field.ts";

test("F001 a page that redirects to itself to set a cookie is shown with the cookie", async () => {
  const { record, targets } = await beside(
    "/wall",
    ({ headers }) => (headers.get("cookie")?.includes("ok=1") ? page(`<a href="/after">a</a>`) : moved("/wall", "302 Found", ["Set-Cookie: ok=1; Path=/"])),
    { "/after": "<p>after" },
  );
  assert.equal(record.status, 200);
  assert.equal(targets.filter((target) => target === "/wall").length, 2);
  assert.ok(targets.includes("/after"));
});

test("F002 an endless self-redirect is one failed record and is not retried", async () => {
  const { record, asked } = await beside("/loop", moved("/loop"));
  assert.deepEqual([record.outcome, record.error?.code], ["failed", "redirect"]);
  assert.match(record.error?.message ?? "", /redirect/);
  assert.equal(asked, 1);
});

test("F002 an endless loop that sets the same cookie again and again ends too", async () => {
  const { record, asked } = await beside("/loop", moved("/loop", "302 Found", ["Set-Cookie: a=1"]));
  assert.equal(record.error?.code, "redirect");
  assert.equal(asked, 2);
});

test("F002 a loop with a new cookie each time is bounded by the number of redirects", async () => {
  let n = 0;
  const { record, asked } = await beside("/loop", () => moved("/loop", "302 Found", [`Set-Cookie: a=${n++}`]));
  assert.equal(record.error?.code, "redirect");
  assert.equal(asked, 21);
});

test("F003 a Location of three slashes names the host behind them", async () => {
  for (const slashes of ["//", "///", "////", "\\\\", "/\\/"]) {
    const { at } = await beside("/a", moved(`${slashes}127.0.0.1:{port}/b`), { "/b": "<p>b" });
    assert.equal(at("/b").status, 200, slashes);
  }
});

test("F004 raw UTF-8 in a Location is escaped once", async () => {
  const { targets } = await beside("/r", moved("/\xd8\xa7\xd8\xb9?q=\xd8\xa7"), { "/%D8%A7%D8%B9?q=%D8%A7": "<p>there" });
  assert.equal(targets.at(-1), "/%D8%A7%D8%B9?q=%D8%A7");
});

test("F005 an absolute Location without a path asks for /", async () => {
  const { at, targets } = await beside("/r", moved("http://127.0.0.1:{port}?test=1", "301 Moved"), { "/?test=1": "<p>there" });
  assert.equal(at("/?test=1").status, 200);
  assert.ok(targets.includes("/?test=1"));
});

for (const location of [
  "https://:443/",
  "http://",
  "http://[::1/",
  "http://a b/",
  "http://127.0.0.1:99999/",
  "mailto:a@example.org",
  "javascript:0",
  "ftp://127.0.0.1/",
]) {
  test(`F006 a Location that cannot be followed is one failed record: ${location}`, async () => {
    const { record, asked } = await beside("/r", moved(location));
    assert.deepEqual([record.outcome, record.status, record.error?.code], ["failed", 302, "redirect"]);
    assert.equal(asked, 1);
  });
}

test("F007 a 301 without a Location is the answer itself", async () => {
  for (const headers of [[], ["Location:"], ["Location:   "]]) {
    const { record, targets } = await beside("/r", page(`<a href="/x">x</a>`, headers, "301 Moved"), { "/x": "<p>x" });
    assert.deepEqual([record.outcome, record.status, record.error], ["fetched", 301, undefined]);
    assert.deepEqual(targets.sort(), ["/", "/ok", "/r"]);
  }
});

test("F008 the body of a redirect cannot fail it", async () => {
  const heads = [
    "Content-Encoding: gzip\r\nContent-Length: 5\r\n\r\nmoved",
    "Content-Length: 5000\r\nConnection: close\r\n\r\nmoved",
    "Transfer-Encoding: chunked\r\n\r\nnonsense",
    "Content-Encoding: compress\r\nContent-Length: 5\r\n\r\nmoved",
  ];
  for (const head of heads) {
    const { at } = await beside("/r", closing(`HTTP/1.1 302 Found\r\nLocation: /there\r\n${head}`), { "/there": "<p>there" });
    assert.equal(at("/there").status, 200, head);
  }
});

test("F009 a page that says gzip and is plain is read as it is", async () => {
  for (const coding of ["gzip", "x-gzip", "deflate", "br", "zstd"]) {
    const { at } = await beside("/r", page(`<a href="/next">n</a>`, [`Content-Encoding: ${coding}`]), { "/next": "<p>next" });
    assert.equal(at("/next").status, 200, coding);
  }
});

test("F010 two layers of gzip are both taken off, in one header line or two; many are refused", async () => {
  const twice = gzipSync(gzipSync(`<a href="/in">i</a>`));
  for (const headers of [["Content-Encoding: gzip, gzip"], ["Content-Encoding: gzip", "Content-Encoding: gzip"]]) {
    const { at } = await beside("/r", page(twice, headers), { "/in": "<p>in" });
    assert.equal(at("/in").status, 200);
  }
  const { record } = await beside("/r", page(twice, [`Content-Encoding: ${"gzip,".repeat(20)}gzip`]));
  assert.equal(record.error?.code, "decode");
});

test("F011 deflate is read with and without its zlib wrapper", async () => {
  for (const encode of [deflateRawSync, deflateSync]) {
    const { at } = await beside("/r", page(encode(`<a href="/in">i</a>`), ["Content-Encoding: deflate"]), { "/in": "<p>in" });
    assert.equal(at("/in").status, 200);
  }
});

test("F012 a coding nobody knows is a mislabel, one that is known and not offered is an error", async () => {
  for (const coding of ["UTF-8", "none", "identity", "text/html", ""]) {
    const { at } = await beside("/r", page(`<a href="/in">i</a>`, [`Content-Encoding: ${coding}`]), { "/in": "<p>in" });
    assert.equal(at("/in").status, 200, coding);
  }
  const { record } = await beside("/r", page("\x1f\x9d\x90", ["Content-Encoding: compress"]));
  assert.equal(record.error?.code, "decode");
});

test("F013 a compressed bomb stops at the limit on decoded bytes", async () => {
  const bomb = gzipSync(Buffer.alloc(60_000_000, 32));
  const before = process.memoryUsage.rss();
  const { record } = await beside("/bomb", page(bomb, ["Content-Encoding: gzip"]), {}, { maxBodySize: "5MB" });
  assert.deepEqual([record.outcome, record.truncated, record.bytesDecoded], ["fetched", true, 5_000_000]);
  assert.ok(process.memoryUsage.rss() - before < 150e6);
});

/** Ways in which a body ends before it should; `close` is what becomes of the socket. */
const cutBodies: readonly (readonly [name: string, head: string, close: "end" | "reset"])[] = [
  ["F014 a body shorter than its Content-Length", `Content-Length: 5000\r\n\r\n<a href="/in">i</a>`, "end"],
  ["F014 a body cut by a reset", `Content-Length: 5000\r\n\r\n<a href="/in">i</a>`, "reset"],
  ["F014 no byte of the body", "Content-Length: 5000\r\n\r\n", "end"],
  ["F015 a chunked body without its last chunk", "Transfer-Encoding: chunked\r\n\r\n1a\r\n<p>twenty-six bytes here.<\r\n", "end"],
  ["F015 a chunk cut in the middle", "Transfer-Encoding: chunked\r\n\r\nff\r\n<p>", "end"],
  ["F015 a chunked body without any chunk", "Transfer-Encoding: chunked\r\n\r\n", "end"],
];
for (const [name, head, close] of cutBodies) {
  test(`${name} is retried and then failed`, async () => {
    const odd: Answer = (_, socket) => {
      socket.write(`HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n${head}`);
      if (close === "end") socket.end();
      else setTimeout(() => socket.resetAndDestroy(), 10);
      return null;
    };
    const { record, asked } = await beside("/short", odd, {}, { retry: { max: 1 } });
    assert.deepEqual([record.outcome, record.error?.code, record.attempts], ["failed", "reset", 2]);
    assert.equal(asked, 2);
  });
}

test("F015 a gzip body cut before its end is retried and then failed", async () => {
  const whole = gzipSync(`<a href="/in">i</a>${"text ".repeat(2_000)}`);
  const { record, asked } = await beside("/short", page(whole.subarray(0, whole.length - 20), ["Content-Encoding: gzip"]), {}, { retry: { max: 1 } });
  assert.deepEqual([record.outcome, record.error?.code, asked], ["failed", "reset", 2]);
});

/** Heads that browsers read. */
const oddHeads: Readonly<Record<string, string>> = {
  "F016 a header line without a colon": 'Content-Type: text/html\r\nthis line has no colon\r\nContent-Length: 19\r\n\r\n<a href="/in">i</a>',
  "F016 a blank before the colon": 'Content-Type : text/html\r\nContent-Length: 19\r\n\r\n<a href="/in">i</a>',
  "F016 a name with a character that names have not": 'Content-Type: text/html\r\nX (y): 1\r\nContent-Length: 19\r\n\r\n<a href="/in">i</a>',
  "F016 a folded line": 'Content-Type: text/html;\r\n charset=utf-8\r\nContent-Length: 19\r\n\r\n<a href="/in">i</a>',
  "F016 bytes above 127 in a value": 'Content-Type: text/html\r\nX: \xe9\xff\r\nContent-Length: 19\r\n\r\n<a href="/in">i</a>',
  "F018 a length beside a transfer coding":
    'Content-Type: text/html\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n13\r\n<a href="/in">i</a>\r\n0\r\n\r\n',
  "F018 two equal lengths": 'Content-Type: text/html\r\nContent-Length: 19\r\nContent-Length: 19\r\n\r\n<a href="/in">i</a>',
};
for (const [name, rest] of Object.entries(oddHeads)) {
  test(`${name} does not hide the page`, async () => {
    const { at } = await beside("/h", `HTTP/1.1 200 OK\r\n${rest}`, { "/in": "<p>in" });
    assert.equal(at("/in").status, 200);
  });
}

test("F017 header lines that end in a bare line feed are read", async () => {
  const { at } = await beside("/lf", `HTTP/1.1 200 OK\nContent-Type: text/html\nContent-Length: 19\n\n<a href="/in">i</a>`, { "/in": "<p>in" });
  assert.equal(at("/in").status, 200);
});

test("F018 a connection on which both lengths were given is not used again", async () => {
  const { requests } = await beside(
    "/h",
    `HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n${oddHeads["F018 a length beside a transfer coding"]}`,
    { "/in": "<p>in" },
    { perHost: { concurrency: 1 } },
  );
  const odd = requests.find(({ target }) => target === "/h");
  assert.ok(!requests.some(({ connection, turn }) => connection === odd?.connection && turn > odd.turn));
});

test("F016 an answer that is not HTTP at all fails its page only", async () => {
  for (const bytes of ["SSH-2.0-OpenSSH_9\r\n", "\0\0\0\0\r\n\r\n", "HTTP/x 200 OK\r\n\r\n", "HTTP/1.1 abc OK\r\n\r\n", "<html>just a page"]) {
    const { record } = await beside("/h", closing(bytes), {}, { retry: { max: 1 } });
    assert.deepEqual([record.outcome, record.status], ["failed", null], bytes);
    assert.ok(["protocol", "reset"].includes(record.error?.code ?? ""), bytes);
  }
});

test("F019 header blocks of 17 and 60 KB are read", async () => {
  for (const kilobytes of [17, 60]) {
    const { record } = await beside("/big", page("<p>big", [`Content-Security-Policy: ${"x".repeat(kilobytes * 1024)}`]));
    assert.deepEqual([record.status, record.bytes], [200, 6]);
  }
});
