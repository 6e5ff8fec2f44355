import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { MAX_URL_LENGTH, parseUrl } from "./url.ts";
import { conformanceCases } from "./url-conformance.ts";
import { encodeQuery, percentEncodeIn } from "./url-query.ts";
import { createResolver, type Resolved } from "./url-resolve.ts";

const BASES = [
  "http://example.org/foo/bar",
  "https://example.org/",
  "http://127.0.0.1:8080/a/b/c.html?x=/../y",
  "http://[::1]:81/x/",
  "https://a-b.example.co.uk/one/two/three/four?q",
  "http://example.org/foo//bar/",
  "http://user:pw@example.org/dir/file",
  "http://example.org/%7euser/%2f/x",
  "http://example.org./dotted/",
  "mailto:nobody@example.org",
  "not a url",
  "http://example.org/a%20b/c?d=%C3%A9",
];

/** The slow path in the fast path's form. */
function expected(href: string, base: string, encoding: string | null, maxLength: number): Resolved {
  const result = parseUrl(encodeQuery(href, encoding), base, maxLength);
  return !("reject" in result) && result.sentAs === null && result.credentials === null ? result.url : result;
}

const piece = fc.constantFrom(
  ...["/", "//", "///", "..", ".", "../", "./", "?", "#", ":", "@", "\\", "%2e", "%2E", "%2F", "%2f", "%41", "%", "%%", "%zz", "%C3%A9", "%3D", "%7E"],
  ...["a", "A", "foo", "bar.html", "index", "-", "_", "~", "!", "'", '"', "<", ">", " ", "\t", "\n", "|", "^", "`", "{", "}", "[", "]", "=", "&", ";", ","],
  ...["http:", "https:", "http://", "https://", "HTTP://", "ftp://", "javascript:", "mailto:x", "data:,", "h", "http", "https:/"],
  ...["example.org", "example.org:80", "example.org:8080", "127.0.0.1", "127.1", "0x7f.1", "1", "xn--", "xn--bcher-kva", "a..b", "a.", ".", "b-.c", "user:pw@"],
  ...["é", "日本", "\u{1f600}", "\ud800", "\u0000", "\u007f", "\u00a0", "％", "。", "ß", "[::1]", "[::1", ":443", ":0", ":99999"],
);
const href = fc.oneof(
  fc.array(piece, { maxLength: 8 }).map((parts) => parts.join("")),
  fc.tuple(fc.constantFrom(...BASES.map((b) => b.slice(0, b.indexOf("/", 9)))), fc.array(piece, { maxLength: 5 })).map(([o, parts]) => o + parts.join("")),
  fc.webUrl({ withFragments: true, withQueryParameters: true }),
  fc.string({ unit: "grapheme", maxLength: 12 }),
);

test("the fast path resolves as the URL parser does, whatever the reference and the base", () => {
  const limits = fc.constantFrom(MAX_URL_LENGTH, 40, 25);
  fc.assert(
    fc.property(href, fc.constantFrom(...BASES), limits, (reference, base, limit) => {
      assert.deepEqual(createResolver(base, null, limit).resolve(reference), expected(reference, base, null, limit));
    }),
    { numRuns: 30_000, seed: 42 },
  );
});

test("a base resolved from random text behaves as the parser says", () => {
  fc.assert(
    fc.property(href, href, (reference, baseText) => {
      const base = URL.parse(baseText, "http://example.org/foo/bar")?.href ?? "http://h/";
      assert.deepEqual(createResolver(base, "windows-1252").resolve(reference), expected(reference, base, "windows-1252", MAX_URL_LENGTH));
    }),
    { numRuns: 10_000, seed: 7 },
  );
});

test("canonicalising twice changes nothing, and what is sent names the same canonical URL", () => {
  fc.assert(
    fc.property(href, fc.constantFrom(...BASES), (reference, base) => {
      const once = parseUrl(reference, base);
      if ("reject" in once) return;
      assert.deepEqual(parseUrl(once.url), { url: once.url, sentAs: null, credentials: null });
      assert.match(once.url, /^https?:\/\/[\x21-\x7e]+$/);
      if (once.sentAs === null) return;
      const again = parseUrl(once.sentAs);
      assert.equal("reject" in again ? null : again.url, once.url);
    }),
    { numRuns: 20_000, seed: 11 },
  );
});

test("steps up stop at the root, however many there are", () => {
  const resolver = createResolver("http://h/a/b/c/d", null);
  for (const steps of [1, 2, 3, 4, 10, 63, 64, 65, 500]) {
    assert.equal(resolver.resolve(`${"../".repeat(steps)}x`), URL.parse(`${"../".repeat(steps)}x`, "http://h/a/b/c/d")?.href);
  }
});

test("F036 the query follows the encoding of the page, the path is UTF-8", () => {
  assert.equal(createResolver("http://h/", "windows-1252").resolve("/é?q=é#é"), "http://h/%C3%A9?q=%E9");
  assert.equal(createResolver("http://h/", "utf-8").resolve("/é?q=é"), "http://h/%C3%A9?q=%C3%A9");
  assert.equal(createResolver("http://h/", "utf-16le").resolve("?q=é"), "http://h/?q=%C3%A9");
  assert.equal(createResolver("http://h/", "koi8-r").resolve("?q=Тест 'x'"), "http://h/?q=%F4%C5%D3%D4%20%27x%27");
});

test("what legacy encoders write, the platform's decoders read back", () => {
  // ISO-2022-JP without katakana: their bytes hold "%", which the standard leaves as it is.
  const samples: Record<string, string> = {
    shift_jis: "日本語ｱｲｳテスト髙①",
    "euc-jp": "日本語ｱｲｳテスト①",
    "iso-2022-jp": "日本語てすと abc 漢字~",
    gbk: "中文测试€丂",
    gb18030: "中文测试€\u{1f600}ŐḿḀ",
    big5: "中文測試十卅═",
    "euc-kr": "한국어 테스트",
    "windows-1251": "Тест№",
    "windows-1252": "é€†",
    "iso-8859-2": "Łódź",
    macintosh: "éΩ",
    "x-user-defined": "\uf780\uf7ff",
  };
  for (const [encoding, text] of Object.entries(samples)) {
    const bytes = Buffer.from(
      percentEncodeIn(encoding, text).replace(/%(..)/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16))),
      "latin1",
    );
    assert.equal(new TextDecoder(encoding).decode(bytes), text, encoding);
  }
});

test("characters that an encoding lacks become escaped character references", () => {
  assert.equal(percentEncodeIn("windows-1252", "a日b"), "a%26%2326085%3Bb");
  assert.equal(percentEncodeIn("gbk", "\u{1f600}"), "%26%23128512%3B");
  assert.equal(percentEncodeIn("euc-kr", "\ud800"), "%26%2365533%3B");
});

test("conformance: url-resolve", { skip: conformanceCases("url-resolve") === null }, () => {
  let taste = 0;
  for (const c of conformanceCases("url-resolve") ?? []) {
    if (c.kind === "query-encoding") {
      const href = createResolver("http://example.org/", c.input.documentEncoding).resolve(`?${c.input.query}`);
      assert.equal(typeof href === "string" ? href.slice("http://example.org/?".length) : href, c.expected, c.id);
      continue;
    }
    const { href, base } = c.input;
    const slow = parseUrl(href, base ?? undefined);
    const matches = (got: Resolved): boolean => describe(got) === describe(c.expected === null ? { reject: "invalid-url" } : parseUrl(c.expected));
    const fast = base === null ? slow : createResolver(base, null).resolve(href);
    if (c.taste === true) taste += matches(slow) ? 1 : 0;
    else assert.ok(matches(slow) && matches(fast), `${c.id}: ${JSON.stringify(c.input)} gave ${describe(slow)} and ${describe(fast)}, expected ${c.expected}`);
  }
  process.stdout.write(`url-resolve: ${taste} cases of taste decided as their source does\n`);
});

function describe(result: Resolved): string {
  if (typeof result === "string") return describe({ url: result, sentAs: null, credentials: null });
  return "reject" in result ? "refused" : `${result.credentials ?? ""} ${result.sentAs ?? result.url}`;
}
