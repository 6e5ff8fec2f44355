/** The ring of a job's events, and watchers of every pace. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { JobEvent } from "../../src/core/jobs.ts";
import { NO_COUNTS } from "../../src/jobs/counts.ts";
import { createEventHub, type Happening } from "../../src/jobs/events.ts";

const NOW: readonly Happening[] = [{ kind: "state", state: "running", finishReason: null }];
const page = (n: number): Happening => ({ kind: "page", page: { n } });

function hub() {
  let id = 0;
  return createEventHub(() => ++id);
}

const pageOf = (event: JobEvent | undefined): unknown => (event?.kind === "page" ? event.page["n"] : event?.kind);

test("a watcher that reads along gets everything, one that is slow is told how things stand and goes on from there", async () => {
  const events = hub();
  const signal = new AbortController().signal;
  const fast = events.watch(null, signal, () => NOW);
  const slow = events.watch(null, signal, () => NOW);
  assert.equal(pageOf((await fast.next()).value), "state");
  assert.equal(pageOf((await slow.next()).value), "state");
  for (let n = 0; n < 5_000; n++) {
    events.emit(page(n));
    assert.equal(pageOf((await fast.next()).value), n);
  }
  assert.equal(pageOf((await slow.next()).value), "state");
  events.emit(page(5_000));
  assert.equal(pageOf((await slow.next()).value), 5_000);
  events.end();
  assert.equal(pageOf((await fast.next()).value), 5_000);
  assert.equal((await fast.next()).done, true);
  assert.equal((await slow.next()).done, true);
});

test("who comes back with the last number goes on there; with one that is too old, or was never given, anew", async () => {
  const events = hub();
  const signal = new AbortController().signal;
  for (let n = 0; n < 500; n++) events.emit(page(n));
  const all: JobEvent[] = [];
  const first = events.watch("2", signal, () => NOW);
  for (let n = 0; n < 400; n++) all.push((await first.next()).value as JobEvent); // it has not ended
  const again = events.watch(all.at(-1)?.id ?? "", signal, () => NOW);
  assert.equal(pageOf((await again.next()).value), Number(pageOf(all.at(-1))) + 1);
  for (const after of ["999999999", "rubbish", "-1", ""]) assert.equal(pageOf((await events.watch(after, signal, () => NOW).next()).value), "state");
  for (let n = 0; n < 3_000; n++) events.emit({ kind: "counts", counts: NO_COUNTS });
  assert.equal(pageOf((await events.watch(all[0]?.id ?? "", signal, () => NOW).next()).value), "state");
});

test("numbers rise for each watcher", async () => {
  const events = hub();
  const signal = new AbortController().signal;
  const watcher = events.watch(null, signal, () => NOW);
  let last = 0;
  for (let n = 0; n < 3_000; n++) {
    for (let k = 0; k < n % 4; k++) events.emit(page(n));
    events.emit(page(n));
    const { value } = await watcher.next();
    assert.ok(Number(value?.id) > last);
    last = Number(value?.id);
  }
});

test("a watcher that waits ends with its signal", async () => {
  const events = hub();
  const control = new AbortController();
  const watcher = events.watch(null, control.signal, () => NOW);
  await watcher.next();
  const waiting = watcher.next();
  control.abort();
  assert.equal((await waiting).done, true);
});
