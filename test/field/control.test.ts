/**
 * Whole crawls and how they end, wait and count. Field cases F086 to F103.
 * Two crawls in one process (F091) stand in test/crawl/library.test.ts, Ctrl-C (F098) in test/cli/end-to-end.test.ts.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { page } from "../../src/fetch/raw-server.ts";
import { serve } from "../crawl/served.ts";
import { lateness } from "../lateness.ts";
import { type Answer, closing, crawled, moved, site } from "./field.ts";

const links = (...hrefs: string[]) => hrefs.map((href) => `<a href="${href}">x</a>`).join("");
const numbered = (prefix: string, count: number) => Array.from({ length: count }, (_, i) => `${prefix}${i}`);

/** Holds an answer back. */
const late =
  (ms: number, body: string): Answer =>
  (_, socket) => {
    setTimeout(() => socket.write(page(body)), ms);
    return null;
  };

test("F086 links that a callback brings late are all crawled before the end", async () => {
  await using server = await site({}, "<p>page");
  const pages = 300;
  const scrape = async (url: string) => {
    const i = Number(new URL(url).pathname.slice(1));
    await new Promise((resolve) => setTimeout(resolve, 30));
    return [2 * i + 1, 2 * i + 2].filter((child) => child < pages).map((child) => `/${child}`);
  };
  const { records, summary } = await crawled(server, { concurrency: 20, perHost: { concurrency: 20 } }, { scrape });
  assert.equal(records.filter(({ status }) => status === 200).length, pages);
  assert.deepEqual([summary.finishReason, summary.queued], ["finished", 0]);
});

test("F087 requests that hang do not keep a crawl with a limit from ending", async () => {
  await using server = await site({ "/": links("/hang1", "/hang2", ...numbered("/p", 30)), "/hang1": () => null, "/hang2": () => null }, "<p>page");
  const { at, summary } = await crawled(server, { limits: { pages: 20 }, timeout: "1s", retry: { max: 0 } });
  // `crawled` fails what does not end.
  assert.deepEqual([at("/hang1").error?.code, at("/hang2").error?.code, summary.pages], ["timeout", "timeout", 20]);
});

test("F088 every kind of failure gives its place back", async () => {
  const answers: Record<string, Answer> = {
    "/": links(...["reset", "short", "hang", "refused", "odd"].flatMap((kind) => numbered(`/${kind}`, 6)), ...numbered("/fine", 10)),
  };
  const kinds: Record<string, Answer> = {
    reset(_, socket) {
      socket.write("HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\nsome");
      setTimeout(() => socket.resetAndDestroy(), 5);
      return null;
    },
    short(_, socket) {
      socket.end("HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\nsome");
      return null;
    },
    hang: () => null,
    refused(_, socket) {
      socket.destroy();
      return null;
    },
    odd: "HTTP/1.1 odd\r\n\r\n",
  };
  for (const [kind, answer] of Object.entries(kinds)) for (const path of numbered(`/${kind}`, 6)) answers[path] = answer;
  await using server = await site(answers, "<p>fine");
  const { records, outcomes } = await crawled(server, { concurrency: 5, timeout: "1s", retry: { max: 0 } });
  assert.equal(records.length, 41);
  assert.equal(Object.values(outcomes()).filter((outcome) => outcome === 200).length, 11);
  for (const [kind, code] of [
    ["reset", "reset"],
    ["short", "reset"],
    ["hang", "timeout"],
    ["refused", "reset"],
  ])
    assert.equal(outcomes()[`/${kind}3`], code);
});

test("F089 a page found first on the longer way keeps the depth of the shorter one", async () => {
  await using server = await site({ "/": links("/a", "/b"), "/a": late(400, links("/t")), "/b": links("/c"), "/c": links("/t"), "/t": links("/u") }, "<p>u");
  const { at } = await crawled(server, { maxDepth: 3 });
  assert.deepEqual([at("/t").depth, at("/u").depth], [2, 3]);
});

test("F089 redirects on the way add no depth, and do not hide the shorter way", async () => {
  await using server = await site(
    { "/": links("/a", "/b"), "/a": moved("/a2"), "/a2": late(300, links("/t")), "/b": links("/c"), "/c": moved("/t"), "/t": links("/u") },
    "<p>u",
  );
  const { at } = await crawled(server, { maxDepth: 3 });
  assert.deepEqual([at("/t").depth, at("/u").depth], [2, 3]);
});

test("F090 a limit of pages is exact, with failures and redirects among them", async () => {
  const answers: Record<string, Answer> = { "/": links(...numbered("/p", 200), ...numbered("/moved", 50), ...numbered("/bad", 50)) };
  for (const [i, path] of numbered("/moved", 50).entries()) answers[path] = moved(`/q${i}`);
  for (const path of numbered("/bad", 50)) answers[path] = closing("");
  for (const limit of [1, 7, 50]) {
    await using server = await site(answers, "<p>page");
    const { summary, records } = await crawled(server, { limits: { pages: limit }, concurrency: 25, perHost: { concurrency: 25 }, retry: { max: 0 } });
    assert.equal(records.filter(({ outcome }) => outcome === "fetched").length, limit);
    assert.deepEqual([summary.pages, summary.finishReason], [limit, "limit-pages"]);
    assert.equal(server.targets().filter((target) => !/moved|bad/.test(target)).length, limit);
  }
});

test("F094 three retries are four requests and one failure", async () => {
  await using server = await site({ "/": links("/dead", "/ok"), "/dead": page("no", [], "500 Oops"), "/ok": "<p>ok" });
  const { at, summary } = await crawled(server, { retry: { max: 3 } });
  assert.equal(server.asked("/dead"), 4);
  assert.deepEqual([at("/dead").outcome, at("/dead").attempts, at("/dead").status], ["failed", 4, 500]);
  assert.deepEqual([summary.byOutcome.failed, summary.retries, summary.pages], [1, 3, 2]);
});

test("F095 F096 a delay holds for each host, hosts run side by side, a chain does not forget it", async () => {
  const addresses = ["127.0.0.1", "127.0.0.2"];
  await using server = await serve((request, response) => {
    const i = Number(request.url?.slice(1) || 0);
    response.writeHead(request.url === "/robots.txt" ? 404 : 200, { "content-type": "text/html" }).end(i < 4 ? `<a href="/${i + 1}">next</a>` : "<p>end");
  }, addresses);
  await using unused = await site({});
  // Measured where requests arrive: a busy machine may hold up the first of two.
  using late = lateness();
  const { records } = await crawled(unused, { seeds: addresses.map((address) => `http://${address}:${server.port}/`), perHost: { delay: 400 } });
  assert.equal(records.length, 10);
  const byHost = addresses.map((address) => server.arrivals.filter(({ host }) => host.startsWith(`${address}:`)));
  for (const arrivals of byHost) {
    assert.equal(arrivals.length, 6);
    for (let i = 1; i < arrivals.length; i++)
      assert.ok(arrivals[i]!.at - arrivals[i - 1]!.at >= 400 - late.slackMs(), `${arrivals[i]!.target} ${arrivals[i]!.at - arrivals[i - 1]!.at}`);
    assert.ok(arrivals[5]!.at - arrivals[0]!.at >= 5 * 400 - late.slackMs());
  }
  const [one, other] = byHost;
  assert.ok(one![2]!.at < other![3]!.at && other![2]!.at < one![3]!.at, "the hosts waited for one another");
});

test("F097 a slow host holds no place that another could use", async () => {
  await using slow = await site({}, "<p>slow");
  await using quick = await site({}, "<p>quick");
  const seeds = [...numbered(`${slow.origin}/`, 200), ...numbered(`${quick.origin}/`, 20)];
  // Its robots.txt comes first, and its pages from 10 s on: until then the quick ones are done.
  const hosts = { [`127.0.0.1:${slow.port}`]: { delay: "10s" } };
  const done: string[] = [];
  await crawled(
    quick,
    { seeds, concurrency: 10, hosts, limits: { pages: 20 } },
    {
      onEvent: (event) => {
        if (event.kind === "settled" && event.output.page !== null) done.push(event.output.page.url);
      },
    },
  );
  assert.equal(done.filter((url) => url.startsWith(quick.origin)).length, 20);
});

test("F100 a redirect to a page that is linked too gives one record of each", async () => {
  await using server = await site(
    { "/": links("/t", "/old", "/old2"), "/old": moved("/t", "301 Moved"), "/old2": moved("/old", "308 Moved"), "/t": links("/leaf") },
    "<p>leaf",
  );
  const { outcomes, at } = await crawled(server);
  assert.deepEqual(outcomes(), { "/": 200, "/t": 200, "/old": "→ /t", "/old2": "→ /old", "/leaf": 200 });
  assert.equal(server.asked("/t"), 1);
  assert.equal(at("/leaf").depth, 2);
});

test("F101 finished pages leave the memory", async () => {
  const body = "text ".repeat(10_000);
  await using server = await serve((request, response) => {
    const i = Number(request.url?.slice(1) || 0);
    response
      .writeHead(request.url === "/robots.txt" ? 404 : 200, { "content-type": "text/html" })
      .end(links(...[2 * i + 1, 2 * i + 2].filter((n) => n < 2_000).map((n) => `/${n}`)) + body);
  });
  const { crawl } = await import("../../src/crawl.ts");
  let most = 0;
  let pages = 0;
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc");
  for await (const record of crawl({ seeds: server.origin })) {
    assert.equal(record.status, 200);
    if (++pages % 500 === 0) {
      collect();
      most = Math.max(most, process.memoryUsage().heapUsed + process.memoryUsage().arrayBuffers);
    }
  }
  assert.equal(pages, 2_000);
  // All bodies together are 100 MB.
  assert.ok(most < 80e6, `${most} bytes`);
});

test("F102 a host that answers 503 to everything is not hammered, and its pages come later", async () => {
  const began = performance.now();
  const asked: number[] = [];
  const outageMs = 2_000;
  await using server = await site({ "/robots.txt": page("no", [], "404 Not Found") }, () => {
    asked.push(performance.now() - began);
    return performance.now() - began < outageMs ? page("no", [], "503 Unavailable") : page("<p>well");
  });
  const { records } = await crawled(server, { seeds: numbered("/", 100), concurrency: 10, retry: { max: 5 } }, { world: { random: Math.random } });
  assert.equal(records.length, 100);
  const during = asked.filter((at) => at < outageMs).length;
  assert.ok(during < 60, `${during} requests during the outage`);
  assert.ok(records.filter(({ status }) => status === 200).length > 90);
});

test("F103 a seed that moves to another host takes the scope along, over several hops too", async () => {
  await using target = await site({ "/home": links("/in"), "/in": "<p>in" });
  await using server = await site({ "/": moved("/hop", "301 Moved"), "/hop": moved(`${target.origin}/home`, "308 Moved") });
  const { outcomes } = await crawled(server);
  assert.deepEqual(outcomes(), { "/": "→ /hop", "/hop": `→ ${target.origin}/home`, [`${target.origin}/home`]: 200, [`${target.origin}/in`]: 200 });
});
