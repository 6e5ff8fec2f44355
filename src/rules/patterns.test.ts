/** patterns.ts: each form of a pattern, and globs against a plain model. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { CrawlError } from "../core/errors.ts";
import { compilePattern, compilePatterns } from "./patterns.ts";

type Row = readonly [pattern: string, url: string, matches: boolean];

function check(rows: readonly Row[]): void {
  for (const [pattern, url, expected] of rows) assert.equal(compilePattern(pattern).matches(url), expected, `${pattern} ${url}`);
}

test("without a slash a pattern is for the last path segment", () => {
  check([
    ["*.html", "http://a.example/x/y.html", true],
    ["*.html", "http://a.example/y.html?z=1", true],
    ["*.html", "http://a.example/y.html/z", false],
    ["*.html", "http://a.example/y.htm", false],
    ["*.html", "http://a.example/y?x=.html", false],
    ["*.html", "http://a.example/.html", true],
    ["*.HTML", "http://a.example/y.html", false],
    ["index.*", "http://a.example/index.php", true],
    ["index.*", "http://a.example/xindex.php", false],
    ["page-?", "http://a.example/page-1", true],
    ["page-?", "http://a.example/page-12", false],
    ["page-?", "http://a.example/page-%C3", true],
    ["?", "http://a.example/", false],
    ["*", "http://a.example/", true],
    ["*", "http://a.example/x?y/z", true],
    ["a*b*c", "http://a.example/aXbXbXc", true],
    ["a*b*c", "http://a.example/aXbXbX", false],
    ["ü*", "http://a.example/%C3%BCber", true],
    ["a b", "http://a.example/a%20b", true],
    ["%c3%bc", "http://a.example/%C3%BC", true],
    ["%7Ejoe", "http://a.example/~joe", true],
    ["*.html", "http://a.example/x?return=/y.html", false],
  ]);
});

test("with a slash it is for the path, anchored if it starts with one", () => {
  check([
    ["/docs/**", "http://a.example/docs/", true],
    ["/docs/**", "http://a.example/docs/a/b", true],
    ["/docs/**", "http://a.example/x/docs/a", false],
    ["/docs/**", "http://a.example/docs", false],
    ["/docs/*", "http://a.example/docs/a", true],
    ["/docs/*", "http://a.example/docs/a/b", false],
    ["/docs/", "http://a.example/docs/a/b", true],
    ["/", "http://a.example/x", true],
    ["docs/*", "http://a.example/docs/a", true],
    ["docs/*", "http://a.example/x/docs/a?q", true],
    ["docs/*", "http://a.example/x/docs/a/b", false],
    ["docs/*", "http://a.example/xdocs/a", false],
    ["docs/*", "http://docs/a", false],
    ["docs/", "http://a.example/x/docs/y/z", true],
    ["/a/**/z", "http://a.example/a/z", true],
    ["/a/**/z", "http://a.example/a/b/c/z", true],
    ["/a/**/z", "http://a.example/a/bz", false],
    ["/a**z", "http://a.example/a/b/z", true],
    ["/**/*.pdf", "http://a.example/x.pdf", true],
    ["/**/*.pdf", "http://a.example/a/b/x.pdf", true],
    ["**/b/*/d", "http://a.example/b/b/b/c/d", true],
    ["/*/b", "http://a.example//b", true],
    ["/q", "http://a.example/q?x=/q", true],
    ["/Q", "http://a.example/q", false],
  ]);
});

test("with a scheme it is for the whole URL without its query", () => {
  check([
    ["https://*.example.com/**", "https://www.example.com/a/b?c", true],
    ["https://*.example.com/**", "https://a.b.example.com/", true],
    ["https://*.example.com/**", "https://example.com/", false],
    ["https://*.example.com/**", "http://www.example.com/", false],
    ["*://example.com/**", "http://example.com/x", true],
    ["HTTP://EXAMPLE.com/A", "http://example.com/A", true],
    ["HTTP://EXAMPLE.com/A", "http://example.com/a", false],
    ["http://example.com", "http://example.com/x/y", true],
    ["http://example.com", "http://example.com.evil.example/", false],
    ["https://example.com:443/x", "https://example.com/x", true],
    ["http://example.com:443/x", "http://example.com:443/x", true],
    ["http://*:8080/", "http://example.com:8080/x", true],
    ["http://bücher.example/ü", "http://xn--bcher-kva.example/%C3%BC", true],
    ["http://evil.example/**", "http://a.example/?u=http://evil.example/x", false],
  ]);
});

test("re: is a regular expression on the whole URL, query included", () => {
  check([
    ["re:\\?page=\\d+$", "http://a.example/x?page=12", true],
    ["re:\\?page=\\d+$", "http://a.example/x?page=a", false],
    ["re:^https:", "http://a.example/", false],
    ["re:/(index|view)", "http://a.example/places/view/1", true],
    ["re:$^", "http://a.example/", false],
    ["re:", "http://a.example/", true],
  ]);
});

test("each form says how it was read", () => {
  const rows = {
    "*.html": "last path segment is *.html",
    "/docs/": "path is /docs/**",
    "docs/*": "path is docs/*, starting at any folder",
    "http://A.example": "whole URL without query is http://a.example/**",
    "re:a/b": "regular expression /a\\/b/ on the whole URL",
  };
  for (const [text, expected] of Object.entries(rows)) assert.equal(compilePattern(text).describe, expected);
});

test("all wrong patterns are named at once, with their option", () => {
  assert.throws(
    () => compilePatterns({ "scope.exclude": ["re:(", "*.html", "re:["], list: [" "] }),
    (error) => {
      assert.ok(error instanceof CrawlError);
      assert.equal(error.code, "invalid-options");
      assert.deepEqual(
        error.problems.map((problem) => problem.option),
        ["scope.exclude", "scope.exclude", "list"],
      );
      assert.match(error.message, /re:\(.*\n.*re:\[.*\n/);
      return true;
    },
  );
});

test("any glob over any path agrees with its regular expression", () => {
  const glob = fc.array(fc.constantFrom("a", "b", "/", "*", "**", "?", "/**/", "ab"), { minLength: 1, maxLength: 8 }).map((parts) => `/${parts.join("")}`);
  const path = fc.array(fc.constantFrom("a", "b", "/", "ab"), { maxLength: 10 }).map((parts) => `/${parts.join("")}`);
  fc.assert(
    fc.property(glob, path, (text, asked) => {
      const whole = text.endsWith("/") ? `${text}**` : text;
      const source = whole.replace(/(?<=\/)\*{2,}\/|\*{2,}|\*|\?/g, (token) => {
        if (token === "*") return "[^/]*";
        if (token === "?") return "[^/]";
        return token.endsWith("/") ? "(?:.*/)?" : ".*";
      });
      assert.equal(compilePattern(text).matches(`http://a.example${asked}`), new RegExp(`^${source}$`).test(asked), `${text} ${asked} ${source}`);
    }),
    { numRuns: 5_000 },
  );
});

test("hostile globs end soon", () => {
  const long = `http://a.example/${"a".repeat(2_000)}/${"a".repeat(2_000)}`;
  for (const glob of [`/${"*a".repeat(30)}b*`, `/${"**a".repeat(30)}b*`, `/**/${"*a*/**".repeat(20)}b*`, `/**${"*a?".repeat(30)}b*`])
    assert.equal(compilePattern(glob).matches(long), false);
});
