/** The seen table against a Map, and its size. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { seededRandom } from "../testing/clock.ts";
import { createSeenTable } from "./seen.ts";

test("the table agrees with a Map over random puts, replacements and removals", () => {
  const random = seededRandom(3);
  const table = createSeenTable();
  const model = new Map<string, number>();
  // Few segments and few low halves: long runs, wrapped ones too, and every kind of neighbour.
  const pick = (): [number, number] => [Math.floor(random() * 3) << 24, random() < 0.5 ? -1 - Math.floor(random() * 40) : Math.floor(random() * 400)];
  for (let step = 0; step < 60_000; step++) {
    const [hi, lo] = pick();
    const key = `${hi}:${hi === 0 && lo === 0 ? 1 : lo}`;
    const known = model.get(key) ?? -1;
    const value = step & 0xffff;
    const draw = random();
    if (draw < 0.4) {
      assert.equal(table.putIfAbsent(hi, lo, value), known);
      if (known < 0) model.set(key, value);
    } else if (draw < 0.6) {
      assert.equal(table.replace(hi, lo, value), known >= 0);
      if (known >= 0) model.set(key, value);
    } else if (draw < 0.8) {
      assert.equal(table.remove(hi, lo), known >= 0);
      model.delete(key);
    } else assert.equal(table.get(hi, lo), known);
    assert.equal(table.size, model.size);
  }
});

test("fingerprints at the edges are told apart", () => {
  const table = createSeenTable();
  const ids = [0, 1, -1, 0x7fffffff, -0x80000000].flatMap((hi) => [1, -1, 0x7fffffff, -0x80000000, 2].map((lo) => [hi, lo] as const));
  for (const [i, [hi, lo]] of ids.entries()) assert.equal(table.putIfAbsent(hi, lo, i), -1);
  for (const [i, [hi, lo]] of ids.entries()) assert.equal(table.get(hi, lo), i);
  assert.equal(table.get(0, 0), table.get(0, 1), "the free mark stands for its neighbour");
});

test("an entry takes at most 20 bytes at every size, and no growth holds more than one segment twice", () => {
  const random = seededRandom(5);
  const table = createSeenTable();
  for (let n = 1; n <= 400_000; n++) {
    const before = table.size % 1_000 === 0 ? table.bytes : 0;
    table.putIfAbsent(random() * 2 ** 32, random() * 2 ** 32, 1);
    if (before === 0 || n < 20_000) continue;
    assert.ok(table.bytes / table.size <= 20, `${table.bytes / table.size} bytes an entry at ${table.size}`);
    assert.ok(table.bytes - before <= table.bytes / 64, "one segment grew");
  }
});

test("a table visits each entry once, and one that was set to its size takes them all", () => {
  const random = seededRandom(9);
  const table = createSeenTable();
  const model = new Map<string, number>();
  for (let i = 0; i < 20_000; i++) {
    const [hi, lo] = [Math.floor(random() * 2 ** 32) | 0, Math.floor(random() * 2 ** 32) | 0];
    table.putIfAbsent(hi, lo, i & 0xffff);
    model.set(`${hi}:${lo}`, i & 0xffff);
  }
  const copy = createSeenTable();
  copy.reserve(model.size);
  const met = new Map<string, number>();
  table.forEach((hi, lo, value) => {
    assert.equal(met.has(`${hi}:${lo}`), false);
    met.set(`${hi}:${lo}`, value);
    assert.equal(copy.putIfAbsent(hi, lo, value), -1);
  });
  assert.deepEqual(met, model);
  assert.equal(copy.size, model.size);
});
