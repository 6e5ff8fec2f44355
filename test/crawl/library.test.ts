/** The library's front door over real sockets: iteration, back-pressure, stopping, the scrape callback, hooks. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { CrawlError } from "../../src/core/errors.ts";
import type { PageRecord } from "../../src/core/records.ts";
import type { Sink } from "../../src/core/sink.ts";
import { crawl, INTERRUPTED } from "../../src/crawl.ts";
import { html, serve, tree } from "./served.ts";

test("a crawl is iterated page by page, and done tells the summary", async () => {
  await using server = await serve(tree(50));
  const run = crawl({ seeds: server.origin });
  const urls = new Set<string>();
  for await (const page of run) {
    urls.add(page.url);
    assert.equal(page.status, 200);
    assert.match(page.digest ?? "", /^sha256:[0-9a-f]{64}$/);
    assert.equal(page.title, `page ${page.url === `${server.origin}/` ? 0 : page.url.split("/").at(-1)}`);
  }
  assert.equal(urls.size, 50);
  const summary = await run.done;
  assert.equal(summary.pages, 50);
  assert.equal(summary.finishReason, "finished");
  assert.equal(summary.seedsReached, 1);
});

test("a slow reader holds the crawl back", async () => {
  await using server = await serve(tree(2_000));
  const iterator = crawl({ seeds: server.origin, perHost: { concurrency: 8 } })[Symbol.asyncIterator]();
  await iterator.next();
  // The crawl goes on until the backlog is full; then the server's log stands still.
  let before = -1;
  while (before !== server.arrivals.length) {
    before = server.arrivals.length;
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
  assert.ok(before < 400, `${before} requests although nobody reads`);
  let rest = 1;
  while (!(await iterator.next()).done) rest++;
  assert.equal(rest, 2_000);
});

test("leaving the loop ends the crawl", async () => {
  await using server = await serve(tree(2_000));
  const run = crawl({ seeds: server.origin });
  for await (const page of run) if (page.depth === 2) break;
  const summary = await run.done;
  assert.equal(summary.finishReason, "cancelled");
  assert.ok(server.arrivals.length < 2_000);
});

test("stop queue finishes what is queued and takes no new links", async () => {
  await using server = await serve(tree(500));
  const run = crawl({ seeds: server.origin });
  const seen: PageRecord[] = [];
  for await (const page of run) {
    seen.push(page);
    if (seen.length === 1) await run.stop({ mode: "queue", reason: "enough" });
  }
  const summary = await run.done;
  assert.equal(summary.finishReason, "stop-condition");
  assert.equal(summary.detail, "enough");
  assert.ok(seen.length < 200, `${seen.length} pages`);
  assert.equal(summary.queued, 0);
});

test("stop now aborts what is in flight at once", async () => {
  await using server = await serve((request, response) => {
    if (request.url === "/robots.txt") response.writeHead(404).end();
    else if (request.url === "/") html(response, `<a href="/hang">h</a>`);
    // /hang is never answered
  });
  const run = crawl({ seeds: server.origin, timeout: "10m" });
  for await (const page of run) {
    assert.equal(page.url, `${server.origin}/`);
    void run.stop({ mode: "now" });
  }
  assert.equal((await run.done).pages, 1);
});

test("an aborted signal cancels the crawl, also one that was aborted before", async () => {
  await using server = await serve(tree(2_000));
  const controller = new AbortController();
  const run = crawl({ seeds: server.origin }, { signal: controller.signal });
  for await (const page of run) if (page.depth === 1) controller.abort("had enough");
  const summary = await run.done;
  assert.equal(summary.finishReason, "cancelled");
  assert.equal(summary.detail, "had enough");
  const never = await crawl({ seeds: server.origin }, { signal: AbortSignal.abort() }).done;
  assert.equal(never.finishReason, "cancelled");
});

test("pause starts nothing, resume goes on", async () => {
  await using server = await serve(tree(300));
  const run = crawl({ seeds: server.origin });
  const done = run.done;
  while ((await run.stats()).pages < 20) await new Promise((resolve) => setImmediate(resolve));
  await run.pause();
  while ((await run.stats()).inFlight > 0) await new Promise((resolve) => setImmediate(resolve));
  const before = server.arrivals.length;
  await new Promise((resolve) => setTimeout(resolve, 100));
  assert.equal(server.arrivals.length, before);
  await run.resume();
  assert.equal((await done).pages, 300);
});

test("await using ends a crawl that is left", async () => {
  await using server = await serve(tree(2_000));
  {
    await using run = crawl({ seeds: server.origin });
    assert.equal((await run[Symbol.asyncIterator]().next()).value.status, 200);
  }
  const after = server.arrivals.length;
  await new Promise((resolve) => setTimeout(resolve, 100));
  assert.equal(server.arrivals.length, after);
});

test("links a scrape callback returns pass scope and depth like any other", async () => {
  await using server = await serve((request, response) => {
    if (request.url === "/robots.txt") response.writeHead(404).end();
    else html(response, `<p>${request.url}`);
  });
  const texts: string[] = [];
  const records: PageRecord[] = [];
  const run = crawl(
    { seeds: server.origin, maxDepth: 1 },
    {
      scrape: async (url, text) => {
        texts.push(text);
        return new URL(url).pathname === "/" ? ["/made", "http://elsewhere.invalid/", "mailto:x@example.org"] : ["/deeper"];
      },
    },
  );
  for await (const page of run) records.push(page);
  assert.deepEqual(texts.sort(), ["<p>/", "<p>/made"]);
  assert.deepEqual(
    records.map(({ url }) => url.replace(server.origin, "")),
    ["/", "/made"],
  );
  assert.deepEqual(records[0]!.links, [`${server.origin}/made`, "http://elsewhere.invalid/"]);
  assert.deepEqual((await run.done).bySkipReason, { "out-of-scope": 1, scheme: 1, depth: 1 });
});

test("a scrape callback that throws fails its page and no other", async () => {
  await using server = await serve(tree(6));
  const outcomes = new Map<string, string>();
  const scrape = (url: string) => {
    if (url.endsWith("/2")) throw new Error("no table here");
  };
  for await (const page of crawl({ seeds: server.origin }, { scrape })) outcomes.set(page.url.replace(server.origin, ""), page.error?.code ?? page.outcome);
  assert.deepEqual(Object.fromEntries(outcomes), { "/": "fetched", "/1": "fetched", "/2": "scraper", "/3": "fetched", "/4": "fetched", "/5": "fetched" });
});

test("hooks see requests, answers, skips and retries", async () => {
  let asked = 0;
  await using server = await serve((request, response) => {
    if (request.url === "/robots.txt") response.writeHead(404).end();
    else if (asked++ === 0) response.writeHead(503).end();
    else html(response, `<a href="http://elsewhere.invalid/">x</a>`);
  });
  const heard: string[] = [];
  const hooks = {
    beforeRequest: ({ url, attempt }: { url: string; attempt: number }) => {
      heard.push(`request ${new URL(url).pathname} ${attempt}`);
      return { headers: { "x-attempt": String(attempt) } };
    },
    afterResponse: ({ status }: { status: number }) => heard.push(`answer ${status}`),
    onSkip: ({ reason }: { reason: string }) => heard.push(`skip ${reason}`),
    onRetry: ({ code, status }: { code: string; status: number | null }) => heard.push(`retry ${code} ${status}`),
  };
  await crawl({ seeds: server.origin }, { hooks }).done;
  assert.deepEqual(heard, ["request / 1", "answer 503", "retry http 503", "request / 2", "answer 200", "skip out-of-scope"]);
  assert.deepEqual(
    server.arrivals.filter(({ target }) => target === "/").map(({ headers }) => headers["x-attempt"]),
    ["1", "2"],
  );
});

test("seeds may be an endless iterable; it is read as far as the crawl goes", async () => {
  await using server = await serve((request, response) => html(response, `<p>${request.url}`));
  let made = 0;
  function* endless() {
    for (;;) yield `${server.origin}/${made++}`;
  }
  const summary = await crawl({ seeds: endless(), limits: { pages: 30 } }).done;
  assert.equal(summary.pages, 30);
  assert.ok(made < 100_000, `${made} seeds were read`);
});

test("a sink that cannot write ends the crawl with its error, and every file is closed", async () => {
  await using server = await serve(tree(50));
  let closed = 0;
  const broken: Sink = {
    name: "broken",
    write() {
      throw new CrawlError("output-unwritable", "the disk is full");
    },
    flush: () => undefined,
    async close() {
      closed++;
    },
  };
  await assert.rejects(crawl({ seeds: server.origin }, { sinks: [broken] }).done, { code: "output-unwritable" });
  assert.ok(closed > 0);
  await assert.rejects(
    (async () => {
      for await (const page of crawl({ seeds: server.origin }, { sinks: [broken] })) assert.ok(page);
    })(),
    { code: "output-unwritable" },
  );
});

test("a sink whose close throws at once ends the reader too", async () => {
  // `as`: JavaScript may give a close that is no promise's.
  await using server = await serve(tree(3));
  const sink = { name: "rude", write() {}, flush() {}, close: (): unknown => assert.fail("not closed") } as Sink;
  await assert.rejects(
    (async () => {
      for await (const page of crawl({ seeds: server.origin }, { sinks: [sink] })) assert.ok(page);
    })(),
    { message: "not closed" },
  );
});

test("no seed that is a URL is an error that says so; a bad one among good ones is not", async () => {
  await assert.rejects(crawl({ seeds: ["ftp://example.org/", "http://[bad"] }).done, { code: "no-seeds" });
  await assert.rejects(crawl({ seeds: [] }).done, { code: "no-seeds" });
  await using server = await serve(tree(3));
  const warned: string[] = [];
  const summary = await crawl(
    { seeds: ["http://[bad", server.origin, ""] },
    { log: (level, message, fields) => warned.push(`${level} ${message} ${fields?.number}`) },
  ).done;
  assert.equal(summary.pages, 3);
  assert.deepEqual(warned, ["warn bad seed, skipped 1", "warn bad seed, skipped 3"]);
});

test("bad options are refused at once, all of them, each with its name", () => {
  assert.throws(
    // @ts-expect-error -- what a JavaScript caller may pass
    () => crawl({ seeds: "http://a.example/", maxDepth: -1, concurency: 3, perHost: { delay: "soon" } }),
    (error: unknown) => error instanceof CrawlError && error.code === "invalid-options" && error.problems.length === 3,
  );
});

test("two crawls in one process do not know of each other (F091)", async () => {
  await using one = await serve(tree(30));
  await using two = await serve(tree(30));
  const [a, b] = await Promise.all([crawl({ seeds: one.origin, limits: { pages: 1 } }).done, crawl({ seeds: two.origin, limits: { pages: 1 } }).done]);
  assert.deepEqual([a.pages, b.pages], [1, 1]);
});

test("F001 a page that redirects to itself once to set a cookie is fetched with the cookie", async () => {
  await using server = await serve((request, response) => {
    const cookie = request.headers.cookie ?? "";
    if (request.url === "/robots.txt") response.writeHead(404).end();
    else if (request.url === "/wall" && !cookie.includes("ok=1"))
      response.writeHead(302, { location: "/wall", "set-cookie": "ok=1; Path=/", "content-length": 0 }).end();
    else html(response, request.url === "/wall" ? `<a href="/after">a</a>` : "<p>after");
  });
  const records: PageRecord[] = [];
  const run = crawl({ seeds: `${server.origin}/wall` });
  for await (const page of run) records.push(page);
  assert.deepEqual(
    records.map(({ url, status }) => [url.replace(server.origin, ""), status]),
    [
      ["/wall", 200],
      ["/after", 200],
    ],
  );
  assert.equal(server.targets().filter((target) => target === "/wall").length, 2);
  assert.deepEqual((await run.done).byOutcome, { fetched: 2, redirected: 0 });
});

test("F002 an endless self-redirect is one failed record", async () => {
  await using server = await serve((request, response) => {
    if (request.url === "/loop") response.writeHead(302, { location: "/loop" }).end();
    else if (request.url === "/ping") response.writeHead(302, { location: "/pong" }).end();
    else if (request.url === "/pong") response.writeHead(302, { location: "/ping" }).end();
    else html(response, request.url === "/" ? `<a href="/loop">l</a><a href="/ok">o</a><a href="/ping">p</a>` : "<p>ok");
  });
  const records = new Map<string, PageRecord>();
  for await (const page of crawl({ seeds: server.origin })) records.set(page.url.replace(server.origin, ""), page);
  assert.equal(records.size, 5);
  assert.equal(records.get("/loop")?.error?.code, "redirect");
  assert.equal(records.get("/ok")?.outcome, "fetched");
  assert.deepEqual([records.get("/ping")?.outcome, records.get("/pong")?.outcome].sort(), ["failed", "redirected"]);
});

test("a chain of 20 redirects is followed, the 21st fails", async () => {
  const chain = (last: number) =>
    serve((request, response) => {
      const i = Number(request.url?.slice(1));
      if (i < last) response.writeHead(302, { location: `/${i + 1}` }).end();
      else html(response, "<p>end");
    });
  await using ends = await chain(20);
  const good: PageRecord[] = [];
  for await (const page of crawl({ seeds: `${ends.origin}/0` })) good.push(page);
  assert.equal(good.length, 21);
  assert.equal(good.at(-1)!.outcome, "fetched");
  assert.equal(good.at(-1)!.redirects?.length, 20);
  await using endless = await chain(1_000);
  const bad: PageRecord[] = [];
  for await (const page of crawl({ seeds: `${endless.origin}/0` })) bad.push(page);
  assert.deepEqual(
    bad.map(({ outcome }) => outcome),
    [...Array(20).fill("redirected"), "failed"],
  );
  assert.equal(endless.targets().length, 21);
});

test("F103 a seed that redirects to another host takes the scope with it", async () => {
  await using target = await serve((request, response) => html(response, request.url === "/home" ? `<a href="/in">i</a>` : "<p>in"));
  await using server = await serve((_, response) => void response.writeHead(301, { location: `${target.origin}/home` }).end());
  const moved: string[] = [];
  const records: string[] = [];
  const run = crawl({ seeds: server.origin }, { onEvent: (event) => event.kind === "seed-moved" && moved.push(event.to) });
  for await (const page of run) records.push(`${page.url} ${page.outcome}`);
  assert.deepEqual(records, [`${server.origin}/ redirected`, `${target.origin}/home fetched`, `${target.origin}/in fetched`]);
  assert.deepEqual(moved, [`${target.origin}/home`]);
});

test("a link that redirects out of the scope is recorded and not followed", async () => {
  await using target = await serve((_, response) => html(response, "<p>never"));
  await using server = await serve((request, response) => {
    if (request.url === "/out") response.writeHead(302, { location: `${target.origin}/x` }).end();
    else html(response, `<a href="/out">o</a>`);
  });
  const skipped: string[] = [];
  const run = crawl({ seeds: server.origin }, { hooks: { onSkip: ({ url, reason }) => skipped.push(`${url} ${reason}`) } });
  const records: string[] = [];
  for await (const page of run) records.push(`${page.url.replace(server.origin, "")} ${page.outcome} ${page.location ?? ""}`);
  assert.deepEqual(records, ["/ fetched ", `/out redirected ${target.origin}/x`]);
  assert.deepEqual(skipped, [`${target.origin}/x redirect-out-of-scope`]);
  assert.equal(target.arrivals.length, 0);
});

test("a cookie file is sent to its host from the first request on, and a Set-Cookie replaces what it holds", async () => {
  await using server = await serve((request, response) => {
    if (request.url === "/") response.setHeader("set-cookie", "session=new; Path=/");
    html(response, request.url === "/" ? `<a href="/in">in</a>` : "<p>in");
  });
  const folder = mkdtempSync(join(tmpdir(), "skein-cookies-"));
  try {
    const file = join(folder, "cookies.txt");
    writeFileSync(file, "# Netscape HTTP Cookie File\n127.0.0.1\tFALSE\t/\tFALSE\t0\tsession\told\nbroken line\nelsewhere.invalid\tFALSE\t/\tFALSE\t0\ta\tb\n");
    const warned: unknown[] = [];
    await crawl({ seeds: server.origin, cookies: file, robots: false }, { log: (_, message, fields) => warned.push([message, fields?.line]) }).done;
    assert.deepEqual(
      server.arrivals.map(({ target, headers }) => [target, headers.cookie]),
      [
        ["/", "session=old"],
        ["/in", "session=new"],
      ],
    );
    assert.deepEqual(warned, [["cookie skipped", 3]]);
    await assert.rejects(crawl({ seeds: server.origin, cookies: join(folder, "absent") }).done, { code: "invalid-options" });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

test("seeds from a source that stays open are crawled as they come, and a limit does not wait for more", async () => {
  await using server = await serve((request, response) => html(response, `<p>${request.url}`));
  const { promise: never } = Promise.withResolvers<void>();
  async function* open() {
    yield `${server.origin}/1`;
    yield `${server.origin}/2`;
    await never;
  }
  const summary = await crawl({ seeds: open(), limits: { pages: 2 } }).done;
  assert.equal(summary.pages, 2);
  const stopped = crawl({ seeds: open() });
  const seen: string[] = [];
  for await (const page of stopped) {
    seen.push(page.url);
    if (seen.length === 2) await stopped.stop();
  }
  assert.equal((await stopped.done).finishReason, "stop-condition");
});

test("what a source of seeds throws ends the crawl with it", async () => {
  await using server = await serve((_, response) => html(response, "<p>"));
  async function* torn() {
    yield server.origin;
    throw new Error("torn");
  }
  await assert.rejects(crawl({ seeds: torn() }).done, /torn/);
});

test("a link that is too deep or not followed is no skipped URL when the page was fetched by another", async () => {
  await using server = await serve((request, response) => {
    if (request.url === "/robots.txt") response.writeHead(404).end();
    else html(response, request.url === "/" ? `<a href="/a">a</a>` : `<a href="/">home</a><a href="/deep">d</a><a rel="nofollow" href="/a">self</a>`);
  });
  const skipped: string[] = [];
  await crawl({ seeds: server.origin, maxDepth: 1 }, { hooks: { onSkip: ({ url, reason }) => skipped.push(`${url.replace(server.origin, "")} ${reason}`) } })
    .done;
  assert.deepEqual(skipped, ["/deep depth"]);
});

test("links to pages that are known are counted, and listed each time when asked for", async () => {
  await using server = await serve((request, response) => {
    if (request.url === "/robots.txt") response.writeHead(404).end();
    else
      html(response, request.url === "/" ? `<a href="/a">a</a><a href="/b">b</a>` : `<a href="/">home</a><a href="/b">b</a><a href="http://x.invalid/">x</a>`);
  });
  for (const skippedAll of [false, true]) {
    const skipped: string[] = [];
    const run = crawl(
      { seeds: server.origin, skippedAll },
      { hooks: { onSkip: ({ url, reason }) => skipped.push(`${url.replace(server.origin, "")} ${reason}`) } },
    );
    const summary = await run.done;
    assert.equal(summary.duplicates, 4);
    assert.deepEqual(summary.bySkipReason, { "out-of-scope": 1 });
    const listed = skippedAll ? ["/ duplicate", "/ duplicate", "/b duplicate", "/b duplicate"] : [];
    assert.deepEqual(skipped.sort(), [...listed, "http://x.invalid/ out-of-scope"]);
  }
});

test("a crawl that is interrupted before its seeds were read is not over when it is resumed", async () => {
  await using server = await serve(tree(20));
  const stateDir = mkdtempSync(join(tmpdir(), "skein-early-"));
  try {
    const started = Promise.withResolvers<void>();
    async function* seeds() {
      started.resolve();
      // Longer than the crawl needs to see that nothing is queued.
      await delay(100);
      yield server.origin;
    }
    const first = crawl({ seeds: seeds(), stateDir }, { seedNames: ["seeds"] });
    const { done } = first;
    await started.promise;
    await first.stop({ mode: "flight", reason: INTERRUPTED });
    const cut = await done;
    assert.deepEqual([cut.finishReason, cut.pages], ["interrupted", 0]);
    assert.equal((await crawl({ seeds: seeds(), stateDir }, { seedNames: ["seeds"] }).done).pages, 20);
  } finally {
    rmSync(stateDir, { recursive: true, force: true });
  }
});
