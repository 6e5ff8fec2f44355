/** `skein reparse` on the stored pages of real crawls. */
import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test, { after } from "node:test";
import { main } from "../../src/cli/main.ts";
import { crawl } from "../../src/index.ts";
import { fakeCrawl } from "../cli/fake-crawl.ts";
import { fakeIo } from "../cli/fake-io.ts";
import { runCommand } from "../crawl/kills.ts";
import { linesOf, openSite, page, ran, type Site } from "./site-for-tests.ts";

const root = mkdtempSync(join(tmpdir(), "skein-reparse-"));
after(() => rmSync(root, { recursive: true, force: true }));
const folder = () => mkdtempSync(join(root, "d-"));

async function reparse(cwd: string, ...argv: string[]) {
  const io = fakeIo({ cwd });
  const code = await main(["reparse", "--state", "state", ...argv], io, fakeCrawl(async () => ({})).load);
  return { code, out: io.out(), err: io.err() };
}

/** Writes a scraper whose handler runs `code`; every page is followed. */
function scraper(cwd: string, version: number, code: string, more = ""): string {
  const text = `import { defineScraper } from "skein";
    export default defineScraper({ version: ${version}, items: { thing: { key: "url" } }, handlers: {
      any({ $, item, url, follow, followAll, data, state, watermark, stopSeries, response }) { ${code} followAll("a"); }, ${more} } });`;
  // A module is loaded once by this process: each version is a file of its own.
  const file = join(cwd, `s${version}.mjs`);
  writeFileSync(file, text);
  return file;
}

const TITLE = `item({ url, title: $("title").text() }, "thing");`;
const shop = () => openSite({ "/": page("home", ["/a", "/b"]), "/a": page("a", ["/c"]), "/b": page("b"), "/c": page("c", ["/"]) });

async function crawled(site: Site, cwd: string, file: string, more = {}) {
  return ran({
    seeds: [`${site.origin}/`],
    stateDir: join(cwd, "state"),
    cache: 3_600_000,
    scraper: file,
    parseWorkers: 0,
    outputs: [join(cwd, "items.jsonl")],
    ...more,
  });
}

const items = (cwd: string, file = "items.jsonl") =>
  linesOf<{ url: string; title: string }>(cwd, file)
    .map(({ url, title }) => `${new URL(url).pathname} ${title}`)
    .sort();

test("the same version keeps every item and parses nothing; a new one parses every page once; --all parses them all", async () => {
  await using site = await shop();
  const cwd = folder();
  await crawled(site, cwd, scraper(cwd, 1, TITLE));
  const before = items(cwd);
  const asked = site.arrivals.length;
  const same = await reparse(cwd, "-s", "s1.mjs", "-o", "items.jsonl", "--parse-workers", "0");
  assert.equal(same.code, 0, same.err);
  assert.match(same.err, /^0 pages parsed, 4 kept, 0 failed; 4 items in /m);
  assert.deepEqual(items(cwd), before);
  scraper(cwd, 2, `item({ url, title: $("title").text().toUpperCase() }, "thing");`);
  const next = await reparse(cwd, "-s", "s2.mjs", "-o", "items.jsonl", "-o", "again.csv", "--parse-workers", "2");
  assert.match(next.err, /^4 pages parsed, 0 kept, 0 failed; 4 items in .*2 parse workers/m);
  assert.deepEqual(items(cwd), ["/ HOME", "/a A", "/b B", "/c C"]);
  assert.equal(readFileSync(join(cwd, "again.csv"), "utf8").split("\r\n").length, 6);
  const meta = linesOf<{ _meta: { depth: number } }>(cwd, "items.jsonl").map(({ _meta }) => _meta.depth);
  assert.deepEqual(meta.sort(), [0, 1, 1, 2]);
  assert.match((await reparse(cwd, "-s", "s2.mjs", "--parse-workers", "0")).err, /^0 pages parsed, 4 kept/m);
  const all = await reparse(cwd, "-s", "s2.mjs", "--all", "--no-meta", "--parse-workers", "0");
  assert.match(all.err, /^4 pages parsed, 0 kept/m);
  assert.deepEqual(
    all.out
      .split("\n")
      .filter(Boolean)
      .map((line) => Object.keys(JSON.parse(line)).join()),
    ["url,title", "url,title", "url,title", "url,title"],
  );
  assert.equal(site.arrivals.length, asked, "no request was made");
  assert.deepEqual(
    readdirSync(cwd).filter((name) => name.startsWith(".reparse")),
    [],
  );
  // A crawl that asks only for what changed knows the new reading.
  site.asked();
  const { pages } = await crawled(site, cwd, join(cwd, "s2.mjs"), { cache: 0, incremental: true });
  assert.ok(Object.values(pages).every(({ outcome }) => outcome === "unchanged"));
  assert.deepEqual(items(cwd), ["/ HOME", "/a A", "/b B", "/c C"]);
});

test("a page whose reading fails is named, its items are left out, and it is tried again the next time; a fixed scraper reads what the crawl could not", async () => {
  await using site = await shop();
  const cwd = folder();
  const throwing = `if (url.endsWith("/b")) throw new Error("no price"); ${TITLE}`;
  const { pages } = await crawled(site, cwd, scraper(cwd, 1, throwing), { retry: { max: 0 } });
  assert.equal(pages["/b"]?.outcome, "failed");
  const again = await reparse(cwd, "-s", "s1.mjs", "-o", "items.jsonl", "--parse-workers", "1");
  assert.equal(again.code, 0);
  assert.match(again.err, /no price/);
  assert.match(again.err, /^0 pages parsed, 3 kept, 1 failed; 3 items/m);
  assert.match(again.err, /warning: the scraper failed for 1 page: their items are left out/);
  scraper(cwd, 2, `if (url.endsWith("/a")) throw new Error("no name"); ${TITLE}`);
  const fixed = await reparse(cwd, "-s", "s2.mjs", "-o", "items.jsonl", "--parse-workers", "1");
  assert.match(fixed.err, /^3 pages parsed, 0 kept, 1 failed; 3 items/m);
  assert.deepEqual(items(cwd), ["/ home", "/b b", "/c c"]);
  scraper(cwd, 3, TITLE);
  await reparse(cwd, "-s", "s3.mjs", "-o", "items.jsonl", "--parse-workers", "1");
  assert.deepEqual(items(cwd), ["/ home", "/a a", "/b b", "/c c"]);
  site.asked();
  const next = await crawled(site, cwd, join(cwd, "s3.mjs"), { cache: 0, incremental: true });
  assert.deepEqual(
    Object.values(next.pages).map(({ outcome }) => outcome),
    ["unchanged", "unchanged", "unchanged", "unchanged"],
  );
  assert.deepEqual(next.pages["/b"]?.title, "b");
});

test("handlers get the data and the headers of their page, state as it was, and no watermark; what they set, stop and follow does nothing", async () => {
  await using site = await shop();
  const cwd = folder();
  const set = `follow("/b", { handler: "other", data: { n: 7 } }); state.set("seen", 1); watermark("k").old(5);`;
  const other = `other({ item, url, data, response, state, watermark, stop }) {
    const old = watermark("k").old(1);
    item({ url, title: [data.n, response.headers.get("etag"), state.get("seen"), old].join() }, "thing"); }`;
  await crawled(site, cwd, scraper(cwd, 1, set, other));
  scraper(
    cwd,
    2,
    `state.set("seen", 2); stopSeries(); follow("/new"); follow("/new2"); follow("/b", { handler: "other" });`,
    `${other.replace("item(", "stop(); item(")}`,
  );
  const { err, out } = await reparse(cwd, "-s", "s2.mjs", "--parse-workers", "0", "--no-meta");
  assert.match(err, /the scraper follows 2 URLs that the crawl has not visited/);
  const found = out
    .split("\n")
    .filter(Boolean)
    .map((line) => JSON.parse(line));
  assert.deepEqual(
    found.map(({ title }) => title).filter((title) => title.includes("7")),
    ['7,"b",1,false'],
  );
});

test("fields of -e, other outputs, and pages that are not stored any more", async () => {
  await using site = await shop();
  const cwd = folder();
  await crawled(site, cwd, scraper(cwd, 1, TITLE));
  const fields = await reparse(cwd, "-e", "t=title", "-e", "to[]=a@href", "-o", "f.json", "-o", "f.sqlite");
  assert.equal(fields.code, 0, fields.err);
  const read: { t: string; to: string[] }[] = JSON.parse(readFileSync(join(cwd, "f.json"), "utf8"));
  assert.deepEqual(read.map(({ t }) => t).sort(), ["a", "b", "c", "home"]);
  const { DatabaseSync } = process.getBuiltinModule("node:sqlite");
  const db = new DatabaseSync(join(cwd, "f.sqlite"));
  assert.equal(db.prepare("SELECT count(*) AS n FROM items").get()?.["n"], 4);
  db.close();
  const cache = new DatabaseSync(join(cwd, "state", "cache.db"));
  cache.exec("DELETE FROM response WHERE key LIKE '%/a'");
  cache.close();
  const kept = await reparse(cwd, "-e", "t=title", "-e", "to[]=a@href");
  assert.match(kept.err, /^0 pages parsed, 4 kept/m);
  const next = await reparse(cwd, "-e", "x=title");
  assert.match(next.err, /^3 pages parsed, 0 kept, 0 failed; 4 items/m);
  assert.match(next.err, /1 page not stored: their items are those of the crawl/);
});

test("bytes from before the last visit are not read: the items of the later page stay", async () => {
  await using site = await shop();
  const cwd = folder();
  const file = scraper(cwd, 1, TITLE);
  await crawled(site, cwd, file);
  site.pages.set("/b", page("b later"));
  // Without --cache nothing is stored.
  await ran({ seeds: [`${site.origin}/`], stateDir: join(cwd, "state"), incremental: true, scraper: file, parseWorkers: 0 });
  scraper(cwd, 2, TITLE);
  const { err } = await reparse(cwd, "-s", "s2.mjs", "-o", "items.jsonl", "--parse-workers", "0");
  assert.match(err, /^3 pages parsed, 0 kept, 0 failed/m);
  assert.deepEqual(items(cwd), ["/ home", "/a a", "/b b later", "/c c"]);
});

test("without a crawl, stored pages or a scraper it says what to do; so while a crawl runs", async () => {
  const cwd = folder();
  scraper(cwd, 1, TITLE);
  const none = await reparse(cwd, "-s", "s1.mjs");
  assert.deepEqual([none.code, /there is no state of a crawl/.test(none.err)], [2, true]);
  assert.equal(existsSync(join(cwd, "state")), false);
  await using site = await shop();
  await crawled(site, cwd, join(cwd, "s1.mjs"), { cache: null });
  const bare = await reparse(cwd, "-s", "s1.mjs");
  assert.equal(bare.code, 2);
  assert.match(bare.err, /no stored pages in .*: crawl with --state .* and --cache/);
  assert.equal((await reparse(cwd)).code, 2);
  assert.equal((await reparse(cwd, "-s", "s1.mjs", "-e", "a=b")).code, 2);
  assert.equal((await reparse(cwd, "-s", "s1.mjs", "-o", "x.txt")).code, 2);
  assert.equal((await reparse(cwd, "-s", "s1.mjs", "x")).code, 2);
  writeFileSync(join(cwd, "plain.mjs"), "export default () => [];");
  await crawled(site, cwd, join(cwd, "s1.mjs"));
  assert.match((await reparse(cwd, "-s", "plain.mjs", "--parse-workers", "0")).err, /a plain function, which gives no items/);
  const run = crawl({ seeds: [`${site.origin}/`], stateDir: join(cwd, "state"), cache: 0, outputs: [join(cwd, "own.jsonl")] });
  for await (const _ of run) {
    const held = await reparse(cwd, "-s", "s1.mjs");
    assert.equal(held.code, 7, held.err);
    break;
  }
  await run.done;
  // That run was cut short: its own files stay as they are.
  assert.match((await reparse(cwd, "-s", "s1.mjs", "-o", "own.jsonl")).err, /own\.jsonl is a file of the crawl/);
});

test("killed in the middle, it gives the same the next time, and until then the old file stands", async () => {
  const pages = Array.from({ length: 120 }, (_, i) => [`/${i}`, page(`p${i}`)] as const);
  await using site = await openSite({
    "/": page(
      "home",
      pages.map(([path]) => path),
    ),
    ...Object.fromEntries(pages),
  });
  const cwd = folder();
  await crawled(site, cwd, scraper(cwd, 1, TITLE));
  const before = readFileSync(join(cwd, "items.jsonl"), "utf8");
  const slow = `const until = performance.now() + 30; while (performance.now() < until); item({ url, title: $("title").text() + "!" }, "thing");`;
  scraper(cwd, 2, slow);
  const killed = await runCommand(["reparse", "-s", "s2.mjs", "--state", "state", "-o", "items.jsonl", "--parse-workers", "1"], cwd, () =>
    existsSync(join(cwd, ".reparse-items.jsonl")),
  );
  assert.equal(killed.code, null, killed.stderr);
  assert.equal(readFileSync(join(cwd, "items.jsonl"), "utf8"), before);
  const { code, err } = await reparse(cwd, "-s", "s2.mjs", "-o", "items.jsonl", "--parse-workers", "1");
  assert.equal(code, 0, err);
  assert.equal(items(cwd).length, 121);
  assert.ok(items(cwd).every((line) => line.endsWith("!")));
  assert.equal(existsSync(join(cwd, ".reparse-items.jsonl")), false);
});
