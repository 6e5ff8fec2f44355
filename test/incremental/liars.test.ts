/** Incremental crawls of servers whose validators are not what they say. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test, { after } from "node:test";
import { openSite, page, ran } from "./site-for-tests.ts";

const root = mkdtempSync(join(tmpdir(), "skein-liars-"));
after(() => rmSync(root, { recursive: true, force: true }));
const setting = (origin: string) => ({ seeds: [`${origin}/`], stateDir: mkdtempSync(join(root, "s-")), incremental: true });

test("an ETag that changes while the body does not: unchanged, and the new one is asked with next time", async () => {
  let n = 0;
  await using site = await openSite({});
  const spec = setting(site.origin);
  for (let run = 1; run <= 3; run++) {
    site.pages.set("/", page("home", [], { etag: `"${++n}"` }));
    const { pages } = await ran(spec);
    assert.equal(pages["/"]?.change, run === 1 ? "new" : "unchanged");
    assert.equal(pages["/"]?.etag, `"${n}"`);
    assert.deepEqual(site.asked(), { "/": run === 1 ? {} : { etag: `"${n - 1}"` } });
  }
});

test("a 304 that nobody asked for is no page, and what was known stays known", async () => {
  await using site = await openSite({ "/": { ...page("home", [], {}), confirms: () => false } });
  const spec = setting(site.origin);
  await ran(spec);
  site.pages.set("/", { body: "", confirms: () => true });
  const { pages } = await ran(spec);
  assert.deepEqual([pages["/"]?.outcome, pages["/"]?.status, pages["/"]?.change], ["fetched", 304, undefined]);
  site.pages.set("/", page("home", [], {}));
  assert.equal((await ran(spec)).pages["/"]?.outcome, "unchanged");
});

test("a 304 to the first request ever is a page without content", async () => {
  await using site = await openSite({ "/": { body: "", confirms: () => true } });
  const { pages } = await ran(setting(site.origin));
  assert.deepEqual([pages["/"]?.outcome, pages["/"]?.status, pages["/"]?.links], ["fetched", 304, []]);
});

test("weak ETags and dates in the future are sent back as they came", async () => {
  const future = "Fri, 01 Jan 2100 00:00:00 GMT";
  await using site = await openSite({ "/": page("home", ["/b"], { etag: 'W/"weak, \\"x"' }), "/b": page("b", [], { "last-modified": future }) });
  const spec = setting(site.origin);
  await ran(spec);
  site.asked();
  const { pages } = await ran(spec);
  assert.deepEqual(site.asked(), { "/": { etag: 'W/"weak, \\"x"' }, "/b": { since: future } });
  assert.deepEqual([pages["/"]?.outcome, pages["/b"]?.outcome], ["unchanged", "unchanged"]);
});

test("a server that ignores conditions costs the transfer, not the reading; one that lies about a change costs the change", async () => {
  await using site = await openSite({ "/": { ...page("home"), confirms: () => false } });
  const spec = setting(site.origin);
  await ran(spec);
  assert.equal((await ran(spec)).pages["/"]?.outcome, "unchanged");
  site.pages.set("/", { ...page("other"), confirms: () => true });
  const { pages } = await ran(spec);
  assert.deepEqual([pages["/"]?.outcome, pages["/"]?.title], ["unchanged", "home"]);
});

test("a page that was cut, or of a type that is wanted only now, is asked for as a whole", async () => {
  await using site = await openSite({
    "/": page("home", ["/long", "/pdf"]),
    "/long": { ...page("long"), body: "x".repeat(5_000) },
    "/pdf": { ...page("pdf"), type: "application/pdf" },
  });
  const spec = setting(site.origin);
  await ran({ ...spec, maxBodySize: 1_000 });
  site.asked();
  const same = await ran({ ...spec, maxBodySize: 1_000 });
  assert.deepEqual(site.asked(), { "/": { etag: '"home"' }, "/long": {}, "/pdf": { etag: '"pdf"' } });
  assert.deepEqual([same.pages["/pdf"]?.outcome, same.pages["/pdf"]?.bodySkipped], ["unchanged", true]);
  const { pages } = await ran({ ...spec, types: "all" });
  assert.deepEqual(site.asked(), { "/": { etag: '"home"' }, "/long": {}, "/pdf": {} });
  assert.deepEqual([pages["/long"]?.bytesDecoded, pages["/pdf"]?.bodySkipped], [5_000, undefined]);
});

test("a 304 with a body does not spoil the answer behind it", async () => {
  let asked = 0;
  const body = (text: string) => `HTTP/1.1 200 OK\r\ncontent-type: text/html\r\netag: "e"\r\ncontent-length: ${text.length}\r\n\r\n${text}`;
  const server = createServer((socket) => {
    socket.on("error", () => undefined);
    socket.on("data", (bytes) => {
      for (const head of bytes.toString().split("\r\n\r\n").slice(0, -1)) {
        asked++;
        if (head.startsWith("GET /robots.txt")) socket.write("HTTP/1.1 404 No\r\ncontent-length: 0\r\n\r\n");
        else if (/if-none-match/i.test(head)) socket.write('HTTP/1.1 304 Not Modified\r\netag: "e"\r\ncontent-length: 6\r\n\r\nabcdef');
        else socket.write(head.startsWith("GET / ") ? body('<a href="/a">a</a><a href="/b">b</a>') : body("<title>t</title>"));
      }
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  const spec = { ...setting(`http://127.0.0.1:${typeof address === "object" ? address?.port : ""}`), perHost: { concurrency: 1 } };
  try {
    await ran(spec);
    const { pages } = await ran(spec);
    assert.deepEqual(
      Object.values(pages).map(({ outcome, title }) => [outcome, title]),
      [
        ["unchanged", undefined],
        ["unchanged", "t"],
        ["unchanged", "t"],
      ],
    );
    assert.ok(asked >= 7);
  } finally {
    server.close();
  }
});
