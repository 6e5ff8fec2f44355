/** Random sites that change at random: an incremental crawl ends with what a crawl from nothing gives, and tells the difference of two such crawls. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test, { after } from "node:test";
import type { PageRecord } from "../../src/core/records.ts";
import { defineScraper } from "../../src/index.ts";
import { seededRandom } from "../../src/testing/clock.ts";
import { changesIn, linesOf, openSite, ran, type SitePage } from "./site-for-tests.ts";

const root = mkdtempSync(join(tmpdir(), "skein-random-"));
after(() => rmSync(root, { recursive: true, force: true }));

/** A page by chance: links of every sort, and validators of every sort. */
function pageOf(random: () => number, size: number): SitePage {
  const pick = (): number => Math.floor(random() * size);
  const version = Math.floor(random() * 1e6);
  const roll = random();
  if (roll < 0.06) return { body: "", status: 302, headers: { location: `/${pick()}` } };
  if (roll < 0.1) return { body: "no", status: 403 };
  const links = Array.from({ length: 1 + Math.floor(random() * 4) }, () => {
    const kind = random();
    if (kind < 0.06) return `<a href="mailto:${pick()}">m</a>`;
    if (kind < 0.12) return `<a rel="nofollow" href="/${pick()}">n</a>`;
    if (kind < 0.2) return `<a href="http://elsewhere.invalid/${pick()}">e</a>`;
    if (kind < 0.3) return `<a href="/%7e${pick()}">odd spelling</a>`;
    return `<a href="${random() < 0.5 ? "/" : ""}${pick()}">${pick()}</a>`;
  });
  const head = `<title>t${version}</title>${random() < 0.1 ? '<base href="/x/">' : ""}${random() < 0.1 ? '<meta name="robots" content="nofollow">' : ""}`;
  const headers: Record<string, string> = {};
  if (random() < 0.5) headers["etag"] = `${random() < 0.3 ? "W/" : ""}"${version}"`;
  if (random() < 0.4) headers["last-modified"] = new Date(1e12 + version * 1e6).toUTCString();
  return { body: `${head}${links.join(" ")}`, headers, ...(random() < 0.2 ? { confirms: () => false } : {}) };
}

function siteOf(random: () => number, size: number): Map<string, SitePage> {
  return new Map(
    Array.from(
      { length: size },
      (_, i) =>
        [
          `/${i === 0 ? "" : i}`,
          i === 0 ? { body: `<title>0</title>${[1, 2, 3, 4].map((k) => `<a href="/${k}">${k}</a>`).join("")}` } : pageOf(random, size),
        ] as const,
    ),
  );
}

function changed(before: ReadonlyMap<string, SitePage>, random: () => number): Map<string, SitePage> {
  const now = new Map(before);
  for (const path of before.keys()) {
    const roll = random();
    if (path === "/" || roll > 0.3) continue;
    if (roll < 0.08) now.delete(path);
    else now.set(path, pageOf(random, before.size));
  }
  return now;
}

const scraper = (calls: string[]) =>
  defineScraper({
    version: 1,
    items: { thing: { key: "url" } },
    handlers: {
      any({ $, item, url, followAll, links }) {
        calls.push(url);
        item({ url, title: $("title").text(), links: links.length }, "thing");
        followAll("a");
      },
    },
  });

/** What does not depend on the way it was learnt. */
function essence(pages: Record<string, PageRecord>): Record<string, unknown> {
  const entries = Object.entries(pages).map(([path, one]) => {
    const { status, outcome, title, digest, links, location, charset, robots, contentType } = one;
    // Depth and referrer depend on which of several links was first.
    return [path, { status: outcome === "unchanged" ? 200 : status, title, digest, links, location, charset, robots, contentType }] as const;
  });
  return Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1)));
}

for (const withScraper of [false, true]) {
  test(`a crawl of what changed equals a crawl of everything ${withScraper ? "with" : "without"} a scraper, over three runs and plain ones between`, async () => {
    for (let seed = 1; seed <= 4; seed++) {
      const random = seededRandom(seed * 31 + (withScraper ? 7 : 0));
      await using site = await openSite({});
      const dir = mkdtempSync(join(root, "d-"));
      let pages = siteOf(random, 40);
      let before: Record<string, PageRecord> = {};
      for (let round = 1; round <= 3; round++) {
        site.pages.clear();
        for (const [path, one] of pages) site.pages.set(path, one);
        const of = (name: string) => ({
          ...{
            seeds: [`${site.origin}/`],
            outputs: [join(dir, `${name}.jsonl`)],
            skippedFile: join(dir, `${name}-skipped.jsonl`),
            linksFile: join(dir, `${name}-links.jsonl`),
          },
          retry: { max: 0 },
        });
        const calls: string[] = [];
        const own = withScraper ? { scraper: scraper(calls) } : {};
        const whole = await ran(of("whole"), withScraper ? { scraper: scraper([]) } : {});
        // A run that keeps no notes, of the site as it is now: what the next one compares with stays as it was.
        if ((seed + round) % 2 === 0) await ran({ ...of("plain"), stateDir: join(dir, "state") }, withScraper ? { scraper: scraper([]) } : {});
        const part = await ran({ ...of("part"), stateDir: join(dir, "state"), incremental: true, changesFile: join(dir, "changes.jsonl") }, own);
        const where = `seed ${seed}, round ${round}`;
        assert.deepEqual(essence(part.pages), essence(whole.pages), where);
        const lines = (file: string) =>
          linesOf<object>(dir, file)
            .map((line) => JSON.stringify({ ...line, _meta: null, referrer: null, depth: null }))
            .sort();
        assert.deepEqual(lines("part-links.jsonl"), lines("whole-links.jsonl"), where);
        assert.deepEqual(lines("part-skipped.jsonl"), lines("whole-skipped.jsonl"), where);
        if (withScraper) assert.deepEqual(lines("part.jsonl"), lines("whole.jsonl"), where);
        const there = (all: Record<string, PageRecord>) => Object.fromEntries(Object.entries(all).filter(([, { status }]) => status === 200));
        const expected: Record<string, string> = {};
        for (const path of new Set([...Object.keys(before), ...Object.keys(there(whole.pages))])) {
          const [was, is] = [before[path], there(whole.pages)[path]];
          if (is === undefined && whole.pages[path]?.status === 403) continue;
          expected[path] = was === undefined ? "added" : is === undefined ? "gone" : was.digest === is.digest ? "unchanged" : "changed";
        }
        const told = Object.entries(changesIn(dir)).filter(([path]) => !path.includes("#"));
        // Behind a page that answers 403 nothing is called gone.
        const forbidden = Object.entries(whole.pages).some(([path, { status }]) => status === 403 && before[path] !== undefined);
        const both = ([, change]: readonly [string, string]) => !forbidden || !change.startsWith("gone");
        assert.deepEqual(
          Object.fromEntries(
            told
              .map(([path, change]) => [path, change.split(" ")[0] ?? ""] as const)
              .filter(both)
              .sort(),
          ),
          Object.fromEntries(Object.entries(expected).filter(both).sort()),
          where,
        );
        if (withScraper && round > 1) {
          const read = Object.values(part.pages).filter(({ outcome, status }) => outcome === "fetched" && status === 200).length;
          assert.ok(calls.length === read && read < Object.keys(there(whole.pages)).length, `${where}: ${calls.length} read`);
        }
        // What was forbidden keeps what was known of it, and so may what it leads to.
        const kept = Object.fromEntries(Object.entries(before).filter(([path]) => forbidden && !(path in whole.pages)));
        const refused = Object.fromEntries(Object.entries(before).filter(([path]) => whole.pages[path]?.status === 403));
        before = { ...kept, ...refused, ...there(whole.pages) };
        if (forbidden) break;
        pages = changed(pages, random);
      }
    }
  });
}
