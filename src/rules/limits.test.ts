/** Limits of a crawl, by what it has spent. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { limitReached, spentOf } from "./limits.ts";

const NONE = { pages: null, items: null, time: null, bytes: null, errors: null };
const SPENT = spentOf(
  new Map([
    ["bytes", 100],
    ["outcome:failed", 3],
    ["items", 7],
  ]),
);

test("items, bytes and time end a crawl where they are reached, errors where there are more of them", () => {
  const of = (limits: object) => limitReached({ ...NONE, ...limits }, SPENT, 5_000);
  assert.equal(of({}), null);
  assert.deepEqual([of({ items: 8 }), of({ items: 7 })], [null, "limit-items"]);
  assert.deepEqual([of({ bytes: 101 }), of({ bytes: 100 })], [null, "limit-bytes"]);
  assert.deepEqual([of({ errors: 3 }), of({ errors: 2 })], [null, "limit-errors"]);
  assert.deepEqual([of({ time: 5_001 }), of({ time: 5_000 })], [null, "limit-time"]);
});

test("a store that has counted nothing yet has spent nothing", () => {
  assert.equal(limitReached({ ...NONE, bytes: 1, errors: 0, items: 1 }, spentOf(new Map()), 0), null);
});
