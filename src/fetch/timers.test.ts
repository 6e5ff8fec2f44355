import assert from "node:assert/strict";
import { test } from "node:test";
import type { Clock } from "../core/clock.ts";
import { createSweep } from "./timers.ts";

/** Time by hand; counts the timers that wait. */
function handClock() {
  let now = 0;
  let timers: { at: number; callback: () => void }[] = [];
  const clock: Clock = {
    now: () => now,
    epoch: () => now,
    after(ms, callback) {
      const timer = { at: now + ms, callback };
      timers.push(timer);
      return { cancel: () => void (timers = timers.filter((other) => other !== timer)) };
    },
    soon: (callback) => callback(),
  };
  const advance = (ms: number) => {
    const end = now + ms;
    for (;;) {
      const next = timers.filter(({ at }) => at <= end).sort((a, b) => a.at - b.at)[0];
      if (!next) break;
      timers = timers.filter((other) => other !== next);
      now = next.at;
      next.callback();
    }
    now = end;
  };
  return { clock, advance, waiting: () => timers.length };
}

test("everything watched is visited at each tick, by one timer, which stops when nothing is watched", () => {
  const { clock, advance, waiting } = handClock();
  const visits: string[] = [];
  const sweep = createSweep<{ name: string; place: number }>(clock, 10, (item, now) => void visits.push(`${item.name}${now}`));
  const [a, b] = [
    { name: "a", place: -1 },
    { name: "b", place: -1 },
  ];
  assert.equal(waiting(), 0);
  sweep.watch(a);
  sweep.watch(a);
  advance(15);
  sweep.watch(b);
  assert.equal(waiting(), 1);
  advance(10);
  sweep.unwatch(a);
  sweep.unwatch(a);
  advance(10);
  assert.deepEqual(visits, ["a10", "b20", "a20", "b30"]);
  sweep.unwatch(b);
  assert.equal(waiting(), 0);
  advance(100);
  assert.equal(visits.length, 4);
});

test("a visit may stop watching the item and others, and watch new ones", () => {
  const { clock, advance, waiting } = handClock();
  const visited: number[] = [];
  const items = Array.from({ length: 5 }, (_, id) => ({ id, place: -1 }));
  const sweep = createSweep<{ id: number; place: number }>(clock, 10, (item) => {
    visited.push(item.id);
    for (const other of items) sweep.unwatch(other);
    if (item.id !== 0) sweep.watch(items[0]!); // five items
  });
  for (const item of items) sweep.watch(item);
  advance(10);
  assert.deepEqual(visited, [4, 0]);
  assert.deepEqual([sweep.items().length, waiting()], [0, 0]);
});
