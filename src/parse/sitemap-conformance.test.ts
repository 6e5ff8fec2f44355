/** Sitemaps against the conformance data. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { siteOf } from "../rules/site.ts";
import { conformanceCases } from "../rules/url-conformance.ts";
import { mayList, parseSitemapDate } from "./sitemap.ts";
import { readPacked } from "./sitemap-trial.ts";

const cases = conformanceCases("sitemap");
if (cases !== null) {
  for (const c of cases) {
    if (c.taste === true) continue;
    test(`conformance ${c.id} ${c.kind}${c.note === undefined ? "" : `: ${c.note}`}`, async () => {
      if (c.kind === "date") {
        const text: string = c.input.lastmod ?? c.input.pubDate;
        const epoch = parseSitemapDate(text);
        const want: string | null = c.expected;
        if (want === null) return assert.equal(epoch, null);
        assert.notEqual(epoch, null, text);
        const iso = new Date(epoch ?? 0).toISOString();
        if (want.includes("T")) assert.equal(epoch, Date.parse(want));
        else assert.equal(iso.slice(0, 10), want);
        return;
      }
      if (c.kind === "cross-submit") {
        const named: string[] = c.input.announcedByRobotsOf ?? [];
        const urls: string[] = c.input.urls;
        const by = c.input.level === "registrable-domain" ? siteOf : undefined;
        assert.equal(urls.filter((url) => mayList(c.input.sitemapUrl, url, named, by)).length, c.expected.acceptedCount);
        return;
      }
      assert.equal(c.kind, "parse");
      const { input, expected } = c;
      const body = input.bodyBase64 === undefined ? Buffer.from(input.body) : Buffer.from(input.bodyBase64, "base64");
      const found = await readPacked(body, { url: input.url, contentType: input.contentType ?? null });
      const locs = expected.type === "index" ? found.sitemaps : found.locs;
      assert.equal(found.result.kind, expected.type);
      assert.equal(found.result.error !== null, expected.error === true, `error: ${found.result.error}`);
      if (expected.count !== undefined) assert.equal(locs.length, expected.count);
      if (expected.locs !== undefined) assert.deepEqual(locs, expected.locs);
      if (expected.alternates !== undefined) assert.deepEqual([...new Set(found.alternates)].sort(), [...new Set<string>(expected.alternates)].sort());
      if (expected.lastmods !== undefined) {
        const want: (string | null)[] = expected.lastmods;
        assert.deepEqual(
          found.facts.map((f) => f.lastmod),
          want.map((w) => (w === null ? null : Date.parse(w))),
        );
      }
      if (expected.urls !== undefined) {
        assert.deepEqual(
          found.locs.map((loc, i) => ({ loc, ...found.facts[i] })),
          expected.urls.map((u: { loc: string; lastmod?: string; changefreq?: string; priority?: number }) => ({
            loc: u.loc,
            lastmod: u.lastmod === undefined ? null : Date.parse(u.lastmod),
            changefreq: u.changefreq ?? null,
            priority: u.priority ?? null,
          })),
        );
      }
    });
  }
  const choices = cases.filter((c) => c.taste === true && c.kind === "parse");
  let agree = 0;
  for (const c of choices) {
    const found = await readPacked(c.input.body ?? Buffer.from(c.input.bodyBase64, "base64"), { url: c.input.url, contentType: c.input.contentType ?? null });
    if (JSON.stringify([...found.locs, ...found.sitemaps]) === JSON.stringify(c.expected.locs)) agree++;
  }
  console.log(`sitemap: ${agree} of ${choices.length} matters of taste chosen as in the source`);
}
