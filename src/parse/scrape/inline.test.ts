import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import type { ScrapeOutcome, Scraping } from "../../core/scraping.ts";
import { defineScraper, type HandlerContext } from "./define.ts";
import { openScraping, type ScrapingOptions } from "./open.ts";
import { scrapeTask } from "./task-for-tests.ts";

const folder = mkdtempSync(join(tmpdir(), "skein-inline-"));
after(() => rmSync(folder, { recursive: true, force: true }));

function open(options: Partial<ScrapingOptions>) {
  return openScraping({ cwd: folder, workers: 0, parseTimeoutMs: 60_000, concurrency: 2, log: () => undefined, ...options });
}

test("closures run in the loop's thread, with what was learnt, and log plain fields", async () => {
  const logged: unknown[] = [];
  const scraper = defineScraper({
    items: { page: { key: "n" } },
    handlers: {
      page({ item, state, log }) {
        log.warn("odd", { list: [1], none: undefined, n: 1, big: 1n });
        item({ n: state.get("n") });
      },
    },
  });
  const { scraping, itemTypes } = await open({ scraper, log: (...line) => logged.push(line) });
  assert.deepEqual([scraping.kind, scraping.first, itemTypes], ["handlers", "page", [{ name: "page", key: "n", columns: null }]]);
  scraping.learn([["state:n", "4"]]);
  const outcome = await scraping.run(scrapeTask(""));
  assert.deepEqual(outcome.kind === "scraped" && outcome.scraped.items, [{ type: "page", key: "4", json: '{"n":4}' }]);
  assert.deepEqual(logged, [["warn", "odd", { url: "http://shop.test/list/page.html", list: "[1]", n: 1, big: "[object BigInt]" }]]);
  assert.deepEqual(scraping.view(), { workers: 0, busy: 0, waiting: 0, waitingBytes: 0, cpuShare: 0 });
});

test("the textbook's callback gives links", async () => {
  const { scraping } = await open({ scrape: (url, html) => [url + html] });
  assert.equal(scraping.kind, "links");
  const outcome = await scraping.run(scrapeTask("x"));
  assert.deepEqual(outcome.kind === "scraped" && outcome.scraped.links, ["http://shop.test/list/page.htmlx"]);
});

test("pages whose handlers wait fill the buffer, and say when there is room", async () => {
  const gates: (() => void)[] = [];
  const { scraping } = await open({ scraper: defineScraper({ handlers: { wait: () => new Promise<void>((done) => gates.push(done)) } }) });
  const runs = [scraping.run(scrapeTask("")), scraping.run(scrapeTask(""))];
  assert.deepEqual([scraping.full(), scraping.view().busy], [true, 2]);
  const room = Promise.withResolvers<void>();
  scraping.onSpace(room.resolve);
  gates[0]?.();
  await room.promise;
  assert.equal(scraping.full(), false);
  gates[1]?.();
  assert.deepEqual(
    (await Promise.all(runs)).map(({ kind }) => kind),
    ["scraped", "scraped"],
  );
});

test("abort ends what waits and fires its signal; what its code says afterwards is not heard", async () => {
  const seen: HandlerContext[] = [];
  const { promise: never } = Promise.withResolvers<void>();
  const scraper = defineScraper({ handlers: { hang: (context) => (context.signal.aborted ? undefined : seen.push(context) && never) } });
  const { scraping } = await open({ scraper });
  const run = scraping.run(scrapeTask(""));
  await Promise.resolve();
  scraping.abort();
  assert.deepEqual(await run, { kind: "aborted" });
  assert.equal(seen[0]?.signal.aborted, true);
});

test("a module runs in parse workers by default, and inline with none", async () => {
  writeFileSync(
    join(folder, "where.mjs"),
    'import { isMainThread } from "node:worker_threads"; export default { handlers: { a({ item }) { item({ isMainThread }); } } };',
  );
  for (const workers of [0, 1]) {
    const { scraping } = await open({ file: "where.mjs", workers });
    await using _ = scraping;
    const outcome = await scraping.run(scrapeTask(""));
    assert.deepEqual(outcome.kind === "scraped" && outcome.scraped.items[0]?.json, `{"isMainThread":${workers === 0}}`);
  }
  await assert.rejects(open({ file: "absent.mjs", workers: 0 }), { code: "invalid-options", message: "scraper: absent.mjs: no such file" });
  // `as`: a JavaScript caller may give anything.
  await assert.rejects(open({ scraper: {} as ReturnType<typeof defineScraper> }), { code: "invalid-options", message: /^scraper: handlers must be/ });
});

/** Everything that a handler may keep of a page, cut out of its text. */
const KEEPER = `export default { items: { page: { key: "key" } }, handlers: { page({ $, html, item, follow, state, stop, data }) {
  const name = $("h1").text().slice(2, 42);
  const at = html.indexOf("x");
  item({ key: html.slice(at, at + 40), name });
  follow(html.slice(at, at + 40), { handler: "page", series: html.slice(at, at + 30), index: 1, data: { name } });
  state.set(html.slice(at, at + 40), name);
  stop({ reason: html.slice(at, at + 40) });
} } };`;

async function heldBytes(scraping: Scraping, pages: number): Promise<number> {
  setFlagsFromString("--expose-gc");
  // `as`: the flag puts it there.
  const gc = runInNewContext("gc") as () => void;
  const held: ScrapeOutcome[] = [];
  const inUse = async (): Promise<number> => {
    // Bodies are freed by a thread of the collector, a moment after it has found them.
    for (let i = 0; i < 3; i++) {
      gc();
      await new Promise(setImmediate);
    }
    const { heapUsed, arrayBuffers } = process.memoryUsage();
    return heapUsed + arrayBuffers;
  };
  const page = () => `<h1>..${"x".repeat(60)}</h1><!--${String(Math.random()).padEnd(200_000, "-")}-->`;
  for (let i = 0; i < 15; i++) await scraping.run(scrapeTask(page()));
  const before = await inUse();
  for (let i = 0; i < pages; i++) held.push(await scraping.run(scrapeTask(page())));
  const grown = (await inUse()) - before;
  assert.ok(held.every((outcome) => outcome.kind === "scraped" && outcome.scraped.items.length === 1));
  return grown;
}

for (const workers of [0, 1]) {
  test(`fields of 40 bytes keep no page of 200 KB alive with ${workers} parse workers`, async () => {
    writeFileSync(join(folder, "keeper.mjs"), KEEPER);
    const { scraping } = await open({ file: "keeper.mjs", workers });
    await using _ = scraping;
    // SKEIN_HEAP_PAGES=5000 for the whole of the promise; 40 pages would already hold 8 MB.
    const pages = Number(process.env["SKEIN_HEAP_PAGES"] ?? 40);
    const grown = await heldBytes(scraping, pages);
    assert.ok(grown < 2e6 + pages * 4000, `${pages} pages hold ${grown} bytes`);
  });
}

test("a handler that awaits for ever is given up, its signal aborted, and the next page goes on", async () => {
  let signalled = false;
  const scraper = defineScraper({
    handlers: {
      page({ url, signal, item }) {
        if (url.includes("page")) return new Promise<void>(() => signal.addEventListener("abort", () => (signalled = true)));
        item({ n: 1 });
      },
    },
  });
  const { scraping } = await open({ scraper, parseTimeoutMs: 30, concurrency: 1 });
  const outcome = await scraping.run(scrapeTask(""));
  assert.deepEqual([outcome, signalled, scraping.full()], [{ kind: "threw", message: "took longer than 30ms", stack: null }, true, false]);
  assert.equal((await scraping.run({ ...scrapeTask(""), url: "http://shop.test/other" })).kind, "scraped");
  await scraping[Symbol.asyncDispose]();
});
