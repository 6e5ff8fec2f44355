/** Bodies as programs, editors and systems make them: charsets, byte order marks, line ends, the freedoms of multipart. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { gzipSync } from "node:zlib";
import { bench } from "./harness.ts";

const WANTED = ["http://a.example/", "http://b\u00fccher.example/\u00e4"];
const TEXT = `${WANTED.join("\n")}\n`;
const swapped = (bytes: Buffer) => Buffer.from(bytes).swap16();
const utf16 = (text: string) => Buffer.from(text, "utf16le");
const file = (bytes: Buffer, head = 'Content-Disposition: form-data; name="urls"; filename="a.txt"') =>
  Buffer.concat([Buffer.from(`--X Y\r\n${head}\r\n\r\n`), bytes, Buffer.from("\r\n--X Y--\r\n")]);
const FORM = 'multipart/form-data; boundary="X Y"';
const NAMED = 'Content-Disposition: form-data; name="urls"';

for (const [name, type, body] of [
  ["UTF-8", "text/plain; charset=UTF-8", Buffer.from(TEXT)],
  ["UTF-8 with a mark and CRLF", "text/plain", Buffer.from(`\ufeff${TEXT.replaceAll("\n", "\r\n")}`)],
  ["line ends of old", "text/plain", Buffer.from(TEXT.replaceAll("\n", "\r"))],
  ["Latin 1, said", "text/plain;charset=iso-8859-1", Buffer.from(TEXT, "latin1")],
  ["UTF-16, said", 'text/plain; charset="utf-16le"', utf16(TEXT)],
  ["UTF-16 with a mark", "text/plain", utf16(`\ufeff${TEXT}`)],
  ["UTF-16, the large end first, with a mark", "text/plain", swapped(utf16(`\ufeff${TEXT}`))],
  ["a file in UTF-16 with a mark", FORM, file(utf16(`\ufeff${TEXT}`))],
  ["a file with a mark and CRLF", FORM, file(Buffer.from(`\ufeff${TEXT.replaceAll("\n", "\r\n")}`))],
  ["a field without a file name", FORM, file(Buffer.from(TEXT), NAMED)],
  ["a name without quotes", FORM, file(Buffer.from(TEXT), "content-disposition: form-data; name=urls")],
  ["a part with a type and an encoding", FORM, file(Buffer.from(TEXT), `Content-Type: text/csv\r\n${NAMED}\r\nContent-Transfer-Encoding: binary`)],
  ["blanks, comments and blank lines", "text/plain", Buffer.from(`# a list\n\n  ${TEXT.replace("\n", " \n\n\t# more\n")}\n\n`)],
  ["no type at all", "", Buffer.from(TEXT)],
  ["before and behind the parts", FORM, Buffer.concat([Buffer.from("preamble\r\n"), file(Buffer.from(TEXT)), Buffer.from("epilogue")])],
] as const)
  test(`a body of ${name}`, async () => {
    await using at = await bench();
    for (const cut of [body.length, 1]) {
      async function* pieces(): AsyncGenerator<string> {
        for (let from = 0; from < body.length; from += cut) {
          // `as`: the stream takes bytes as well as text.
          yield body.subarray(from, from + cut) as unknown as string;
          if (from % 50 === 0) await new Promise((next) => setImmediate(next));
        }
      }
      const { status, json, text } = await at.ask("POST", "/", pieces(), type === "" ? {} : { "content-type": type });
      assert.equal(status, 200, text);
      assert.deepEqual([json.urls, json.rejected], [WANTED, undefined]);
    }
  });

test("a charset that nobody knows is refused before the body is read", async () => {
  await using at = await bench();
  const { status, json } = await at.ask("POST", "/", TEXT, { "content-type": "text/plain; charset=klingon" });
  assert.deepEqual([status, json.title], [415, "Unsupported Media Type"]);
  assert.equal(at.jobs.all.length, 0);
});

test("JSON that says it is a form has the limit of JSON", async () => {
  await using at = await bench({ limits: { jsonBytes: 1_000, lingerMs: 50 } });
  const form = { "content-type": "application/x-www-form-urlencoded" };
  assert.equal((await at.ask("POST", "/", `{"urls":["http://a.example/${"a".repeat(2_000)}"]}`, form)).status, 413);
  assert.equal((await at.ask("POST", "/v1/jobs", '{"seeds":["http://a.example/"],"maxDepht":1}', form)).json.errors[0].option, "maxDepht");
  assert.equal((await at.ask("POST", "/v1/jobs", '{"seeds":["http://a.example/"],"maxDepth":1}', form)).status, 202);
  assert.equal(at.jobs.all[0]?.view.spec.maxDepth, 1);
});

const GZIP = { "content-encoding": "gzip" };

for (const [name, path, type, body, status] of [
  ["a list", "/", "text/plain", TEXT, 200],
  ["a file", "/", FORM, file(Buffer.from(TEXT)), 200],
  ["a form", "/", "application/x-www-form-urlencoded", `urls=${encodeURIComponent(TEXT)}`, 200],
  ["JSON", "/v1/jobs", "application/json", JSON.stringify({ seeds: WANTED }), 202],
] as const)
  test(`${name} as gzip is read as it stands unpacked, however it is cut, and is the same request`, async () => {
    await using at = await bench();
    const packed = gzipSync(body);
    const key = { "content-type": type, "idempotency-key": "k" };
    async function* pieces(): AsyncGenerator<string> {
      // `as`: the stream takes bytes as well as text.
      for (const byte of packed) yield Buffer.of(byte) as unknown as string;
    }
    const first = await at.ask("POST", path, packed, { ...key, ...GZIP });
    assert.equal(first.status, status, first.text);
    const cut = await at.ask("POST", path, pieces(), { ...key, "content-encoding": "X-GZIP" });
    const plain = await at.ask("POST", path, body, key);
    assert.deepEqual([cut.text, plain.text, at.jobs.all.length], [first.text, first.text, 1]);
    assert.deepEqual(at.jobs.all[0]?.view.seeds, WANTED);
  });

test("a small body as gzip is read too", async () => {
  await using at = await bench();
  await at.post("/v1/jobs", { seeds: WANTED });
  const patched = await at.ask("PATCH", "/v1/jobs/0/hosts", gzipSync('{"a.example":{"paused":true}}'), { "content-type": "application/json", ...GZIP });
  assert.equal(patched.status, 200, patched.text);
  assert.equal((await at.ask("POST", "/v1/jobs/0/stop", gzipSync('{"mode":"now"}'), { "content-type": "application/json", ...GZIP })).json.state, "stopped");
});

for (const [name, path, type, body] of [
  ["a list of blank lines", "/", "text/plain", Buffer.alloc(50_000_000, "\n")],
  ["a list of URLs", "/", "text/plain", Buffer.alloc(50_000_000, "http://a.example/\n")],
  ["a line without end", "/", "text/plain", Buffer.alloc(50_000_000, "a")],
  ["a file", "/v1/jobs", FORM, file(Buffer.alloc(50_000_000, "http://a.example/\n"))],
  ["JSON", "/v1/jobs", "application/json", Buffer.alloc(50_000_000, " ")],
  ["a form", "/v1/jobs", "application/x-www-form-urlencoded", Buffer.concat([Buffer.from("urls="), Buffer.alloc(50_000_000, "a\n")])],
  ["a small body", "/v1/jobs/0/stop", "application/json", Buffer.alloc(50_000_000, " ")],
] as const)
  test(`${name} that is small as gzip and large unpacked is refused with the limit of what is unpacked`, async () => {
    await using at = await bench({ limits: { uploadBytes: 500_000, jsonBytes: 500_000, lingerMs: 50 } });
    await at.post("/v1/jobs", { seeds: WANTED });
    const packed = gzipSync(body);
    assert.ok(packed.length < 250_000, String(packed.length));
    const { status, text, json } = await at.ask("POST", path, packed, { "content-type": type, ...GZIP });
    assert.equal(status, 413, text);
    if (name !== "a line without end") assert.match(json.detail, /^the body, unpacked, is larger than \d+ bytes$/);
    assert.equal(at.jobs.all.length, 1);
  });

const whole = gzipSync(Buffer.from(Array.from({ length: 2_000 }, (_, n) => `http://a.example/${n * 7_919}\n`).join("")));
for (const [name, body, type] of [
  ["that is no gzip", Buffer.from(TEXT), "text/plain"],
  ["that is cut off", whole.subarray(0, -9), "text/plain"],
  ["that is cut off in its head", whole.subarray(0, 5), "text/plain"],
  ["whose sum is wrong", Buffer.concat([whole.subarray(0, -8), Buffer.alloc(8, 7)]), "text/plain"],
  ["that is broken in the middle", Buffer.concat([whole.subarray(0, 2_000), Buffer.alloc(500, 255), whole.subarray(2_500)]), "text/plain"],
  ["that is empty", Buffer.alloc(0), "application/json"],
  ["that is no gzip, of a file", file(Buffer.from(TEXT)), FORM],
] as const)
  test(`a body ${name} but says gzip makes no job and is answered with 400`, async () => {
    await using at = await bench({ limits: { lingerMs: 50 } });
    const { status, text } = await at.ask("POST", "/", body, { "content-type": type, ...GZIP });
    assert.equal(status, 400, text);
    assert.equal(at.jobs.all.length, 0);
    assert.equal((await at.ask("GET", "/healthz")).status, 200);
  });

test("a client that sends what is no gzip, and then nothing more, is answered at once", async () => {
  await using at = await bench({ limits: { lingerMs: 50 } });
  const head = "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\nContent-Encoding: gzip\r\nContent-Length: 1000\r\n\r\n";
  assert.match(await at.raw(`${head}this is no gzip at all`), /^HTTP\/1\.1 400 .*the body is no gzip/s);
});

test("a body under another coding, or under several, is refused with what is taken", async () => {
  await using at = await bench({ limits: { lingerMs: 50 } });
  for (const coding of ["br", "deflate", "gzip, gzip", "zstd"]) {
    const { status, headers } = await at.ask("POST", "/", gzipSync(TEXT), { "content-type": "text/plain", "content-encoding": coding });
    assert.deepEqual([status, headers["accept-encoding"]], [415, "gzip, identity"], coding);
  }
});
