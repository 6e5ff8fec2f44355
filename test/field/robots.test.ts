/** Whole crawls under odd robots.txt files, judged by what was asked for. Field cases F067 to F078. */
import assert from "node:assert/strict";
import test from "node:test";
import { DEFAULT_USER_AGENT } from "../../src/assemble.ts";
import { page } from "../../src/fetch/raw-server.ts";
import { type Answer, closing, crawled, moved, plain, site } from "./field.ts";

const TOKEN = DEFAULT_USER_AGENT.split("/")[0];

/** What became of /secret/x and /ok under this robots.txt. */
async function under(robots: Answer, more: Readonly<Record<string, Answer>> = {}, spec = {}) {
  await using server = await site({ "/robots.txt": robots, "/": `<a href="/secret/x">s</a><a href="/ok">o</a>`, ...more }, "<p>there");
  const result = await crawled(server, spec);
  return {
    ...result,
    secret: server.targets().includes("/secret/x"),
    ok: server.targets().includes("/ok"),
    robotsRequests: server.asked("/robots.txt"),
    requests: server.requests,
  };
}

const RULES = "User-agent: *\nDisallow: /secret/\n";

test("F067 a byte order mark, odd line ends, blanks, case and comments do not hide the rules", async () => {
  const texts: (string | Uint8Array)[] = [
    Buffer.concat([Buffer.from([0xef, 0xbb, 0xbf]), Buffer.from(RULES)]),
    RULES.replaceAll("\n", "\r\n"),
    RULES.replaceAll("\n", "\r"),
    "  user-AGENT :  *  # all\n\tDISALLOW:/secret/#no",
    `\n\n#x\n${RULES}`,
    `User-agent: *\n\nDisallow: /secret/`,
    `User-agent: ${TOKEN}\nDisallow: /secret/\n\nUser-agent: *\nDisallow:\n`,
    "User-agent: *\nDisallow: /%73ecret/\n",
    "User-agent: *\nDisallow: /*ret/x$\n",
  ];
  for (const text of texts) {
    const { secret, ok, at } = await under(plain(text));
    assert.deepEqual([secret, ok], [false, true], String(text));
    assert.equal(at("/secret/x").outcome, "disallowed");
  }
});

test("F068 a robots.txt that answers 5xx closes its host, after retries", async () => {
  for (const status of ["500 Oops", "503 Unavailable", "599 Odd", "429 Too Many Requests"]) {
    const { outcomes, requests } = await under(page("<h1>error</h1>", [], status), {}, { retry: { max: 1 } });
    assert.deepEqual(outcomes(), { "/": "robots-unavailable" }, status);
    assert.deepEqual(
      requests.map(({ target }) => target),
      ["/robots.txt", "/robots.txt"],
    );
  }
});

test("F068 a robots.txt that ends early, hangs or is no HTTP closes its host too", async () => {
  const answers: Answer[] = [
    closing("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 500\r\n\r\nUser-agent: *\n"),
    closing(""),
    () => null,
    closing("no HTTP at all\r\n\r\n"),
  ];
  for (const answer of answers) {
    const { outcomes, summary } = await under(answer, {}, { retry: { max: 0 }, timeout: "500ms" });
    assert.deepEqual(outcomes(), { "/": "robots-unavailable" });
    assert.equal(summary.seedsReached, 0);
  }
});

test("F069 a robots.txt that is refused or missing forbids nothing", async () => {
  for (const status of ["403 Forbidden", "401 Unauthorized", "404 Not Found", "410 Gone", "400 Bad", "451 Law", "204 No Content"]) {
    const { secret, ok, robotsRequests } = await under(page(status.startsWith("204") ? "" : RULES, ["Content-Type: text/plain"], status));
    assert.deepEqual([secret, ok, robotsRequests], [true, true, 1], status);
  }
});

test("F070 rules behind a redirect are the asking host's; the other host has its own", async () => {
  await using b = await site({ "/robots.txt": plain("User-agent: *\nDisallow: /private/"), "/a-site/robots.txt": plain("User-agent: *\nDisallow:") }, "<p>b");
  await using a = await site(
    {
      "/robots.txt": moved(`${b.origin}/a-site/robots.txt`),
      "/": `<a href="${b.origin}/private/x">p</a><a href="${b.origin}/open">o</a><a href="/private/a">a</a>`,
    },
    "<p>a",
  );
  const { at } = await crawled(a, { scope: { preset: "any" } });
  assert.equal(at(`${b.origin}/private/x`).outcome, "disallowed");
  assert.equal(at(`${b.origin}/open`).status, 200);
  assert.equal(at("/private/a").status, 200);
  assert.equal(b.asked("/private/x"), 0);
  assert.equal(b.asked("/robots.txt"), 1);
});

test("F071 the longest match decides, allow wins ties, * and $ work, case counts", async () => {
  const robots = plain("User-agent: *\nDisallow: /\nAllow: /$\nAllow: /public/\nDisallow: /public/*.php$\nAllow: /tie\nDisallow: /tie");
  const paths = ["/public/a", "/public/a.php", "/public/a.php?x=1", "/other", "/tie", "/PUBLIC/"];
  await using server = await site({ "/robots.txt": robots, "/": paths.map((path) => `<a href="${path}">x</a>`).join("") }, "<p>there");
  await crawled(server);
  assert.deepEqual(server.targets().sort(), ["/", "/public/a", "/public/a.php?x=1", "/tie"]);
});

test("F071 a hostile pattern of 50 stars holds nothing up", async () => {
  const began = performance.now();
  const path = `/${"a".repeat(1_000)}`;
  await using server = await site(
    { "/robots.txt": plain(`User-agent: *\nDisallow: /${"*a".repeat(50)}$b\n${"Disallow: /*a*a*a*a*b\n".repeat(500)}`), "/": `<a href="${path}">x</a>` },
    "<p>there",
  );
  await crawled(server);
  assert.deepEqual(server.targets(), ["/", path]);
  assert.ok(performance.now() - began < 15_000);
});

test("F072 F073 groups of one agent are merged, several agents may head a group", async () => {
  const files = [
    `User-agent: ${TOKEN}\nDisallow: /a\n\nUser-agent: other\nDisallow: /o\n\nUser-agent: ${TOKEN?.toUpperCase()}\nDisallow: /b\n`,
    "User-agent: *\nDisallow: /a\n\nUser-agent: other\nDisallow: /o\n\nUser-agent: *\nDisallow: /b\n",
    "User-agent: *\nUser-agent: other\nDisallow: /a\nDisallow: /b",
    `User-agent: other\nUser-agent: ${TOKEN}\n\nDisallow: /a\nDisallow: /b`,
    `User-agent: ${TOKEN}\nSitemap: http://x/\nUser-agent: other\nDisallow: /a\nDisallow: /b`,
  ];
  for (const file of files) {
    await using server = await site({ "/robots.txt": plain(file), "/": "<a href=/a>a</a><a href=/b>b</a><a href=/o>o</a>" }, "<p>there");
    await crawled(server);
    assert.deepEqual(server.targets(), ["/", "/o"], file);
  }
});

test("F074 Crawl-delay: fractions hold, nonsense is ignored, days give the host up with a reason", async () => {
  const delayed = async (value: string) => {
    await using server = await site({ "/robots.txt": plain(`User-agent: *\nCrawl-delay: ${value}\n`), "/": "<a href=/1>1</a>" }, "<p>x");
    const began = performance.now();
    const result = await crawled(server);
    return { ...result, tookMs: performance.now() - began };
  };
  assert.ok((await delayed("0.5")).tookMs >= 975);
  for (const value of ["abc", "-3", "0", "", "30s"]) {
    const { tookMs, outcomes } = await delayed(value);
    assert.deepEqual(outcomes(), { "/": 200, "/1": 200 });
    assert.ok(tookMs < 15_000, `${value}: ${tookMs} ms`);
  }
  const { outcomes, at } = await delayed("300000");
  assert.deepEqual(outcomes(), { "/": "rate-limited" });
  assert.match(at("/").error?.message ?? "", /Crawl-delay/);
});

test("F075 the last of 5,000 rules counts, also in a file beyond 500 KB that begins with it", async () => {
  const many = Array.from({ length: 5_000 }, (_, i) => `Disallow: /nothing-${i}/here`).join("\n");
  assert.equal((await under(plain(`User-agent: *\n${many}\nDisallow: /secret/\n`))).secret, false);
  assert.equal((await under(plain(`${RULES}${"# filler\n".repeat(100_000)}`))).secret, false);
});

test("F076 a page in place of robots.txt forbids nothing", async () => {
  for (const body of ["<!doctype html><p>Not found</p>", "", "\0\x01\xff", "{}", "x".repeat(100_000)]) {
    const { secret, ok } = await under(page(Buffer.from(body, "latin1")));
    assert.deepEqual([secret, ok], [true, true]);
  }
});

test("F077 robots.txt is asked once of the site's own port, before any page", async () => {
  const links = Array.from({ length: 40 }, (_, i) => `<a href="/p${i}">x</a>`).join("");
  await using server = await site({ "/robots.txt": plain("User-agent: *\nDisallow: /private/"), "/": `${links}<a href="/private/x">x</a>` }, "<p>there");
  const { at } = await crawled(server, { concurrency: 20, perHost: { concurrency: 20 } });
  assert.equal(server.requests[0]?.target, "/robots.txt");
  assert.equal(server.asked("/robots.txt"), 1);
  assert.equal(at("/private/x").outcome, "disallowed");
  assert.equal(server.targets().length, 41);
});

test("F078 robots.txt behind five redirects counts, a loop ends soon", async () => {
  const chain = {
    "/r1": moved("/r2"),
    "/r2": moved("{origin}/r3", "301 Moved"),
    "/r3": moved("r4", "307 Moved"),
    "/r4": moved("/r5", "308 Moved"),
    "/r5": plain(RULES),
  };
  assert.equal((await under(moved("/r1"), chain)).secret, false);
  const loop = await under(moved("/r1"), { "/r1": moved("/robots.txt") });
  assert.equal(loop.ok, true);
  assert.ok(loop.robotsRequests <= 6);
  // A site behind a cookie wall sends robots.txt to itself too.
  const wall = await under(({ headers }) => (headers.has("cookie") ? plain(RULES) : moved("/robots.txt", "302 Found", ["Set-Cookie: ok=1"])));
  assert.equal(wall.secret, false);
  for (const location of ["http://[bad", "mailto:x", ""]) assert.equal((await under(moved(location))).ok, true, location);
});
