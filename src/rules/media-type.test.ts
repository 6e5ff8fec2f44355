import assert from "node:assert/strict";
import { test } from "node:test";
import { MIMEType } from "whatwg-mimetype";
import { mediaTypeOf, wantsBody } from "./media-type.ts";
import { conformanceCases } from "./url-conformance.ts";

test("the kinds of the usual types", () => {
  const kinds: Readonly<Record<string, string>> = {
    "text/html": "html",
    "TEXT/HTML; Charset=UTF-8": "html",
    "application/xhtml+xml": "xhtml",
    "application/xml": "xml",
    "text/xml; charset=utf-8": "xml",
    "application/rss+xml": "xml",
    "application/atom+xml": "xml",
    "text/plain": "text",
    "text/css": "text",
    "application/json": "text",
    "application/ld+json": "text",
    "application/javascript": "text",
    "application/pdf": "binary",
    "image/svg+xml": "binary",
    "image/png": "binary",
    "application/octet-stream": "binary",
    "application/gzip": "binary",
    "video/mp4": "binary",
    "*/*": "none",
    "unknown/unknown": "none",
    html: "none",
    "": "none",
    ";": "none",
  };
  for (const [type, kind] of Object.entries(kinds)) assert.equal(mediaTypeOf(type).kind, kind, type);
  assert.equal(mediaTypeOf(null).kind, "none");
});

test("the charset parameter is read by the standard: first of several, quoted, with odd blanks", () => {
  assert.equal(mediaTypeOf("text/html; charset=utf-8").charset, "utf-8");
  assert.equal(mediaTypeOf('text/html ;x=1; charset="iso-8859-1"; charset=utf-8').charset, "iso-8859-1");
  assert.equal(mediaTypeOf("text/html; charset").charset, null);
  assert.equal(mediaTypeOf("text/html; charset=").charset, null);
});

test("which bodies the types option wants", () => {
  const wanted = (types: "text" | "html" | "all"): readonly (string | null)[] =>
    ["text/html", "application/xhtml+xml", "application/xml", "text/plain", "application/json", "image/png", "application/octet-stream", null].filter((type) =>
      wantsBody(type, types),
    );
  assert.deepEqual(wanted("html"), ["text/html", "application/xhtml+xml", null]);
  assert.deepEqual(wanted("text"), ["text/html", "application/xhtml+xml", "application/xml", "text/plain", "application/json", null]);
  assert.equal(wanted("all").length, 8);
});

test("a server that sends ever new types does not fill the memory", () => {
  for (let i = 0; i < 5000; i++) assert.equal(mediaTypeOf(`text/html; n=${i}`).kind, "html");
});

/** Encoding Standard name in lower case. */
function encodingOf(contentType: string): string | null {
  const label = mediaTypeOf(contentType).charset;
  try {
    return label === null ? null : new TextDecoder(label).encoding;
  } catch {
    return null; // no such label
  }
}

test("conformance: content-type", { skip: conformanceCases("content-type") === null }, () => {
  for (const c of conformanceCases("content-type") ?? []) {
    const contentType: string = c.input.contentType;
    // UTF-32 is none of the Encoding Standard's encodings: no browser reads it.
    if (c.taste === true || c.expected?.encoding === "utf-32") continue;
    assert.equal(encodingOf(contentType), c.expected?.encoding?.toLowerCase() ?? null, c.id);
    if (c.kind !== "parse") continue;
    assert.equal(MIMEType.parse(contentType)?.toString() ?? null, c.expected?.mime ?? null, c.id);
    assert.equal(mediaTypeOf(contentType).essence, c.expected === null ? null : (MIMEType.parse(c.expected.mime)?.essence ?? null), c.id);
  }
});

test("of several values the last usable one counts, and keeps the charset named before for the same type", () => {
  const cases: readonly (readonly [value: string, essence: string | null, charset: string | null])[] = [
    ["text/html; charset=koi8-r, text/html", "text/html", "koi8-r"],
    ["text/html; charset=koi8-r, text/html; charset=utf-8", "text/html", "utf-8"],
    ["text/html; charset=koi8-r, text/plain", "text/plain", null],
    ["text/html, nonsense", "text/html", null],
    ["text/html, */*, ", "text/html", null],
    [", application/pdf", "application/pdf", null],
    ['text/html; charset="a,b", text/html', "text/html", "a,b"],
    ['text/html; charset="a,b', "text/html", "a,b"],
    [",,", null, null],
  ];
  for (const [value, essence, charset] of cases) {
    const type = mediaTypeOf(value);
    assert.deepEqual([type.essence, type.charset], [essence, charset], value);
  }
});
