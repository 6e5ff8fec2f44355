import assert from "node:assert/strict";
import { test } from "node:test";
import { constants, gzipSync } from "node:zlib";
import fc from "fast-check";
import { createGunzip } from "./sitemap-gunzip.ts";

function gunzip(bytes: Uint8Array, step: number): { text: Buffer; fault: string | null } {
  const pieces: Buffer[] = [];
  const decoder = createGunzip((piece) => pieces.push(Buffer.from(piece)) > 0);
  for (let at = 0; at < bytes.length; at += step) {
    const piece = Uint8Array.from(bytes.subarray(at, at + step));
    if (!decoder.push(piece)) break;
    piece.fill(0xff);
  }
  const fault = decoder.end();
  return { text: Buffer.concat(pieces), fault };
}

/** Data with matches near and far: parts of it are repeated. */
const data = fc.array(fc.oneof(fc.uint8Array({ maxLength: 300 }), fc.tuple(fc.nat(), fc.integer({ min: 1, max: 700 }))), { maxLength: 60 }).map((parts) => {
  let out: Buffer = Buffer.alloc(0);
  for (const part of parts) {
    if (part instanceof Uint8Array) out = Buffer.concat([out, part]);
    else {
      const from = part[0] % (out.length + 1);
      out = Buffer.concat([out, out.subarray(from, from + part[1]), Buffer.alloc(part[1] % 40, 0x61)]);
    }
  }
  return out;
});
const strategies = [constants.Z_DEFAULT_STRATEGY, constants.Z_FILTERED, constants.Z_HUFFMAN_ONLY, constants.Z_RLE, constants.Z_FIXED];

test("property: what the platform compresses is decoded, at every level, strategy and cut", () => {
  fc.assert(
    fc.property(data, fc.integer({ min: 0, max: 9 }), fc.constantFrom(...strategies), fc.integer({ min: 1, max: 400 }), (bytes, level, strategy, step) => {
      const { text, fault } = gunzip(gzipSync(bytes, { level, strategy }), step);
      assert.equal(fault, null);
      assert.ok(text.equals(bytes));
    }),
    { numRuns: 400 },
  );
});

test("large files with distances up to the whole window", () => {
  let seed = 1;
  const bytes = Buffer.alloc(700_000);
  for (let i = 0; i < bytes.length; i++) {
    seed = (Math.imul(seed, 1103515245) + 12345) >>> 0;
    bytes[i] = i > 40_000 && seed % 7 < 6 ? bytes[i - 32_768 + (i % 5)]! : seed >>> 24;
  }
  for (const level of [0, 1, 6, 9]) assert.ok(gunzip(gzipSync(bytes, { level }), 10_000).text.equals(bytes));
});

test("header fields are passed over, members follow one another, padding ends it", () => {
  const plain = gzipSync("a");
  const flagged = Buffer.concat([
    Buffer.of(0x1f, 0x8b, 8, 2 + 4 + 8 + 16, 0, 0, 0, 0, 0, 3, 3, 0, 1, 2, 3),
    Buffer.from("name\0comment\0"),
    Buffer.of(1, 2),
    plain.subarray(10),
  ]);
  for (const step of [1, 5, 1000])
    assert.deepEqual(gunzip(Buffer.concat([flagged, plain, flagged, Buffer.alloc(20)]), step), { text: Buffer.from("aaa"), fault: null });
});

test("property: damage is said, what came before it is kept, and nothing throws or hangs", () => {
  fc.assert(
    fc.property(data, fc.nat(), fc.integer({ min: 1, max: 255 }), fc.integer({ min: 1, max: 50 }), (bytes, where, flip, step) => {
      const zipped = gzipSync(bytes);
      const cut = zipped.subarray(0, where % zipped.length);
      const short = gunzip(cut, step);
      assert.notEqual(short.fault, null);
      assert.ok(bytes.subarray(0, short.text.length).equals(short.text));
      const at = 10 + (where % (zipped.length - 10));
      const spoilt = Buffer.from(zipped);
      spoilt[at]! ^= flip;
      const whole = gunzip(spoilt, step);
      assert.deepEqual(gunzip(spoilt, 1_000_000), whole);
      // A change that leaves no trace in text, checksum and length is none.
      if (whole.fault === null) assert.ok(whole.text.equals(bytes));
    }),
    { numRuns: 400 },
  );
});

test("the taker may stop it", () => {
  let pieces = 0;
  const decoder = createGunzip(() => pieces++ < 1);
  const zipped = gzipSync(Buffer.alloc(1_000_000));
  assert.equal(decoder.push(zipped), false);
  assert.equal(decoder.push(zipped), false);
  assert.deepEqual([pieces, decoder.end()], [2, null]);
});
