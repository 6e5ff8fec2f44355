/** Whole crawls that ask only for what changed: what is asked, what is read, what stands in the records. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test, { after } from "node:test";
import { type CrawlInput, defineScraper } from "../../src/index.ts";
import { by, changesIn, linesOf, openSite, page, ran } from "./site-for-tests.ts";

const root = mkdtempSync(join(tmpdir(), "skein-incremental-"));
after(() => rmSync(root, { recursive: true, force: true }));
const folder = () => mkdtempSync(join(root, "d-"));

const shop = () =>
  openSite({
    "/": page("home", ["/a", "/b", "/c"]),
    "/a": page("a", ["/"], { "last-modified": "Wed, 21 Oct 2015 07:28:00 GMT" }),
    "/b": page("b", ["/d"], {}),
    "/c": page("c", [], { etag: 'W/"c"', "last-modified": "Wed, 21 Oct 2015 07:28:00 GMT" }),
    "/d": page("d"),
  });

function setting(dir: string, origin: string, more: Partial<CrawlInput> = {}): CrawlInput {
  return {
    seeds: [`${origin}/`],
    stateDir: join(dir, "state"),
    incremental: true,
    changesFile: join(dir, "changes.jsonl"),
    pagesFile: join(dir, "pages.jsonl"),
    ...more,
  };
}

/** A scraper that counts its calls by path. */
function counting(version: string | number = 1) {
  const calls: string[] = [];
  const scraper = defineScraper({
    version,
    items: { thing: { key: "title" } },
    handlers: {
      any({ $, item, followAll, url }) {
        calls.push(new URL(url).pathname);
        item({ title: $("title").text(), n: $("a").length }, "thing");
        followAll("a");
      },
    },
  });
  return { scraper, calls };
}

test("nothing changed: every page is asked about as its server allows, none is read, all of them stand in the outputs", async () => {
  await using site = await shop();
  const dir = folder();
  const first = counting();
  const one = await ran(setting(dir, site.origin), { scraper: first.scraper });
  assert.deepEqual(first.calls.sort(), ["/", "/a", "/b", "/c", "/d"]);
  assert.deepEqual(by(one.pages, "change"), { "/": "new", "/a": "new", "/b": "new", "/c": "new", "/d": "new" });
  assert.deepEqual(by(one.pages, "outcome"), { "/": "fetched", "/a": "fetched", "/b": "fetched", "/c": "fetched", "/d": "fetched" });
  assert.deepEqual(site.asked(), { "/": {}, "/a": {}, "/b": {}, "/c": {}, "/d": {} });

  for (let run = 2; run <= 3; run++) {
    const second = counting();
    const two = await ran(setting(dir, site.origin, { outputs: [join(dir, "items.jsonl")], linksFile: join(dir, "links.jsonl") }), { scraper: second.scraper });
    assert.deepEqual(second.calls, [], `run ${run}`);
    assert.deepEqual(site.asked(), {
      "/": { etag: '"home"' },
      "/a": { since: "Wed, 21 Oct 2015 07:28:00 GMT" },
      "/b": {},
      "/c": { etag: 'W/"c"', since: "Wed, 21 Oct 2015 07:28:00 GMT" },
      "/d": { etag: '"d"' },
    });
    assert.deepEqual(by(two.pages, "outcome"), { "/": "unchanged", "/a": "unchanged", "/b": "unchanged", "/c": "unchanged", "/d": "unchanged" });
    assert.deepEqual(by(two.pages, "status"), { "/": 304, "/a": 304, "/b": 200, "/c": 304, "/d": 304 });
    for (const field of ["title", "digest", "links", "etag", "lastModified", "contentType", "charset", "depth"] as const)
      assert.deepEqual(by(two.pages, field), by(one.pages, field), field);
    assert.deepEqual(
      linesOf<{ title: string }>(dir, "items.jsonl")
        .map(({ title }) => title)
        .sort(),
      ["a", "b", "c", "d", "home"],
    );
    assert.equal(linesOf(dir, "links.jsonl").length, 5);
    assert.equal(linesOf(dir, "pages.jsonl").length, 5);
    assert.ok(Object.values(changesIn(dir)).every((change) => change === "unchanged"));
    assert.equal(Object.keys(changesIn(dir)).length, 10);
  }
});

test("changed, added, gone and no longer linked pages and items are told apart", async () => {
  await using site = await shop();
  const dir = folder();
  await ran(setting(dir, site.origin), { scraper: counting().scraper });
  assert.ok(Object.values(changesIn(dir)).every((change) => change === "added"));
  site.pages.set("/", page("home", ["/a", "/b", "/c", "/e"], { etag: '"home 2"' }));
  site.pages.set("/b", page("bb", [], {}));
  site.pages.set("/e", page("e"));
  site.pages.delete("/c");
  const { scraper, calls } = counting();
  const { pages, summary } = await ran(setting(dir, site.origin), { scraper });
  assert.deepEqual(calls.sort(), ["/", "/b", "/e"]);
  assert.deepEqual(by(pages, "outcome"), { "/": "fetched", "/a": "unchanged", "/b": "fetched", "/c": "gone", "/e": "fetched" });
  assert.deepEqual(by(pages, "change"), { "/": "changed", "/a": "unchanged", "/b": "changed", "/c": "gone", "/e": "new" });
  assert.equal(summary.finishReason, "finished");
  assert.deepEqual(changesIn(dir), {
    "/": "changed digest,links",
    "/#home": "changed n",
    "/a": "unchanged",
    "/a#a": "unchanged",
    "/b": "changed digest,title,links",
    "/b#b": "gone",
    "/b#bb": "added",
    "/c": "gone",
    "/c#c": "gone",
    "/d": "gone",
    "/d#d": "gone",
    "/e": "added",
    "/e#e": "added",
  });
  const third = await ran(setting(dir, site.origin));
  assert.equal(third.pages["/c"]?.outcome, "fetched", "what is gone is news only once");
  assert.deepEqual(
    Object.keys(changesIn(dir)).filter((name) => !name.includes("#")),
    ["/", "/a", "/b", "/e"],
  );
});

test("unchanged pages use up the limit, and a run that a limit ends calls nothing gone", async () => {
  await using site = await shop();
  const dir = folder();
  await ran(setting(dir, site.origin));
  const { pages, summary } = await ran(setting(dir, site.origin, { limits: { pages: 3 } }));
  assert.equal(summary.finishReason, "limit-pages");
  assert.deepEqual(Object.values(by(pages, "outcome")), ["unchanged", "unchanged", "unchanged"]);
  assert.deepEqual(Object.values(changesIn(dir)), ["unchanged", "unchanged", "unchanged"]);
  const last = await ran(setting(dir, site.origin, { limits: { pages: 100 } }));
  assert.ok(Object.values(last.pages).every(({ change }) => change === "unchanged"));
});

test("another version of the scraper, another handler, other data or --images: pages are read again, and no validator is sent", async () => {
  await using site = await shop();
  const dir = folder();
  await ran(setting(dir, site.origin), { scraper: counting(1).scraper });
  site.asked();
  const again = counting(2);
  const { pages } = await ran(setting(dir, site.origin), { scraper: again.scraper });
  assert.deepEqual(again.calls.sort(), ["/", "/a", "/b", "/c", "/d"]);
  assert.ok(Object.values(site.asked()).every((conditions) => Object.keys(conditions).length === 0));
  assert.deepEqual(by(pages, "outcome"), { "/": "fetched", "/a": "fetched", "/b": "fetched", "/c": "fetched", "/d": "fetched" });
  assert.ok(
    Object.values(pages).every(({ change }) => change === "unchanged"),
    "the pages themselves did not change",
  );

  const images = await ran(setting(dir, site.origin, { images: true }), { scraper: counting(2).scraper });
  assert.ok(Object.values(images.pages).every(({ outcome, change, images: found }) => outcome === "fetched" && change === "unchanged" && found !== undefined));
  const calls: string[] = [];
  const handlers = (name: string, data: object) =>
    defineScraper({
      version: 5,
      handlers: {
        default: ({ follow }) => follow("/a", { handler: name, data }),
        x: () => void calls.push("x"),
        y: () => void calls.push("y"),
      },
    });
  const own = setting(folder(), site.origin);
  await ran(own, { scraper: handlers("x", {}) });
  // The same version on purpose: the seed is not read again, so that the handler is the one of the last run.
  await ran(own, { scraper: handlers("y", {}) });
  assert.deepEqual(calls.splice(0), ["x"]);
  site.pages.set("/", page("home", [], { etag: '"other"' }));
  await ran(own, { scraper: handlers("y", {}) });
  assert.deepEqual(calls.splice(0), ["y"]);
  site.pages.set("/", page("home", [], { etag: '"another"' }));
  await ran(own, { scraper: handlers("y", { n: 1 }) });
  assert.deepEqual(calls.splice(0), [], "the body is the same: the seed is not read");
  site.pages.set("/", page("home!", []));
  await ran(own, { scraper: handlers("y", { n: 1 }) });
  assert.deepEqual(calls.splice(0), ["y"]);
});

test("without --incremental nothing is conditional and no record has a change; a state without a book is all new", async () => {
  await using site = await shop();
  const dir = folder();
  const plain = { seeds: [`${site.origin}/`], stateDir: join(dir, "state") };
  const before = await ran(plain);
  assert.ok(Object.values(before.pages).every(({ change }) => change === undefined));
  site.asked();
  const first = await ran(setting(dir, site.origin));
  assert.ok(Object.values(first.pages).every(({ change }) => change === "new"));
  const fresh = await ran(setting(dir, site.origin), { fresh: true });
  assert.ok(Object.values(fresh.pages).every(({ change }) => change === "new"));
  assert.ok(Object.values(site.asked()).every((conditions) => Object.keys(conditions).length === 0));
  await ran(plain);
  const last = await ran(setting(dir, site.origin));
  assert.ok(
    Object.values(last.pages).every(({ change }) => change === "unchanged"),
    "a run without the book leaves it as it is",
  );
});

test("pages that fail keep what was known of them, and of what they lead to nothing is said", async () => {
  await using site = await openSite({
    "/": page("home", ["/list", "/x"]),
    "/list": page("list", ["/a"]),
    "/a": page("a", ["/b"]),
    "/b": page("b"),
    "/x": page("x"),
  });
  const dir = folder();
  const more = { retry: { max: 0 } };
  await ran(setting(dir, site.origin, more), { scraper: counting().scraper });
  const list = site.pages.get("/list")!;
  site.pages.set("/", page("home", ["/list"], { etag: '"home 2"' }));
  for (const status of [503, 403]) {
    site.pages.set("/list", { body: "no", status });
    const { pages } = await ran(setting(dir, site.origin, more), { scraper: counting().scraper });
    assert.equal(pages["/list"]?.outcome, status === 503 ? "failed" : "fetched");
    assert.equal(pages["/list"]?.change, undefined);
    const gone = Object.entries(changesIn(dir))
      .filter(([, change]) => change === "gone")
      .sort();
    assert.deepEqual(
      gone,
      status === 503
        ? [
            ["/x#x", "gone"],
            ["/x", "gone"],
          ]
        : [],
    );
  }
  site.pages.set("/list", list);
  site.asked();
  const { calls, scraper } = counting();
  const { pages } = await ran(setting(dir, site.origin, more), { scraper });
  assert.deepEqual(by(pages, "outcome"), { "/": "unchanged", "/a": "unchanged", "/b": "unchanged", "/list": "unchanged" });
  assert.deepEqual(calls, []);
});

test("POST requests and those with dontDedupe are never conditional", async () => {
  await using site = await openSite({ "/": page("home"), "/p": page("p"), "/q": page("q") });
  const calls: string[] = [];
  const scraper = defineScraper({
    version: 1,
    handlers: {
      list({ follow }) {
        follow("/p", { handler: "other", body: { a: 1 } });
        follow("/q", { handler: "other", dontDedupe: true });
      },
      other: ({ request, item }) => {
        calls.push(request.method);
        item({ is: request.method });
      },
    },
  });
  const dir = folder();
  await ran(setting(dir, site.origin), { scraper });
  site.asked();
  calls.length = 0;
  const { pages } = await ran(setting(dir, site.origin), { scraper });
  assert.deepEqual(site.asked(), { "/": { etag: '"home"' }, "/p": {}, "/q": {} });
  assert.deepEqual(calls.sort(), ["GET", "POST"]);
  assert.deepEqual(by(pages, "outcome"), { "/": "unchanged", "/p": "fetched", "/q": "fetched" });
  assert.deepEqual(by(pages, "change"), { "/": "unchanged", "/p": "unchanged", "/q": "unchanged" });
});

test("redirects are asked for each time, their targets only if they changed", async () => {
  await using site = await openSite({
    "/": page("home", ["/old"]),
    "/old": { body: "", status: 302, headers: { location: "/new", etag: '"r"' } },
    "/new": page("new"),
  });
  const dir = folder();
  await ran(setting(dir, site.origin));
  site.asked();
  const { pages } = await ran(setting(dir, site.origin));
  assert.deepEqual(site.asked(), { "/": { etag: '"home"' }, "/old": {}, "/new": { etag: '"new"' } });
  assert.deepEqual(by(pages, "outcome"), { "/": "unchanged", "/new": "unchanged", "/old": "redirected" });
  assert.deepEqual(pages["/new"]?.redirects, [{ url: `${site.origin}/old`, status: 302 }]);
  // A page that moves is no longer there; where it went is another page.
  site.pages.set("/new", { body: "", status: 301, headers: { location: "/newer" } });
  site.pages.set("/newer", page("newer"));
  await ran(setting(dir, site.origin));
  assert.deepEqual(changesIn(dir), { "/": "unchanged", "/new": "gone", "/newer": "added" });
});

test("a sitemap that fails is no reason to call its pages gone; one that is not there any more is", async () => {
  const map = (...paths: string[]) =>
    `<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">${paths.map((path) => `<url><loc>${site.origin}${path}</loc></url>`).join("")}</urlset>`;
  await using site = await openSite({ "/": page("home"), "/a": page("a"), "/b": page("b") });
  const dir = folder();
  const spec = setting(dir, site.origin, { sitemaps: [`${site.origin}/map.xml`], retry: { max: 0 } });
  site.pages.set("/map.xml", { body: map("/a", "/b"), type: "application/xml" });
  await ran(spec);
  const gone = async () => {
    await ran(spec);
    return Object.entries(changesIn(dir)).flatMap(([path, change]) => (change === "gone" ? [path] : []));
  };
  for (const broken of [
    { body: "", status: 503 },
    { body: "<html>sorry", type: "text/html" },
  ]) {
    site.pages.set("/map.xml", broken);
    assert.deepEqual(await gone(), []);
  }
  site.pages.set("/map.xml", { body: map("/a"), type: "application/xml" });
  assert.deepEqual(await gone(), ["/b"]);
  site.pages.delete("/map.xml");
  assert.deepEqual(await gone(), ["/a"]);
});
