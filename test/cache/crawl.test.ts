/** Whole crawls with a cache over loopback: what is asked for again, what records say, and what happens without a network. */
import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test, { after } from "node:test";
import type { PageRecord } from "../../src/core/records.ts";

import { type CrawlInput, crawl } from "../../src/crawl.ts";
import { html, type Served, serve, tree } from "../crawl/served.ts";

const root = mkdtempSync(join(tmpdir(), "skein-cached-"));
after(() => rmSync(root, { recursive: true, force: true }));
const folder = (name: string) => mkdtempSync(join(root, `${name}-`));

async function records(spec: CrawlInput): Promise<PageRecord[]> {
  const run = crawl(spec);
  const pages: PageRecord[] = [];
  for await (const page of run) pages.push(page);
  await run.done;
  return pages.sort((a, b) => (a.url < b.url ? -1 : 1));
}

/** What does not depend on when and whence it came. */
function timeless(page: PageRecord): Partial<PageRecord> {
  const { fetchedAt: _, durationMs: __, fromCache: ___, ...rest } = page;
  return rest;
}

/** `run` with what the server was asked for meanwhile, robots.txt left out. */
async function askedDuring<T>(server: Served, run: () => Promise<T>): Promise<{ readonly result: T; readonly asked: readonly string[] }> {
  const before = server.targets().length;
  const result = await run();
  return { result, asked: server.targets().slice(before) };
}

const site = () =>
  serve((request, response) => {
    if (request.url === "/robots.txt") response.writeHead(200, { "content-type": "text/plain" }).end("User-agent: *\nDisallow: /no\n");
    else if (request.url === "/moved") response.writeHead(302, { location: "/d", "cache-control": "no-store" }).end();
    else if (request.url === "/gone") response.writeHead(404).end("no such page");
    else if (request.url === "/broken") response.writeHead(500).end("error");
    else if (request.url === "/d") {
      response.setHeader("cache-control", "no-store");
      html(response, "<title>D</title>");
    } else html(response, `<title>T</title><a href="/moved">m</a><a href="/gone">g</a><a href="/no/x">x</a><a href="/a?x=1">a</a>`);
  });

test("a second crawl within --cache asks for nothing and has the same records", async () => {
  await using server = await site();
  const spec = { seeds: [`${server.origin}/`], cache: 3_600_000, stateDir: join(folder("twice"), "state") };
  const first = await records(spec);
  const { result: second, asked } = await askedDuring(server, () => records(spec));
  assert.deepEqual(asked, []);
  assert.deepEqual(second.map(timeless), first.map(timeless));
  assert.ok(first.every(({ fromCache }) => fromCache === undefined));
  assert.deepEqual(
    second.filter(({ fromCache }) => fromCache !== true).map(({ outcome }) => outcome),
    ["disallowed"],
  );
});

test("a cached answer owes its host no delay", async () => {
  await using server = await serve(tree(12));
  const spec = { seeds: [server.origin], cache: 3_600_000, stateDir: join(folder("delay"), "state") };
  await records({ ...spec, perHost: { delay: 0 } });
  const startedAt = performance.now();
  const { asked } = await askedDuring(server, () => records({ ...spec, perHost: { delay: 60_000 }, robots: false }));
  assert.deepEqual(asked, []);
  assert.ok(performance.now() - startedAt < 30_000);
});

test("errors are not cached: they are asked for again, what is cached is not", async () => {
  await using server = await site();
  const spec = {
    seeds: [`${server.origin}/broken`, `${server.origin}/gone`],
    maxDepth: 0,
    retry: { max: 0 },
    cache: 3_600_000,
    stateDir: join(folder("errors"), "state"),
  };
  await records(spec);
  const { asked } = await askedDuring(server, () => records(spec));
  assert.deepEqual(asked, ["/broken"]);
});

test("--offline serves what is stored however old, fails the rest, and makes no request at all", async () => {
  await using server = await site();
  const stateDir = join(folder("offline"), "state");
  const first = await records({ seeds: [`${server.origin}/`], cache: 1, stateDir });
  const before = server.arrivals.length;
  const again = await records({ seeds: [`${server.origin}/`, `${server.origin}/new`], offline: true, stateDir });
  assert.equal(server.arrivals.length, before, "robots.txt too comes from the cache");
  assert.deepEqual(again.filter(({ url }) => !url.endsWith("/new")).map(timeless), first.map(timeless));
  const missing = again.find(({ url }) => url.endsWith("/new"));
  assert.equal(missing?.outcome, "failed");
  assert.deepEqual(missing?.error, { code: "connect", message: "offline: not in the cache" });
  assert.equal(missing?.attempts, 1);
});

test("auto asks again with the validators when an answer is stale, and a 304 brings the stored page", async () => {
  await using server = await serve((request, response) => {
    if (request.url === "/robots.txt") return void response.writeHead(404).end();
    if (request.url === "/fresh") {
      response.setHeader("cache-control", "max-age=1000");
      return html(response, "<title>fresh</title>");
    }
    const etag = `"${request.url}"`;
    if (request.headers["if-none-match"] === etag) return void response.writeHead(304, { etag }).end();
    response.setHeader("etag", etag);
    response.setHeader("cache-control", "no-cache");
    html(response, `<title>page</title><a href="/fresh">f</a><a href="/b">b</a>`);
  });
  const spec = { seeds: [`${server.origin}/`], cache: "auto", stateDir: join(folder("auto"), "state") } as const;
  const first = await records(spec);
  const before = server.arrivals.length;
  const { result: second, asked } = await askedDuring(server, () => records(spec));
  assert.deepEqual([...asked].sort(), ["/", "/b"]);
  assert.ok(server.arrivals.slice(before).every(({ target, headers }) => target === "/robots.txt" || headers["if-none-match"] === `"${target}"`));
  assert.deepEqual(second.map(timeless), first.map(timeless));
  assert.ok(second.every(({ status, fromCache }) => status === 200 && fromCache === true));
});

test("--cache-size bounds the disk: old answers make room for new ones", async () => {
  let n = 0;
  await using server = await serve((request, response) => {
    const filler = Array.from({ length: 1_000 }, () => Math.random().toString(36)).join(" ");
    html(response, `${filler}${request.url === "/" ? Array.from({ length: 150 }, () => `<a href="/p${n++}">p</a>`).join("") : ""}`);
  });
  const stateDir = join(folder("size"), "state");
  await records({ seeds: [`${server.origin}/`], robots: false, cache: 3_600_000, cacheSize: 1_000_000, stateDir });
  const size = ["", "-wal", "-shm"].reduce((sum, suffix) => sum + (statSync(join(stateDir, `cache.db${suffix}`), { throwIfNoEntry: false })?.size ?? 0), 0);
  assert.ok(size <= 1_000_000 && size > 300_000, `${size} bytes`);
  assert.deepEqual(
    readdirSync(stateDir).filter((name) => name.startsWith("cache")),
    ["cache.db"],
  );
});

test("a redirect back to itself with a cookie is no loop on the second crawl", async () => {
  await using server = await serve((request, response) => {
    if (request.headers.cookie === undefined) response.writeHead(302, { location: request.url ?? "/", "set-cookie": "a=b" }).end();
    else html(response, "<title>in</title>");
  });
  const spec = { seeds: [`${server.origin}/`], robots: false, cache: 3_600_000, stateDir: join(folder("cookie"), "state") };
  assert.deepEqual(
    (await records(spec)).map(({ outcome }) => outcome),
    ["fetched"],
  );
  const { result, asked } = await askedDuring(server, () => records(spec));
  assert.deepEqual(
    result.map(({ outcome, title }) => [outcome, title]),
    [["fetched", "in"]],
  );
  assert.deepEqual(asked, []);
});

test("a file that is no cache ends the crawl as a state that cannot be written", async () => {
  await using server = await site();
  const stateDir = join(folder("foreign"), "state");
  await records({ seeds: [`${server.origin}/`], maxDepth: 0, stateDir });
  writeFileSync(join(stateDir, "cache.db"), "these are my own notes, do not touch them");
  await assert.rejects(records({ seeds: [`${server.origin}/`], maxDepth: 0, cache: 1_000, stateDir }), {
    code: "state-unwritable",
    message: /cache\.db is no cache/,
  });
});
