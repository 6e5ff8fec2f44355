/** What is said to have changed between two visits of a page. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { ItemRecord, PageRecord } from "../core/records.ts";
import { itemChanges, pageChange } from "./changes.ts";

const page = (more: Partial<PageRecord> = {}): PageRecord => ({
  ...{ url: "u", status: 200, outcome: "fetched", depth: 0, referrer: null, redirects: [], contentType: "text/html", bytes: 1, bytesDecoded: 1 },
  ...{ digest: "sha256:1", links: ["l"], attempts: 1, fetchedAt: "", durationMs: 0, ...more },
});
const item = (key: string | null, fields: object, type = "t"): ItemRecord => ({ type, key, json: JSON.stringify(fields) });
const said = (before: ItemRecord[], after: ItemRecord[]) =>
  itemChanges("u", before, after).map(({ change, key, fields }) => [key ?? "-", change, ...(fields ?? [])].join(" "));

test("a page is changed by what it says, not by how it was fetched", () => {
  assert.deepEqual(pageChange(null, page()), { kind: "page", url: "u", change: "added" });
  assert.deepEqual(pageChange(page(), null), { kind: "page", url: "u", change: "gone" });
  assert.equal(pageChange(page(), page({ depth: 3, attempts: 2, durationMs: 9, etag: "x", fetchedAt: "later", bytes: 7 })).change, "unchanged");
  assert.deepEqual(pageChange(page(), page({ digest: "sha256:2", title: "t", links: [] })).fields, ["digest", "title", "links"]);
  assert.equal(pageChange(page(), page({ images: ["i"] })).change, "unchanged", "images were not looked for before");
  assert.deepEqual(pageChange(page({ images: ["j"] }), page({ images: ["i"] })).fields, ["images"]);
});

test("a body that was not downloaded is told apart by its validators", () => {
  const { digest: _, ...bare } = page({ bodySkipped: true, etag: "a" });
  assert.equal(pageChange(bare, { ...bare }).change, "unchanged");
  assert.deepEqual(pageChange(bare, { ...bare, etag: "b" }).fields, ["etag"]);
});

test("items are told apart by key, whatever their order", () => {
  const before = [item("1", { a: 1, b: 2 }), item("2", { a: 2 }), item("3", { a: 3 })];
  assert.deepEqual(said(before, [item("3", { a: 3 }), item("1", { a: 1, b: 3, c: 4 }), item("4", {})]), ["3 unchanged", "1 changed b c", "4 added", "2 gone"]);
  assert.deepEqual(said([item("1", { a: 1, b: 2 })], [item("1", { b: 2, a: 1 })]), ["1 unchanged"]);
  assert.deepEqual(said([item("1", { a: 1 }, "x")], [item("1", { a: 1 }, "y")]), ["1 added", "1 gone"]);
});

test("items without a key: equal ones are unchanged, each once; the only one left on both sides is changed", () => {
  assert.deepEqual(said([item(null, { a: 1 }), item(null, { a: 1 })], [item(null, { a: 1 })]), ["- unchanged", "- gone"]);
  assert.deepEqual(said([item(null, { a: 1, b: 1 })], [item(null, { a: 2, b: 1 })]), ["- changed a"]);
  assert.deepEqual(said([item(null, { a: 1 }), item(null, { a: 2 })], [item(null, { a: 2 }), item(null, { a: 3 })]), ["- unchanged", "- changed a"]);
  assert.deepEqual(said([item(null, { a: 1 }), item(null, { a: 2 })], [item(null, { a: 3 }), item(null, { a: 4 })]), [
    ...["- added", "- added", "- gone", "- gone"],
  ]);
});
