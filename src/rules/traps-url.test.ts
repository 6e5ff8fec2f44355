/** What single URLs tell of a trap, against the conformance data and by example. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { mostUses, repeatsInARow, templateOf, urlParts, withoutSession, yearIn } from "./traps-url.ts";
import { conformanceCases } from "./url-conformance.ts";

const cases = conformanceCases("traps");
for (const c of cases ?? []) {
  if (c.kind === "deep-html" || c.taste === true) continue;
  test(`conformance ${c.id} ${c.kind}: ${c.input.url}`, () => {
    if (c.kind === "session-id") return assert.equal(withoutSession(c.input.url), c.expected.normalizedQuery);
    assert.equal(c.kind, "path");
    const { directories, segments } = urlParts(c.input.url);
    const { maxRepetitions, maxPathDepth } = c.input;
    const trap =
      maxRepetitions !== undefined
        ? repeatsInARow(directories, maxRepetitions)
        : maxPathDepth !== undefined
          ? segments.length > maxPathDepth
          : mostUses(directories) > 2;
    assert.equal(trap, c.expected.trap);
  });
}

test("templates: what varies is taken out", () => {
  assert.equal(templateOf("https://h/t/12/page-3?b=1&a=2"), "https://h/t/N/page-N?a&b");
  assert.equal(templateOf("https://h1/about"), null);
  assert.equal(templateOf("https://h/x/6ba7b810-9dad-11d1-80b4-00c04fd430c8"), "https://h/x/H");
  assert.equal(templateOf("https://h/x/da39a3ee5e6b4b0d3255bfef95601890afd80709.html"), "https://h/x/H.html");
  assert.equal(templateOf("https://h/?x[0]=1&x[12]=2"), "https://h/?x[N]&x[N]");
});

test("session ids: what only looks like one stays", () => {
  for (const url of [
    "http://h/?sid=12",
    "http://h/story?sid=20/01/01/123",
    "http://h/?session=morning",
    "http://h/?s=search+words+that+are+long",
    "http://h/assist?side=left",
    "http://h/a?addressid=0123456789abcdef",
  ])
    assert.equal(withoutSession(url, true), url);
  assert.equal(withoutSession("http://h/?s=0123456789abcdef0123456789abcdef&t=1", true), "http://h/?t=1");
});

test("years: of dates in path and query, not of other numbers", () => {
  const years: [string, number | null][] = [
    ["/calendar/2031/7", 2031],
    ["/2031-12-01/x", 2031],
    ["/day/20310115", 2031],
    ["/events?date=2031-02", 2031],
    ["/c?cal_year=1799", 1799],
    ["/c?m=3&y=1799", 1799],
    ["/c?y=1799", null],
    ["/c?story=1799&m=3", null],
    ["/part/2031/13", null],
    ["/item/203115", null],
  ];
  for (const [path, year] of years) assert.equal(yearIn(`http://h.example${path}`), year, path);
});
