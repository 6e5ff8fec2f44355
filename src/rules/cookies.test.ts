/** cookies.ts and cookie-file.ts by RFC 6265. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { Cookie } from "../core/frontier.ts";
import { parseCookieFile } from "./cookie-file.ts";
import {
  type CookiePlace,
  cookieHeader,
  createCookieReader,
  domainMatches,
  MAX_COOKIES_PER_DOMAIN,
  MAX_COOKIES_PER_JAR,
  mergeCookies,
  parseSetCookie,
  pathMatches,
} from "./cookies.ts";
import { parseCookieDate } from "./http-date.ts";
import { isPublicSuffix } from "./site.ts";

const NOW = Date.UTC(2026, 7, 22, 12, 0, 0);
const place: CookiePlace = { host: "www.example.com", path: "/a/b", secure: true };
const set = (line: string, at: Partial<CookiePlace> = {}) => parseSetCookie(line, { ...place, ...at }, NOW, isPublicSuffix);
const jarOf = (...lines: string[]) =>
  mergeCookies(
    [],
    lines.map((line) => set(line)).filter((cookie) => cookie !== null),
    NOW,
  );
const header = (jar: readonly Cookie[], at: Partial<CookiePlace> = {}, now = NOW) => cookieHeader(jar, { ...place, ...at }, now);

test("name and value", () => {
  const pair = (line: string) => {
    const cookie = set(line);
    return cookie && [cookie.name, cookie.value];
  };
  assert.deepEqual(pair("ok=1"), ["ok", "1"]);
  assert.deepEqual(pair("  a = b c ; Path=/"), ["a", "b c"]);
  assert.deepEqual(pair('a="x=y"; HttpOnly'), ["a", '"x=y"']);
  assert.deepEqual(pair("a="), ["a", ""]);
  assert.deepEqual(pair("\xc3\xa0=\xc3\xa0\t; Path=/"), ["\xc3\xa0", "\xc3\xa0"], "UTF-8 as Latin-1");
  for (const bad of ["", "a", "=b", ";a=b", "a; b=c", "a=\x00b", "a=b\r\nX: y", `a=${"x".repeat(4_096)}`]) assert.equal(pair(bad), null, bad);
  assert.equal(set(`a=${"x".repeat(4_095)}`)?.value.length, 4_095);
});

test("names with the prefixes of safe cookies are kept only if they are what they say", () => {
  for (const good of ["__Secure-a=1; Secure", "__Host-a=1; Secure; Path=/", "__secure-a=1; secure; Domain=example.com", "_Secure-a=1", "a__Host-=1"])
    assert.notEqual(set(good), null, good);
  for (const bad of [
    "__Secure-a=1",
    "__Host-a=1; Secure",
    "__Host-a=1; Path=/",
    "__HOST-a=1; Secure; Path=/x",
    "__Host-a=1; Secure; Path=/; Domain=example.com",
  ])
    assert.equal(set(bad), null, bad);
  for (const insecure of ["__Secure-a=1; Secure", "__Host-a=1; Secure; Path=/"]) assert.equal(set(insecure, { secure: false }), null, insecure);
});

test("a cookie without Domain is for its host alone", () => {
  const cookie = set("a=1");
  assert.deepEqual(cookie, { name: "a", value: "1", domain: "www.example.com", hostOnly: true, path: "/a", secure: false, expiresAt: null });
  const jar = jarOf("a=1; Path=/");
  assert.equal(header(jar), "a=1");
  assert.equal(header(jar, { host: "x.www.example.com" }), null);
  assert.equal(header(jar, { host: "example.com" }), null);
});

test("Domain widens to a domain the host belongs to, and to no other", () => {
  const owner = (domain: string, host = "www.example.com") => {
    const cookie = set(`a=1; Domain=${domain}`, { host });
    return cookie && `${cookie.domain}${cookie.hostOnly ? "" : " and below"}`;
  };
  assert.equal(owner("example.com"), "example.com and below");
  assert.equal(owner(".EXAMPLE.com"), "example.com and below");
  assert.equal(owner("www.example.com"), "www.example.com and below");
  assert.equal(owner(""), "www.example.com");
  assert.equal(owner("bücher.example", "x.xn--bcher-kva.example"), "xn--bcher-kva.example and below");
  for (const foreign of ["other.com", "x.www.example.com", "ample.com", "com", "..example.com", "www.example.com."])
    assert.equal(owner(foreign), null, foreign);
  assert.equal(owner("co.uk", "a.co.uk"), null);
  assert.equal(owner("github.io", "me.github.io"), null);
  assert.equal(owner("github.io", "github.io"), "github.io");
  assert.equal(owner("localhost", "localhost"), "localhost");
  assert.equal(owner("127.0.0.1", "127.0.0.1"), "127.0.0.1");
  assert.equal(owner("0.0.1", "127.0.0.1"), null);
  assert.equal(owner("[::1]", "[::1]"), "[::1]");
});

test("domains and paths match as in RFC 6265 §5.1.3 and §5.1.4", () => {
  assert.ok(domainMatches("a.b.example", "b.example") && domainMatches("b.example", "b.example"));
  assert.ok(!domainMatches("xb.example", "b.example") && !domainMatches("1.0.0.1", "0.0.1") && !domainMatches("b.example", "a.b.example"));
  const rows: readonly (readonly [path: string, cookiePath: string, matches: boolean])[] = [
    ["/a", "/a", true],
    ["/a/b", "/a", true],
    ["/a/b", "/a/", true],
    ["/ab", "/a", false],
    ["/a", "/a/", false],
    ["/", "/", true],
    ["/x", "/", true],
  ];
  for (const [path, cookiePath, matches] of rows) assert.equal(pathMatches(path, cookiePath), matches, `${path} ${cookiePath}`);
});

test("the path is the attribute, else the folder of the request", () => {
  const path = (line: string, at: string) => set(line, { path: at })?.path;
  assert.equal(path("a=1", "/"), "/");
  assert.equal(path("a=1", "/x"), "/");
  assert.equal(path("a=1", "/x/"), "/x");
  assert.equal(path("a=1", "/x/y/z"), "/x/y");
  assert.equal(path("a=1; Path=/q", "/x/y"), "/q");
  assert.equal(path("a=1; Path=q", "/x/y"), "/x");
  assert.equal(path("a=1; path=/q; Path", "/x/y"), "/x");
});

test("Max-Age counts before Expires, and bad values count for nothing", () => {
  const expires = (line: string) => set(`a=1; ${line}`)?.expiresAt;
  assert.equal(expires("Max-Age=10"), NOW + 10_000);
  assert.equal(expires("Max-Age=10; Expires=Thu, 01 Jan 1970 00:00:00 GMT"), NOW + 10_000);
  assert.equal(expires("max-age=0"), 0);
  assert.equal(expires("max-age=-1"), 0);
  assert.equal(expires("max-age=1d"), null);
  assert.equal(expires("max-age=99999999999999999999"), Number.MAX_SAFE_INTEGER);
  assert.equal(expires("Expires=Sat, 22 Aug 2026 12:01:00 GMT"), NOW + 60_000);
  assert.equal(expires("Expires=soon"), null);
});

test("cookie dates are read leniently", () => {
  const rows: Readonly<Record<string, number | null>> = {
    "Sat, 22 Aug 2026 12:00:00 GMT": NOW,
    "Saturday, 22-Aug-26 12:00:00 GMT": NOW,
    "Sat Aug 22 12:00:00 2026": NOW,
    "22 Aug 2026 12:0:0": NOW,
    "2026 august 22th 12:00:00": NOW,
    "12:00:00 22/Aug/2026": NOW,
    "01-Jan-70 00:00:00": 0,
    "01 Jan 69 00:00:00": Date.UTC(2069, 0, 1),
    "Sat, 22 Aug 2026": null,
    "22 2026 12:00:00": null,
    "31 Feb 2026 12:00:00": null,
    "22 Aug 2026 24:00:00": null,
    "22 Aug 2026 12:00:60": null,
    "22 Aug 1600 12:00:00": null,
    "": null,
  };
  for (const [text, expected] of Object.entries(rows)) assert.equal(parseCookieDate(text), expected, text);
});

test("F001 a cookie set on the way is sent back, and an expired one is not", () => {
  const jar = jarOf("ok=1; Path=/", "gone=1; Path=/; Max-Age=5");
  assert.equal(header(jar), "ok=1; gone=1");
  assert.equal(header(jar, {}, NOW + 5_000), "ok=1");
});

test("secure cookies go over https only", () => {
  const jar = jarOf("a=1; Secure; Path=/", "b=2; Path=/");
  assert.equal(header(jar), "a=1; b=2");
  assert.equal(header(jar, { secure: false }), "b=2");
});

test("the longest path comes first, then the oldest cookie", () => {
  const jar = jarOf("a=1; Path=/", "b=2; Path=/a/b", "c=3; Path=/", "d=4; Path=/a");
  assert.equal(header(jar), "b=2; d=4; a=1; c=3");
  assert.equal(header(jar, { path: "/x" }), "a=1; c=3");
});

test("a new value takes the place of the old one, other paths and domains live on their own", () => {
  const jar = mergeCookies(jarOf("a=1; Path=/", "b=2; Path=/"), [set("a=3; Path=/")!, set("a=4; Path=/a")!, set("a=5; Path=/; Domain=example.com")!], NOW);
  assert.equal(header(jar), "a=4; a=3; b=2; a=5");
  assert.equal(header(mergeCookies(jar, [set("a=; Path=/; Max-Age=0")!], NOW)), "a=4; b=2; a=5");
});

test("a jar stays in bounds and loses its oldest", () => {
  const many = Array.from({ length: 400 }, (_, i) => set(`n${i}=1; Path=/`)!);
  const jar = mergeCookies([], many, NOW);
  assert.equal(jar.length, MAX_COOKIES_PER_DOMAIN);
  assert.deepEqual([jar[0]?.name, jar.at(-1)?.name], ["n350", "n399"]);
  const hosts = Array.from({ length: 1_000 }, (_, i) => set("a=1", { host: `h${i}.example.com` })!);
  assert.equal(mergeCookies(jar, hosts, NOW).length, MAX_COOKIES_PER_JAR);
});

test("merging twice changes nothing", () => {
  const line = fc.tuple(fc.constantFrom("a", "b", "c"), fc.nat(9), fc.constantFrom("", "; Max-Age=0", "; Max-Age=9", "; Path=/x", "; Domain=example.com"));
  fc.assert(
    fc.property(fc.array(line), (lines) => {
      const cookies = lines.map(([name, value, rest]) => set(`${name}=${value}${rest}`)!);
      const once = mergeCookies([], cookies, NOW);
      assert.deepEqual(mergeCookies(once, once, NOW), once);
      assert.equal(new Set(once.map((cookie) => `${cookie.name} ${cookie.domain} ${cookie.path}`)).size, once.length);
    }),
  );
});

test("any line gives a cookie that fits its host, or none", () => {
  const piece = fc.oneof(fc.string(), fc.constantFrom("; Domain=", "; Path=", "example.com", "com", "=", "; Expires=", "; Max-Age=", "1"));
  fc.assert(
    fc.property(fc.array(piece), (pieces) => {
      const cookie = set(`a=${pieces.join("")}`);
      if (cookie === null) return;
      assert.ok(domainMatches(place.host, cookie.domain));
      assert.ok(cookie.path.startsWith("/"));
      assert.doesNotMatch(`${cookie.name}${cookie.value}`, /[\r\n;]/);
    }),
  );
});

test("a reader keeps cookies with their host until the suffix list is loaded", async () => {
  const reader = createCookieReader();
  const early = reader.parse("a=1; Domain=example.com", place, NOW);
  assert.deepEqual([early?.domain, early?.hostOnly], ["www.example.com", true]);
  assert.equal(reader.parse("a=1; Domain=com", place, NOW), null);
  await reader.preload();
  const late = reader.parse("a=1; Domain=example.com", place, NOW);
  assert.deepEqual([late?.domain, late?.hostOnly], ["example.com", false]);
  assert.equal(reader.parse("a=1; Domain=co.uk", { ...place, host: "a.co.uk" }, NOW), null);
});

test("a cookie file is read line by line, and bad lines are named without their values", () => {
  const text = [
    "# Netscape HTTP Cookie File",
    "",
    ".example.com\tTRUE\t/\tTRUE\t2000000000\tsid\tabc=d",
    "#HttpOnly_www.example.com\tFALSE\t/app\tFALSE\t0\thidden\tx",
    "Example.org\tFALSE\t/\tFALSE\t0\tempty",
    "example.org FALSE / FALSE 0 secret value",
    "example.org\tFALSE\t/\tmaybe\t0\tsecret\tvalue",
    "example.org\tFALSE\t/\tFALSE\tnever\tsecret\tvalue",
    "#HttpOnly_",
  ].join("\r\n");
  const { cookies, problems } = parseCookieFile(text);
  assert.deepEqual(cookies, [
    { name: "sid", value: "abc=d", domain: "example.com", hostOnly: false, path: "/", secure: true, expiresAt: 2_000_000_000_000 },
    { name: "hidden", value: "x", domain: "www.example.com", hostOnly: true, path: "/app", secure: false, expiresAt: null },
    { name: "empty", value: "", domain: "example.org", hostOnly: true, path: "/", secure: false, expiresAt: null },
  ]);
  assert.deepEqual(
    problems.map((problem) => problem.line),
    [6, 7, 8],
  );
  assert.ok(problems.every((problem) => !problem.message.includes("value") || problem.message.includes("name or value")));
});
