import assert from "node:assert/strict";
import { test } from "node:test";
import { defineScraper, type HandlerContext } from "./define.ts";
import { moduleOf } from "./module.ts";
import { runPage } from "./run.ts";
import { scrapeTask } from "./task-for-tests.ts";
import { type Handle, outcomeOf, refusal, scraped } from "./trial-for-tests.ts";

const PAGE = `<title>List</title><base href="/shop/"><h1>Fruit &amp; veg</h1>
  <table><tr class="item" data-date="2026-01-03"><td><a href="apple">Apple</a></tr><tr class="item" data-date="2026-01-02"><td><a href="pear">Pear</a></tr></table>
  <nav><a class="next" href="?page=2">next</a> <a href="?page=9">last</a></nav><img src="a.png"><p class="empty"></p>`;

test("the contract's example type-checks as written, and follows what is newer than the mark", async () => {
  const scraper = defineScraper({
    version: 1,
    handlers: {
      list({ $, follow, stopSeries, watermark, data }) {
        const index = data.index ?? 0;
        const mark = watermark("date", { olderInARow: 1 });
        for (const row of $("tr.item")) {
          const date = $(row).attr("data-date")!;
          if (mark.old(date)) return stopSeries();
          follow($(row).find("a").attr("href")!, { handler: "detail", priority: 5 });
        }
        follow($("a.next").attr("href"), { handler: "list", series: "list", index: index + 1, data: { index: index + 1 } });
      },
      detail({ $, item, url }) {
        item({ url, title: $("h1").text() });
      },
    },
  });
  const first = await outcomeOf(scraper, scrapeTask(PAGE));
  assert.ok(first.kind === "scraped");
  assert.deepEqual(
    first.scraped.follows.map(({ href, handler, priority, series, index, data }) => [href, handler, priority, series, index, data]),
    [
      ["apple", "detail", 5, null, null, null],
      ["pear", "detail", 5, null, null, null],
      ["?page=2", "list", 0, "list", 1, '{"index":1}'],
    ],
  );
  assert.deepEqual(first.scraped.values, [{ op: "max", key: "run:mark:date", value: '"2026-01-03"' }]);
  const second = await outcomeOf(scraper, scrapeTask(PAGE, { series: "list", index: 4, data: '{"index":4}' }), { "mark:date": '"2026-01-02"' });
  assert.ok(second.kind === "scraped");
  assert.deepEqual([second.scraped.follows.map(({ href }) => href), second.scraped.stopSeries], [["apple"], true]);
  const detail = await outcomeOf(scraper, scrapeTask(PAGE, { handler: "detail" }));
  assert.ok(detail.kind === "scraped");
  assert.deepEqual(detail.scraped.items, [{ type: "items", key: null, json: '{"url":"http://shop.test/list/page.html","title":"Fruit & veg"}' }]);
});

test("data may be typed for each handler", async () => {
  const scraper = defineScraper<{ list: { page: number }; detail: { id: string } }>({
    handlers: {
      list: ({ data, item }) => item({ page: data.page.toFixed(1) }),
      detail: ({ data, item }) => item({ id: data.id.toUpperCase() }),
    },
  });
  const outcome = await outcomeOf(scraper, scrapeTask("", { handler: "detail", data: '{"id":"x"}' }));
  assert.ok(outcome.kind === "scraped");
  assert.equal(outcome.scraped.items[0]?.json, '{"id":"X"}');
});

test("seeds go to `default`, else to the first handler", async () => {
  const a = await moduleOf(defineScraper({ handlers: { one() {}, default() {} } }), null);
  const b = await moduleOf(defineScraper({ handlers: { one() {}, two() {} } }), null);
  assert.deepEqual([a.first, b.first], ["default", "one"]);
});

test("a handler sees the page: request, response, text, document, links, images", async () => {
  const seen: unknown[] = [];
  const task = scrapeTask(PAGE, {
    ...{ depth: 2, referrer: "http://shop.test/", method: "POST", priority: 7, attempt: 1, series: "s", index: 3, status: 404 },
    headers: [
      ["content-type", "text/html"],
      ["x-a", "1"],
      ["x-a", "2"],
    ],
  });
  await scraped((page) => {
    seen.push(page.request, page.response.status, page.response.contentType, page.response.headers.get("X-A"), page.response.headers.get("none"));
    seen.push(
      page.html === PAGE,
      page.html.length,
      page.body.length,
      page.$("h1").text(),
      Object.is(page.$, page.$),
      page.links,
      page.images,
      page.data,
      page.signal.aborted,
    );
  }, task);
  const request = { depth: 2, referrer: "http://shop.test/", method: "POST", priority: 7, handler: "list", series: "s", index: 3, attempt: 1 };
  assert.deepEqual(seen, [
    { url: "http://shop.test/list/page.html", ...request },
    ...[404, "text/html; charset=utf-8", "1, 2", null, true, PAGE.length, PAGE.length, "Fruit & veg", true],
    ["http://shop.test/shop/apple", "http://shop.test/shop/pear", "http://shop.test/shop/?page=2", "http://shop.test/shop/?page=9"],
    ["http://shop.test/shop/a.png"],
    ...[{}, false],
  ]);
});

test("text is decoded by the page's charset, XML is parsed as XML", async () => {
  const latin = await scraped(
    ({ html, item }) => item({ html }),
    scrapeTask(Buffer.from("caf\xe9", "latin1"), { contentType: "text/html; charset=iso-8859-1" }),
  );
  assert.equal(latin.items[0]?.json, '{"html":"café"}');
  const feed = await scraped(
    ({ $, item }) => item({ link: $("item > link").text() }),
    scrapeTask("<rss><item><link>http://a/</link></item></rss>", { contentType: "application/rss+xml" }),
  );
  assert.equal(feed.items[0]?.json, '{"link":"http://a/"}');
});

test("json() parses the body as UTF-8 and says so when it is not JSON", async () => {
  const json = await scraped(({ json, item }) => item(json()), scrapeTask('\ufeff{"name":"é"}', { contentType: "application/json" }));
  assert.equal(json.items[0]?.json, '{"name":"é"}');
  assert.match(
    await refusal(({ json }) => json(), scrapeTask("<p>")),
    /^http:\/\/shop\.test\/list\/page\.html: the body is not JSON \(its content type is text\/html; charset=utf-8\): /,
  );
});

test("follow takes what there is to follow, and says what is wrong with its options", async () => {
  const { follows } = await scraped(({ follow }) => {
    follow(undefined);
    follow(null);
    follow("");
    follow(new URL("http://a/b"));
    follow("c", { body: { q: 1 }, headers: { "X-A": "1" }, dontDedupe: true });
    follow("d", { method: "put", body: "text" });
    follow("e", { body: new URLSearchParams({ a: "b c" }) });
    follow("f", { body: new Uint8Array([1]), data: { x: [1] } });
  });
  assert.deepEqual(
    follows.map(({ href, method, body, headers, dontDedupe, data }) => [
      href,
      method,
      body === null ? null : Buffer.from(body).toString(),
      headers,
      dontDedupe,
      data,
    ]),
    [
      ["http://a/b", null, null, null, false, null],
      ["c", "POST", '{"q":1}', { "X-A": "1", "content-type": "application/json" }, true, null],
      ["d", "PUT", "text", { "content-type": "text/plain;charset=UTF-8" }, false, null],
      ["e", "POST", "a=b+c", { "content-type": "application/x-www-form-urlencoded;charset=UTF-8" }, false, null],
      ["f", "POST", "\x01", null, false, '{"x":[1]}'],
    ],
  );
  const cases: readonly (readonly [Record<string, unknown>, RegExp])[] = [
    [{ handler: "detial" }, /^follow: there is no handler "detial"; the handlers are list, detail$/],
    [{ prio: 1 }, /^follow: there is no option "prio"; there are handler, priority, /],
    [{ priority: 100 }, /^follow: priority must be an integer from -99 to 99, not number 100$/],
    [{ priority: 1.5 }, /priority/],
    [{ index: 1 }, /name the series too/],
    [{ series: "s", index: -1 }, /index must be an integer, 0 or more/],
    [{ data: 7 }, /data must be an object/],
    [{ data: { n: 1n } }, /data cannot be written as JSON/],
    [{ method: "GET", body: "x" }, /a GET request has no body/],
    [{ method: "A B" }, /method/],
    [{ headers: { "a b": "1" } }, /not the name of a header/],
    [{ headers: { a: "1\r\nb: 2" } }, /one line of text/],
    [{ dontDedupe: 1 }, /dontDedupe/],
  ];
  for (const [options, message] of cases) assert.match(await refusal(({ follow }) => follow("x", options)), message);
  // `as`: a JavaScript author may give anything.
  assert.match(await refusal(({ follow }) => follow(7 as unknown as string)), /^follow: expected a URL, not number 7$/);
});

test("followAll takes a selector, references, or elements", async () => {
  const { follows } = await scraped(({ followAll, $ }) => {
    followAll("tr.item a", { handler: "detail" });
    followAll("nav");
    followAll("img, .empty");
    followAll(["x", undefined, new URL("http://a/")]);
    followAll($("a.next"));
  }, scrapeTask(PAGE));
  assert.deepEqual(
    follows.map(({ href }) => href),
    ["apple", "pear", "?page=2", "?page=9", "a.png", "x", "http://a/", "?page=2"],
  );
  assert.match(await refusal(({ followAll }) => followAll([{}])), /^followAll: expected a URL or an element, not an object$/);
});

test("state reads what the page itself set, then what was settled", async () => {
  const seen: unknown[] = [];
  const { values } = await scraped(
    ({ state }) => {
      seen.push(state.get("kept"), state.get("absent"));
      state.set("kept", { n: 2 });
      state.set("gone", undefined);
      seen.push(state.get("kept"), state.get("gone"));
      state.set("kept", [3]);
    },
    scrapeTask(""),
    { "state:kept": '{"n":1}', "state:gone": "1" },
  );
  assert.deepEqual(seen, [{ n: 1 }, undefined, { n: 2 }, undefined]);
  assert.deepEqual(values, [
    { op: "set", key: "state:kept", value: "[3]" },
    { op: "set", key: "state:gone", value: null },
  ]);
  assert.match(await refusal(({ state }) => state.set("a", 1n)), /^state\.set: the value of "a" cannot be written as JSON/);
});

test("a watermark is old from the n-th value in a row that is not newer, and keeps the greatest", async () => {
  const seen: unknown[] = [];
  const handler: Handle = ({ watermark, follow }) => {
    const mark = watermark("d", { olderInARow: 2 });
    seen.push(mark.value, ...[6, 5, 7, 4, 5, 3].map((value) => mark.old(value)));
    follow("next", { series: "s", index: 1 });
    follow("other", { series: "t", index: 1 });
    follow("detail", { handler: "detail" });
  };
  const inSeries = await scraped(handler, scrapeTask("", { series: "s", index: 0 }), { "mark:d": "5" });
  assert.deepEqual(seen, [5, false, false, false, false, true, true]);
  assert.deepEqual(inSeries.values, [{ op: "max", key: "run:mark:d", value: "7" }]);
  assert.deepEqual(
    inSeries.follows.map(({ oldRuns }) => oldRuns),
    [{ d: 3 }, null, null],
  );
  const outside = await scraped(handler, scrapeTask(""), { "mark:d": "5" });
  assert.deepEqual(
    outside.follows.map(({ oldRuns }) => oldRuns),
    [{ d: 3 }, { d: 3 }, null],
  );
  seen.length = 0;
  await scraped(handler, scrapeTask(""));
  assert.deepEqual(seen, [undefined, false, false, false, false, false, false]);
});

test("the count of old values goes on along a series", async () => {
  const seen: boolean[] = [];
  await scraped(({ watermark }) => seen.push(watermark("d", { olderInARow: 3 }).old(1)), scrapeTask("", { series: "s", index: 2, oldRuns: { d: 2 } }), {
    "mark:d": "5",
  });
  assert.deepEqual(seen, [true]);
});

test("values of a watermark are numbers, texts or dates, of one kind", async () => {
  const { values } = await scraped(({ watermark }) => watermark("d").old(new Date(0)));
  assert.deepEqual(values, [{ op: "max", key: "run:mark:d", value: '"1970-01-01T00:00:00.000Z"' }]);
  const marked =
    (value: unknown): Handle =>
    ({ watermark }) =>
      watermark("d").old(value as string); // `as`: a JavaScript author may give anything
  for (const value of [undefined, null, {}, Number.NaN, new Date(Number.NaN), true])
    assert.match(await refusal(marked(value)), /^watermark "d": expected a number, a string or a date/);
  const mixed: Handle = ({ watermark }) => [1, "x"].forEach((value) => void watermark("d").old(value));
  assert.match(await refusal(mixed), /they cannot be compared/);
  assert.match(await refusal(({ watermark }) => watermark("d", { olderInARow: 0 })), /olderInARow/);
});

test("stop keeps the one that stops soonest", async () => {
  const stopped = await scraped(({ stop }) => {
    stop({ mode: "queue", reason: "a" });
    stop({ mode: "now", reason: "b" });
    stop();
  });
  assert.deepEqual(stopped.stop, { mode: "now", reason: "b" });
  assert.deepEqual((await scraped(({ stop }) => stop())).stop, { mode: "flight", reason: null });
  assert.equal((await scraped(({ stopSeries }) => stopSeries())).stopSeries, true);
  // `as`: a JavaScript author may give anything.
  assert.match(await refusal(({ stop }) => stop({ mode: "soon" as "now" })), /mode must be one of queue, flight, now/);
});

test("what a handler throws is told, and nothing of its page counts", async () => {
  const outcome = await outcomeOf(
    defineScraper({
      handlers: {
        async a({ item }) {
          item({});
          await null;
          throw new RangeError("boom");
        },
      },
    }),
    scrapeTask(""),
  );
  assert.ok(outcome.kind === "threw");
  assert.equal(outcome.message, "boom");
  assert.match(outcome.stack ?? "", /RangeError: boom\n.*handlers\.test\.ts/s);
  assert.equal(await refusal(() => Promise.reject("text")), "text");
  const lost = await outcomeOf(defineScraper({ handlers: { a() {} } }), scrapeTask("", { handler: "renamed" }));
  assert.deepEqual([lost.kind, lost.kind === "threw" && lost.message], ["threw", 'the scraper has no handler "renamed"; its handlers are a']);
});

test("code that goes on after its page has ended is told so", async () => {
  const leaked: HandlerContext[] = [];
  await scraped((context) => void leaked.push(context));
  const [page] = leaked;
  assert.ok(page);
  const mark = /^Error: (item|follow|state\.set|stop): the page http:\/\/shop\.test\/list\/page\.html is settled: await what you start$/;
  for (const call of [() => page.item({}), () => page.follow("x"), () => page.state.set("a", 1), () => page.stop()]) assert.throws(call, mark);
});

test("what is no scraper is refused with the part that is wrong", () => {
  const cases: readonly (readonly [unknown, RegExp])[] = [
    [{}, /^TypeError: defineScraper: handlers must be an object of functions, not undefined$/],
    [{ handlers: {} }, /at least one is needed/],
    [{ handlers: { a: 1 } }, /handlers\.a must be a function, not number 1/],
    [{ handlers: { a() {} }, item: {} }, /"item" is not a part of a scraper; there are version, items and handlers/],
    [{ handlers: { a() {} }, items: { x: { kee: "a" } } }, /items\.x: "kee" is not a part of an item type/],
    [{ handlers: { a() {} }, items: { x: { schema: {} } } }, /items\.x\.schema is not a Standard Schema/],
    [{ handlers: { a() {} }, version: {} }, /version must be a string or a number/],
  ];
  // `as`: a JavaScript author may give anything.
  for (const [scraper, message] of cases) assert.throws(() => defineScraper(scraper as Parameters<typeof defineScraper>[0]), message);
});

test("a plain function's links are strings; anything else is refused", async () => {
  const around = { values: new Map<string, string>(), log: () => undefined, signal: () => new AbortController().signal };
  const run = async (find: (url: string, html: string) => unknown) => runPage(await moduleOf(find, null), scrapeTask("<p>"), around);
  const found = await run((url, html) => new Set([`${url}#${html}`]));
  assert.deepEqual(found.kind === "scraped" && found.scraped.links, ["http://shop.test/list/page.html#<p>"]);
  const none = await run(async () => undefined);
  assert.deepEqual(none.kind === "scraped" && none.scraped.links, null);
  for (const wrong of ["http://a/", 7, {}, [7]]) {
    const outcome = await run(() => wrong);
    assert.match(outcome.kind === "threw" ? outcome.message : "", /^the scrape function must return links: several strings/);
  }
});
