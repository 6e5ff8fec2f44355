/** Cases on what user code keeps in the store: values that change with the settle of a page, and the limit of items. */
import assert from "node:assert/strict";
import type { Settlement, ValueChange } from "../../core/frontier.ts";
import type { ItemRecord, Output } from "../../core/records.ts";
import { caseOf, type FrontierCase, outputFor, type RestartCase, restartCaseOf, settledAs } from "./bench.ts";

const A = "http://a.test";
const set = (key: string, value: unknown): ValueChange => ({ op: "set", key, value: value === null ? null : JSON.stringify(value) });
const item = (n: number) => ({ type: "items", key: null, json: JSON.stringify({ n }) });
const items = (from: number, to: number) => Array.from({ length: to - from }, (_, i) => item(from + i));
const pageWith = (url: string, given: readonly ItemRecord[]): Settlement => ({ kind: "done", counted: true, output: outputFor(url, { items: given }) });
/** URLs of records, and the items beside them. */
const told = (outputs: readonly Output[]) => outputs.map(({ page, items: given = [] }) => [page?.url ?? null, given.map(({ json }) => JSON.parse(json).n)]);

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
  caseOf("items", "items past the limit are not written, and the pages that gave them come back", { limitItems: 5 }, async (hand, { frontier, outputs }) => {
    await hand.seed(`${A}/1`, `${A}/2`, `${A}/3`, `${A}/4`);
    const leases = await hand.claim(4);
    const pages = leases.map((lease, i) => settledAs(lease, pageWith(lease.request.url, i < 3 ? items(3 * i, 3 * i + 3) : []), { tally: [["pages", 1]] }));
    assert.deepEqual(await frontier.settle(pages, []), ["applied", "applied", "stale", "applied"]);
    assert.deepEqual(told(outputs()), [
      [`${A}/1`, [0, 1, 2]],
      [`${A}/2`, [3, 4]],
      [`${A}/4`, []],
    ]);
    const { counted, done, queued, leased, tally } = await frontier.counts();
    assert.deepEqual([counted, done, queued, leased, tally.get("items"), tally.get("pages")], [3, 2, 2, 0, 5, 3]);
    assert.deepEqual(await frontier.claim(9), { kind: "held", why: "stopping" });
    const left: string[] = [];
    for await (const { url } of frontier.remaining()) left.push(url);
    assert.deepEqual(left, [`${A}/3`], "the page with a record is not listed as one that was left");
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
  restartCaseOf("items", `under a larger item limit a page is read for the rest of its items only (${how})`, { limitItems: 3 }, async (hand, bench) => {
    const settle = async (url: string, from: number, to: number) => {
      const lease = await hand.one();
      assert.equal(lease.request.url, url);
      const values = [set("state:pages", url)];
      await bench.frontier.settle([settledAs(lease, pageWith(url, items(from, to)), { values, tally: [["pages", 1]] })], []);
    };
    await hand.seed(`${A}/1`, `${A}/2`);
    await settle(`${A}/1`, 0, 2);
    await bench.restart(how);
    await settle(`${A}/2`, 2, 8);
    for (const limit of [5, null]) {
      await bench.restart(how);
      await bench.frontier.setItemLimit(limit);
      await bench.frontier.setValues([set("state:pages", null)]);
      await settle(`${A}/2`, 2, 8);
      assert.equal((await bench.frontier.values()).get("state:pages"), undefined, "what the page told is told once");
    }
    assert.deepEqual(told(bench.outputs()), [
      [`${A}/1`, [0, 1]],
      [`${A}/2`, [2]],
      [null, [3, 4]],
      [null, [5, 6, 7]],
    ]);
    const { counted, done, queued, tally } = await bench.frontier.counts();
    assert.deepEqual([counted, done, queued, tally.get("items"), tally.get("pages")], [2, 2, 0, 8, 2]);
    assert.deepEqual([...(await bench.frontier.values()).keys()], [], "nothing is remembered of what is whole");
  }),
]);
