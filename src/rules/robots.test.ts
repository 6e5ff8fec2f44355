/** robots.ts against RFC 9309, the conformance data and the field cases. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { inflateSync } from "node:zlib";
import fc from "fast-check";
import { crawlDelayMs, parseRobots, productToken, ROBOTS_MAX_BYTES, sitemaps, verdict } from "./robots.ts";

const folder = process.env.SKEIN_CONFORMANCE_DIR ?? join(import.meta.dirname, "../../../shared/conformance");

interface Case {
  readonly id: string;
  readonly kind: "allowed" | "crawl-delay" | "sitemaps" | "directives" | "probes";
  readonly input: {
    readonly robots?: string;
    readonly robotsBase64?: string;
    readonly robotsDeflateBase64?: string;
    readonly agent: string;
    readonly url: string;
    readonly probes: readonly { readonly agent: string; readonly url: string }[];
  };
  readonly expected: {
    readonly allowed?: unknown;
    readonly crawlDelay?: number | null;
    readonly sitemaps?: readonly string[];
    readonly sitemapCount?: number;
    readonly directives?: number;
  };
  readonly taste?: true;
  readonly tasteReason?: string;
  readonly note?: string;
}

/** Null when the data is absent: then the suite says so, and fails where it is required. */
function readCases(name: string): readonly Case[] | null {
  try {
    const lines = readFileSync(join(folder, name), "utf8").split("\n");
    return lines.filter((line) => line !== "").map((line) => JSON.parse(line));
  } catch (error) {
    if ((process.env.SKEIN_REQUIRE ?? "").split(",").includes("conformance")) throw error;
    console.log(`conformance data absent: ${name}`);
    return null;
  }
}

function textOf({ input }: Case): string {
  if (input.robots !== undefined) return input.robots;
  if (input.robotsBase64 !== undefined) return Buffer.from(input.robotsBase64, "base64").toString();
  return inflateSync(Buffer.from(input.robotsDeflateBase64 ?? "", "base64")).toString();
}

/** What we answer, in the form of `expected`. */
function answer(one: Case): Case["expected"] {
  const robots = parseRobots(textOf(one));
  const { agent, url, probes } = one.input;
  switch (one.kind) {
    case "allowed":
      return { allowed: verdict(robots, agent, url).allowed };
    case "probes":
      return { allowed: probes.map((probe) => verdict(robots, probe.agent, probe.url).allowed) };
    case "crawl-delay": {
      const delay = crawlDelayMs(robots, agent);
      return { crawlDelay: delay === null ? null : delay / 1_000 };
    }
    case "sitemaps": {
      const found = sitemaps(robots, url ?? null);
      return one.expected.sitemaps ? { sitemaps: found } : { sitemapCount: found.length };
    }
    case "directives":
      return { directives: robots.directives };
  }
}

for (const name of ["robots.jsonl", "robots-live.jsonl"]) {
  const cases = readCases(name);
  test(`the conformance cases of ${name}`, { skip: cases === null }, () => {
    const choices = new Map<string, { same: number; other: number }>();
    for (const one of cases ?? []) {
      if (!one.taste) {
        assert.deepEqual(answer(one), one.expected, `${one.id} ${one.note ?? ""}`);
        continue;
      }
      const row = choices.get(one.tasteReason ?? "") ?? { same: 0, other: 0 };
      row[JSON.stringify(answer(one)) === JSON.stringify(one.expected) ? "same" : "other"]++;
      choices.set(one.tasteReason ?? "", row);
    }
    for (const [reason, { same, other }] of choices) console.log(`taste, ${reason}: ${same} as the source, ${other} otherwise`);
  });
}

const allows = (text: string, path: string, agent = "mybot") => verdict(parseRobots(text), agent, `http://host.example${path}`).allowed;

test("F071 the longest match wins, allow wins ties, $ and * work", () => {
  const text = "User-agent: *\nDisallow: /\nAllow: /public/\nDisallow: /public/*.php$\nAllow: /tie\nDisallow: /tie";
  const right = { "/public/a": true, "/public/a.php": false, "/public/a.php?x=1": true, "/other": false, "/tie": true, "/PUBLIC/": false };
  for (const [path, expected] of Object.entries(right)) assert.equal(allows(text, path), expected, path);
});

test("F071 hostile patterns are matched without trying anything twice", () => {
  const stars = `User-agent: *\nDisallow: /${"*a".repeat(50)}*b$`;
  const text = `${stars}\n${`Disallow: /${"*a".repeat(100)}$\n`.repeat(500)}`;
  assert.equal(allows(text, `/${"a".repeat(8_000)}`), false);
  assert.equal(allows(stars, `/${"a".repeat(8_000)}`), true);
  assert.equal(allows(stars, `/${"a".repeat(8_000)}b`), false);
});

test("F067 a byte order mark before the first line is skipped, also a broken one", () => {
  const text = "User-agent: *\nDisallow: /secret/\n";
  for (const mark of ["\ufeff", "\ufffd"]) assert.equal(allows(mark + text, "/secret/x"), false);
});

test("F072 groups of one agent are merged, whatever the case of its name", () => {
  const text = "User-agent: mybot\nDisallow: /a\n\nUser-agent: other\nDisallow: /o\n\nUser-agent: MyBot\nDisallow: /b\n";
  for (const variant of [text, text.replaceAll(/mybot/gi, "*")]) {
    assert.deepEqual(
      ["/a", "/b", "/o"].map((path) => allows(variant, path)),
      [false, false, true],
    );
  }
});

test("F073 several user-agent lines head one group, in any order", () => {
  for (const heads of ["User-agent: *\nUser-agent: otherbot\n", "User-agent: otherbot\nUser-agent: *\n"]) {
    for (const agent of ["mybot", "otherbot"]) assert.equal(allows(`${heads}Disallow: /p`, "/p", agent), false);
  }
});

test("unknown lines, sitemaps and crawl delays do not end a list of agents", () => {
  for (const between of ["Crawl-delay: 1", "Sitemap: http://host.example/s.xml", "Clean-param: x", "nonsense", ""]) {
    const text = `User-agent: a\n${between}\nUser-agent: b\nDisallow: /p`;
    for (const agent of ["a", "b"]) assert.equal(allows(text, "/p", agent), false, between);
  }
});

test("an empty rule ends the list of agents and forbids nothing", () => {
  const text = "User-agent: a\nDisallow:\nUser-agent: b\nDisallow: /";
  assert.deepEqual(
    ["a", "b", "c"].map((agent) => allows(text, "/p", agent)),
    [true, false, true],
  );
});

test("an agent with a group of its own does not look at the group for all", () => {
  assert.equal(allows("User-agent: *\nDisallow: /\nUser-agent: mybot\nCrawl-delay: 1", "/p"), true);
});

test("F074 crawl delays", () => {
  const delay = (value: string) => crawlDelayMs(parseRobots(`User-agent: *\nCrawl-delay: ${value}\nDisallow:`), "mybot");
  const right: readonly (readonly [string, number | null])[] = [
    ["0.5", 500],
    [".25", 250],
    ["abc", null],
    ["-3", null],
    ["1e9", null],
    ["5s", null],
    ["", null],
    ["300000", 300_000_000],
    ["0", 0],
    ["2 # seconds", 2_000],
  ];
  for (const [value, expected] of right) assert.equal(delay(value), expected, value);
});

test("a crawl delay belongs to the agents named before it, and of several the largest holds", () => {
  const robots = parseRobots("User-agent: a\nCrawl-delay: 10\nUser-agent: b\nDisallow: /x\nUser-agent: a\nCrawl-delay: 3\nUser-agent: *\nCrawl-delay: 7");
  assert.deepEqual(
    ["a", "b", "c"].map((agent) => crawlDelayMs(robots, agent)),
    [10_000, null, 7_000],
  );
});

test("F075 the last of 5,000 rules counts", () => {
  const lines = Array.from({ length: 5_000 }, (_, i) => `Disallow: /some/folder/number-${i}/`);
  assert.equal(allows(`User-agent: *\n${lines.join("\n")}\nDisallow: /secret/\n`, "/secret/x"), false);
});

test("what lies beyond 500 KiB is not read, nor a line that is cut there", () => {
  const start = "User-agent: *\nDisallow: /first\n";
  const rest = `${"#".repeat(99)}\n`.repeat(5_200);
  const whole = `${start}${rest.slice(0, ROBOTS_MAX_BYTES - start.length - 12)}\nAllow: /\nDisallow: /last\n`;
  assert.equal(allows(whole, "/first"), false);
  assert.equal(allows(whole, "/last"), true);
  const cut = `${start}${rest}`.slice(0, ROBOTS_MAX_BYTES - 14);
  for (const text of [`${cut}\nDisallow: /pri`, `${cut}\nDisallow: /private/`]) assert.equal(allows(text, "/prices"), true);
  const wide = `${start}${"# ツツツツ\n".repeat(40_000)}Disallow: /last\n`;
  assert.equal(allows(wide, "/first"), false);
  assert.equal(allows(wide, "/last"), true);
});

test("F076 a page instead of rules allows everything", () => {
  assert.equal(allows("<!doctype html><p>Not found: disallow</p><a href=/>allow: /</a>", "/x"), true);
});

test("line ends may be CR, LF or CRLF, mixed, and lines are counted alike", () => {
  for (const end of ["\n", "\r", "\r\n"]) {
    const robots = parseRobots(["# comment", "User-agent: *", "", "  disallow :  /private/   # why"].join(end));
    assert.deepEqual(verdict(robots, "mybot", "http://host.example/private/x"), { allowed: false, rule: "disallow :  /private/", line: 4 });
  }
  assert.equal(allows("User-agent: *\r\r\nDisallow: /a\n\rDisallow: /b\r\nDisallow: /c", "/c"), false);
});

test("percent forms are compared as RFC 9309 §2.2.2 says", () => {
  const rows: readonly (readonly [pattern: string, path: string, matches: boolean])[] = [
    ["/foo/bar?baz=quz", "/foo/bar?baz=quz", true],
    ["/foo/bar?baz=http://foo.bar", "/foo/bar?baz=http://foo.bar", true],
    ["/foo/bar/ツ", "/foo/bar/%E3%83%84", true],
    ["/foo/bar/%e3%83%84", "/foo/bar/ツ", true],
    ["/foo/bar/%62%61%7A", "/foo/bar/baz", true],
    ["/foo/bar/baz", "/foo/bar/%62%61%7a", true],
    ["/😀", "/%F0%9F%98%80", true],
    ["/a/b", "/a%2Fb", false],
    ["/a%2fb", "/a%2Fb", true],
    ["/%7ejoe", "/~joe", true],
    ["/a b", "/a%20b", true],
    ["/a{b}", "/a%7Bb%7D", true],
    ["/?q='x'", "/?q=%27x%27", true],
    ["/100%", "/100%", true],
    ["/é", "/e", false],
  ];
  for (const [pattern, path, matches] of rows) assert.equal(allows(`User-agent: *\nDisallow: ${pattern}`, path), !matches, `${pattern} ${path}`);
});

test("stars and dollars that stand for themselves are written as percent forms", () => {
  const rows: readonly (readonly [pattern: string, path: string, matches: boolean])[] = [
    ["/path/file-with-a-%2A.html", "/path/file-with-a-*.html", true],
    ["/path/file-with-a-%2A.html", "/path/file-with-a-%2A.html", true],
    ["/path/foo-%24", "/path/foo-$", true],
    ["/path/foo-%24", "/path/foo-", false],
    ["/x$/abc", "/x$/abcdef", true],
    ["/x$/abc", "/x%24/abc", false],
    ["/a$", "/a", true],
    ["/a$", "/ab", false],
    ["/a*$", "/ab", true],
    ["*", "/", true],
    ["*.gif$", "/x.gif", true],
    ["*.gif$", "/x.gif?", false],
    ["/*/x*", "/a/b/x", true],
    ["/$", "/", true],
    ["/$", "/a", false],
    ["/a*a$", "/a", false],
    ["/a*a$", "/aa", true],
    ["private/", "/private/", false],
  ];
  for (const [pattern, path, matches] of rows) assert.equal(allows(`User-agent: *\nDisallow: ${pattern}`, path), !matches, `${pattern} ${path}`);
});

test("the rules' own file may always be fetched, and a URL without path has the path /", () => {
  const text = "User-agent: *\nDisallow: /";
  assert.equal(allows(text, "/robots.txt"), true);
  assert.equal(allows(text, "/robots.txt2"), false);
  assert.equal(allows(text, ""), false);
  assert.equal(allows("User-agent: *\nDisallow: /?x", "?x"), false);
  assert.equal(allows("User-agent: *\nDisallow: /a$", "/a#part"), false);
});

test("no rule gives no line", () => {
  assert.deepEqual(verdict(parseRobots(""), "mybot", "http://host.example/"), { allowed: true, rule: null, line: null });
});

test("sitemaps are absolute and in file order", () => {
  const robots = parseRobots("Sitemap: http://a.example/1.xml\nUser-agent: *\nDisallow: /\nsitemap: /2.xml\nSitemap:\nSitemap: mailto:x@a.example");
  assert.deepEqual(sitemaps(robots), ["http://a.example/1.xml"]);
  assert.deepEqual(sitemaps(robots, "https://b.example/robots.txt"), ["http://a.example/1.xml", "https://b.example/2.xml"]);
});

test("the product token is what stands before the version", () => {
  const rows = { "skein/1.0 (+https://skein.example)": "skein", "My-Bot_x": "my-bot_x", " MJ12bot/v1.4": "mj12bot", "Foo Bar": "foo", "": "" };
  for (const [agent, token] of Object.entries(rows)) assert.equal(productToken(agent), token);
});

/** RFC 9309 by the letter, over patterns of plain letters: a regular expression per rule, the longest wins. */
function plainVerdict(rules: readonly (readonly [boolean, string])[], path: string): boolean {
  let best = -1;
  let allowed = true;
  for (const [allow, pattern] of rules) {
    const anchored = pattern.endsWith("$");
    const body = (anchored ? pattern.slice(0, -1) : pattern).replaceAll("$", "\\$").replaceAll("*", ".*");
    if (!new RegExp(`^${body}${anchored ? "$" : ""}`).test(path)) continue;
    if (pattern.length < best || (pattern.length === best && !allow)) continue;
    best = pattern.length;
    allowed = allow;
  }
  return allowed;
}

test("any rules over any path agree with the rules tried one by one", () => {
  const piece = fc.constantFrom("a", "b", "ab", "/", "*", "**", "c");
  const pattern = fc.tuple(fc.constantFrom("/", "*", "/a", "/ab"), fc.array(piece, { maxLength: 6 }), fc.constantFrom("", "$"));
  const rule = fc.tuple(
    fc.boolean(),
    pattern.map(([head, body, tail]) => head + body.join("") + tail),
  );
  const path = fc.array(fc.constantFrom("a", "b", "c", "/"), { maxLength: 12 }).map((parts) => `/${parts.join("")}`);
  fc.assert(
    fc.property(fc.array(rule, { maxLength: 12 }), path, (rules, asked) => {
      const text = `User-agent: *\n${rules.map(([allow, value]) => `${allow ? "Allow" : "Disallow"}: ${value}`).join("\n")}`;
      assert.equal(allows(text, asked), plainVerdict(rules, asked));
    }),
    { numRuns: 2_000 },
  );
});

test("any text is parsed, and any URL gets an answer", () => {
  const line = fc.oneof(fc.string({ unit: "binary" }), fc.constantFrom("User-agent: *", "Disallow: /%", "Allow: *$", "Crawl-delay: 1", ":", "\ufeff"));
  fc.assert(
    fc.property(fc.array(line), fc.constantFrom("\n", "\r", "\r\n"), fc.string({ unit: "binary" }), (lines, end, url) => {
      const robots = parseRobots(lines.join(end));
      assert.equal(typeof verdict(robots, "mybot", url).allowed, "boolean");
      sitemaps(robots, "http://host.example/robots.txt");
    }),
  );
});
