/** The generated shop: it repeats itself, its pages have the size of real ones, and they are decided when the request arrives. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Exchange } from "../core/outcome.ts";
import { makeRequest } from "../rules/admit.ts";
import { createTestClock } from "./clock.ts";
import { createShop, SHOP_ORIGIN, type Shop } from "./shop.ts";

function exchangeOf(target: string): Exchange {
  const request = makeRequest(SHOP_ORIGIN + target, [1, 2, 3, 4], { hop: "link", depth: 0, referrer: null });
  return { request, cookies: null, maxBytes: null, onStart: () => undefined, onEnd: () => undefined };
}

const body = (shop: Shop, target: string): string => shop.arrive(target, 0, 0).body;
const ids = (html: string): number[] => [...html.matchAll(/href="\/item\/(\d+)"/g)].map((match) => Number(match[1]));
const countOffers = (html: string): number => html.split('class="offer"').length - 1;

test("the same seed gives the same shop, another seed another", () => {
  const page = (seed: number) => body(createShop({ seed, products: 100 }), "/item/7");
  assert.equal(page(1), page(1));
  assert.notEqual(page(1), page(2));
});

test("the listing is whole, newest first, and each page but the last has a next one", () => {
  const shop = createShop({ seed: 1, products: 95, perPage: 10 });
  assert.equal(shop.listPages, 10);
  const pages = Array.from({ length: 10 }, (_, i) => body(shop, `/list/${i}`));
  assert.deepEqual(
    pages.flatMap(ids),
    Array.from({ length: 95 }, (_, i) => 95 - i),
  );
  assert.deepEqual(
    pages.map((html) => html.includes('class="next"')),
    [...new Array(9).fill(true), false],
  );
  const dates = pages.flatMap((html) => [...html.matchAll(/data-date="([^"]+)"/g)].map((match) => match[1]!));
  assert.deepEqual(dates, dates.toSorted().reverse());
});

test("the scenario of issue 4 is 500 list pages of 20 to 30 kB, 14,500 details of 10 to 20 kB and exactly 400,000 offers", () => {
  const shop = createShop({ seed: 3, products: 14_500, offers: 400_000 });
  assert.equal(shop.listPages, 500);
  assert.equal(shop.offersBetween(1, 14_500), 400_000);
  for (const i of [0, 250, 499]) {
    const { length } = body(shop, `/list/${i}`);
    assert.ok(length > 20_000 && length < 30_000, `list ${i}: ${length}`);
  }
  for (const id of [1, 7_000, 14_500]) {
    const html = body(shop, `/item/${id}`);
    assert.ok(html.length > 10_000 && html.length < 20_000, `item ${id}: ${html.length}`);
    assert.equal(countOffers(html), shop.offers(id).length);
    assert.equal(shop.offers(id).length, shop.offersBetween(id, id));
  }
});

test("a page holds what there was when its request arrived, not when it went out or came back", async () => {
  const clock = createTestClock();
  const shop = createShop({ seed: 5, products: 30, perPage: 10, pages: "small" });
  const fetcher = shop.asFetcher(clock, { latency: [100, 100], onArrival: () => shop.add(1) });
  clock.after(1, () => shop.add(2));
  const outcome = await clock.run(fetcher.fetch(exchangeOf("/list/0")));
  assert.equal(outcome.kind, "fetched");
  assert.ok(outcome.kind === "fetched");
  assert.equal(ids(new TextDecoder().decode(outcome.response.body))[0], 32);
  assert.equal(shop.newest, 33);
  const [visit] = shop.visits;
  assert.ok(visit !== undefined && visit.arrivedAt > 0 && visit.arrivedAt < 100);
  assert.equal(visit.endedAt, 100);
});

test("an aborted request ends at once and is not answered twice", async () => {
  const clock = createTestClock();
  const shop = createShop({ seed: 5, products: 30 });
  const fetcher = shop.asFetcher(clock, { latency: [100, 100] });
  const exchange = exchangeOf("/list/0");
  const going = fetcher.fetch(exchange);
  fetcher.abort(exchange);
  assert.equal((await going).kind, "aborted");
  await clock.advance(1_000);
  assert.equal(shop.visits.length, 0);
});

test("flaky pages fail at first and then answer; told failures come so many times", () => {
  const shop = createShop({ seed: 9, products: 200, flaky: 0.5, flakyTimes: 2 });
  const tries = Array.from({ length: 200 }, (_, i) => [0, 1, 2].map(() => shop.arrive(`/item/${i + 1}`, 0, 0).status));
  const failing = tries.filter(([first]) => first !== 200).length;
  assert.ok(failing > 60 && failing < 140, String(failing));
  assert.ok(tries.every(([, , third]) => third === 200));
  const told = createShop({ seed: 9, products: 5 });
  told.fail("/list/0", 500, 2);
  assert.deepEqual(
    [1, 2, 3].map(() => told.arrive("/list/0", 0, 0).status),
    [500, 500, 200],
  );
});

test("the server answers as the fetcher does, after its latency", async () => {
  const shop = createShop({ seed: 2, products: 40, perPage: 10 });
  await using served = await shop.serve({ latency: [5, 10] });
  const begun = performance.now();
  const response = await fetch(`${served.origin}/list?offset=15`);
  assert.ok(performance.now() - begun >= 4);
  assert.equal(await response.text(), body(shop, "/list?offset=15"));
  assert.equal((await fetch(`${served.origin}/robots.txt`)).status, 404);
  shop.fail("/item/3", null);
  await assert.rejects(fetch(`${served.origin}/item/3`));
  assert.equal((await fetch(`${served.origin}/item/41`)).status, 404);
  shop.add(1);
  assert.equal((await fetch(`${served.origin}/item/41`)).status, 200);
});
