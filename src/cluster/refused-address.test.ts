import assert from "node:assert/strict";
import { test } from "node:test";
import type { Frontier, Settled } from "../core/frontier.ts";
import { sayRefused } from "./refused-address.ts";

const page = (code: string | null) =>
  ({ settlement: { kind: "done", output: { page: { error: code === null ? undefined : { code } } } } }) as unknown as Settled; // all that is looked at

test("a refused address is told once a crawl, and every step is passed on", async () => {
  const steps: number[] = [];
  const said: unknown[] = [];
  const inner = {
    async settle(settled: readonly Settled[]) {
      steps.push(settled.length);
      return settled.map(() => "applied" as const);
    },
  } as unknown as Frontier; // nothing else of it is called
  const frontier = sayRefused(inner, 3, (level, message, fields) => said.push([level, message.includes("--allow-address"), fields]));
  await frontier.settle([page(null), page("timeout"), { settlement: { kind: "returned" } } as Settled], []); // its kind is all that is looked at
  assert.deepEqual(said, []);
  assert.deepEqual(await frontier.settle([page(null), page("blocked-address")], []), ["applied", "applied"]);
  await frontier.settle([page("blocked-address")], []);
  assert.deepEqual([steps, said], [[3, 2, 1], [["warn", true, { crawl: 3 }]]]);
});
