import assert from "node:assert/strict";
import { test } from "node:test";
import { defineScraper } from "./define.ts";
import { testHandler } from "./test-handler.ts";

const scraper = defineScraper({
  items: { product: { key: "sku" }, offer: {} },
  handlers: {
    list({ $, item, follow, watermark, state, stopSeries, stop, data, url }) {
      const seen = state.get("seen") ?? 0;
      state.set("seen", seen + 1);
      const mark = watermark("date");
      for (const row of $("li")) {
        const date = $(row).attr("data-date") ?? "";
        if (mark.old(date)) return stopSeries();
        item({ sku: date, from: data.from ?? null }, "product");
        item({ url }, "offer");
      }
      item({}, "product");
      follow("next", { handler: "list", series: "s", index: 1, priority: 2, data: { from: "list" }, body: { a: 1 } });
      stop({ reason: "enough" });
    },
    broken() {
      throw new RangeError("no such row");
    },
  },
});

test("a handler is tried on a page without a crawl: items, follows, state, marks, stop", async () => {
  const html = `<base href="/b/"><li data-date="2026-01-02">`;
  const result = await testHandler(scraper, "list", { url: "http://a/x", html, data: { from: "test" }, state: { seen: 4 } });
  assert.deepEqual(result.items, [{ sku: "2026-01-02", from: "test" }, { url: "http://a/x" }]);
  assert.deepEqual(result.itemsByType, { product: [{ sku: "2026-01-02", from: "test" }], offer: [{ url: "http://a/x" }] });
  assert.deepEqual(
    result.badItems.map(({ type, field }) => [type, field]),
    [["product", "sku"]],
  );
  assert.deepEqual(result.follows, [
    {
      ...{ url: "http://a/b/next", handler: "list", priority: 2, data: { from: "list" }, series: "s", index: 1, method: "POST", body: '{"a":1}' },
      headers: { "content-type": "application/json" },
    },
  ]);
  assert.deepEqual(
    [result.state, result.marks, result.stop, result.stopSeries, result.error],
    [{ seen: 5 }, { date: "2026-01-02" }, { mode: "flight", reason: "enough" }, false, null],
  );
});

test("marks of the last run are given by key, and a series stops at them", async () => {
  const result = await testHandler(scraper, "list", {
    url: "http://a/",
    html: `<li data-date="2026-01-02">`,
    marks: { date: "2026-01-02" },
    series: "s",
    index: 3,
  });
  assert.deepEqual([result.stopSeries, result.items, result.follows], [true, [], []]);
});

test("what a handler throws is in the result; a handler that is not there is an error", async () => {
  const { error, items } = await testHandler(scraper, "broken", { url: "http://a/", html: "" });
  assert.match(error?.stack ?? "", /no such row/);
  assert.deepEqual(items, []);
  await assert.rejects(testHandler(scraper, "detial", { url: "http://a/" }), /^TypeError: the scraper has no handler "detial"$/);
});
