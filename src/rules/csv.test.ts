import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { csvHeader, csvRow } from "./csv.ts";

/** The grammar of RFC 4180 §2, read the slow way. */
function parse(text: string): string[][] {
  const rows: string[][] = [[]];
  let at = 0;
  while (at < text.length) {
    const quoted = /"((?:[^"]|"")*)"(,|\r\n)/y;
    const plain = /([^",\r\n]*)(,|\r\n)/y;
    quoted.lastIndex = plain.lastIndex = at;
    const match = quoted.exec(text) ?? plain.exec(text);
    assert.ok(match, `not a cell at ${at}: ${JSON.stringify(text.slice(at, at + 40))}`);
    at += match[0].length;
    rows.at(-1)?.push((match[1] ?? "").replaceAll('""', '"'));
    if (match[2] === "\r\n") rows.push([]);
  }
  assert.deepEqual(rows.pop(), [], "the last row ends with CRLF");
  return rows;
}

test("cells are quoted where they must be", () => {
  const columns = ["a", "b", "c"];
  const row = (a: unknown, b: unknown = 1, c: unknown = true) => csvRow({ a, b, c }, columns);
  assert.equal(row("plain text"), "plain text,1,true\r\n");
  assert.equal(row('say "no"'), '"say ""no""",1,true\r\n');
  assert.equal(row("a,b"), '"a,b",1,true\r\n');
  assert.equal(row("a\nb\r"), '"a\nb\r",1,true\r\n');
  assert.equal(row(["x", 'y"']), '"[""x"",""y\\""""]",1,true\r\n');
  assert.equal(row({ code: "dns" }), '"{""code"":""dns""}",1,true\r\n');
  assert.equal(csvRow({ a: null, b: undefined, c: "" }, columns), ',,""\r\n');
  assert.equal(csvHeader(columns), "a,b,c\r\n");
  assert.equal(csvRow({ a: null }, ["a"]), '""\r\n');
});

test("F113 F114 values stand under their own header, whatever the order of the fields and whichever are there", () => {
  const columns = ["url", "a", "b"];
  const rows = [
    { url: "u1", a: "1" },
    { url: "u2", b: "2" },
    { b: "3", url: "u3", a: "4" },
  ].map((record) => csvRow(record, columns));
  assert.deepEqual(parse(csvHeader(columns) + rows.join("")), [columns, ["u1", "1", ""], ["u2", "", "2"], ["u3", "4", "3"]]);
});

test("any text comes back as it was", () => {
  const text = fc.string({ unit: fc.oneof(fc.constantFrom('"', ",", "\r", "\n", " "), fc.string({ minLength: 1, maxLength: 1, unit: "binary" })) });
  fc.assert(
    fc.property(fc.array(fc.tuple(text, text), { minLength: 1 }), (pairs) => {
      const rows = parse(pairs.map(([a, b]) => csvRow({ a, b }, ["a", "b"])).join(""));
      assert.deepEqual(rows, pairs);
    }),
  );
});
