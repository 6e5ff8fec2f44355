/** Whole crawls of documentation that nobody here wrote, against an independent computation over the same files. */
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import test from "node:test";
import type { PageRecord } from "../../src/core/records.ts";
import { crawl } from "../../src/crawl.ts";
import { referenceCrawl } from "./reference.ts";
import { serveFolder } from "./static-site.ts";

const SITES = [
  { name: "python3-doc", root: "/usr/share/doc/python3-doc/html", start: "/index.html" },
  { name: "postgresql-doc-15", root: "/usr/share/doc/postgresql-doc-15/html", start: "/index.html" },
  { name: "git-doc", root: "/usr/share/doc/git/html", start: "/index.html" },
];
const required = (process.env["SKEIN_REQUIRE"] ?? "").split(",").includes("docs");

for (const site of SITES) {
  const absent = !existsSync(site.root + site.start);
  if (absent && required) throw new Error(`${site.name} is required (SKEIN_REQUIRE) and not installed`);
  const skip = absent ? `package ${site.name} is not installed` : false;

  test(`every page of ${site.name} that links lead to is recorded once, with its depth and links`, { skip }, async (t) => {
    await using server = await serveFolder(site.root);
    const start = server.origin + site.start;
    const expected = referenceCrawl(site.root, start);
    const records = new Map<string, PageRecord>();
    for await (const page of crawl({ seeds: [start], maxDepth: 60, types: "all" })) {
      assert.ok(!records.has(page.url), `recorded twice: ${page.url}`);
      records.set(page.url, page);
    }
    assert.deepEqual([...records.keys()].sort(), [...expected.keys()].sort());
    for (const [url, page] of records) {
      const reference = expected.get(url)!;
      assert.equal(page.status, reference.status, url);
      assert.equal(page.depth, reference.depth, `depth of ${url}`);
      assert.deepEqual(new Set(page.links), reference.links, `links of ${url}`);
    }
    const asked = server.requests.filter((target) => target !== "/robots.txt");
    assert.equal(new Set(asked).size, asked.length, "a page was asked for twice");
    assert.equal(asked.length, records.size);
    t.diagnostic(`${site.name}: ${records.size} pages, ${[...records.values()].reduce((n, page) => n + page.links.length, 0)} links`);
  });
}
