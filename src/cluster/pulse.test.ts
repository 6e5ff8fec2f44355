import assert from "node:assert/strict";
import { test } from "node:test";
import type { Frontier, Lease, Settled } from "../core/frontier.ts";
import type { Link } from "../store/redis/connect.ts";
import { createTestClock } from "../testing/clock.ts";
import { startPulse } from "./pulse.ts";

const lease = (token: string) => ({ token }) as Lease; // its token is all that is looked at
const settled = (token: string, kind: "done" | "returned") => ({ token, settlement: { kind } }) as Settled; // its token and kind are all that is looked at

/** Every beat as it was stored. */
function fakeLink() {
  const beats: { shares: { crawl: number; inFlight: number; taken: number; pagesPerSecond: number | null; limitedBy: string; claims: string[] }[] }[] = [];
  const commands: string[] = [];
  const link: Pick<Link, "tag" | "command"> = {
    tag: "{t}",
    async command(name, ...args) {
      commands.push(name);
      if (name === "SET") beats.push(JSON.parse(String(args[1])));
      return name === "SMEMBERS" ? [] : null;
    },
  };
  return { link: link as Link, beats, commands }; // nothing else of it is called
}

const settle = () => new Promise((resolve) => setImmediate(resolve));

test("a beat tells what is in flight, how much was taken, the rate and what limits it; the last word is goodbye", async () => {
  const clock = createTestClock();
  const { link, beats, commands } = fakeLink();
  const pulse = startPulse(link, { kind: "work", clock });
  let answer: Awaited<ReturnType<Frontier["claim"]>> = {
    kind: "leases",
    leases: ["claim-number1-1", "claim-number1-2", "claim-number1-3"].map(lease),
    seeds: [],
  };
  const frontier = {
    claim: async () => answer,
    settle: async (pages: readonly Settled[]) => pages.map(() => "applied" as const),
    renew: async () => ({ lost: ["claim-number1-3"], control: "run" as const }),
    [Symbol.asyncDispose]: async () => undefined,
  } as unknown as Frontier; // nothing else of it is called
  const watched = pulse.watch(4, frontier, () => 8);
  await settle();
  await watched.claim(8);
  answer = { kind: "wait", waitMs: 100, cause: "delay" };
  await watched.claim(5);
  await watched.settle([settled("claim-number1-1", "done")], []);
  await watched.renew([]);
  await clock.advance(3_000);
  await settle();
  const { limitedBy, ...share } = beats.at(-1)?.shares[0] ?? { limitedBy: "" };
  assert.deepEqual(share, { crawl: 4, inFlight: 1, taken: 3, pagesPerSecond: 1 / 3, claims: ["claim-number"] });
  // A test that does nothing but this keeps its thread busy.
  assert.ok(limitedBy === "delay" || limitedBy === "cpu", limitedBy);
  await watched.settle([settled("claim-number1-2", "returned")], []);
  answer = { kind: "held", why: "outbox-full" };
  await watched.claim(8);
  await clock.advance(3_000);
  await settle();
  assert.deepEqual([beats.at(-1)?.shares[0]?.inFlight, beats.at(-1)?.shares[0]?.limitedBy], [0, "output"]);
  await watched[Symbol.asyncDispose]();
  await clock.advance(3_000);
  await settle();
  assert.deepEqual(beats.at(-1)?.shares, [], "a crawl that it left");
  await pulse.close();
  assert.deepEqual(commands.slice(-2), ["DEL", "SREM"]);
  const said = beats.length;
  await clock.advance(30_000);
  await settle();
  assert.equal(beats.length, said);
});
