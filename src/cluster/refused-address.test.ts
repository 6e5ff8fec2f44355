import assert from "node:assert/strict";
import { test } from "node:test";
import type { Frontier, Settled } from "../core/frontier.ts";
import { minding, reachesFurther } from "./refused-address.ts";

const page = (code: string | null) =>
  ({ token: "t", settlement: { kind: "done", output: { page: { error: code === null ? undefined : { code } } } } }) as unknown as Settled; // all that is looked at
const robots = (code: string) => ({ token: "r", settlement: { kind: "robots", answer: { kind: "unavailable", code } } }) as unknown as Settled; // all that is looked at

function minded(further: boolean) {
  const steps: string[][] = [];
  const said: unknown[] = [];
  let left = 0;
  const inner = {
    async settle(settled: readonly Settled[]) {
      steps.push(settled.map(({ settlement }) => settlement.kind));
      return settled.map(() => "applied" as const);
    },
  } as unknown as Frontier; // nothing else of it is called
  const log = (...line: unknown[]) => void said.push(line[0], (line[1] as string).includes("--allow-address"), line[2]); // a message is text
  return { frontier: minding(inner, { crawl: 3, log, further, leave: () => left++ }), steps, said, left: () => left };
}

test("an address that the crawl refuses too is given up, and told of once", async () => {
  const { frontier, steps, said, left } = minded(false);
  await frontier.settle([page(null), page("timeout"), robots("dns")], []);
  assert.deepEqual(said, []);
  assert.deepEqual(await frontier.settle([page(null), page("blocked-address")], []), ["applied", "applied"]);
  await frontier.settle([page("blocked-address")], []);
  assert.deepEqual(steps, [["done", "done", "robots"], ["done", "done"], ["done"]]);
  assert.deepEqual([said, left()], [["warn", true, { crawl: 3 }], 0]);
});

test("an address that others may reach is handed back, page or robots.txt, and the crawl left to them", async () => {
  const { frontier, steps, said, left } = minded(true);
  assert.deepEqual(await frontier.settle([page(null), page("blocked-address"), robots("blocked-address")], []), ["applied", "applied", "applied"]);
  assert.deepEqual(steps, [["done", "returned", "returned"]]);
  assert.deepEqual([said, left()], [["warn", true, { crawl: 3 }], 1]);
});

test("a crawl reaches further that refuses nothing, or allows what this worker does not", () => {
  const guard = (refusePrivate: boolean, ...allow: string[]) => ({ refusePrivate, allow });
  assert.equal(reachesFurther(guard(false), guard(true, "127.0.0.1")), true);
  assert.equal(reachesFurther(guard(true, "10.0.0.0/8"), guard(true)), true);
  assert.equal(reachesFurther(guard(true, "Box.test"), guard(true, "box.test", "10.0.0.0/8")), false);
  assert.equal(reachesFurther(guard(true), guard(true)), false);
  assert.equal(reachesFurther(guard(false), guard(false)), false);
});
