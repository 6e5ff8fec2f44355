import assert from "node:assert/strict";
import { test } from "node:test";
import { shownSeed } from "./seeds.ts";

test("F044 a bad seed is shown without user and password, whatever else is wrong with it", () => {
  for (const [seed, shown] of [
    ["http://user:p@ss@[bad/x", "http://[bad/x"],
    ["  https:/user:secret@:99999/", "  https:/:99999/"],
    ["HTTP:\\\\user:secret@[bad", "HTTP:\\\\[bad"],
    ["ftp://user:secret@host/a@b", "ftp://host/a@b"],
    ["user:secret@[bad", "[bad"],
    ["//user:secret@[bad", "//[bad"],
    ["http://[bad/a@b", "http://[bad/a@b"],
    ["nonsense", "nonsense"],
  ] as const)
    assert.equal(shownSeed(seed), shown);
  assert.equal(shownSeed("x".repeat(1_000)).length, 200);
  assert.equal(shownSeed(`http://u:${"s".repeat(5_000)}@[bad`), "http://[bad");
});
