/** Whole crawls of pages whose links are spelt in odd ways, judged by the request targets the server saw. Field cases F031 to F048. */
import assert from "node:assert/strict";
import test from "node:test";
import { page } from "../../src/fetch/raw-server.ts";
import { crawled, plain, site, withLookup } from "./field.ts";

/** What the server is asked for when `/` holds these links and every page is there: `/` itself left out, sorted. */
async function asked(links: string | Uint8Array, spec = {}): Promise<string[]> {
  await using server = await site({ "/": links }, "<p>there");
  await crawled(server, spec);
  return server.targets().slice(1).sort();
}

const links = (...hrefs: string[]) => hrefs.map((href) => `<a href="${href}">x</a>`).join("");

test("F031 white space around an href is no part of it", async () => {
  assert.deepEqual(await asked(links("\n\t   /feeds/a.xml\t  \n", "\f/b\r\n", "\u0001/c\u001f")), ["/b", "/c", "/feeds/a.xml"]);
});

test("F032 line breaks and tabs inside an href vanish, blanks are escaped", async () => {
  assert.deepEqual(await asked(links("/docs/a-long-\ntitle", "/docs/b-\r\ntitle", "/docs/c-\ttitle", "/docs/d title", "/docs/e-\n        title")), [
    "/docs/a-long-title",
    "/docs/b-title",
    "/docs/c-title",
    "/docs/d%20title",
    "/docs/e-%20%20%20%20%20%20%20%20title",
  ]);
});

test("F033 what is escaped is not escaped or unescaped again", async () => {
  const hrefs = ["/x%E2%84%A2-y", "/m/one%252Ftwo", "/p%2Fq", "/100%", "/a%2", "/b%zz", "/c%25", "/d+e%2B", "/~u%7Ev"];
  assert.deepEqual(await asked(links(...hrefs)), [...hrefs].sort());
});

test("F034 spellings of one path are one request", async () => {
  assert.deepEqual(await asked(links("/u%c3%a9", "/u%C3%A9", "/ué", "/%75%C3%A9")), ["/u%c3%a9"]);
  assert.deepEqual(await asked(links("/a%2Fb", "/a/b", "/a%2fb")), ["/a%2Fb", "/a/b"]);
});

test("F035 a query reaches the server as it was written", async () => {
  const hrefs = [
    "/i.php?/news/=/7/",
    "/i.php?a",
    "/i.php?b=2&amp;a=1",
    "/i.php?x=1&amp;x=1",
    "/i.php?",
    "/i.php??",
    "/i.php?a=%2F+%20",
    "/i.php?&amp;&amp;",
    "/i.php?q=a'b",
  ];
  assert.deepEqual(await asked(links(...hrefs)), hrefs.map((href) => href.replaceAll("&amp;", "&").replace("'", "%27")).sort());
});

test("F036 a path is UTF-8, a query is in the page's encoding", async () => {
  const body = Buffer.from(`<a href="/\xe9?q=\xe9">x</a>`, "latin1");
  assert.deepEqual(await asked(page(body, ["Content-Type: text/html; charset=ISO-8859-1"])), ["/%C3%A9?q=%E9"]);
  assert.deepEqual(await asked(page(Buffer.from(`<meta charset=koi8-r><a href="/\xc1?q=\xc1">x</a>`, "latin1"))), ["/%D0%B0?q=%C1"]);
});

test("F037 a double slash in a path is significant", async () => {
  await using server = await site({ "/": links("/page-a", "//127.0.0.1:{port}//page-a", "/b//c", "/b/c"), "/page-a": "<p>a", "/b//c": "<p>", "/b/c": "<p>" });
  const { outcomes } = await crawled(server);
  assert.deepEqual(outcomes(), { "/": 200, "/page-a": 200, "//page-a": 404, "/b//c": 200, "/b/c": 200 });
});

test("F038 an escaped backslash stays, a literal one is a slash", async () => {
  assert.deepEqual(await asked(links("/a%5Cb", "/c\\d", "\\e")), ["/a%5Cb", "/c/d", "/e"]);
});

test("F039 fragments are never sent, and a page linked only with one is found", async () => {
  await using server = await site({ "/": links("/one#s1", "/one#s2", "#top", "/#a?b"), "/one": links("#x", "/one") });
  const { outcomes } = await crawled(server, { maxDepth: 1 });
  assert.deepEqual(outcomes(), { "/": 200, "/one": 200 });
  assert.deepEqual(server.targets(), ["/", "/one"]);
});

test("F040 F041 F042 names of hosts: international, with underscores, with dots and ports to spare", async () => {
  await using server = await site({}, "<p>there");
  const lookup = withLookup((_, callback) => callback(null, [{ address: "127.0.0.1", family: 4 }]));
  const { port } = server;
  const hrefs = [`http://bücher.example:${port}/ü`, `http://BÜCHER.example:${port}/%C3%BC`, `http://a_b.example:${port}/`, `http://hg--69.example:${port}/`];
  const same = [`http://a.example.:${port}/p`, `HTTP://A.Example:${port}/p`, `http://a.example:${port}/p#x`];
  await using start = await site({ "/": links(...hrefs, ...same) });
  const { outcomes } = await crawled(start, { seeds: `${start.origin}/`, scope: { preset: "any" } }, lookup);
  assert.deepEqual(outcomes(), {
    "/": 200,
    [`http://xn--bcher-kva.example:${port}/%C3%BC`]: 200,
    [`http://a_b.example:${port}/`]: 200,
    [`http://hg--69.example:${port}/`]: 200,
    [`http://a.example:${port}/p`]: 200,
  });
  const hosts = new Set(server.requests.map(({ headers }) => headers.get("host")));
  assert.deepEqual(
    [...hosts].sort(),
    ["a.example", "a_b.example", "hg--69.example", "xn--bcher-kva.example"].map((host) => `${host}:${port}`),
  );
});

test("F043 links with other schemes make no request and no failure", async () => {
  await using server = await site({
    "/": links(
      "mailto:a@example.org",
      "tel:+1",
      "data:text/html,<a>",
      "javascript:print()",
      "ftp://h/x",
      "about:blank",
      "blob:x",
      "JavaScript:void(0)",
      "  mailto:b",
      "skype:x?call",
      "/ok",
    ),
    "/ok": "<p>ok",
  });
  const { outcomes, summary, skipped } = await crawled(server, { maxDepth: 1 });
  assert.deepEqual(outcomes(), { "/": 200, "/ok": 200 });
  assert.equal(summary.bySkipReason.scheme, 10);
  assert.ok(skipped.includes("scheme mailto:a@example.org"));
});

test("F044 user and password of a URL are sent as Basic and stand nowhere", async () => {
  const wanted = `Basic ${btoa("user:p@ss")}`;
  const said: string[] = [];
  await using server = await site({}, ({ headers, target }) => {
    if (headers.get("authorization") !== wanted) return page("no", [], "401 Unauthorized");
    return target === "/" ? page(links("/in", "http://other:x@127.0.0.1/out")) : page("<p>in");
  });
  const { records, skipped, at } = await crawled(
    server,
    { seeds: `http://user:p%40ss@127.0.0.1:${server.port}/` },
    { log: (_, message, fields) => said.push(JSON.stringify([message, fields])), onEvent: (event) => said.push(JSON.stringify(event)) },
  );
  assert.deepEqual([at("/").status, at("/in").status], [200, 200]);
  const everything = [
    ...records.map((record) => JSON.stringify(record)),
    ...skipped,
    ...said,
    ...server.requests.map(({ target, headers }) => `${target} ${headers.get("referer")} ${headers.get("host")}`),
  ];
  assert.ok(!everything.some((text) => /user:|p%40ss|p@ss|other:x/.test(text)));
});

test("F045 a link without a scheme does not keep the real pages away, and ends at the limit", async () => {
  await using server = await site({ "/": links("www.example.com/p/", "/good1", "/good2", "/good3", "/good4", "/good5") }, links("www.example.com/p/"));
  const { summary, records } = await crawled(server, { limits: { pages: 60 } });
  assert.ok(summary.pages <= 60);
  const paths = records.map(({ url }) => url.replace(server.origin, ""));
  for (const good of ["/good1", "/good2", "/good3", "/good4", "/good5"]) assert.ok(paths.includes(good), good);
  // Breadth first: no page of a level before all of the level above have been asked for.
  const depths = records.map(({ depth }) => depth);
  assert.ok(
    depths.every((depth, i) => i === 0 || depth >= depths[i - 1]! - 1),
    depths.join(" "),
  );
});

test("F046 a calendar without end leaves room for the ten pages beside it, and depth bounds it", async () => {
  const answers = { "/": links("/cal?y=1", ...Array.from({ length: 10 }, (_, i) => `/n${i}`)) };
  const calendar = ({ target }: { target: string }) =>
    target.startsWith("/cal?y=") ? page(links(`/cal?y=${Number(target.slice(7)) + 1}`)) : page("<p>normal");
  await using one = await site(answers, calendar);
  const { records, summary } = await crawled(one, { limits: { pages: 30 } });
  assert.equal(records.filter(({ url }) => url.includes("/n")).length, 10);
  assert.ok(summary.pages <= 30);
  await using two = await site(answers, calendar);
  assert.equal((await crawled(two, { maxDepth: 4 })).records.length, 15);
});

test("F047 a query does not grow by being escaped twice", async () => {
  await using server = await site({ "/s?&p=1": links("/s?&amp;p=2"), "/s?&p=2": links("/s?&amp;p=2", "/s?&amp;p=1") });
  await crawled(server, { seeds: "/s?&p=1", maxDepth: 3 });
  assert.deepEqual(server.targets(), ["/s?&p=1", "/s?&p=2"]);
});

test("F048 a long URL is requested, one over the limit is skipped with its reason", async () => {
  const long = `/${"a".repeat(3_000)}`;
  await using server = await site({ "/": links(long, `/${"c".repeat(20_000)}`, `/${"d".repeat(1_000_000)}`, "/ok") }, "<p>there");
  const { outcomes, skipped } = await crawled(server);
  assert.deepEqual(outcomes(), { "/": 200, [long]: 200, "/ok": 200 });
  assert.equal(skipped.length, 2);
  assert.ok(skipped.every((line) => line.length < 30_000));
  for (const line of skipped) assert.match(line.slice(0, 20), /^(url-too-long|trap) /);
});

test("F044 robots.txt of a site behind Basic authorization is asked for with it", async () => {
  await using server = await site({
    "/robots.txt": ({ headers }) => (headers.has("authorization") ? plain("User-agent: *\nDisallow: /no") : page("no", [], "401 Unauthorized")),
    "/": links("/no", "/yes"),
    "/yes": "<p>yes",
  });
  const { outcomes } = await crawled(server, { seeds: `http://u:p@127.0.0.1:${server.port}/` });
  assert.deepEqual(outcomes(), { "/": 200, "/yes": 200, "/no": "disallowed" });
});
