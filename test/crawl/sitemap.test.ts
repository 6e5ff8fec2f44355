/** Sitemaps over real sockets: found, nested, damaged, huge. The parser's own cases are in src/parse/sitemap*.test.ts. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import type { ServerResponse } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { gzipSync } from "node:zlib";
import { type CrawlInput, crawl } from "../../src/crawl.ts";
import { html, type Served, serve } from "./served.ts";

function xml(response: ServerResponse, body: string, type = "application/xml"): void {
  response.writeHead(200, { "content-type": type }).end(body);
}
const urlset = (...locs: string[]) =>
  `<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">${locs.map((loc) => `<url><loc>${loc}</loc></url>`).join("")}</urlset>`;
const index = (...locs: string[]) =>
  `<?xml version="1.0"?><sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">${locs.map((loc) => `<sitemap><loc>${loc}</loc></sitemap>`).join("")}</sitemapindex>`;

async function pagesOf(server: Served, input: Omit<CrawlInput, "seeds"> & { seeds?: string[] }, warned: string[] = []): Promise<string[]> {
  const log = (level: string, message: string, fields?: Readonly<Record<string, unknown>>) =>
    level === "warn" && warned.push(`${message}: ${fields?.url}`.replace(server.origin, ""));
  const paths: string[] = [];
  for await (const page of crawl({ seeds: [], ...input }, { log })) paths.push(page.url.replace(server.origin, ""));
  return paths.sort();
}

test("F080 an index that lists itself is read once, and so is each file it names", async () => {
  await using server = await serve((request, response) => {
    const at = `http://${request.headers.host}`;
    if (request.url === "/index.xml") xml(response, index(`${at}/index.xml`, `${at}/a.xml`, `${at}/a.xml`));
    else if (request.url === "/a.xml") xml(response, urlset(`${at}/one`, `${at}/two`));
    else html(response, "<p>page");
  });
  assert.deepEqual(await pagesOf(server, { sitemaps: [`${server.origin}/index.xml`], robots: false }), ["/one", "/two"]);
  assert.deepEqual(server.targets().sort(), ["/a.xml", "/index.xml", "/one", "/two"]);
});

test("without a value the sitemaps of robots.txt and /sitemap.xml are read, gzip by its bytes, text by its lines", async () => {
  await using server = await serve((request, response) => {
    const at = `http://${request.headers.host}`;
    switch (request.url) {
      case "/robots.txt":
        return xml(response, `User-agent: *\nDisallow:\nSitemap: ${at}/map.xml.gz\nSitemap: ${at}/list.txt\nSitemap: ${at}/robots.txt\n`, "text/plain");
      case "/map.xml.gz":
        response.writeHead(200, { "content-type": "application/octet-stream" }).end(gzipSync(urlset(`${at}/zipped`, "http://elsewhere.invalid/x")));
        return;
      case "/list.txt":
        return xml(response, `${at}/listed\n\n${at}/robots.txt\n`, "text/plain");
      case "/sitemap.xml":
        return xml(response, urlset(`${at}/usual`));
      default:
        return html(response, "<p>page");
    }
  });
  assert.deepEqual(await pagesOf(server, { seeds: [server.origin], sitemaps: true as never }), ["/", "/listed", "/robots.txt", "/usual", "/zipped"]);
});

test("F085 an HTML page, a 404 or a redirect to the start page at the sitemap's URL gives a warning and no URL", async () => {
  await using server = await serve((request, response) => {
    if (request.url === "/moved.xml") response.writeHead(301, { location: "/" }).end();
    else if (request.url === "/gone.xml") html(response, "<p>none", 404);
    else html(response, `<a href="http://${request.headers.host}/linked">l</a>`);
  });
  const warned: string[] = [];
  const sitemaps = ["/page.xml", "/gone.xml", "/moved.xml"].map((path) => server.origin + path);
  assert.deepEqual(await pagesOf(server, { seeds: [`${server.origin}/start`], sitemaps, maxDepth: 0, robots: false }, warned), ["/start"]);
  assert.deepEqual(warned.sort(), ["sitemap is damaged: /", "sitemap is damaged: /page.xml", "sitemap not used: /gone.xml"]);
});

test("a sitemap does not use up the page limit, and its pages are exact under it (F084)", async () => {
  let map = "";
  await using server = await serve((request, response) => {
    if (request.url === "/big.xml") xml(response, map);
    else html(response, "<p>page");
  });
  const image = (i: number) => `<image:image><image:loc>${server.origin}/i${i}.png</image:loc></image:image>`.repeat(4);
  const entries = Array.from({ length: 50_000 }, (_, i) => `<url><loc>${server.origin}/p${i}</loc>${image(i)}</url>`);
  map = `<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:image="http://www.google.com/schemas/sitemap-image/1.1">${entries.join("")}</urlset>`;
  // What this thread has computed, ms: that it waits for its turn on a busy machine is no fault of the reader.
  const computed = (): number => {
    const { user, system } = process.threadCpuUsage();
    return (user + system) / 1_000;
  };
  const begun = computed();
  let worst = 0;
  let last = begun;
  const pulse = setInterval(() => {
    worst = Math.max(worst, computed() - last);
    last = computed();
  }, 5);
  const pages = await pagesOf(server, { sitemaps: [`${server.origin}/big.xml`], limits: { pages: 10 }, robots: false });
  clearInterval(pulse);
  assert.equal(pages.length, 10);
  assert.equal(server.targets().length, 11);
  // Reading the file in one go would be most of it; in pieces no turn comes near that.
  const whole = computed() - begun;
  assert.ok(worst < whole / 5, `the loop stood still for ${worst} of ${whole} ms`);
});

test("pages a sitemap lists have the depth of seeds, pass the patterns, and are skipped with a reason", async () => {
  await using server = await serve((request, response) => {
    const at = `http://${request.headers.host}`;
    if (request.url === "/s.xml") xml(response, urlset(`${at}/in`, `${at}/private/x`, "http://elsewhere.invalid/"));
    else html(response, `<a href="${request.url === "/in" ? "/deeper" : "/deepest"}">d</a>`);
  });
  const skipped: string[] = [];
  const run = crawl(
    { seeds: [], sitemaps: [`${server.origin}/s.xml`], maxDepth: 1, robots: false, scope: { exclude: ["/private/**"] } },
    { hooks: { onSkip: ({ url, reason }) => skipped.push(`${url.replace(server.origin, "")} ${reason}`) } },
  );
  const pages: string[] = [];
  for await (const page of run) pages.push(`${page.url.replace(server.origin, "")} ${page.depth} ${page.referrer?.replace(server.origin, "")}`);
  assert.deepEqual(pages, ["/in 0 /s.xml", "/deeper 1 /in"]);
  assert.deepEqual(skipped.sort(), ["/deepest depth", "/private/x excluded", "http://elsewhere.invalid/ out-of-scope"]);
});

test("F093 a crawl whose seeds are a sitemap's is gone on with, though the sitemap has been seen", async () => {
  const paths = Array.from({ length: 100 }, (_, n) => `/${n}`);
  await using server = await serve((request, response) => {
    if (request.url === "/map.xml") xml(response, urlset(...paths.map((path) => `http://${request.headers.host}${path}`)));
    else html(response, "<p>page");
  });
  const stateDir = mkdtempSync(join(tmpdir(), "skein-sitemap-"));
  try {
    const input = { sitemaps: [`${server.origin}/map.xml`], stateDir, robots: false };
    const first = await pagesOf(server, { ...input, limits: { pages: 30 } });
    const rest = await pagesOf(server, { ...input, limits: { pages: null } });
    assert.deepEqual([first.length, rest.length], [30, 70]);
    assert.deepEqual([...first, ...rest].sort(), [...paths].sort());
    assert.equal(server.targets().filter((target) => target !== "/map.xml").length, 100);
  } finally {
    rmSync(stateDir, { recursive: true, force: true });
  }
});
