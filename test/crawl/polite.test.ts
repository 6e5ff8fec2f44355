/** Politeness and limits over real sockets, judged from the server's log. */
import assert from "node:assert/strict";
import test from "node:test";
import { crawl } from "../../src/crawl.ts";
import { lateness } from "../lateness.ts";
import { type Arrival, html, serve, tree } from "./served.ts";

const byHost = (arrivals: readonly Arrival[]) => Map.groupBy(arrivals, ({ host }) => host);

test("20 hosts with a delay are crawled side by side and none is hurried, robots.txt included", async () => {
  const addresses = Array.from({ length: 20 }, (_, i) => `127.0.1.${i + 1}`);
  await using server = await serve((request, response) => {
    if (request.url === "/robots.txt") response.writeHead(200, { "content-type": "text/plain" }).end("User-agent: *\nDisallow: /no/\n");
    else if (request.url === "/moved") response.writeHead(302, { location: "/target" }).end();
    else html(response, request.url === "/" ? `<a href="/a">a</a><a href="/moved">m</a><a href="/no/x">x</a>` : "<p>leaf");
  }, addresses);
  const seeds = addresses.map((address) => `http://${address}:${server.port}/`);
  const delay = 400;
  // A gap is measured where requests arrive: a busy machine may hold up the first of two, and so shorten it.
  using late = lateness();
  const run = crawl({ seeds, perHost: { delay } });
  const summary = await run.done;
  const hosts = byHost(server.arrivals);
  assert.equal(hosts.size, 20);
  for (const [host, arrivals] of hosts) {
    assert.deepEqual(arrivals.map(({ target }) => target).sort(), ["/", "/a", "/moved", "/robots.txt", "/target"], host);
    for (let i = 1; i < arrivals.length; i++) {
      const gap = arrivals[i]!.at - arrivals[i - 1]!.at;
      assert.ok(gap >= delay - late.slackMs(), `${host}: ${arrivals[i]!.target} came ${gap} ms after ${arrivals[i - 1]!.target}`);
    }
  }
  // One after the other the hosts would need 20 × 4 gaps.
  const span = server.arrivals.at(-1)!.at - server.arrivals[0]!.at;
  assert.ok(span < delay * 4 * 10, `the hosts waited for one another: ${span} ms`);
  assert.deepEqual(summary.byOutcome, { fetched: 60, redirected: 20, disallowed: 20 });
});

test("no host has more requests in flight than --per-host", async () => {
  await using server = await serve(async (request, response) => {
    await new Promise((resolve) => setTimeout(resolve, 5));
    await tree(120)(request, response);
  });
  await crawl({ seeds: [server.origin], perHost: { concurrency: 3 } }).done;
  assert.equal(server.targets().length, 120);
  assert.equal(Math.max(...server.arrivals.map(({ together }) => together)), 3);
});

for (const limit of [1, 2, 37, 64, 65, 200]) {
  test(`--limit ${limit} at concurrency 64 is exact, in records and in requests`, async () => {
    await using server = await serve(tree(1_000));
    const summary = await crawl({ seeds: [server.origin], limits: { pages: limit }, perHost: { concurrency: 64 } }).done;
    assert.equal(summary.pages, limit);
    assert.equal(server.targets().length, limit);
    assert.equal(summary.finishReason, "limit-pages");
  });
}

test("Crawl-delay holds for every request after robots.txt, and not for other hosts", async () => {
  const addresses = ["127.0.1.1", "127.0.1.2"];
  await using server = await serve((request, response) => {
    const slow = request.headers.host?.startsWith("127.0.1.1:");
    if (request.url === "/robots.txt") response.writeHead(200, { "content-type": "text/plain" }).end(slow ? "User-agent: *\nCrawl-delay: 0.5\n" : "");
    else void tree(4)(request, response);
  }, addresses);
  using late = lateness();
  await crawl({ seeds: addresses.map((address) => `http://${address}:${server.port}/`) }).done;
  const slow = server.arrivals.filter(({ host }) => host.startsWith("127.0.1.1:"));
  assert.equal(slow.length, 5);
  for (let i = 2; i < slow.length; i++) assert.ok(slow[i]!.at - slow[i - 1]!.at >= 500 - late.slackMs());
  const quick = server.arrivals.filter(({ host }) => host.startsWith("127.0.1.2:"));
  assert.ok(quick.at(-1)!.at < slow.at(-1)!.at);
});

test("F023 a 429 with Retry-After is obeyed before the page is asked for again", async () => {
  let asked = 0;
  await using server = await serve((request, response) => {
    if (request.url === "/x" && asked++ === 0) response.writeHead(429, { "retry-after": "1" }).end();
    else html(response, request.url === "/" ? `<a href="/x">x</a>` : "<p>at last");
  });
  const statuses = new Map<string, number | null>();
  for await (const page of crawl({ seeds: [server.origin] })) statuses.set(page.url, page.status);
  assert.equal(statuses.get(`${server.origin}/x`), 200);
  const [first, second] = server.arrivals.filter(({ target }) => target === "/x");
  // The second is told of by the answer to the first.
  assert.ok(second!.at - first!.at >= 975);
});

test("one dead seed among 100 holds nothing back", async () => {
  const addresses = Array.from({ length: 99 }, (_, i) => `127.0.2.${i + 1}`);
  await using server = await serve((request, response) => html(response, request.url === "/" ? `<a href="/leaf">l</a>` : "<p>leaf"), addresses);
  // Nobody listens on .200, so that connecting fails again and again while the others finish.
  const seeds = [`http://127.0.2.200:${server.port}/`, ...addresses.map((address) => `http://${address}:${server.port}/`)];
  let leaves = 0;
  // Six tries with the longest of growing pauses take a minute; the others need none of them.
  const world = { random: () => 0.99 };
  for await (const page of crawl({ seeds, maxDepth: 3, retry: { max: 6 } }, { world })) {
    assert.notEqual(page.outcome, "failed", `level 1 of the others waited for the dead seed: ${leaves}`);
    if (page.depth === 1 && ++leaves === 99) break;
  }
  assert.equal(leaves, 99);
});
