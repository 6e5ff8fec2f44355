import assert from "node:assert/strict";
import { test } from "node:test";
import { decodeHTMLAttribute } from "entities/decode";
import fc from "fast-check";
import { charsetInContent, encodingOfLabel, prescan } from "./charset.ts";
import { parseLinkHeader } from "./link-header.ts";
import { parseRefresh } from "./meta-refresh.ts";
import { parseSrcset } from "./srcset.ts";
import { decodeAttribute } from "./text.ts";

test("the short way to read character references equals the long one", () => {
  const piece = fc.constantFrom(
    "&",
    "amp",
    ";",
    "=",
    "a",
    "b=",
    "copy",
    "lt",
    "notit",
    "not",
    "#",
    "x",
    "41",
    "#38",
    "&amp;",
    "&AMP;",
    "é",
    " ",
    "?x",
    "1",
    "_",
    "&amp",
    "&#0;",
    "&#x80;",
    "&#xD800",
  );
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 10 }), (parts) => {
      const text = parts.join("");
      assert.equal(decodeAttribute(text), decodeHTMLAttribute(text), text);
    }),
    { numRuns: 5000, seed: 3 },
  );
});

test("Link fields: several values and lines, quoted and bare parameters, several relations, other contexts, damage", () => {
  const read = (...lines: string[]): readonly (readonly [string, string])[] => parseLinkHeader(lines).map(({ href, rels }) => [href, rels.join(" ")]);
  assert.deepEqual(read("< /voil\xc3\xa0 >; rel=next"), [["/voil\xc3\xa0", "next"]]);
  assert.deepEqual(read('<a>; rel=next, <b>;rel="prev x" ; title="x, <y>; z"', '< c > ; REL = "Canonical"'), [
    ["a", "next"],
    ["b", "prev x"],
    ["c", "canonical"],
  ]);
  assert.deepEqual(read("<a?x=1,2;3>; rel=next; rel=prev"), [["a?x=1,2;3", "next"]]);
  assert.deepEqual(read('<a>; anchor="#x"; rel=next, <b>; title="a\\"b,"; rel=next'), [["b", "next"]]);
  assert.deepEqual(read("<a>", "junk", "<unclosed; rel=next", "<a>; rel", "", '<a>; rel="next'), [
    ["a", ""],
    ["a", "next"],
  ]);
});

test("prescan: what hides a declaration and what does not", () => {
  const of = (html: string): string | null => prescan(Buffer.from(html, "latin1"));
  assert.equal(of("<meta charset=koi8-r>"), "koi8-r");
  assert.equal(of("<META/CHARSET = 'KOI8-R' >"), "koi8-r");
  assert.equal(of("<!-- <meta charset=koi8-r> -->"), null);
  assert.equal(of("<!--><meta charset=koi8-r>"), "koi8-r");
  assert.equal(of('<a title="<meta charset=koi8-r>">'), null);
  assert.equal(of("<metax charset=koi8-r>"), null);
  assert.equal(of("<meta charset=koi8-r"), null);
  assert.equal(of('<meta content="text/html; charset=koi8-r">'), null);
  assert.equal(of('<meta content="text/html; charset=koi8-r" http-equiv=Content-Type>'), "koi8-r");
  assert.equal(of("<meta charset=nope><meta charset=utf-16>"), "utf-8");
  assert.equal(of("<meta charset=x-user-defined>"), "windows-1252");
});

test("labels and content attributes", () => {
  assert.equal(encodingOfLabel(" Latin1 "), "windows-1252");
  assert.equal(encodingOfLabel("utf8mb4"), null);
  assert.equal(charsetInContent("text/html; charset = 'x y' z"), "x y");
  assert.equal(charsetInContent("charset charset=a;b"), "a");
  assert.equal(charsetInContent("charset"), null);
});

test("refresh: numbers with fractions, blanks, quotes that do not close", () => {
  assert.deepEqual(parseRefresh("1.9; url='a'b"), { delay: 1, url: "a" });
  assert.deepEqual(parseRefresh(' 3 , "a'), { delay: 3, url: "a" });
  assert.deepEqual(parseRefresh("5;"), { delay: 5, url: null });
  assert.equal(parseRefresh(""), null);
  assert.equal(parseRefresh("x5;url=a"), null);
});

test("srcset: candidates with their verdict", () => {
  assert.deepEqual(parseSrcset("a 1x, b 2w 3h, c 1h, d -1x, e (x,y), f"), [
    { url: "a", valid: true },
    { url: "b", valid: true },
    { url: "c", valid: false },
    { url: "d", valid: false },
    { url: "e", valid: false },
    { url: "f", valid: true },
  ]);
});
