/** Incremental crawls together with the cache, with watermarks and stops, with kills, and on the command line. */
import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test, { after } from "node:test";
import { type CrawlInput, defineScraper } from "../../src/index.ts";
import { seededRandom } from "../../src/testing/clock.ts";
import { runCommand } from "../crawl/kills.ts";
import { by, changesIn, linesOf, openSite, page, ran } from "./site-for-tests.ts";

const root = mkdtempSync(join(tmpdir(), "skein-together-"));
after(() => rmSync(root, { recursive: true, force: true }));
const folder = () => mkdtempSync(join(root, "d-"));
const setting = (dir: string, origin: string, more: Partial<CrawlInput> = {}): CrawlInput => ({
  ...{ seeds: [`${origin}/`], stateDir: join(dir, "state"), incremental: true, changesFile: join(dir, "changes.jsonl"), ...more },
});

test("with --cache, a stored page answers the question for as long as it serves, and then the cache asks", async () => {
  await using site = await openSite({ "/": page("home", ["/a", "/b"]), "/a": page("a", [], {}), "/b": page("b") });
  const dir = folder();
  await ran(setting(dir, site.origin, { cache: 3_600_000 }));
  site.asked();
  const fresh = await ran(setting(dir, site.origin, { cache: 3_600_000 }));
  assert.deepEqual(site.asked(), {});
  assert.deepEqual(by(fresh.pages, "outcome"), { "/": "unchanged", "/a": "unchanged", "/b": "unchanged" });
  assert.deepEqual(by(fresh.pages, "fromCache"), { "/": true, "/a": true, "/b": true });
  site.pages.set("/b", page("b changed", ["/c"]));
  site.pages.set("/c", page("c"));
  const stale = await ran(setting(dir, site.origin, { cache: 0 }));
  assert.deepEqual(site.asked(), { "/": { etag: '"home"' }, "/a": {}, "/b": { etag: '"b"' }, "/c": {} });
  assert.deepEqual(by(stale.pages, "change"), { "/": "unchanged", "/a": "unchanged", "/b": "changed", "/c": "new" });
  // The changed page was stored: without the network it is the one that is served.
  const offline = await ran({ seeds: [`${site.origin}/`], stateDir: join(dir, "state"), offline: true });
  assert.deepEqual(by(offline.pages, "title"), { "/": "home", "/a": "a", "/b": "b changed", "/c": "c" });
  assert.deepEqual(site.asked(), {});
});

test("pages that the cache does not hold are asked about by what the last run knows", async () => {
  await using site = await openSite({ "/": page("home", ["/a"]), "/a": page("a") });
  const dir = folder();
  await ran(setting(dir, site.origin));
  site.asked();
  assert.equal(existsSync(join(dir, "state", "cache.db")), false);
  const { pages } = await ran(setting(dir, site.origin, { cache: 3_600_000 }));
  assert.deepEqual(site.asked(), { "/": { etag: '"home"' }, "/a": { etag: '"a"' } });
  assert.deepEqual(by(pages, "outcome"), { "/": "unchanged", "/a": "unchanged" });
});

test("a watermark stays over runs in which nothing changed, and what lies behind a stop is not called gone", async () => {
  const list = (...days: number[]) => `${days.map((day) => `<p data-day="${day}"><a href="/d${day}">d</a></p>`).join("")}`;
  await using site = await openSite({
    "/": { body: list(4, 3), headers: { etag: '"1"' } },
    "/l1": { body: list(2, 1), headers: { etag: '"l1"' } },
    ...Object.fromEntries([1, 2, 3, 4, 5].map((n) => [`/d${n}`, page(`d${n}`)])),
  });
  const read: string[] = [];
  const scraper = defineScraper({
    version: 1,
    handlers: {
      list({ $, url, follow, stopSeries, watermark, data }) {
        read.push(new URL(url).pathname);
        const mark = watermark("day");
        for (const row of $("p")) {
          if (mark.old(Number($(row).attr("data-day")))) return stopSeries();
          follow($(row).find("a").attr("href"), { handler: "detail" });
        }
        if (data["index"] === undefined) follow("/l1", { handler: "list", series: "list", index: 1, data: { index: 1 } });
      },
      detail({ $, item, url }) {
        read.push(new URL(url).pathname);
        item({ title: $("title").text() });
      },
    },
  });
  const dir = folder();
  const spec = setting(dir, site.origin, { outputs: [join(dir, "items.jsonl")] });
  const items = () =>
    linesOf<{ title: string }>(dir, "items.jsonl")
      .map(({ title }) => title)
      .sort();
  await ran(spec, { scraper });
  assert.deepEqual(items(), ["d1", "d2", "d3", "d4"]);
  read.length = 0;
  await ran(spec, { scraper });
  assert.deepEqual(read, []);
  assert.deepEqual(items(), ["d1", "d2", "d3", "d4"]);
  site.pages.set("/", { body: list(5, 4), headers: { etag: '"2"' } });
  await ran(spec, { scraper });
  assert.deepEqual(read.splice(0).sort(), ["/", "/d5"]);
  assert.deepEqual(items(), ["d5"], "the list page was read by the mark of the first run");
  assert.ok(Object.values(changesIn(dir)).every((change) => change !== "gone"));
  // The page that stopped its series does so unread, too.
  await ran(spec, { scraper });
  assert.deepEqual([read, items()], [[], ["d5"]]);
});

test("a page that ended the run ends it unread, too", async () => {
  await using site = await openSite({ "/": page("home", ["/stop"]), "/stop": page("stop", ["/more"]), "/more": page("more") });
  const scraper = defineScraper({
    version: 1,
    handlers: {
      any({ url, stop, followAll }) {
        if (url.endsWith("/stop")) stop({ reason: "enough" });
        followAll("a");
      },
    },
  });
  const dir = folder();
  for (let run = 1; run <= 2; run++) {
    const { summary, pages } = await ran(setting(dir, site.origin), { scraper });
    assert.deepEqual([summary.finishReason, summary.detail], ["stop-condition", "enough"]);
    assert.deepEqual(Object.keys(pages).sort(), ["/", "/stop"]);
  }
});

/** A site whose pages change in a way that depends on `round`. */
async function roundSite(pages: number) {
  const site = await openSite({});
  const of = (i: number, round: number) => {
    const children = [1, 2, 3].map((k) => i * 3 + k).filter((k) => k < pages && !(round === 2 && k % 17 === 0));
    const version = round === 2 && i % 5 === 0 ? 2 : 1;
    return page(
      `p${i}.${version}`,
      children.map((k) => `/${k}`),
      i % 3 === 0 ? {} : { etag: `"${i}.${version}.${children.length}"` },
    );
  };
  return {
    site,
    round(round: number) {
      site.pages.clear();
      for (let i = 0; i < pages; i++) if (!(round === 2 && i % 29 === 28)) site.pages.set(i === 0 ? "/" : `/${i}`, of(i, round));
    },
  };
}

test("a second run that is killed again and again ends as the undisturbed one did, --changes too", async (t) => {
  const { site, round } = await roundSite(100);
  await using _ = site;
  const script = `import { defineScraper } from "skein";
    export default defineScraper({ version: 1, items: { thing: { key: "url" } }, handlers: {
      any({ $, item, url, followAll }) { item({ url, title: $("title").text() }, "thing"); followAll("a"); } } });`;
  const args = ["crawl", `${site.origin}/`, "-s", "scraper.mjs", "--parse-workers", "0", "--state", "state", "--incremental", "--changes", "changes.jsonl"];
  const files = [...args, "-o", "items.jsonl", "--changes", "changes.jsonl", "--pages", "pages.jsonl", "--links", "links.jsonl", "-q"];
  const random = seededRandom(11);
  const result = async (dir: string, kills: number) => {
    writeFileSync(join(dir, "scraper.mjs"), script);
    round(1);
    const first = await runCommand(files, dir, null);
    assert.equal(first.code, 0, first.stderr);
    round(2);
    let killed = 0;
    for (;;) {
      const asked = site.arrivals.length;
      const enough = 5 + Math.floor(random() * 40);
      const { code, stderr } = await runCommand(files, dir, killed >= kills ? null : () => site.arrivals.length >= asked + enough);
      if (code === 0) break;
      assert.equal(code, null, stderr);
      killed++;
    }
    return killed;
  };
  const lines = (dir: string, file: string) =>
    readFileSync(join(dir, file), "utf8")
      .split("\n")
      .filter(Boolean)
      .map((line) => {
        const { fetchedAt, durationMs, attempts, _meta, referrer, ...rest } = JSON.parse(line);
        return JSON.stringify(rest);
      })
      .sort();
  const calm = folder();
  await result(calm, 0);
  const wild = folder();
  const killed = await result(wild, 2);
  t.diagnostic(`${killed} kills`);
  assert.ok(killed > 0);
  for (const file of ["items.jsonl", "changes.jsonl", "pages.jsonl", "links.jsonl"]) assert.deepEqual(lines(wild, file), lines(calm, file), file);
  const kinds = new Set(linesOf<{ change: string }>(calm, "changes.jsonl").map(({ change }) => change));
  assert.deepEqual(
    [...kinds].sort(),
    ["added", "changed", "gone", "unchanged"].filter((kind) => kinds.has(kind)),
  );
  assert.ok(kinds.has("gone") && kinds.has("changed") && kinds.has("unchanged"));
});

test("--changes goes to every kind of file, and into a database beside the others", async () => {
  await using site = await openSite({ "/": page("home", ["/a"]), "/a": page("a") });
  for (const file of ["c.json", "c.csv", "c.jsonl.gz", "c.sqlite"]) {
    const dir = folder();
    const { summary } = await ran(setting(dir, site.origin, { changesFile: join(dir, file), pagesFile: file === "c.sqlite" ? join(dir, file) : null }));
    assert.ok(summary.files.includes(join(dir, file)));
    if (file === "c.json") assert.deepEqual(JSON.parse(readFileSync(join(dir, file), "utf8")).length, 2);
    if (file === "c.csv") assert.match(readFileSync(join(dir, file), "utf8"), /^kind,url,change,type,key,fields\r\npage,http[^,]*,added,,,\r\n/);
    if (file === "c.sqlite") {
      const { DatabaseSync } = process.getBuiltinModule("node:sqlite");
      const db = new DatabaseSync(join(dir, file));
      assert.deepEqual(db.prepare("SELECT count(*) AS n FROM changes JOIN pages USING (url)").get()?.["n"], 2);
      db.close();
    }
  }
});

test("--changes and another output to one file, and --incremental without a state, are refused", async () => {
  const dir = folder();
  const twice = await runCommand(["crawl", "http://127.0.0.1:1/", "--state", "s", "--incremental", "-o", "a.jsonl", "--changes", "./a.jsonl"], dir, null);
  assert.deepEqual([twice.code, /same file|another output/.test(twice.stderr)], [2, true], twice.stderr);
  const alone = await runCommand(["crawl", "http://127.0.0.1:1/", "--incremental"], dir, null);
  assert.equal(alone.code, 2);
  assert.match(alone.stderr, /--state/);
  const orphan = await runCommand(["crawl", "http://127.0.0.1:1/", "--state", "s", "--changes", "a.jsonl"], dir, null);
  assert.equal(orphan.code, 2);
  assert.match(orphan.stderr, /--incremental/);
});
