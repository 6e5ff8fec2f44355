/** Listings that shift while they are read, run after run: what is new comes out, what is old is not asked for. A thousand seeds more run in test:long. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { checkBounds, distinct, type ListingOptions, openListing } from "./listing.ts";
import { checkListing } from "./random-listing.ts";

const SEEDS = 12;
const SECONDS = 8;

const plain: ListingOptions = {
  ...{ seed: 1, style: "chain", perPage: 6, overlap: 0, olderInARow: 1, by: "$" },
  ...{ products: 240, flaky: 0, concurrency: 64, latency: [10, 300] },
};

const between = (from: number, to: number): number[] => Array.from({ length: to - from + 1 }, (_, i) => from + i);
const sorted = (ids: Iterable<number>): number[] => [...ids].sort((a, b) => a - b);

test(`up to ${SEEDS} histories of a shop by chance: every newer product comes out of every run, nothing old is asked for beyond what was in flight`, async (t) => {
  const until = performance.now() + SECONDS * 1_000;
  let seed = 1;
  let visits = 0;
  for (; seed <= SEEDS && performance.now() < until; seed++) visits += (await checkListing(seed, 16)).visits;
  t.diagnostic(`${seed - 1} histories, ${visits} requests`);
  assert.ok(seed > 1);
});

for (const style of ["chain", "all"] as const) {
  test(`a second run with nothing new fetches one list page and no detail, a third with 20 new on top gives exactly those (${style})`, async () => {
    using listing = openListing({ ...plain, style });
    const first = await listing.run();
    assert.deepEqual(sorted(distinct(first.out, style)), between(1, 240));
    const second = await listing.run();
    assert.deepEqual(second.out, []);
    assert.deepEqual(
      second.visits.map(({ target }) => target),
      ["/list/0"],
    );
    listing.shop.add(20);
    const third = await listing.run();
    assert.deepEqual(sorted(distinct(third.out, style)), between(241, 260));
    assert.deepEqual(sorted(third.visits.flatMap((visit) => (visit.kind === "item" ? [visit.number] : []))), between(241, 260));
    const fourth = await listing.run();
    assert.deepEqual(fourth.out, []);
  });
}

test("with olderInARow 5 the four old rows before the fifth are followed, over the border of two pages", async () => {
  using listing = openListing({ ...plain, olderInARow: 5 });
  await listing.run();
  listing.shop.add(9);
  const { out, visits } = await listing.run();
  assert.deepEqual(sorted(out), between(237, 249));
  assert.deepEqual(
    visits.filter(({ kind }) => kind === "list").map(({ target }) => target),
    ["/list/0", "/list/1", "/list/2"],
  );
});

test("60 list pages, 64 in flight, page 7 the first old one: what was begun before its answer is all that is asked for behind it", async () => {
  const options: ListingOptions = { ...plain, seed: 3, style: "all", overlap: 2, products: 240 };
  using listing = openListing(options);
  const first = await listing.run();
  listing.shop.add(7 * 4 + 2);
  const run = await listing.run({ shift: { chance: 0.2, most: 2 } });
  checkBounds(options, run, first.met, "page 7");
  for (const id of between(first.met + 1, run.begun)) assert.ok(run.out.includes(id), `product ${id}`);
  assert.ok(run.visits.filter(({ kind }) => kind === "item").every(({ number }) => number > first.met));
});

test("a product that a page behind the stop had shown first still comes out", async () => {
  // Pages that overlap by 2 of 9 rows: the newest old row lies on pages 2 and 3, and page 3 may be read before page 2 ends the series.
  for (let seed = 1; seed <= 3; seed++) {
    using listing = openListing({ ...plain, seed, style: "all", perPage: 9, overlap: 2, products: 90, concurrency: 8, latency: [1, 30] });
    const first = await listing.run();
    listing.shop.add(22);
    const run = await listing.run();
    assert.deepEqual(sorted(run.out), between(first.met + 1, 112), `seed ${seed}`);
  }
});
