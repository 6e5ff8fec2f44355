import assert from "node:assert/strict";
import test from "node:test";
import { makeRequest } from "../rules/admit.ts";
import { csvRow } from "../rules/csv.ts";
import { pageRecord } from "./record.ts";

const PARTS = {
  ...{ status: 200, attempts: 1, facts: { startedAt: 0, durationMs: 1 } },
  ...{ response: null, extraction: null, error: null, location: null, digest: false },
} as const;

test("every record says which redirects led to it, those that none led to as well", () => {
  const seed = [1, 2, 3, 4] as const;
  const hops = [{ url: "http://a.test/old", status: 301 }];
  const plain = makeRequest("http://a.test/", seed, { hop: "seed", depth: 0, referrer: null });
  const reached = makeRequest("http://a.test/new", seed, { hop: "redirect", depth: 0, referrer: null, rest: { redirects: hops } });
  for (const outcome of ["fetched", "redirected", "disallowed", "failed", "gone"] as const) {
    assert.deepEqual(pageRecord({ ...PARTS, request: plain, outcome }).redirects, []);
    assert.deepEqual(pageRecord({ ...PARTS, request: reached, outcome }).redirects, hops);
  }
  assert.equal(csvRow(pageRecord({ ...PARTS, request: plain, outcome: "fetched" }), ["url", "redirects"]), "http://a.test/,[]\r\n");
});
