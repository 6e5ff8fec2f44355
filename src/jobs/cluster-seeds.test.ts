/** What workers are told of a job's seeds. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { parseSpec } from "../core/spec.ts";
import { workerSeeds } from "./cluster-seeds.ts";

const many = (count: number): string[] => Array.from({ length: count }, (_, n) => `https://h${n % 3}.example/${n}`);

test("few seeds are told as they are, credentials and all", async () => {
  const seeds = ["https://a.example/", "https://u:p@b.example/x"];
  assert.deepEqual(await workerSeeds(parseSpec({}), 2, () => seeds), seeds);
});

test("of many, none is told where nothing is meant for the seeds' hosts alone", async () => {
  const told = await workerSeeds(parseSpec({ headers: { "X-Any": "1" } }), 5_000, () => many(5_000));
  assert.deepEqual(told, ["-i seeds"]);
});

test("of many, one a host is told where a header holds a secret, and those that hold one themselves in any case", async () => {
  const secret = parseSpec({ headers: { authorization: "Bearer x" } });
  assert.deepEqual(await workerSeeds(secret, 5_000, () => many(5_000)), ["https://h0.example/0", "https://h1.example/1", "https://h2.example/2"]);
  const own = "https://u:p@b.example/x";
  assert.deepEqual(await workerSeeds(parseSpec({}), 5_001, () => [...many(5_000), own]), [own]);
});
