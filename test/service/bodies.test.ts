/** Bodies as programs, editors and systems make them: charsets, byte order marks, line ends, the freedoms of multipart. */
import assert from "node:assert/strict";
import { test } from "node:test";
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
