/** `skein robots` against loopback servers, and on files. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { main } from "../../src/cli/main.ts";
import type { RobotsProbe } from "../../src/inspect/probe-robots.ts";
import { serve } from "../crawl/served.ts";
import { fakeIo } from "./fake-io.ts";
import { golden } from "./golden.ts";

const folder = mkdtempSync(join(tmpdir(), "skein-robots-"));
after(() => rmSync(folder, { recursive: true }));

async function run(...argv: string[]) {
  const io = fakeIo({ cwd: folder });
  const status = await main(["robots", ...argv], io);
  return { status, out: io.out(), err: io.err() };
}

async function probes(...argv: string[]): Promise<{ status: number; found: RobotsProbe[] }> {
  const { status, out } = await run("--json", ...argv);
  const lines = out.split("\n").slice(0, -1);
  return { status, found: lines.map((line) => JSON.parse(line)) };
}

const FILE = `User-agent: *
Disallow: /private   # nobody
Allow: /private/ok
Crawl-delay: 1.5

User-agent: Tester
User-agent: other
Disallow: /

Sitemap: /map.xml
Sitemap: https://maps.example/all.xml
`;

test("the verdict, the line that decided, its group, delay and sitemaps, for people", async () => {
  await using served = await serve((_, response) => void response.end(FILE));
  const { status, out, err } = await run(`${served.origin}/private/x`, `${served.origin}/private/ok`, `${served.origin}/`);
  assert.deepEqual([status, err], [8, ""]);
  golden("robots.txt", out.replaceAll(String(served.port), "PORT"));
  assert.equal(served.arrivals.length, 1, "an origin is asked once");
});

test("exit status: 0 allowed, 8 disallowed, 4 when the file cannot be had", async () => {
  await using served = await serve((_, response) => void response.end(FILE));
  await using broken = await serve((_, response) => void response.writeHead(503).end());
  assert.equal((await run(`${served.origin}/`)).status, 0);
  assert.equal((await run(`${served.origin}/`, `${served.origin}/private`)).status, 8);
  const { status, found } = await probes(`${served.origin}/private`, `${broken.origin}/`, "--retries", "0");
  assert.equal(status, 4);
  assert.deepEqual(
    found.map(({ allowed, basis, problem }) => [allowed, basis, problem]),
    [
      [false, "rule", null],
      [false, "unavailable", "HTTP status 503"],
    ],
  );
});

test("--agent is looked up, in any case; the user agent's own name otherwise", async () => {
  await using served = await serve((_, response) => void response.end(FILE));
  const url = `${served.origin}/`;
  assert.deepEqual((await probes(url)).found[0]?.group, "*");
  const tester = (await probes(url, "--agent", "TESTER/2.0")).found[0];
  assert.deepEqual([tester?.agent, tester?.group, tester?.allowed, tester?.line, tester?.rule], ["tester", "tester", false, 8, "Disallow: /"]);
  assert.equal((await probes(url, "-A", "Other (x)")).found[0]?.allowed, false);
});

test("redirects, 404 and retries are those of a crawl", async () => {
  let busy = 0;
  await using moved = await serve((request, response) => {
    if (request.url === "/robots.txt") response.writeHead(301, { location: "/really.txt" }).end();
    else if (busy++ === 0) response.writeHead(503).end();
    else response.end("User-agent: *\nDisallow: /x");
  });
  const { status, found } = await probes(`${moved.origin}/x`);
  assert.equal(status, 8);
  assert.deepEqual(
    found[0]?.exchanges.map(({ url, status: code }) => [url.slice(moved.origin.length), code]),
    [
      ["/robots.txt", 301],
      ["/really.txt", 503],
      ["/really.txt", 200],
    ],
  );
  await using none = await serve((_, response) => void response.writeHead(404).end());
  assert.match((await run(`${none.origin}/x`)).out, /\n {2}allowed: there is no robots\.txt\n/);
});

test("a bare host is asked by https, then by http", async () => {
  await using served = await serve((_, response) => void response.end(FILE));
  const { status, found } = await probes(`127.0.0.1:${served.port}/private`, "--retries", "0");
  assert.deepEqual([status, found[0]?.url, found[0]?.line], [8, `${served.origin}/private`, 2]);
});

test("--file judges without the network", async () => {
  writeFileSync(join(folder, "draft.txt"), FILE);
  const { status, found } = await probes("--file", "draft.txt", "https://example.invalid/private/a", "example.invalid/free");
  assert.equal(status, 8);
  assert.deepEqual(
    found.map(({ url, robotsUrl, allowed, line, crawlDelayMs, exchanges }) => [url, robotsUrl, allowed, line, crawlDelayMs, exchanges.length]),
    [
      ["https://example.invalid/private/a", "draft.txt", false, 2, 1500, 0],
      ["https://example.invalid/free", "draft.txt", true, null, 1500, 0],
    ],
  );
  assert.deepEqual(found[0]?.sitemaps, ["https://example.invalid/map.xml", "https://maps.example/all.xml"]);
});

test("wrong usage: status 2 and every problem", async () => {
  const cases: readonly (readonly [readonly string[], RegExp])[] = [
    [[], /^skein: nothing to judge: give a URL\n$/],
    [["word", "ftp://a/"], /^skein: word: neither a URL nor a host name\nskein: ftp:\/\/a\/: only http:\/\/ and https:\/\/ are crawled\n$/],
    [["http://a/", "--agnet", "x"], /^skein: --agnet: no such option; did you mean --agent\?\n$/],
    [["http://a/", "--limit", "2"], /^skein: --limit: an option of skein crawl, not of skein robots\n$/],
    [["http://a/", "--file", "absent.txt"], /^skein: --file: absent\.txt cannot be read: ENOENT/],
    [["http://a/", "--agent", " "], /^skein: --agent: expected the name of a crawler\n$/],
  ];
  for (const [argv, said] of cases) {
    const { status, out, err } = await run(...argv);
    assert.deepEqual([status, out], [2, ""], err);
    assert.match(err, said);
  }
});
