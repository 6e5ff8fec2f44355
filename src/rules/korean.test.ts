/** korean.ts by the Encoding Standard's index and decoder. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { decodeEucKr, eucKrIndex } from "./korean.ts";
import { percentEncodeIn } from "./url-query.ts";

const decode = (...bytes: number[]) => decodeEucKr(Uint8Array.from(bytes));

test("syllables of code page 949, of KS X 1001, and its later signs", () => {
  assert.equal(decode(0x81, 0x41, 0x8c, 0x63, 0x94, 0xee, 0xa0, 0xfe, 0xc6, 0x52), "갂똠뷁좤힣");
  assert.equal(decode(0xb0, 0xa1, 0xc8, 0xfe, 0xa2, 0xe6, 0xa2, 0xe7, 0xa1, 0xad), "가힝€®∼");
});

test("every syllable has one place, and the index as many as the standard's", () => {
  const units = [...eucKrIndex()].filter((unit) => unit !== 0xfffd);
  assert.equal(units.length, 17_048);
  assert.equal(new Set(units.filter((unit) => unit >= 0xac00 && unit <= 0xd7a3)).size, 11_172);
});

test("broken pairs: ASCII behind a lead byte stays, other bytes go with it", () => {
  assert.equal(decode(0x41, 0x80, 0x42, 0xff, 0x43), "A\ufffdB\ufffdC");
  assert.equal(decode(0xb0, 0x3c, 0x61, 0x3e), "\ufffd<a>");
  assert.equal(decode(0xc6, 0x53, 0xc9, 0xa1, 0xc9, 0x20), "\ufffdS\ufffd\ufffd ");
  assert.equal(decode(0xb0), "\ufffd");
  assert.equal(decode(), "");
});

test("queries of Korean pages are written in the same pairs", () => {
  assert.equal(percentEncodeIn("euc-kr", "똠a가€"), "%8Cca%B0%A1%A2%E6");
});
