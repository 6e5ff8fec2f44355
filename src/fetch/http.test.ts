/** What one exchange makes of answers that servers really give. The F numbers are reports from the field. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { FetchOutcome } from "../core/outcome.ts";
import { page, type Script, startRawServer } from "./raw-server.ts";
import { bodyOf, exchangeFor, fetchOnce, openFetcher } from "./trial.ts";

const OK = page("<p>well");

/** Fetches `paths` one after the other with one fetcher, then `/ok`, which must be well: nothing an answer does may wedge the connections. */
async function visit(
  script: Script,
  paths: readonly string[],
  options: Parameters<typeof openFetcher>[0] = {},
): Promise<{ outcomes: FetchOutcome[]; targets: string[] }> {
  await using server = await startRawServer((request, socket) => (request.target === "/ok" ? OK : script(request, socket)));
  await using fetcher = openFetcher(options);
  const outcomes: FetchOutcome[] = [];
  for (const path of paths) {
    outcomes.push(await fetcher.fetch(exchangeFor(server.origin + path)));
    assert.equal(bodyOf(await fetcher.fetch(exchangeFor(`${server.origin}/ok`))), "<p>well", `a healthy page after ${path}`);
  }
  return { outcomes, targets: server.requests.map((request) => request.target).filter((target) => target !== "/ok") };
}

async function visitOne(script: Script, options: Parameters<typeof openFetcher>[0] = {}): Promise<FetchOutcome> {
  const { outcomes } = await visit(script, ["/x"], options);
  return outcomes[0]!; // one path, one outcome
}

function failureOf(outcome: FetchOutcome): string {
  return outcome.kind === "failed" ? `${outcome.code}${outcome.retryable ? " retryable" : ""} ${outcome.status}` : outcome.kind;
}

test("a page is fetched with its status, headers, type and sizes", async () => {
  const outcome = await visitOne(() => page("<p>hello", ['ETag: "a"', "X-Two: 1", "X-Two: 2"]));
  assert.equal(outcome.kind, "fetched");
  assert.ok(outcome.kind === "fetched");
  const { response } = outcome;
  assert.equal(response.status, 200);
  assert.equal(response.contentType, "text/html");
  assert.equal(response.headers.get("etag"), '"a"');
  assert.equal(response.headers.get("x-two"), "1, 2");
  assert.deepEqual(response.headers.all("x-two"), ["1", "2"]);
  assert.equal(response.headers.get("constructor"), null);
  assert.equal(response.wireBytes, 8);
  assert.equal(response.truncated, false);
  assert.equal(response.bodySkipped, false);
  assert.equal(outcome.answer?.kind, "good");
  assert.deepEqual(outcome.host, { local: true });
  assert.ok(outcome.sinceStartMs !== null && outcome.sinceStartMs >= 0 && outcome.durationMs >= outcome.sinceStartMs);
});

test("the request says who asks and what is understood, without a Referer", async () => {
  await using server = await startRawServer(() => OK);
  await fetchOnce(`${server.origin}/a`, { userAgent: "probe/2 (+https://probe.example)" });
  const { headers } = server.requests[0]!; // one request was made
  assert.equal(headers.get("host"), `127.0.0.1:${server.port}`);
  assert.equal(headers.get("user-agent"), "probe/2 (+https://probe.example)");
  assert.equal(headers.get("accept-encoding"), "gzip, deflate, br, zstd");
  assert.equal(headers.get("accept-language"), "en");
  assert.equal(headers.get("connection"), "keep-alive");
  assert.match(headers.get("accept") ?? "", /^text\/html/);
  assert.equal(headers.has("referer"), false);
});

test("F004 bytes of a Location arrive as Latin-1, one character a byte", async () => {
  const outcome = await visitOne(() => "HTTP/1.1 302 Found\r\nLocation: /\xd8\xa7\xd8\xb9\r\nContent-Length: 0\r\n\r\n");
  assert.ok(outcome.kind === "redirect");
  assert.equal(outcome.location, "/\xd8\xa7\xd8\xb9");
});

for (const location of ["///127.0.0.1:1/b", "http://127.0.0.1:1?test=1", "https://:443/"]) {
  test(`F003 F005 F006 the Location ${location} is handed on as it is`, async () => {
    const outcome = await visitOne(() => `HTTP/1.1 301 Moved\r\nLocation: ${location}\r\nContent-Length: 0\r\n\r\n`);
    assert.ok(outcome.kind === "redirect");
    assert.equal(outcome.location, location);
    assert.equal(outcome.response.status, 301);
  });
}

test("F007 a 301 without a Location, or with a blank one, is the answer", async () => {
  for (const lines of [[], ["Location:"], ["Location:   "]]) {
    const outcome = await visitOne(() => page("<a href=/x>", lines, "301 Moved Permanently"));
    assert.ok(outcome.kind === "fetched");
    assert.equal(outcome.response.status, 301);
    assert.equal(bodyOf(outcome), "<a href=/x>");
  }
});

test("300 and 304 are answers even with a Location", async () => {
  for (const status of ["300 Multiple Choices", "304 Not Modified"]) {
    const outcome = await visitOne(() => `HTTP/1.1 ${status}\r\nLocation: /y\r\nContent-Length: 0\r\n\r\n`);
    assert.equal(outcome.kind, "fetched");
  }
});

test("F004 byte A0 at the end of a Location is half a letter, not a blank", async () => {
  const outcome = await visitOne(() => "HTTP/1.1 302 Found\r\nLocation:  /voil\xc3\xa0 \t\r\nContent-Length: 0\r\n\r\n");
  assert.ok(outcome.kind === "redirect");
  assert.equal(outcome.location, "/voil\xc3\xa0");
});

test("a control in a Location is written as the URL parser writes it", async () => {
  const outcome = await visitOne(() => "HTTP/1.1 302 Found\r\nLocation: /a\x01b\r\nContent-Length: 0\r\n\r\n");
  assert.ok(outcome.kind === "redirect");
  assert.equal(outcome.location, "/a%01b");
});

test("of several Location lines the first is followed", async () => {
  const outcome = await visitOne(() => "HTTP/1.1 307 T\r\nLocation: /one\r\nLocation: /two\r\nContent-Length: 0\r\n\r\n");
  assert.ok(outcome.kind === "redirect");
  assert.equal(outcome.location, "/one");
});

test("F008 the body of a redirect is not used, so nothing about it fails the hop", async () => {
  const bodies: readonly Script[] = [
    () => page("moved", ["Location: /ok", "Content-Encoding: gzip"], "302 Found"),
    () => page("moved", ["Location: /ok", "Content-Encoding: compress"], "302 Found"),
    (_, socket) => void socket.end("HTTP/1.1 302 Found\r\nLocation: /ok\r\nContent-Length: 900\r\n\r\nshort"),
    (_, socket) => void socket.end("HTTP/1.1 302 Found\r\nLocation: /ok\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nshort\r\n"),
    () => page("x".repeat(200_000), ["Location: /ok"], "302 Found"),
  ];
  for (const script of bodies) {
    const outcome = await visitOne(script);
    assert.ok(outcome.kind === "redirect");
    assert.equal(outcome.location, "/ok");
    assert.equal(outcome.response.body.byteLength, 0);
  }
});

test("F014 F015 a body that ends before its time is a reset to be tried again, never a page", async () => {
  const scripts: readonly Script[] = [
    (_, socket) => void socket.end('HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 5000\r\n\r\n<a href="/in">'),
    (_, socket) => void socket.end('HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\nContent-Length: 5000\r\n\r\n<a href="/in">'),
    (_, socket) => void socket.end('HTTP/1.0 200 OK\r\nContent-Type: text/html\r\nContent-Length: 5000\r\n\r\n<a href="/in">'),
    (_, socket) => void socket.end('HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\ne\r\n<a href="/in">\r\n'),
    (_, socket) =>
      void socket.end('HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\ne\r\n<a href="/in">\r\n'),
    (_, socket) => void socket.end('HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n50\r\n<a href="/in">'),
    (_, socket) => void socket.write('HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 50\r\n\r\n<a href="/in">', () => socket.resetAndDestroy()),
  ];
  for (const script of scripts) {
    const outcome = await visitOne(script);
    assert.equal(failureOf(outcome), "reset retryable 200");
    assert.ok(outcome.kind === "failed");
    assert.equal(outcome.response?.wireBytes, 14);
    assert.equal(Buffer.from(outcome.response?.body ?? []).toString(), '<a href="/in">');
  }
});

test("an answer that ends inside its head, or never begins, is a reset", async () => {
  for (const head of ["", "HTT", "HTTP/1.1 200 OK\r\nContent-Ty", "HTTP/1.1 200 OK\r\n"]) {
    assert.equal(failureOf(await visitOne((_, socket) => void socket.end(head))), "reset retryable null", JSON.stringify(head));
  }
});

test("F016 F017 F018 heads that break the grammar are read as browsers read them, and the next page is well", async () => {
  const cases: readonly (readonly [string, string])[] = [
    ["no colon", "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nthis line has no colon\r\nContent-Length: 5\r\n\r\nhello"],
    ["controls in a value", "HTTP/1.1 200 OK\r\nX-Odd: a\x01b\x7f\x1b[0m\r\nContent-Type: text/html\r\nContent-Length: 5\r\n\r\nhello"],
    ["a name with blanks", "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nmy header: x\r\nContent-Length: 5\r\n\r\nhello"],
    ["no name", "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n: x\r\nContent-Length: 5\r\n\r\nhello"],
    ["blank before the colon", "HTTP/1.1 200 OK\r\nContent-Type : text/html\r\nContent-Length : 5\r\n\r\nhello"],
    ["bare LF", "HTTP/1.1 200 OK\nContent-Type: text/html\nContent-Length: 5\n\nhello"],
    ["both line ends", "HTTP/1.1 200 OK\r\nContent-Type: text/html\nContent-Length: 5\n\r\nhello"],
    ["a folded line", "HTTP/1.1 200 OK\r\nX-Long: a\r\n  b\r\nContent-Type: text/html\r\nContent-Length: 5\r\n\r\nhello"],
    ["both lengths", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"],
    ["equal lengths", "HTTP/1.1 200 OK\r\nContent-Length: 5, 5\r\nContent-Length: 5  \r\n\r\nhello"],
    ["a list of equal lengths", "HTTP/1.1 200 OK\r\nContent-Length: 5, 5\r\n\r\nhello"],
    ["another version", "HTTP/1.2 200 OK\r\nContent-Length: 5\r\n\r\nhello"],
    ["a version without a point", "HTTP/2 200\r\nContent-Length: 5\r\n\r\nhello"],
    ["a radio server's status line", "ICY 200 OK\r\nContent-Type: text/html\r\n\r\nhello"],
    ["lower case and two blanks", "http/1.1  200 OK\nContent-Length: 5\n\nhello"],
    ["an interim answer", "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"],
  ];
  for (const [name, bytes] of cases) {
    assert.equal(bodyOf(await visitOne((_, socket) => void socket.end(bytes, "latin1"))), "hello", name);
    const dripped = await visitOne((_, socket) => {
      for (const byte of bytes) socket.write(byte, "latin1");
      socket.end();
      return null;
    });
    assert.equal(bodyOf(dripped), "hello", `${name}, byte by byte`);
  }
});

test("blanks behind the size of a chunk are read over, as browsers do", async () => {
  for (const blanks of [" ", "     "]) {
    const head = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n";
    // The second answer on the connection too.
    const { outcomes } = await visit(() => `${head}5${blanks}\r\nhello\r\n0${blanks}\r\n\r\n`, ["/1", "/2"]);
    assert.deepEqual(outcomes.map(bodyOf), ["hello", "hello"]);
  }
});

test("a redirect or an unwanted body that hangs is settled by its head soon after it, and its connection is closed", async () => {
  for (const head of [
    "302 Found\r\nLocation: /ok\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nshort\r\n",
    "302 Found\r\nLocation: /ok\r\nContent-Length: 10\r\n\r\nshort",
    "200 OK\r\nContent-Type: image/png\r\nContent-Length: 10\r\n\r\nshort",
  ]) {
    await using server = await startRawServer(() => `HTTP/1.1 ${head}`);
    await using fetcher = openFetcher({ timeoutMs: 60_000 });
    const outcome = await fetcher.fetch(exchangeFor(`${server.origin}/x`));
    assert.equal(outcome.kind, head.startsWith("302") ? "redirect" : "fetched");
    assert.equal(outcome.answer?.kind, "good");
    assert.ok(outcome.durationMs < 20_000, `${outcome.durationMs} ms of the 60 s there are`);
    await server.idle();
  }
});

test("what no server can mean fails alone", async () => {
  for (const head of [
    "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!",
    "HTTP/1.1 200 OK\r\nContent-Length: 5, 6\r\n\r\nhello!",
    "HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nhello",
    "HTTP/1.1 200 OK\r\nX: a\0b\r\nContent-Length: 5\r\n\r\nhello",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nhello",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nhello\r\n",
    "HTTP/1.1 99 Odd\r\nContent-Length: 5\r\n\r\nhello",
    "HTTP/1.1 000 Odd\r\nContent-Length: 5\r\n\r\nhello",
    "HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\nhello",
    "HTTP/31 200 OK\r\n\r\nhello",
    "HTTP/1.1 2000 OK\r\n\r\nhello",
    "HTTP/1.1 20 OK\r\n\r\nhello",
    "SSH-2.0-OpenSSH_9.2p1\r\n",
    "<html>hello</html>",
    "\x15\x03\x01\x00\x02\x02\x16",
  ]) {
    assert.match(failureOf(await visitOne((_, socket) => void socket.end(head, "latin1"))), /^(protocol|reset)/, head);
  }
});

test("F019 a header block of 60 KB is read; one without end is refused", async () => {
  for (const size of [17_000, 60_000]) {
    assert.equal(bodyOf(await visitOne(() => page("big", [`Content-Security-Policy: ${"a".repeat(size)}`]))), "big");
  }
  const outcome = await visitOne((_, socket) => {
    socket.write("HTTP/1.1 200 OK\r\n");
    for (let i = 0; i < 40; i++) socket.write(`X-${i}: ${"y".repeat(10_000)}\r\n`);
    return null;
  });
  assert.equal(failureOf(outcome), "protocol null");
});

test("F025 999 is kept as status and counts as a passing failure", async () => {
  const outcome = await visitOne(() => page("denied", [], "999 Request denied"));
  assert.equal(failureOf(outcome), "http retryable 999");
  assert.ok(outcome.kind === "failed");
  assert.equal(outcome.answer?.kind, "none");
  assert.equal(outcome.response?.wireBytes, 6);
});

test("F026 a 304 nobody asked for has an empty body and does not wait for one", async () => {
  const outcome = await visitOne(() => 'HTTP/1.1 304 Not Modified\r\nETag: "a"\r\n\r\n');
  assert.ok(outcome.kind === "fetched");
  assert.equal(outcome.response.status, 304);
  assert.equal(outcome.response.body.byteLength, 0);
});

test("401, 403, 404, 410 and 451 are pages; 408, 425, 429 and 5xx are failures to be tried again", async () => {
  for (const status of [200, 203, 204, 206, 401, 403, 404, 410, 418, 451]) {
    const outcome = await visitOne(() => page(status === 204 ? "" : "x", [], `${status} S`));
    assert.equal(outcome.kind, "fetched", String(status));
    assert.equal(outcome.answer?.kind, "good");
  }
  for (const [status, code, answer] of [
    [408, "http", "good"],
    [425, "http", "good"],
    [429, "rate-limited", "pushback"],
    [500, "http", "none"],
    [502, "http", "none"],
    [503, "http", "pushback"],
    [599, "http", "none"],
  ] as const) {
    const outcome = await visitOne(() => page("sorry", [], `${status} S`));
    assert.equal(failureOf(outcome), `${code} retryable ${status}`);
    assert.equal(outcome.answer?.kind, answer, String(status));
    assert.ok(outcome.kind === "failed");
    assert.equal(Buffer.from(outcome.response?.body ?? []).toString(), "sorry");
  }
});

test("F023 F024 Retry-After comes with the failure: seconds, a date, a day; 503 with it is rate-limited", async () => {
  const wish = async (status: string, value: string) => {
    const outcome = await visitOne(() => page("later", [`Retry-After: ${value}`], status));
    assert.ok(outcome.kind === "failed");
    return [outcome.code, outcome.retryAfterMs] as const;
  };
  assert.deepEqual(await wish("429 Too Many Requests", "2"), ["rate-limited", 2_000]);
  assert.deepEqual(await wish("503 Service Unavailable", "86400"), ["rate-limited", 86_400_000]);
  assert.deepEqual(await wish("500 Oh", "3"), ["http", 3_000]);
  assert.deepEqual(await wish("429 Too Many Requests", "soon"), ["rate-limited", null]);
  assert.deepEqual(await wish("429 Too Many Requests", "1, 2"), ["rate-limited", 2_000]);
  assert.deepEqual(await wish("429 Too Many Requests", "1\r\nRetry-After: 3"), ["rate-limited", 3_000]);
  const [, dated] = await wish("429 Too Many Requests", new Date(Date.now() + 60_000).toUTCString());
  assert.ok(dated !== null && dated > 30_000 && dated <= 61_000);
});

test("interim answers are not the answer", async () => {
  const outcome = await visitOne(() => `HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\nHTTP/1.1 102 Wait\r\n\r\n${page("<p>then").toString("latin1")}`);
  assert.equal(bodyOf(outcome), "<p>then");
});

test("F033 F035 F038 request targets go out byte for byte", async () => {
  const targets = [
    "/x%E2%84%A2-y",
    "/m/one%252Ftwo",
    "/p%2Fq",
    "/100%",
    "/i.php?/news/=/7/",
    "/i.php?a",
    "/i.php?b=2&a=1",
    "/i.php?x=1&x=1",
    "/a%5Cb",
    "//page-a",
    "/?",
    "/;a=b?c=%zz'\"{}|",
  ];
  const { targets: seen } = await visit(() => OK, targets);
  assert.deepEqual(seen, targets);
});

test("what is sent may be spelt differently from the canonical URL", async () => {
  await using server = await startRawServer(() => OK);
  await fetchOnce(`${server.origin}/u%C3%A9`, {}, { rest: { sentAs: `${server.origin}/u%c3%a9?q=%e9#frag` } });
  await fetchOnce(`${server.origin}/`, {}, { rest: { sentAs: `${server.origin}?test=1` } });
  assert.deepEqual(
    server.requests.map((request) => request.target),
    ["/u%c3%a9?q=%e9", "/?test=1"],
  );
});

test("F041 hosts with underscores, odd hyphens or a trailing dot are asked for by that name", async () => {
  await using server = await startRawServer(() => OK);
  const asked: string[] = [];
  for (const name of ["a_b.example", "hg--69.example", "a.example."]) {
    const outcome = await fetchOnce(`http://${name}:${server.port}/`, {
      lookup: (hostname, callback) => {
        asked.push(hostname);
        callback(null, [{ address: "127.0.0.1", family: 4 }]);
      },
    });
    assert.equal(bodyOf(outcome), "<p>well");
  }
  assert.deepEqual(asked, ["a_b.example", "hg--69.example", "a.example."]);
  assert.deepEqual(
    server.requests.map((request) => request.headers.get("host")),
    asked.map((name) => `${name}:${server.port}`),
  );
});
