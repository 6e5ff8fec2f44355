import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { PAGE_FIELDS, type PageRecord } from "../core/records.ts";
import { appendPage, appendRecord, lineBuffer } from "./lines.ts";

const page: PageRecord = {
  url: "http://a.example/",
  status: 200,
  outcome: "fetched",
  depth: 0,
  referrer: null,
  redirects: [{ url: "http://a.example/old", status: 301 }],
  contentType: "text/html",
  charset: "utf-8",
  bytes: 12,
  bytesDecoded: 12,
  truncated: true,
  title: 'A "title" — with \\ and \u0007',
  links: ["http://a.example/b?x=\\", "http://a.example/c"],
  attempts: 1,
  fetchedAt: "2026-01-01T00:00:00.000Z",
  durationMs: 1.5,
};

function line(record: PageRecord, fields: readonly string[] | null = null): string {
  const buffer = lineBuffer();
  appendPage(buffer, record, fields);
  return Buffer.from(buffer.take()).toString();
}

test("a page's line is what JSON.stringify gives, and a newline", () => {
  assert.equal(line(page), `${JSON.stringify(page)}\n`);
});

test("any field with any text is written as JSON.stringify writes it", () => {
  const text = fc.oneof(
    fc.string({ unit: "binary" }),
    fc.string({ unit: "grapheme" }),
    fc.constantFrom("\ud800", "x\udc00y", "\u2028", "\u007f", '"', "\\", ""),
  );
  const value = fc.oneof(text, fc.double(), fc.integer(), fc.boolean(), fc.constant(null), fc.constant(undefined), fc.array(text), fc.record({ code: text }));
  const others = PAGE_FIELDS.filter((field) => field !== "title");
  const record = fc
    .tuple(fc.dictionary(fc.constantFrom(...others), value), fc.option(text), fc.dictionary(fc.constantFrom(...others), value))
    .map(([before, title, behind]) => ({ ...before, ...(title === null ? {} : { title }), ...behind }));
  fc.assert(
    fc.property(record, (made) => {
      // `as`: any object is written field by field; the types are not what is under test.
      assert.equal(line(made as unknown as PageRecord), `${JSON.stringify(made)}\n`);
    }),
    { numRuns: 2_000 },
  );
});

test("chosen fields come in the order they were asked for; those the page lacks are left out", () => {
  assert.equal(line(page, ["status", "etag", "url"]), '{"status":200,"url":"http://a.example/"}\n');
  assert.equal(line(page, ["etag"]), "{}\n");
  assert.equal(line(page, ["links", "depth"]), `{"links":${JSON.stringify(page.links)},"depth":0}\n`);
});

test("lines follow one another, also past the usual size of the buffer", () => {
  const buffer = lineBuffer();
  const wide = { ...page, links: Array.from({ length: 20_000 }, (_, index) => `http://a.example/${index}/é`) };
  let expected = "";
  for (const record of [page, wide, page]) {
    appendPage(buffer, record, null);
    appendRecord(buffer, { from: record.url });
    expected += `${JSON.stringify(record)}\n${JSON.stringify({ from: record.url })}\n`;
  }
  assert.equal(buffer.size, Buffer.byteLength(expected));
  assert.equal(Buffer.from(buffer.take()).toString(), expected);
  assert.equal(buffer.size, 0);
});
