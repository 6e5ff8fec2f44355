import assert from "node:assert/strict";
import { test } from "node:test";
import { type Clock, realClock } from "../core/clock.ts";
import { createResolver, type Lookup, type Resolution } from "./dns.ts";

function setUp(answers: Record<string, string[] | string>) {
  let now = 0;
  const clock: Clock = { ...realClock, now: () => now };
  const asked: string[] = [];
  const pending: (() => void)[] = [];
  const lookup: Lookup = (name, callback) => {
    asked.push(name);
    const answer = answers[name] ?? "ENOTFOUND";
    pending.push(() => {
      if (typeof answer === "string") callback(Object.assign(new Error(answer), { code: answer }), []);
      else
        callback(
          null,
          answer.map((address) => ({ address, family: 4 })),
        );
    });
  };
  const resolver = createResolver(clock, lookup);
  const ask = (name: string): { got: Resolution | null } => {
    const seen: { got: Resolution | null } = { got: null };
    resolver.resolve(name, (resolution) => void (seen.got = resolution));
    return seen;
  };
  const answer = () => {
    for (const one of pending.splice(0)) one();
  };
  return { asked, ask, answer, advance: (ms: number) => void (now += ms) };
}

test("a name is asked for once at a time, kept for a minute, then asked for again", () => {
  const { asked, ask, answer, advance } = setUp({ "a.example": ["192.0.2.1", "192.0.2.2"] });
  const [first, second] = [ask("a.example"), ask("a.example")];
  assert.equal(first.got, null);
  answer();
  assert.deepEqual(first.got, {
    kind: "addresses",
    addresses: [
      { address: "192.0.2.1", family: 4 },
      { address: "192.0.2.2", family: 4 },
    ],
  });
  assert.equal(second.got, first.got);
  advance(59_000);
  assert.equal(ask("a.example").got, first.got);
  assert.equal(asked.length, 1);
  advance(2_000);
  assert.equal(ask("a.example").got, null);
  assert.equal(asked.length, 2);
});

test("bad answers, and empty ones, are kept for five seconds", () => {
  const { asked, ask, answer, advance } = setUp({ "no.example": "EAI_AGAIN", "empty.example": [] });
  const seen = [ask("no.example"), ask("empty.example")];
  answer();
  assert.deepEqual(
    seen.map(({ got }) => got?.kind === "error" && got.error.code),
    ["EAI_AGAIN", "ENOTFOUND"],
  );
  advance(4_000);
  assert.equal(ask("no.example").got, seen[0]?.got);
  advance(2_000);
  assert.equal(ask("no.example").got, null);
  assert.equal(asked.length, 3);
});

test("addresses need no resolver", () => {
  const { asked, ask } = setUp({});
  assert.deepEqual(ask("127.0.0.1").got, { kind: "addresses", addresses: [{ address: "127.0.0.1", family: 4 }] });
  assert.deepEqual(ask("::1").got, { kind: "addresses", addresses: [{ address: "::1", family: 6 }] });
  assert.deepEqual(asked, []);
});

test("no more than 10,000 names are kept, the oldest go", () => {
  const { asked, ask, answer } = setUp({});
  for (let i = 0; i <= 10_000; i++) {
    ask(`h${i}.example`);
    answer();
  }
  assert.equal(ask("h1.example").got?.kind, "error");
  assert.equal(ask("h0.example").got, null);
  assert.equal(asked.length, 10_002);
});
