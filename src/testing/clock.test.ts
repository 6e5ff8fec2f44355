/** The clock that tests move by hand. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { createTestClock, seededRandom } from "./clock.ts";

test("timers run in the order of their times, each at its own time", async () => {
  const clock = createTestClock();
  const seen: string[] = [];
  const note = (name: string) => () => void seen.push(`${name}@${clock.now()}`);
  clock.after(30, note("c"));
  clock.after(10, note("a"));
  clock.after(10, note("b"));
  clock.after(50, note("late"));
  await clock.advance(40);
  assert.deepEqual(seen, ["a@10", "b@10", "c@30"]);
  assert.equal(clock.now(), 40);
  assert.equal(clock.pending, 1);
});

test("a cancelled timer does not run", async () => {
  const clock = createTestClock();
  let ran = false;
  const timer = clock.after(5, () => {
    ran = true;
  });
  timer.cancel();
  timer.cancel();
  await clock.advance(10);
  assert.equal(ran, false);
  assert.equal(clock.pending, 0);
});

test("what a timer sets off is done before the next timer runs", async () => {
  const clock = createTestClock();
  const seen: string[] = [];
  clock.after(10, () => {
    void Promise.resolve()
      .then(() => undefined)
      .then(() => clock.soon(() => clock.after(5, () => void seen.push(`chained@${clock.now()}`))));
  });
  clock.after(100, () => void seen.push("last"));
  await clock.advance(100);
  assert.deepEqual(seen, ["chained@15", "last"]);
});

test("run jumps from timer to timer until the promise settles", async () => {
  const clock = createTestClock();
  const hours = new Promise<string>((resolve) => clock.after(3_600_000, () => clock.after(3_600_000, () => resolve("done"))));
  assert.equal(await clock.run(hours), "done");
  assert.equal(clock.now(), 7_200_000);
  assert.equal(clock.epoch() - 7_200_000, Date.UTC(2026, 0, 1));
});

test("run waits for real work that no timer tells of", async () => {
  const clock = createTestClock();
  const loaded = import("./web.ts").then(() => new Promise<string>((resolve) => setTimeout(() => clock.after(10, () => resolve("loaded")), 20)));
  assert.equal(await clock.run(loaded), "loaded");
});

test("run fails when nothing is left to wait for, or for too long", async () => {
  const clock = createTestClock();
  const never = new Promise(() => undefined);
  await assert.rejects(clock.run(never), /nothing is left/);
  clock.after(1_000, () => undefined);
  await assert.rejects(clock.run(never, 500), /within 500 ms/);
  await assert.rejects(clock.run(Promise.reject(new Error("mine"))), /mine/);
});

test("seeded chance repeats itself and fills its range", () => {
  const draw = (seed: number) => Array.from({ length: 1_000 }, seededRandom(seed));
  assert.deepEqual(draw(1), draw(1));
  assert.notDeepEqual(draw(1), draw(2));
  assert.ok(Math.min(...draw(1)) < 0.01 && Math.max(...draw(1)) > 0.99 && Math.max(...draw(1)) < 1);
});
