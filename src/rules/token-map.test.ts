/** The token map against a Map. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { seededRandom } from "../testing/clock.ts";
import { createTokenMap } from "./token-map.ts";

test("it agrees with a Map while tokens come and go, few and many, with and without order", () => {
  const random = seededRandom(5);
  for (const most of [4, 120, 2_000]) {
    const map = createTokenMap<number>();
    const model = new Map<string, number>();
    for (let step = 0; step < 20_000; step++) {
      // The last characters decide where a token lies: some share them.
      const token = `${random() < 0.1 ? "x" : ""}y-${Math.floor(random() * most * 2).toString(36)}`;
      if (random() < 0.5 && model.size < most) {
        map.set(token, step);
        model.set(token, step);
      } else assert.equal(map.delete(token), model.delete(token));
      assert.equal(map.size, model.size);
      assert.equal(map.get(token), model.get(token));
    }
    assert.deepEqual(map.tokens().sort(), [...model.keys()].sort());
    for (const [token, value] of model) assert.equal(map.get(token), value);
    map.clear();
    assert.deepEqual([map.size, map.tokens()], [0, []]);
  }
});

test("a value may be null, and a second set replaces it", () => {
  const map = createTokenMap<number | null>();
  map.set("a", null);
  assert.deepEqual([map.get("a"), map.get("b"), map.size], [null, undefined, 1]);
  map.set("a", 2);
  assert.deepEqual([map.get("a"), map.size], [2, 1]);
});
