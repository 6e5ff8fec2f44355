/** A zoo of spider traps as a site: the crawl ends by itself and has every useful page. The rules one by one are tested in src/rules/traps.test.ts. */
import assert from "node:assert/strict";
import test from "node:test";
import { type CrawlInput, crawl } from "../../src/crawl.ts";
import { html, serve } from "./served.ts";

const USEFUL = 30;
/** Small figures, so that the tests need no tens of thousands of requests. */
const SMALL = { chain: 60, template: 300, combinations: 100, shuffles: 60 };

/** `/useful/N` behind every trap's entrance. */
function zoo(url: string): string {
  const { pathname, searchParams, search } = new URL(url, "http://h");
  const link = (href: string) => `<a href="${href}">x</a>`;
  if (pathname === "/") {
    const useful = Array.from({ length: USEFUL }, (_, i) => link(`/useful/${i}`)).join("");
    return (
      useful + ["/calendar?month=2026-11", "/nest/", "/shop?a=1", "/count/1", "/s/list?sid=0a1b2c3d4e5f60718293a4b5c6d7e8f9", "/grow?p=1"].map(link).join("")
    );
  }
  if (pathname === "/calendar") {
    const [year, month] = (searchParams.get("month") ?? "2026-11").split("-").map(Number) as [number, number];
    const at = (offset: number) => new Date(Date.UTC(year, month - 1 + offset)).toISOString().slice(0, 7);
    return link(`/calendar?month=${at(1)}`) + link(`/calendar?month=${at(-1)}`);
  }
  if (pathname.startsWith("/nest/")) return link("www.example.com/p/");
  if (pathname === "/shop")
    return ["a", "b", "c", "d", "e", "f"].map((key) => link(`/shop${search}&${key}=${Math.floor(Math.abs(Math.sin(search.length)) * 9)}`)).join("");
  if (pathname.startsWith("/count/")) return link(`/count/${Number(pathname.slice(7)) + 1}`);
  if (pathname.startsWith("/s/")) return link(`/s/list?sid=${crypto.randomUUID().replaceAll("-", "")}`);
  if (pathname === "/grow") return link(`/grow${search}&p=1`);
  return "<p>useful";
}

async function crawlZoo(input: Partial<CrawlInput>) {
  await using server = await serve((request, response) => html(response, zoo(request.url ?? "/"), request.url === "/robots.txt" ? 404 : 200));
  const useful = new Set<string>();
  const run = crawl({ ...input, seeds: [server.origin], perHost: { concurrency: 64 } });
  for await (const page of run) if (page.url.includes("/useful/")) useful.add(page.url);
  return { useful: useful.size, summary: await run.done };
}

test("a crawl of the zoo ends by itself with all useful pages, and says which traps it met", async () => {
  const { useful, summary } = await crawlZoo({ traps: SMALL });
  assert.equal(useful, USEFUL);
  assert.equal(summary.finishReason, "finished");
  assert.ok(summary.pages < 3_000, `${summary.pages} pages`);
  assert.ok((summary.bySkipReason["trap"] ?? 0) > 0);
});

test("with every rule lifted only a limit ends it, and breadth first the useful pages still come", async () => {
  const { useful, summary } = await crawlZoo({ traps: { all: "off" }, limits: { pages: 400 } });
  assert.equal(useful, USEFUL);
  assert.equal(summary.finishReason, "limit-pages");
  assert.equal(summary.bySkipReason["trap"], undefined);
});
