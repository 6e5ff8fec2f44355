/** How many URLs the seeds of a job come to. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { seedUrls } from "./known.ts";

const SPEC = JSON.stringify({ defaultScheme: null });

test("a URL that is given in several spellings counts once where the row has all seeds", () => {
  const seeds = ["http://a.example", "HTTP://A.example:80/#x", " http://a.example/", "http://b.example/"];
  assert.equal(seedUrls({ seeds, seedsTotal: 4, spec: SPEC }), 2);
  assert.equal(seedUrls({ seeds, seedsTotal: 4, spec: SPEC }), 2, "again");
  assert.equal(seedUrls({ seeds: ["a.example", "http://a.example/"], seedsTotal: 2, spec: JSON.stringify({ defaultScheme: "http" }) }), 1);
});

test("of more seeds than the row has every line counts", () => {
  assert.equal(seedUrls({ seeds: ["http://a.example/", "http://a.example/"], seedsTotal: 5, spec: SPEC }), 5);
});
