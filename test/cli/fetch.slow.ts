/** `skein fetch` against loopback servers: the whole way, from arguments to text. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { main } from "../../src/cli/main.ts";
import type { PageProbe } from "../../src/inspect/probe.ts";
import { type Answer, html, type Served, serve } from "../crawl/served.ts";
import { fakeIo } from "./fake-io.ts";
import { golden } from "./golden.ts";

const folder = mkdtempSync(join(tmpdir(), "skein-fetch-"));
after(() => rmSync(folder, { recursive: true }));

async function run(argv: readonly string[], env: Record<string, string> = {}) {
  const io = fakeIo({ cwd: folder, env });
  const status = await main(argv, io);
  return { status, out: io.out(), err: io.err() };
}

async function probe(...argv: string[]): Promise<PageProbe & { readonly exit: number }> {
  const { status, out, err } = await run(["fetch", "--json", ...argv]);
  assert.equal(out.split("\n").length, 2, `one line of JSON: ${out}${err}`);
  return { ...JSON.parse(out), exit: status };
}

const PAGE =
  '<base href="/sub/"><title>Hi é</title><link rel=canonical href="/canon"><meta name=robots content="noarchive">' +
  '<a href=x>1</a><a rel=nofollow href=/y>2</a><a href="mailto:a@b">m</a><img src=i.png>';

const site: Answer = (request, response) => {
  switch (request.url) {
    case "/robots.txt":
      return void response.end("User-agent: *\nDisallow: /private # not this\nAllow: /private/ok\n");
    case "/old":
      return void response.writeHead(301, { location: "/new", "set-cookie": "taste=1" }).end();
    case "/new":
      return html(response, PAGE);
    case "/cookie":
      return html(response, `<title>${request.headers.cookie ?? "none"}</title>`);
    case "/jar":
      return void response.writeHead(302, { location: "/cookie", "set-cookie": "taste=1" }).end();
    case "/agent":
      return html(response, `<title>${request.headers["user-agent"]} ${request.headers["x-test"]} ${request.headers.authorization}</title>`);
    case "/image":
      return void response.writeHead(200, { "content-type": "image/png" }).end("0123456789");
    case "/busy":
      return html(response, "busy", 503);
    case "/large":
      return html(response, "x".repeat(5_000));
    default:
      return html(response, "<a href=/>home</a>", request.url?.startsWith("/private") ? 200 : 404);
  }
};

/** What differs from run to run. */
function masked(text: string, { port }: Served): string {
  return text
    .replaceAll(String(port), "PORT")
    .replace(/\(?\b[\d.]+m?s( to the first byte|\)| in all)/g, (_, rest: string) => (rest === ")" ? "(TIME)" : `TIME${rest}`))
    .replace(/date: .*/, "date: DATE");
}

test("the whole answer, for people", async () => {
  await using served = await serve(site);
  const { status, out, err } = await run(["fetch", `${served.origin}/old`, "--images"]);
  assert.deepEqual([status, err], [0, ""]);
  golden("fetch.txt", masked(out, served));
});

test("one JSON object with the chain, the headers, the verdicts, the record and the links", async () => {
  await using served = await serve(site);
  const got = await probe(`${served.origin}/old#frag`);
  assert.equal(got.exit, 0);
  assert.equal(got.url, `${served.origin}/old`);
  assert.deepEqual(
    got.exchanges.map(({ url, robots, status, location }) => [url.slice(served.origin.length), robots, status, location]),
    [
      ["/robots.txt", true, 200, null],
      ["/old", false, 301, "/new"],
      ["/new", false, 200, null],
    ],
  );
  assert.ok(got.exchanges[1]?.headers.some(([name, value]) => name === "set-cookie" && value === "taste=1"));
  assert.equal(got.record?.url, `${served.origin}/new`);
  assert.deepEqual(got.record?.redirects, [{ url: `${served.origin}/old`, status: 301 }]);
  assert.deepEqual(got.record?.robots, ["noarchive"]);
  assert.equal(got.base, `${served.origin}/sub/`);
  assert.deepEqual(got.links, [{ url: `${served.origin}/canon` }, { url: `${served.origin}/sub/x` }, { url: `${served.origin}/y`, nofollow: true }]);
  assert.deepEqual(got.rejected, [{ href: "mailto:a@b", reason: "scheme" }]);
  assert.equal(got.record?.images, undefined);
  assert.equal(got.scraped, null);
  assert.ok(got.exchanges.every(({ durationMs, latencyMs }) => durationMs >= 0 && latencyMs !== null));
});

test("what robots.txt disallows is not fetched, but with --no-robots", async () => {
  await using served = await serve(site);
  const { status, out } = await run(["fetch", `${served.origin}/private/x`]);
  assert.equal(status, 0);
  assert.match(out, /\noutcome {5}disallowed\nrobots {6}disallowed by line 2, "Disallow: \/private", of the group for every agent \(\*\)\n/);
  assert.deepEqual(served.targets(), []);
  const forced = await run(["fetch", `${served.origin}/private/x`, "--no-robots"]);
  assert.match(forced.out, /\nstatus {6}200\nrobots {6}not asked \(--no-robots\)\n/);
  assert.deepEqual(
    served.arrivals.map(({ target }) => target),
    ["/robots.txt", "/private/x"],
  );
});

test("options of a request are those of a crawl: agent, headers, authorization, cookies, types, sizes, addresses", async () => {
  await using served = await serve(site);
  const host = served.origin.slice("http://".length);
  const agent = await probe(`${served.origin}/agent`, "-A", "tester/1", "-H", "X-Test: yes", "--auth", `${host}=me:secret`);
  assert.equal(agent.record?.title, `tester/1 yes Basic ${Buffer.from("me:secret").toString("base64")}`);
  assert.equal((await probe(`${served.origin}/jar`)).record?.title, "taste=1");
  writeFileSync(join(folder, "jar.txt"), `127.0.0.1\tFALSE\t/\tFALSE\t0\tfrom\tfile\n`);
  assert.equal((await probe(`${served.origin}/cookie`, "--cookies", join(folder, "jar.txt"))).record?.title, "from=file");
  assert.equal((await probe(`${served.origin}/image`)).record?.bodySkipped, true);
  assert.equal((await probe(`${served.origin}/image`, "--types", "all")).record?.bytesDecoded, 10);
  const cut = (await probe(`${served.origin}/large`, "--max-body-size", "1KB")).record;
  assert.deepEqual([cut?.truncated, cut?.bytesDecoded], [true, 1000]);
  const refused = await probe(`${served.origin}/new`, "--refuse-private");
  assert.deepEqual([refused.exit, refused.record?.error?.code], [4, "blocked-address"]);
  assert.equal((await probe(`${served.origin}/new`, "--refuse-private", "--allow-address", "127.0.0.1")).record?.status, 200);
});

test("one try unless --retries says otherwise; an answer of any status is an answer", async () => {
  await using served = await serve(site);
  assert.equal((await probe(`${served.origin}/busy`)).exit, 0);
  assert.deepEqual(served.targets(), ["/busy"]);
  const again = await probe(`${served.origin}/busy`, "--retries", "1");
  assert.deepEqual([again.exit, again.retries, again.record?.attempts], [0, 1, 2]);
  const variable = await run(["fetch", "--json", `${served.origin}/busy`], { SKEIN_RETRIES: "1", SKEIN_DEPTH: "3" });
  assert.equal(JSON.parse(variable.out).retries, 1);
});

test("no answer: status 4, and what was tried; a bare host is tried as https, then http", async () => {
  const served = await serve(site);
  const bare = await run(["fetch", `127.0.0.1:${served.port}/new`]);
  assert.equal(bare.status, 0);
  assert.match(bare.out, /^no answer https:.* tls: .*\n200 {7}http:/);
  const { origin } = served;
  await served[Symbol.asyncDispose]();
  const { status, out } = await run(["fetch", `${origin}/new`]);
  assert.equal(status, 4);
  assert.match(out, /^no answer http:.*robots\.txt {2}connect: connection refused.*\n\nurl .*\/new\noutcome {5}failed \(connect\): connection refused\n/);
});

test("redirects are followed to other hosts and ports", async () => {
  await using there = await serve((_, response) => html(response, "<title>there</title>"));
  await using here = await serve((_, response) => void response.writeHead(302, { location: `${there.origin}/x` }).end());
  const got = await probe(`${here.origin}/`, "--no-robots");
  assert.deepEqual([got.record?.url, got.record?.title], [`${there.origin}/x`, "there"]);
});

test("-s FILE shows the links that a function returns", async () => {
  await using served = await serve(site);
  writeFileSync(join(folder, "links.mjs"), "export default (url, html) => [html.length > 0 ? '/from-function' : '/none', 'http://other.example/'];");
  const got = await probe(`${served.origin}/new`, "-s", "links.mjs");
  assert.deepEqual(got.scraped?.links, [`${served.origin}/from-function`, "http://other.example/"]);
  const text = await run(["fetch", `${served.origin}/new`, "-s", "links.mjs"]);
  assert.match(text.out, /\nlinks of the scraper \(2\)\n {2}http:.*\/from-function\n {2}http:\/\/other\.example\/\n/);
  writeFileSync(join(folder, "throws.mjs"), "export default () => { throw new Error('boom'); };");
  const thrown = await run(["fetch", `${served.origin}/new`, "-s", "throws.mjs"]);
  assert.match(thrown.out, /outcome {5}failed \(scraper\): boom/);
  writeFileSync(
    join(folder, "items.mjs"),
    `import { defineScraper } from "skein";
export default defineScraper({ handlers: { page({ $, item, follow }) {
  item({ title: $("title").text() });
  follow("/more", { handler: "page", series: "s", index: 3 });
}, other({ item, url }) { item({ other: url }); } } });`,
  );
  const items = await run(["fetch", `${served.origin}/new`, "-s", "items.mjs"]);
  assert.match(items.out, /\nfollows \(1\)\n {2}http:.*\/more {2}page {2}s 3\n/, items.err);
  assert.match(items.out, /\nitems \(1\)\n {2}\{"title":".*"\}\n/);
  const other = await probe(`${served.origin}/new`, "-s", "items.mjs", "--handler", "other");
  assert.deepEqual(other.scraped?.items, [{ type: "items", item: { other: `${served.origin}/new` } }]);
  const none = await probe(`${served.origin}/new`, "-s", "items.mjs", "--handler", "nobody");
  assert.match(none.record?.error?.message ?? "", /the scraper has no handler "nobody"; its handlers are page, other/);
});

test("wrong usage: status 2 and every problem", async () => {
  const cases: readonly (readonly [readonly string[], RegExp])[] = [
    [[], /^skein: nothing to fetch: give a URL\n$/],
    [["http://a/", "http://b/"], /^skein: http:\/\/b\/: skein fetch takes one URL\n$/],
    [["ftp://a/"], /only http:\/\/ and https:\/\/ are crawled/],
    [["word"], /neither a URL nor a host name/],
    [
      ["http://a/", "--imagse", "--depth", "2"],
      /^skein: --imagse: no such option; did you mean --images\?\nskein: --depth: an option of skein crawl, not of skein fetch\n$/,
    ],
    [["http://a/", "--timeout", "soon"], /^skein: --timeout: expected a duration/],
    [["http://a/", "-s", "absent.ts"], /absent\.ts: no such file/],
    [["http://a/", "-s", "links.mjs", "--handler", "detail"], /^skein: --handler: the scraper is a plain function and has no handlers\n$/],
    [["http://a/", "-e", "title=h1", "--handler", "detail"], /^skein: --handler: which scraper's\? Give -s FILE too\n$/],
  ];
  for (const [argv, said] of cases) {
    const { status, out, err } = await run(["fetch", ...argv]);
    assert.deepEqual([status, out], [2, ""], err);
    assert.match(err, said);
  }
});
