/** Bodies over the wire: codings, limits, unwanted types, endless and slow ones. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync, zstdCompressSync } from "node:zlib";
import { page, type RawServer, type Script, startRawServer } from "./raw-server.ts";
import { bodyOf, exchangeFor, fetchOnce, openFetcher } from "./trial.ts";

const HTML = '<a href="/in">in</a>';

async function serve(answer: Script, options: Parameters<typeof fetchOnce>[1] = {}, more: Parameters<typeof fetchOnce>[2] = {}) {
  await using server = await startRawServer(answer);
  const outcome = await fetchOnce(`${server.origin}/x`, options, more);
  await server.idle();
  return outcome;
}

test("F009 gzip is announced but the body is plain: it is kept as it is", async () => {
  for (const coding of ["gzip", "x-gzip", "deflate", "br", "zstd"]) {
    assert.equal(bodyOf(await serve(() => page(`<html>${HTML}`, [`Content-Encoding: ${coding}`]))), `<html>${HTML}`, coding);
  }
  const utf16 = Buffer.from(`\ufeff${HTML}`, "utf16le");
  assert.equal(bodyOf(await serve(() => page(utf16, ["Content-Encoding: gzip"]))), utf16.toString());
});

test("what is neither plain nor coded as announced is a decode failure", async () => {
  for (const coding of ["gzip", "deflate", "br", "zstd"]) {
    const outcome = await serve(() => page(Buffer.from([0x8a, 0x00, 0xff, 0x13, 0x37, 0x00, 0x01, 0x99, 0x05, 0x02]), [`Content-Encoding: ${coding}`]));
    assert.ok(outcome.kind === "failed", `${coding}: ${bodyOf(outcome)}`);
    assert.match(outcome.code, /^(decode|reset)$/, coding);
    assert.equal(outcome.status, 200);
    assert.equal(outcome.response?.wireBytes, 10);
  }
});

test("F010 several layers are removed, listed on one line or several; more than five are refused", async () => {
  const twice = gzipSync(gzipSync(HTML));
  assert.equal(bodyOf(await serve(() => page(twice, ["Content-Encoding: gzip, gzip"]))), HTML);
  assert.equal(bodyOf(await serve(() => page(twice, ["Content-Encoding: gzip", "Content-Encoding: GZIP"]))), HTML);
  assert.equal(bodyOf(await serve(() => page(brotliCompressSync(deflateSync(HTML)), ["Content-Encoding: deflate, identity,, br"]))), HTML);
  const outcome = await serve(() => page(twice, ["Content-Encoding: gzip,gzip,gzip,gzip,gzip,gzip"]));
  assert.ok(outcome.kind === "failed");
  assert.equal(outcome.code, "decode");
});

test("F011 deflate is read with and without its zlib wrapper", async () => {
  assert.equal(bodyOf(await serve(() => page(deflateRawSync(HTML), ["Content-Encoding: deflate"]))), HTML);
  assert.equal(bodyOf(await serve(() => page(deflateSync(HTML), ["Content-Encoding: deflate"]))), HTML);
});

test("F012 a coding nobody knows is a mislabel, a known one that is not supported a failure", async () => {
  for (const coding of ["UTF-8", "none", "", "binary", "chunked"])
    assert.equal(bodyOf(await serve(() => page(HTML, [`Content-Encoding: ${coding}`]))), HTML, coding);
  for (const coding of ["compress", "x-compress", "dcb"]) {
    const outcome = await serve(() => page(HTML, [`Content-Encoding: ${coding}`]));
    assert.ok(outcome.kind === "failed");
    assert.match(`${outcome.code} ${outcome.message}`, new RegExp(`^decode .*${coding}`));
    assert.equal(outcome.retryable, false);
  }
});

test("each coding is read, small and large, and wire bytes are those that came", async () => {
  const large = Array.from({ length: 60_000 }, (_, i) => `line ${i * 7919} of many\n`).join("");
  for (const [coding, compress] of Object.entries({
    gzip: gzipSync,
    deflate: deflateSync,
    br: (text: string) => brotliCompressSync(text, { params: { 1: 4 } }),
    zstd: zstdCompressSync,
  })) {
    for (const text of ["", HTML, large]) {
      const wire = compress(text);
      const outcome = await serve(() => page(wire, [`Content-Encoding: ${coding}`]));
      assert.equal(bodyOf(outcome), text, `${coding} ${text.length}`);
      assert.ok(outcome.kind === "fetched");
      assert.equal(outcome.response.wireBytes, wire.byteLength);
    }
  }
});

test("an empty body needs no coding", async () => {
  for (const coding of ["gzip", "br", "deflate", "zstd"]) assert.equal(bodyOf(await serve(() => page("", [`Content-Encoding: ${coding}`]))), "");
});

test("bytes behind the end of a gzip stream are ignored", async () => {
  const wire = Buffer.concat([gzipSync(HTML), Buffer.from("trailing rubbish")]);
  assert.equal(bodyOf(await serve(() => page(wire, ["Content-Encoding: gzip"]))), HTML);
  assert.equal(bodyOf(await serve(() => page(Buffer.concat([gzipSync("one "), gzipSync("two")]), ["Content-Encoding: gzip"]))), "one two");
});

test("a zstd body of several frames is read to its end, past frames without data, and one that is cut is not whole", async () => {
  const frames = [zstdCompressSync(HTML), zstdCompressSync("x".repeat(700_000)), zstdCompressSync("", { params: { 201: 1 } }), zstdCompressSync("end")];
  const skippable = Buffer.from([0x5a, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3]);
  const whole = `${HTML}${"x".repeat(700_000)}end`;
  const zstd = (...wire: Uint8Array[]) => serve(() => page(Buffer.concat(wire), ["Content-Encoding: zstd"]));
  assert.equal(bodyOf(await zstd(...frames)), whole);
  assert.equal(bodyOf(await zstd(skippable, frames[0]!, skippable, ...frames.slice(1), skippable)), whole); // four frames are there
  assert.equal(bodyOf(await zstd(skippable, frames[0]!)), HTML);
  assert.equal(bodyOf(await zstd(frames[0]!, Buffer.from("trailing rubbish"))), HTML);
  const cut = await zstd(frames[0]!, zstdCompressSync("y".repeat(99)).subarray(0, -3));
  assert.ok(cut.kind === "failed", bodyOf(cut));
  assert.equal(cut.code, "reset");
  const limited = await serve(() => page(Buffer.concat(frames), ["Content-Encoding: zstd"]), { maxBodySize: HTML.length + 10 });
  assert.equal(bodyOf(limited), `${HTML}xxxxxxxxxx`);
  assert.ok(limited.kind === "fetched" && limited.response.truncated);
});

test("gzip that is called deflate is read, and the other way round", async () => {
  for (const text of [HTML, HTML.repeat(40_000)]) {
    assert.equal(bodyOf(await serve(() => page(gzipSync(text), ["Content-Encoding: deflate"]))), text);
    assert.equal(bodyOf(await serve(() => page(deflateSync(text), ["Content-Encoding: gzip"]))), text);
  }
});

test("a compressed body cut short is a reset, with what could be read", async () => {
  const text = Array.from({ length: 3_000 }, (_, i) => `line ${i * 7919}\n`).join("");
  for (const [coding, compress] of Object.entries({ gzip: gzipSync, deflate: deflateSync, br: brotliCompressSync, zstd: zstdCompressSync })) {
    const wire = compress(text);
    const outcome = await serve(() => page(wire.subarray(0, wire.byteLength - 9), [`Content-Encoding: ${coding}`]));
    assert.ok(outcome.kind === "failed", coding);
    assert.deepEqual([outcome.code, outcome.retryable, outcome.status], ["reset", true, 200]);
  }
});

test("F013 a bomb is inflated up to the limit only, flagged, and memory stays flat", async () => {
  const bombs = [
    gzipSync(Buffer.alloc(60_000_000, 0x20)),
    brotliCompressSync(Buffer.alloc(40_000_000, 0x20), { params: { 1: 3 } }),
    zstdCompressSync(Buffer.alloc(60_000_000, 0x20)),
  ];
  for (const [i, wire] of bombs.entries()) {
    const coding = ["gzip", "br", "zstd"][i];
    global.gc?.();
    const before = process.memoryUsage.rss();
    const outcome = await serve(() => page(wire, [`Content-Encoding: ${coding}`]));
    assert.ok(outcome.kind === "fetched");
    assert.equal(outcome.response.body.byteLength, 10_000_000);
    assert.equal(outcome.response.truncated, true);
    assert.ok(process.memoryUsage.rss() - before < 120_000_000, coding);
  }
});

test("a bomb inside a bomb stops too", async () => {
  const wire = gzipSync(gzipSync(Buffer.alloc(60_000_000, 0x20)));
  const outcome = await serve(() => page(wire, ["Content-Encoding: gzip, gzip"]), { maxBodySize: 1_000_000 });
  assert.ok(outcome.kind === "fetched");
  assert.deepEqual([outcome.response.body.byteLength, outcome.response.truncated], [1_000_000, true]);
});

test("a body over the limit is cut, flagged, and its connection closed; one of exactly the limit is whole", async () => {
  const cut = await serve(() => page("x".repeat(100_001)), { maxBodySize: 100_000 });
  assert.ok(cut.kind === "fetched");
  assert.deepEqual([cut.response.body.byteLength, cut.response.truncated], [100_000, true]);
  const whole = await serve(() => page("x".repeat(100_000)), { maxBodySize: 100_000 });
  assert.ok(whole.kind === "fetched");
  assert.deepEqual([whole.response.body.byteLength, whole.response.truncated], [100_000, false]);
});

test("an endless page is cut at the limit", async () => {
  const outcome = await serve(pour("text/html"), { maxBodySize: 300_000 });
  assert.ok(outcome.kind === "fetched");
  assert.deepEqual([outcome.response.body.byteLength, outcome.response.truncated], [300_000, true]);
});

test("maxBytes of an exchange goes before the limits and the types of the crawl", async () => {
  const outcome = await serve(() => page("User-agent: *\n".repeat(100), ["Content-Type: image/png"]), {}, { maxBytes: 500 });
  assert.ok(outcome.kind === "fetched");
  assert.deepEqual([outcome.response.body.byteLength, outcome.response.truncated, outcome.response.bodySkipped], [500, true, false]);
});

test("F020 a stream of an unwanted type is left after its head; one record, and the connection is closed", async () => {
  const outcome = await serve(pour("audio/mpeg"));
  assert.ok(outcome.kind === "fetched");
  assert.deepEqual([outcome.response.bodySkipped, outcome.response.body.byteLength, outcome.response.contentType], [true, 0, "audio/mpeg"]);
});

test("a small unwanted body is read away and the connection kept, a large one costs the connection", async () => {
  for (const [size, accepted] of [
    [10_000, 1],
    [900_000, 2],
  ] as const) {
    await using server = await startRawServer((request) => (request.target === "/img" ? page("p".repeat(size), ["Content-Type: image/png"]) : page(HTML)));
    await using fetcher = openFetcher();
    const outcome = await fetcher.fetch(exchangeFor(`${server.origin}/img`));
    assert.ok(outcome.kind === "fetched");
    assert.equal(outcome.response.bodySkipped, true);
    assert.equal(bodyOf(await fetcher.fetch(exchangeFor(`${server.origin}/`))), HTML);
    assert.equal(server.accepted(), accepted);
  }
});

test("F021 a body that drips is stopped by the total time", async () => {
  await using server = await startRawServer((_, socket) => {
    socket.write("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n");
    const drip = setInterval(() => socket.write("."), 20);
    socket.on("close", () => clearInterval(drip));
    return null;
  });
  const outcome = await timed(server, { timeoutMs: 400 });
  assert.deepEqual([outcome.code, outcome.retryable, outcome.status, outcome.answer?.kind], ["timeout", true, 200, "pushback"]);
  await server.idle();
});

test("an answer that never begins is stopped by the total time", async () => {
  await using server = await startRawServer(() => null);
  const outcome = await timed(server, { timeoutMs: 200 });
  assert.deepEqual([outcome.code, outcome.retryable, outcome.status, outcome.answer?.kind], ["timeout", true, null, "pushback"]);
  assert.ok(outcome.sinceStartMs !== null && outcome.sinceStartMs <= outcome.durationMs);
  await server.idle();
});

async function timed(server: RawServer, options: { timeoutMs: number }) {
  const started = performance.now();
  const outcome = await fetchOnce(`${server.origin}/x`, options);
  assert.ok(performance.now() - started < options.timeoutMs + 5_000);
  assert.ok(outcome.kind === "failed");
  return outcome;
}

/** Sends for ever, as fast as it is read. */
function pour(type: string): Script {
  return (_, socket) => {
    socket.write(`HTTP/1.1 200 OK\r\nContent-Type: ${type}\r\n\r\n`);
    const piece = Buffer.alloc(16_384, 0x61);
    const more = () => {
      while (!socket.destroyed && socket.write(piece));
    };
    socket.on("drain", more);
    more();
    return null;
  };
}
