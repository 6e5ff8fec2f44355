/** Crawls whose loops run in threads: the same records as those of one loop, exact, polite, stopped, killed and resumed, and with threads that die. */
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test, { after } from "node:test";
import type { CrawlStats, Summary } from "../../src/core/events.ts";
import type { Output } from "../../src/core/records.ts";
import { type CrawlInput, type CrawlOptions, crawl } from "../../src/crawl.ts";
import { lateness } from "../lateness.ts";
import { checkKills, faultySite, runCommand } from "./kills.ts";
import { html, serve, tree } from "./served.ts";
import { checkThreadedWeb } from "./threads-web.ts";

const root = mkdtempSync(join(tmpdir(), "skein-threads-"));
after(() => rmSync(root, { recursive: true, force: true }));
const folder = (name: string) => mkdtempSync(join(root, `${name}-`));

/** The whole outputs of a crawl, without times and what depends on the order of arrival. */
async function outputsOf(input: CrawlInput, options: CrawlOptions = {}): Promise<{ lines: string[]; summary: Summary; logged: string[] }> {
  const lines: string[] = [];
  const logged: string[] = [];
  const note = ({ page, skipped, found, edges, items = [] }: Output): void => {
    if (page !== null) {
      const { fetchedAt, durationMs, attempts, referrer, depth, redirects, ...rest } = page;
      lines.push(`page ${JSON.stringify(rest)}`);
    }
    for (const { value } of skipped) lines.push(`skipped ${value.url} ${value.reason} ${value.rule ?? ""}`);
    for (const { value } of found) lines.push(`found ${value}`);
    for (const { from, to } of edges) lines.push(`edge ${from} ${to}`);
    for (const { type, json } of items) lines.push(`item ${type} ${json}`);
  };
  const run = crawl(input, {
    ...options,
    log: (level, message, fields) => logged.push(`${level} ${message} ${JSON.stringify(fields)}`),
    onEvent: (event) => event.kind === "settled" && note(event.output),
  });
  const summary = await run.done;
  return { lines: lines.sort(), summary, logged };
}

const counted = ({ pages, bytes, byStatus, byOutcome, byError, bySkipReason, duplicates, retries, requests, items }: CrawlStats) => ({
  ...{ pages, bytes, byStatus, byOutcome, byError, bySkipReason, duplicates, retries, requests, items },
});

test("two and three threads write what one loop writes, in memory and in a state directory", async () => {
  const site = (port: string) => ({
    seeds: [port],
    maxDepth: 30,
    perHost: { concurrency: 16 },
    print: "links" as const,
    linksFile: join(folder("edges"), "edges.jsonl"),
  });
  await using calm = await serve(faultySite(160));
  const first = await outputsOf(site(calm.origin));
  for (const [threads, state] of [
    [2, false],
    [3, true],
  ] as const) {
    await using server = await serve(faultySite(160));
    const more = await outputsOf({ ...site(server.origin), threads, stateDir: state ? join(folder("state"), "s") : null });
    const there = (line: string) => line.replaceAll(server.origin, calm.origin);
    assert.deepEqual(more.lines.map(there).sort(), first.lines);
    assert.deepEqual(counted(more.summary), counted(first.summary));
    assert.equal(server.arrivals.length, calm.arrivals.length);
  }
});

test("random webs are found exactly, politely, within their limits", async (t) => {
  let pages = 0;
  for (let seed = 1; seed <= 6; seed++) pages += (await checkThreadedWeb(seed, 2 + (seed % 2), seed % 3 === 0 ? join(root, `web-${seed}`) : null)).pages;
  t.diagnostic(`6 webs, ${pages} records`);
});

for (const limit of [1, 37, 200]) {
  test(`--limit ${limit} with three threads is exact, in records and in requests`, async () => {
    await using server = await serve(tree(1_000));
    const summary = await crawl({ seeds: [server.origin], threads: 3, limits: { pages: limit }, perHost: { concurrency: 64 } }).done;
    assert.equal(summary.pages, limit);
    assert.equal(server.targets().length, limit);
    assert.equal(summary.finishReason, "limit-pages");
  });
}

test("no host is hurried by several threads, and none has more requests in flight than --per-host", async () => {
  const addresses = Array.from({ length: 6 }, (_, i) => `127.0.3.${i + 1}`);
  await using server = await serve(async (request, response) => {
    await new Promise((resolve) => setTimeout(resolve, 5));
    await tree(6)(request, response);
  }, addresses);
  // A busy machine holds up the first of two requests, and so shortens the gap that is seen.
  using late = lateness();
  await crawl({ seeds: addresses.map((address) => `http://${address}:${server.port}/`), threads: 3, perHost: { delay: 250 } }).done;
  for (const [host, arrivals] of Map.groupBy(server.arrivals, (arrival) => arrival.host)) {
    assert.equal(arrivals.length, 7, host);
    for (let i = 1; i < arrivals.length; i++)
      assert.ok(arrivals[i]!.at - arrivals[i - 1]!.at >= 250 - late.slackMs(), `${host}: ${arrivals[i]!.at - arrivals[i - 1]!.at} ms`);
  }
  // All are kept waiting until three are there at once: so it is seen that they may be.
  let three = false;
  const waiting: (() => void)[] = [];
  await using one = await serve(async (request, response) => {
    three ||= one.arrivals.at(-1)?.together === 3;
    if (three) for (const go of waiting.splice(0)) go();
    else if (/^\/\d/.test(request.url ?? "")) await new Promise<void>((go) => waiting.push(go));
    await new Promise((resolve) => setTimeout(resolve, 5));
    await tree(120)(request, response);
  });
  await crawl({ seeds: [one.origin], threads: 3, perHost: { concurrency: 3 } }).done;
  assert.equal(one.targets().length, 120);
  assert.equal(Math.max(...one.arrivals.map(({ together }) => together)), 3);
});

test("trap rules count over all threads", async () => {
  await using server = await serve((request, response) => {
    const i = Number(/^\/day\/(\d+)$/.exec(request.url ?? "")?.[1] ?? 0);
    html(response, `<a href="/day/${i + 1}">next</a><a href="/day/${i + 2}">later</a>`);
  });
  const input: CrawlInput = { seeds: [`${server.origin}/day/0`], traps: { template: 50, chain: null }, perHost: { concurrency: 1 } };
  const one = await outputsOf(input);
  const more = await outputsOf({ ...input, threads: 3 });
  assert.ok((one.summary.bySkipReason["trap"] ?? 0) > 0);
  assert.deepEqual(more.lines, one.lines);
  assert.deepEqual(counted(more.summary), counted(one.summary));
});

const SCRAPER = `import { defineScraper } from "skein";
export default defineScraper({ version: 1, handlers: {
  list({ $, follow, item, url, state, stopSeries, data }) {
    const index = data.index ?? 0;
    state.set("list" + index, index);
    for (const a of $("a.page").toArray()) follow($(a).attr("href"), { handler: "detail", priority: 1 });
    if (index >= 6) return stopSeries();
    follow("/list/" + (index + 1), { handler: "list", series: "l", index: index + 1, data: { index: index + 1 } });
  },
  detail({ $, item, url }) { if (process.env.SKEIN_TEST_DIE && url.endsWith(process.env.SKEIN_TEST_DIE)) process.exit(3); item({ url, title: $("title").text() }); },
} });`;

/** Lists of five pages each, without end. */
const shop = () =>
  serve((request, response) => {
    const index = Number(/^\/list\/(\d+)$/.exec(request.url ?? "")?.[1] ?? Number.NaN);
    if (Number.isNaN(index)) return html(response, `<title>${request.url}</title>`);
    html(response, Array.from({ length: 5 }, (_, i) => `<a class="page" href="/p/${index * 5 + i}">p</a>`).join(""));
  });

function scraperFile(): string {
  const file = join(folder("scraper"), "shop.mjs");
  writeFileSync(file, SCRAPER);
  return file;
}

test("a scraper module gives the same items, in the threads and in their parse workers", async () => {
  const scraper = scraperFile();
  await using server = await shop();
  const input: CrawlInput = { seeds: [`${server.origin}/list/0`], scraper, parseWorkers: 0 };
  const one = await outputsOf(input);
  assert.equal(one.summary.items, 35);
  for (const parseWorkers of [0, 2]) {
    const more = await outputsOf({ ...input, parseWorkers, threads: 2 });
    assert.deepEqual(more.lines, one.lines);
    assert.equal(more.summary.items, 35);
  }
  const cut = await outputsOf({ ...input, threads: 2, limits: { items: 11 } });
  assert.equal(cut.lines.filter((line) => line.startsWith("item")).length, 11);
});

test("a page that kills its thread is given up after the third death, and all others are read once", async () => {
  const scraper = scraperFile();
  await using server = await shop();
  process.env["SKEIN_TEST_DIE"] = "/p/17";
  try {
    for (const stateDir of [null, join(folder("dying"), "s")]) {
      const { lines, summary, logged } = await outputsOf({ seeds: [`${server.origin}/list/0`], scraper, parseWorkers: 0, threads: 2, stateDir });
      assert.deepEqual(summary.byError, { crashed: 1 }, logged.join("\n"));
      assert.equal(summary.finishReason, "finished");
      const items = lines.filter((line) => line.startsWith("item"));
      assert.equal(items.length, 34);
      assert.equal(new Set(items).size, 34);
      assert.ok(lines.some((line) => line.includes("/p/17") && line.includes('"crashed"')));
      const deaths = logged.filter((line) => line.includes("a thread was replaced")).length;
      // Once among others, or not, and then alone.
      assert.ok(deaths === 3 || deaths === 4, logged.join("\n"));
    }
  } finally {
    delete process.env["SKEIN_TEST_DIE"];
  }
});

test("a stop, a pause and an abort reach every thread", async () => {
  await using server = await serve(async (request, response) => {
    await new Promise((resolve) => setTimeout(resolve, 20));
    await tree(5_000)(request, response);
  });
  const records: string[] = [];
  const run = crawl(
    { seeds: [server.origin], threads: 2, perHost: { concurrency: 32 } },
    { onEvent: (event) => void (event.kind === "settled" && event.output.page !== null && records.push(event.output.page.url)) },
  );
  const pages = run[Symbol.asyncIterator]();
  for (let i = 0; i < 20; i++) await pages.next();
  await run.pause();
  let before = -1;
  while (before !== server.arrivals.length) {
    before = server.arrivals.length;
    await new Promise((resolve) => setTimeout(resolve, 300));
  }
  await run.resume();
  while (server.arrivals.length < before + 50) await pages.next();
  await run.stop({ mode: "flight", reason: "enough" });
  const asked = server.arrivals.length;
  const summary = await run.done;
  assert.equal(summary.finishReason, "stop-condition");
  assert.equal(summary.pages, records.length);
  assert.equal(new Set(records).size, records.length);
  assert.ok(server.arrivals.length - asked < 64, "what was in flight is finished, and nothing else begun");
  assert.ok(summary.pages < 4_000);
  const aborting = crawl({ seeds: [server.origin], threads: 2, perHost: { concurrency: 32 } });
  for await (const _ of aborting) if ((await aborting.stats()).pages > 30) break;
  assert.equal((await aborting.done).finishReason, "cancelled");
});

test("what cannot be sent to threads is refused by name", () => {
  const refused = (input: Partial<CrawlInput>, options: CrawlOptions) => {
    assert.throws(
      () => crawl({ seeds: ["http://127.0.0.1/"], threads: 2, ...input }, options),
      (error: Error) => {
        assert.match(error.message, /threads?:? 1|--threads 1/);
        return error.message.startsWith(`${Object.keys(input)[0] ?? Object.keys(options)[0]}`);
      },
    );
  };
  refused({}, { scrape: () => [] });
  refused({}, { hooks: { beforeRequest: () => undefined } });
  refused({ cache: "auto" }, {});
  refused({ offline: true }, {});
  refused({ incremental: true, stateDir: "x" }, {});
});

test("hooks that tell of what was settled, refused and retried are called", async () => {
  await using server = await serve(faultySite(60));
  const told = { skips: 0, retries: 0 };
  const summary = await crawl({ seeds: [server.origin], threads: 2 }, { hooks: { onSkip: () => void told.skips++, onRetry: () => void told.retries++ } }).done;
  assert.equal(told.retries, summary.retries);
  assert.ok(told.retries > 0 && told.skips > 0);
});

test("Ctrl-C on a crawl of two threads keeps it, and the command it prints resumes it", async () => {
  const cwd = folder("rescue");
  await using server = await serve(faultySite(120));
  const whole = await runCommand(["crawl", server.origin, "-o", "calm.jsonl"], cwd, null);
  assert.equal(whole.code, 0, whole.stderr);
  const asked = server.targets().length;
  const cut = await runCommand(["crawl", server.origin, "--threads", "2", "-o", "out.jsonl"], cwd, () => server.targets().length > asked + 40, "SIGINT");
  assert.equal(cut.code, 130, cut.stderr);
  const line = /^to resume: (?:npx )?skein (crawl .+ --state \.skein\/\S+)$/m.exec(cut.stderr)?.[1];
  assert.ok(line, cut.stderr);
  const resumed = await runCommand(line.split(" "), cwd, null);
  assert.equal(resumed.code, 0, resumed.stderr);
  const urls = (file: string) =>
    readFileSync(join(cwd, file), "utf8")
      .split("\n")
      .filter(Boolean)
      .map((text): string => JSON.parse(text).url);
  assert.deepEqual(urls("out.jsonl").sort(), urls("calm.jsonl").sort());
});

test("a crawl of two threads that is killed and resumed ends as the undisturbed one did", async (t) => {
  const { kills } = await checkKills({ pages: 160, seed: 11, withinMs: 600, kills: 3, threads: 2 });
  assert.ok(kills > 0);
  t.diagnostic(`${kills} kills`);
});
