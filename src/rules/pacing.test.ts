/** Adaptive pacing and back-off as decisions over a host's answers. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { HostAnswer } from "../core/frontier.ts";
import { isLocalHost, newPace, noteLocal, type Pace, type PaceRules, slotsOf, takeAnswer } from "./pacing.ts";

const rules: PaceRules = { limit: 8, auto: true, maxWaitMs: 60_000 };
const good = (latencyMs: number): HostAnswer => ({ kind: "good", latencyMs });
const pushback: HostAnswer = { kind: "pushback", latencyMs: 10 };

function take(pace: Pace, answer: HostAnswer, more: Partial<{ epoch: number; now: number; asked: boolean; random: number }> = {}, by = rules): void {
  takeAnswer(pace, answer, { epoch: pace.epoch, now: 0, asked: false, random: 0.5, ...more }, by);
}

test("a public host starts with two and gains one per twenty good answers, up to the limit", () => {
  const pace = newPace(false, 8);
  const widths: number[] = [];
  for (let i = 0; i < 200; i++) {
    if (i % 20 === 0) widths.push(slotsOf(pace, rules));
    take(pace, good(50));
  }
  assert.deepEqual(widths, [2, 3, 4, 5, 6, 7, 8, 8, 8, 8]);
});

test("a limit below two is kept from the start", () => {
  assert.equal(slotsOf(newPace(false, 1), { ...rules, limit: 1 }), 1);
});

test("pushback halves once per burst and not below one", () => {
  const pace = newPace(true, 8);
  const epoch = pace.epoch;
  for (let i = 0; i < 8; i++) take(pace, pushback, { epoch, asked: true });
  assert.equal(slotsOf(pace, rules), 4);
  for (let i = 0; i < 9; i++) take(pace, pushback, { asked: true });
  assert.equal(slotsOf(pace, rules), 1);
});

test("a burst without Retry-After is one step of back-off; each further burst doubles it up to the longest wait", () => {
  const pace = newPace(true, 8);
  const waits: number[] = [];
  for (let burst = 0; burst < 9; burst++) {
    const epoch = pace.epoch;
    for (let i = 0; i < 5; i++) take(pace, pushback, { epoch, random: 0.999_999 });
    waits.push(Math.round(pace.heldUntil));
  }
  assert.deepEqual(waits, [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000, 60_000]);
});

test("the back-off is spread over half its length by chance", () => {
  const [low, high] = [newPace(true, 8), newPace(true, 8)];
  take(low, pushback, { random: 0 });
  take(high, pushback, { random: 0.999 });
  assert.equal(low.heldUntil, 500);
  assert.ok(high.heldUntil > 999 && high.heldUntil < 1_000);
});

test("while the host is sick, one request tries; its good answer ends the back-off, a late one of the burst does not", () => {
  const pace = newPace(true, 8);
  const old = pace.epoch;
  take(pace, pushback);
  take(pace, good(10), { epoch: old });
  assert.equal(slotsOf(pace, rules), 1);
  assert.ok(pace.heldUntil > 0);
  take(pace, good(10));
  assert.equal(slotsOf(pace, rules), 4);
  assert.equal(pace.heldUntil, 0);
});

test("Retry-After stands in for the back-off", () => {
  const pace = newPace(false, 8);
  take(pace, pushback, { asked: true });
  assert.equal(pace.heldUntil, 0);
});

test("a latency that doubles halves the window, once, and not again while it stays there", () => {
  const pace = newPace(true, 8);
  for (let i = 0; i < 50; i++) take(pace, good(200));
  for (let i = 0; i < 15; i++) take(pace, good(500));
  assert.equal(slotsOf(pace, rules), 4);
  for (let i = 0; i < 19; i++) take(pace, good(500));
  assert.ok(slotsOf(pace, rules) >= 4, "what stays slow is not halved for ever");
});

test("latencies of a few milliseconds may double as they like", () => {
  const pace = newPace(true, 8);
  for (let i = 0; i < 50; i++) take(pace, good(3));
  for (let i = 0; i < 50; i++) take(pace, good(60));
  assert.equal(slotsOf(pace, rules), 8);
});

test("answers that say nothing change nothing", () => {
  const pace = newPace(false, 8);
  const before = structuredClone(pace);
  take(pace, { kind: "none", latencyMs: 9_999 });
  assert.deepEqual(pace, before);
});

test("without auto the limit holds, but back-off works", () => {
  const fixed = { ...rules, auto: false };
  const pace = newPace(false, 8);
  assert.equal(slotsOf(pace, fixed), 8);
  take(pace, pushback, {}, fixed);
  assert.equal(slotsOf(pace, fixed), 1);
  assert.ok(pace.heldUntil > 0);
});

test("a host found to be local starts at the limit unless it has asked for less", () => {
  const calm = newPace(false, 8);
  noteLocal(calm, 8);
  assert.equal(slotsOf(calm, rules), 8);
  const sick = newPace(false, 8);
  take(sick, pushback, { asked: true });
  noteLocal(sick, 8);
  assert.equal(slotsOf(sick, rules), 1);
});

test("local hosts are known by their names", () => {
  for (const host of ["localhost", "localhost:3000", "a.b.localhost", "127.9.9.9", "10.0.0.1:80", "172.31.0.1", "192.168.1.1", "169.254.1.1", "0.0.0.0:8000"])
    assert.equal(isLocalHost(host), true, host);
  for (const host of ["[::1]", "[::1]:8080", "[fd00::1]", "[fe80::1]", "[::ffff:7f00:1]", "[::ffff:a00:1]"]) assert.equal(isLocalHost(host), true, host);
  for (const host of ["example.com", "localhost.com", "10.example.com", "172.15.0.1", "172.32.0.1", "8.8.8.8:53", "[2001:db8::1]", "[::ffff:808:808]"])
    assert.equal(isLocalHost(host), false, host);
});
