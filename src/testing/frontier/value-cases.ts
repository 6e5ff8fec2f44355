/** Cases on what user code keeps in the store: values that change with the settle of a page, and the limit of items. */
import assert from "node:assert/strict";
import type { ValueChange } from "../../core/frontier.ts";
import { caseOf, type FrontierCase, outputFor, type RestartCase, restartCaseOf, settledAs } from "./bench.ts";

const A = "http://a.test";
const set = (key: string, value: unknown): ValueChange => ({ op: "set", key, value: value === null ? null : JSON.stringify(value) });
const item = (n: number) => ({ type: "items", key: null, json: JSON.stringify({ n }) });

export const valueCases: readonly FrontierCase[] = [
  caseOf("values", "values are changed by the settle that brings them, in its order", {}, async (hand, { frontier }) => {
    await hand.seed(`${A}/1`, `${A}/2`);
    assert.deepEqual([...(await frontier.values())], []);
    await hand.done(await hand.one(), [], { values: [set("state:a", 1), set("state:b", { c: "é" }), set("state:a", 2)] });
    await hand.done(await hand.one(), [], { values: [set("state:b", null)] });
    assert.deepEqual([...(await frontier.values())], [["state:a", "2"]]);
  }),
  caseOf("values", "the larger and the smaller of two values is kept, numbers by size, strings by their order", {}, async (hand, { frontier }) => {
    await hand.seed(`${A}/1`);
    const changes: ValueChange[] = [
      ...["9", "10", "2"].map((value) => ({ op: "max" as const, key: "run:max", value })),
      ...['"2026-01-09"', '"2026-01-10"', '"2025-12-31"'].map((value) => ({ op: "max" as const, key: "run:date", value })),
      ...["9", "10", "2"].map((value) => ({ op: "min" as const, key: "run:min", value })),
    ];
    await hand.done(await hand.one(), [], { values: changes });
    assert.deepEqual(Object.fromEntries(await frontier.values()), { "run:max": "10", "run:date": '"2026-01-10"', "run:min": "2" });
  }),
  caseOf("values", "a stale settle changes no value", {}, async (hand, { frontier }) => {
    await hand.seed(`${A}/1`);
    const lease = await hand.one();
    await hand.done(lease, [], { values: [set("state:a", 1)] });
    await hand.done(lease, [], { values: [set("state:a", 2)] });
    assert.deepEqual([...(await frontier.values())], [["state:a", "1"]]);
  }),
  caseOf("values", "values can be set outside of a settle", {}, async (_hand, { frontier }) => {
    await frontier.setValues([set("mark:date", "2026-01-01"), set("mark:x", 1), set("mark:x", null)]);
    assert.deepEqual([...(await frontier.values())], [["mark:date", '"2026-01-01"']]);
  }),
  caseOf("items", "items past the limit are not written, and those that are are counted", { limitItems: 5 }, async (hand, { frontier, outputs }) => {
    await hand.seed(`${A}/1`, `${A}/2`, `${A}/3`);
    const leases = await hand.claim(3);
    await frontier.settle(
      leases.map((lease, i) =>
        settledAs(lease, { kind: "done", counted: true, output: outputFor(lease.request.url, { items: [item(3 * i), item(3 * i + 1), item(3 * i + 2)] }) }),
      ),
      [],
    );
    assert.deepEqual(
      outputs().map((output) => output.items?.map(({ json }) => json)),
      [[item(0), item(1), item(2)], [item(3), item(4)], []].map((items) => items.map(({ json }) => json)),
    );
    assert.equal((await frontier.counts()).tally.get("items"), 5);
  }),
  caseOf("items", "without a limit every item is written and counted once", {}, async (hand, { frontier, outputs }) => {
    await hand.seed(`${A}/1`);
    const lease = await hand.one();
    const page = settledAs(lease, { kind: "done", counted: true, output: outputFor(lease.request.url, { items: [item(1), item(2)] }) });
    await frontier.settle([page], []);
    await frontier.settle([page], []);
    assert.equal(outputs().flatMap((output) => output.items ?? []).length, 2);
    assert.equal((await frontier.counts()).tally.get("items"), 2);
  }),
];

export const valueRestartCases: readonly RestartCase[] = (["closed", "killed"] as const).flatMap((how) => [
  restartCaseOf("I8", `values are there after a restart, with the page that set them (${how})`, {}, async (hand, bench) => {
    await hand.seed(`${A}/1`);
    await hand.done(await hand.one(), [], { values: [set("state:a", [1, "ü"]), set("run:b", 2), set("state:gone", 1), set("state:gone", null)] });
    await bench.restart(how);
    assert.deepEqual(Object.fromEntries(await bench.frontier.values()), { "state:a": '[1,"ü"]', "run:b": "2" });
    await bench.frontier.setValues([set("mark:c", 3)]);
    await bench.restart(how);
    assert.equal((await bench.frontier.values()).get("mark:c"), "3");
  }),
  restartCaseOf("items", `the item limit holds over a restart (${how})`, { limitItems: 3 }, async (hand, bench) => {
    await hand.seed(`${A}/1`, `${A}/2`);
    for (let i = 0; i < 2; i++) {
      const lease = await hand.one();
      const output = outputFor(lease.request.url, { items: [item(2 * i), item(2 * i + 1)] });
      await bench.frontier.settle([settledAs(lease, { kind: "done", counted: true, output })], []);
      await bench.restart(how);
    }
    assert.equal((await bench.frontier.counts()).tally.get("items"), 3);
  }),
]);
