import assert from "node:assert/strict";
import test from "node:test";
import type { Control, Frontier, Token } from "../core/frontier.ts";
import { createTestClock } from "../testing/clock.ts";
import { createRenewal } from "./leases.ts";

const LEASE_MS = 15_000;

/** A renewal of two leases on a store that answers as `renew` says. */
function bench(renew: (held: readonly Token[]) => ReturnType<Frontier["renew"]>) {
  const clock = createTestClock();
  const lost: Token[][] = [];
  const renewal = createRenewal({ renew } as unknown as Frontier, clock, {
    held: () => ["a", "b"],
    lost: (tokens) => lost.push([...tokens]),
    control: () => undefined,
    fail(error) {
      throw error;
    },
  });
  renewal.start(LEASE_MS);
  return { clock, lost, renewal };
}

const control: Control = "run";

test("leases that the store renews each second are never in doubt", async () => {
  const { clock, lost, renewal } = bench(async () => ({ lost: [], control }));
  for (let s = 0; s < 60; s++) await clock.advance(1_000);
  assert.deepEqual(lost, []);
  renewal.stop();
});

test("a store that does not answer for as long as a lease lasts has given the pages to others: what is under way is ended", async () => {
  let answers = true;
  const never = new Promise<never>(() => undefined);
  const { clock, lost, renewal } = bench(async () => (answers ? { lost: [], control } : never));
  for (let s = 0; s < 5; s++) await clock.advance(1_000);
  answers = false;
  for (let s = 0; s < 14; s++) await clock.advance(1_000);
  assert.deepEqual(lost, []);
  await clock.advance(1_000);
  assert.deepEqual(lost, [["a", "b"]]);
  renewal.stop();
});

test("a worker that was stopped for longer than its leases last ends what it had under way, before it hears of the store", async () => {
  const { clock, lost, renewal } = bench(() => new Promise(() => undefined));
  await clock.advance(20_000);
  assert.deepEqual(lost, [["a", "b"]]);
  renewal.stop();
});

test("what the store calls lost is passed on", async () => {
  const { clock, lost, renewal } = bench(async () => ({ lost: ["b"], control }));
  await clock.advance(1_000);
  assert.deepEqual(lost, [["b"]]);
  renewal.stop();
});
