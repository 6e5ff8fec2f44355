/** The words of `skein explain` for every outcome, every skip reason and every standing, as golden files (SKEIN_UPDATE=1 rewrites them). */
import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import type { PageRecord, SkippedRecord, SkipReason } from "../../src/core/records.ts";
import { explain } from "../../src/inspect/explain.ts";
import { explanationLines } from "../../src/inspect/words.ts";
import { aPage } from "./fake-crawl.ts";
import { type FakeState, fakeState } from "./fake-state.ts";
import { golden } from "./golden.ts";

const URL_ASKED = "http://a.example/docs/x.html";
const PARENT = "http://a.example/docs/";
const WAY = [aPage("http://a.example/", { links: [PARENT] }), aPage(PARENT, { depth: 1, referrer: "http://a.example/", links: [URL_ASKED] })];
const now = Date.UTC(2026, 0, 1, 0, 1);

const page = (more: Partial<PageRecord>): PageRecord => aPage(URL_ASKED, { depth: 2, referrer: PARENT, ...more });
const failed = (code: NonNullable<PageRecord["error"]>["code"], message: string, status: number | null = null, attempts = 3) =>
  page({ outcome: "failed", status, attempts, error: { code, message } });
const skip = (reason: SkipReason, rule?: string, more: Partial<SkippedRecord> = {}): SkippedRecord => ({
  ...{ url: URL_ASKED, referrer: PARENT, depth: 2, reason, ...more },
  ...(rule === undefined ? {} : { rule }),
});

const RULES = { version: 1, kind: "rules", text: "User-agent: *\nDisallow: /docs/x" } as const;
type Case = FakeState & { readonly url?: string };

const found = (record: PageRecord, more: Case = {}): Case => ({ pages: [...WAY, record], ...more });
const passed = (line: SkippedRecord, more: Case = {}): Case => ({ pages: WAY, skipped: [line], ...more });
const waits = (more: Case): Case => ({ pages: WAY, more: { finishReason: null }, ...more });

/** Each outcome and error code. */
const OUTCOMES: Readonly<Record<string, Case>> = {
  fetched: found(page({ links: ["http://a.example/1", "http://a.example/2"], bytesDecoded: 12_345, attempts: 2 })),
  "fetched-404": found(page({ status: 404 })),
  "fetched-truncated": found(page({ truncated: true, bytesDecoded: 10_000_000 })),
  "fetched-not-downloaded": found(page({ contentType: "image/png", bodySkipped: true })),
  "fetched-from-cache": found(page({ fromCache: true })),
  "fetched-after-redirects": found(
    page({
      redirects: [
        { url: "http://a.example/old", status: 301 },
        { url: "http://a.example/older", status: 302 },
      ],
    }),
  ),
  "fetched-and-passed-over": found(page({}), { skipped: [skip("nofollow", "rel=nofollow", { referrer: "http://a.example/other" })] }),
  "fetched-from-sitemap": { pages: [aPage("http://a.example/", {}), aPage(URL_ASKED, { depth: 0, referrer: "http://a.example/sitemap.xml" })] },
  "fetched-seed": { url: "http://a.example/" },
  unchanged: found(page({ outcome: "unchanged", status: 304 })),
  redirected: found(page({ outcome: "redirected", status: 301, location: "http://a.example/new" })),
  disallowed: found(page({ outcome: "disallowed", status: null, attempts: 0 }), { skipped: [skip("robots", "Disallow: /docs/x")], robots: RULES }),
  "disallowed-robots-expired": found(page({ outcome: "disallowed", status: null, attempts: 0 }), { skipped: [skip("robots", "Disallow: /docs/x")] }),
  gone: found(page({ outcome: "gone", status: 404 })),
  "failed-dns": found(failed("dns", "no such host; after 3 tries")),
  "failed-connect": found(failed("connect", "connection refused; after 3 tries")),
  "failed-tls": found(failed("tls", "certificate has expired", null, 1)),
  "failed-timeout": found(failed("timeout", "no answer within 30s; after 3 tries")),
  "failed-reset": found(failed("reset", "connection reset; after 3 tries")),
  "failed-protocol": found(failed("protocol", "not HTTP", null, 1)),
  "failed-http": found(failed("http", "HTTP status 503; after 3 tries", 503)),
  "failed-rate-limited": found(failed("rate-limited", "HTTP status 429; the server asks to wait 1h (Retry-After)", 429, 1)),
  "failed-robots-unavailable": found(failed("robots-unavailable", "robots.txt cannot be had: HTTP status 503", null, 0), {
    skipped: [skip("robots", "robots.txt unavailable")],
    robots: { version: 1, kind: "unavailable", code: "robots-unavailable", why: "HTTP status 503" },
  }),
  "failed-redirect": found(failed("redirect", "redirects to itself", 301, 1)),
  "failed-too-large": found(failed("too-large", "a head of more than 256 KB", null, 1)),
  "failed-decode": found(failed("decode", "gzip: unexpected end", 200, 1)),
  "failed-parse": found(failed("parse", "not XML", 200, 1)),
  "failed-scraper": found(failed("scraper", "boom", 200, 1)),
  "failed-crashed": found(failed("crashed", "the worker died 3 times while it fetched this page", null, 3)),
  "failed-blocked-address": found(failed("blocked-address", "127.0.0.1 is not public", null, 1), {
    skipped: [skip("private-address", "127.0.0.1 is not public")],
  }),
};

const SKIPS: Readonly<Record<SkipReason, Case>> = {
  "out-of-scope": passed(skip("out-of-scope", "scope host", { url: "http://b.example/" }), { url: "http://b.example/" }),
  excluded: passed(skip("excluded", "exclude *.html"), { spec: { scope: { exclude: ["*.html"] } } }),
  "not-followed": passed(skip("not-followed"), { spec: { follow: ["*.htm", "/list/**"] } }),
  depth: passed(skip("depth", "--depth 1"), { spec: { maxDepth: 1 } }),
  "page-limit": passed(skip("page-limit"), { spec: { limits: { pages: 2 } }, more: { finishReason: "limit-pages" } }),
  robots: passed(skip("robots", "Disallow: /docs/x"), { robots: RULES }),
  nofollow: passed(skip("nofollow", "rel=nofollow")),
  "duplicate-content": passed(skip("duplicate-content")),
  trap: passed(skip("trap", "traps.pathDepth 25: more than 25 path segments")),
  "file-type": passed(skip("file-type")),
  scheme: passed(skip("scheme", undefined, { url: "mailto:a@b" }), { url: "mailto:a@b" }),
  "invalid-url": passed(skip("invalid-url", undefined, { url: "http://[x" }), { url: "http://[x" }),
  "url-too-long": passed(skip("url-too-long")),
  "private-address": passed(skip("private-address", "10.0.0.1 is not public")),
  "redirect-out-of-scope": passed(skip("redirect-out-of-scope", "scope host", { url: "http://b.example/" }), { url: "http://b.example/" }),
  stopped: passed(skip("stopped"), { more: { finishReason: "interrupted" } }),
  duplicate: passed(skip("duplicate")),
};

const MORE: Readonly<Record<string, Case>> = {
  "out-of-scope-include": passed(skip("out-of-scope", "include *.htm, /list/**"), { spec: { scope: { include: ["*.htm", "/list/**"] } } }),
  "out-of-scope-sitemap": passed(
    skip("out-of-scope", "a sitemap lists only pages of hosts that name it", { depth: 0, referrer: "http://a.example/sitemap.xml" }),
  ),
  "nofollow-page": passed(skip("nofollow", "robots: nofollow")),
  queued: waits({
    queue: [
      { url: "http://a.example/1", referrer: PARENT, depth: 2 },
      { url: "http://b.example/", depth: 0 },
      { url: URL_ASKED, referrer: PARENT, depth: 2 },
      { url: "http://a.example/2", referrer: PARENT, depth: 2 },
    ],
  }),
  "queued-newest-first": waits({
    spec: { order: "dfs" },
    queue: [
      { url: "http://a.example/1", referrer: PARENT, depth: 2 },
      { url: URL_ASKED, referrer: PARENT, depth: 2 },
    ],
  }),
  "queued-ended": waits({ queue: [{ url: URL_ASKED, referrer: PARENT, depth: 2 }], skipped: [skip("page-limit")], more: { finishReason: "limit-pages" } }),
  delayed: waits({ queue: [{ url: URL_ASKED, referrer: PARENT, depth: 2, standing: "delayed", attempt: 1, dueEpoch: now + 4_000 }] }),
  leased: waits({ queue: [{ url: URL_ASKED, referrer: PARENT, depth: 2, standing: "leased" }] }),
  "redirect-under-way": { pages: WAY, settled: { [URL_ASKED]: "done" } },
  "settled-in-memory": { pages: [], counted: 2, settled: { [URL_ASKED]: "done" } },
  dropped: { pages: WAY, url: "https://a.example/", settled: { "https://a.example/": "dropped" } },
  unknown: { pages: [aPage("http://a.example/")] },
  "unknown-just-started": { pages: [], queue: [{ url: "http://a.example/", depth: 0 }], more: { finishReason: null } },
  "unknown-running": { pages: [aPage("http://a.example/")], spec: { maxDepth: 3 }, more: { finishReason: null } },
  "unknown-out-of-scope": { url: "http://b.example/" },
  "unknown-excluded": { spec: { scope: { exclude: ["/docs/**"] } } },
  "unknown-not-included": { spec: { scope: { include: ["*.pdf"] } } },
  "unknown-not-followed": { spec: { follow: ["*.pdf"] } },
  "unknown-disallowed": { robots: RULES },
  "unknown-linked": { pages: WAY, more: { finishReason: "stop-condition" } },
  "unknown-near": { url: "https://a.example/docs", pages: WAY },
  "unknown-in-memory": { pages: [], counted: 2 },
  "unknown-passed-over-in-memory": { pages: [], counted: 2, passedOver: [URL_ASKED] },
  sitemap: { url: "http://a.example/sitemap.xml", settled: { "sitemap:http://a.example/sitemap.xml": "done" } },
  "robots-txt": { url: "http://a.example/robots.txt", robots: RULES },
  "unknown-no-url": { url: "nonsense:[" },
};

async function told(name: string, { url = URL_ASKED, ...state }: Case): Promise<void> {
  using view = fakeState(state);
  const explanation = await explain(view, url);
  const lines = explanationLines(explanation, { spec: view.spec, finishReason: view.finishReason, now });
  golden(`explain-${name}.txt`, `${lines.join("\n")}\n`);
}

for (const [name, state] of Object.entries({ ...OUTCOMES, ...SKIPS, ...MORE })) test(`explain: ${name}`, () => told(name, state));

test("every golden answer belongs to a case", () => {
  const names = new Set(Object.keys({ ...OUTCOMES, ...SKIPS, ...MORE }).map((name) => `explain-${name}.txt`));
  const files = readdirSync(join(import.meta.dirname, "golden")).filter((file) => file.startsWith("explain-"));
  assert.deepEqual(files.sort(), [...names].sort());
});

test("the way is followed back through many pages, and circles end", async () => {
  const deep = Array.from({ length: 150 }, (_, depth) =>
    aPage(`http://a.example/${depth}`, { depth, referrer: depth === 0 ? null : `http://a.example/${depth - 1}` }),
  );
  using view = fakeState({ pages: deep });
  const { way, wayCut } = await explain(view, "http://a.example/60");
  assert.deepEqual([way.length, way[0]?.url, way.at(-1)?.url, wayCut], [60, "http://a.example/0", "http://a.example/59", false]);
  const far = await explain(view, "http://a.example/149");
  assert.deepEqual([far.way.length, far.wayCut], [100, true]);
  using circle = fakeState({
    pages: [
      aPage("http://a.example/1", { depth: 1, referrer: "http://a.example/2" }),
      aPage("http://a.example/2", { depth: 1, referrer: "http://a.example/1" }),
    ],
  });
  assert.equal((await explain(circle, "http://a.example/1")).way.length, 2);
});
