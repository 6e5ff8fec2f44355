/** Sitemaps within gzip: members, padding, garbage, damage, bombs. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { constants, createGzip, gzipSync } from "node:zlib";
import fc from "fast-check";
import { type Cut, unpacked } from "./sitemap-layers.ts";
import { readPacked } from "./sitemap-trial.ts";

const LIMITS = { maxBytes: 512 * 1024 * 1024, maxLayers: 3 };

async function unpack(bytes: Uint8Array, limits = LIMITS): Promise<{ text: Buffer; cut: Cut }> {
  const pieces: Uint8Array[] = [];
  const cut: Cut = { error: null, limit: null };
  for await (const piece of unpacked(bytes, limits, cut)) pieces.push(piece);
  return { text: Buffer.concat(pieces), cut };
}

const WHOLE: Cut = { error: null, limit: null };
const urlset = (count: number) => `<urlset>${Array.from({ length: count }, (_, i) => `<url><loc>http://h/${i * 7919}</loc></url>`).join("\n")}</urlset>`;

/** Noise with repetitions near and far. */
function noise(length: number): Buffer {
  let seed = 1;
  const bytes = Buffer.alloc(length);
  for (let i = 0; i < length; i++) {
    seed = (Math.imul(seed, 1103515245) + 12345) >>> 0;
    bytes[i] = i > 40_000 && seed % 7 < 6 ? bytes[i - 32_768 + (i % 5)]! : seed >>> 24;
  }
  return bytes;
}

/** Data with matches: parts of it are repeated. */
const data = fc.array(fc.oneof(fc.uint8Array({ maxLength: 300 }), fc.tuple(fc.nat(), fc.integer({ min: 1, max: 700 }))), { maxLength: 30 }).map((parts) => {
  let out: Buffer = Buffer.of(0x61);
  for (const part of parts) {
    if (part instanceof Uint8Array) out = Buffer.concat([out, part]);
    else {
      const from = part[0] % (out.length + 1);
      out = Buffer.concat([out, out.subarray(from, from + part[1]), Buffer.alloc(part[1] % 40, 0x61)]);
    }
  }
  return out;
});

test("members follow one another; padding and garbage behind them are no fault and cost nothing", async () => {
  const bytes = noise(100_000);
  const one = gzipSync(bytes.subarray(0, 60_000));
  const two = gzipSync(bytes.subarray(60_000));
  for (const tail of ["", "\n", "\x1f", "\r\n", "\0", "\0".repeat(600), "<!-- served from the cache -->", "\0\0x", "x".repeat(9000), "a \x1f\x8b\x08"]) {
    assert.deepEqual(await unpack(Buffer.concat([one, two, Buffer.from(tail, "latin1")])), { text: bytes, cut: WHOLE }, JSON.stringify(tail));
  }
  // The end of a member falls on every place within a step.
  for (let comment = 4040; comment < 4100; comment++) {
    const head = Buffer.concat([Buffer.of(0x1f, 0x8b, 8, 16, 0, 0, 0, 0, 0, 3), Buffer.alloc(comment, 0x63), Buffer.of(0)]);
    const member = Buffer.concat([head, gzipSync("first").subarray(10)]);
    assert.deepEqual(await unpack(Buffer.concat([member, gzipSync("second"), Buffer.from("tail")])), { text: Buffer.from("firstsecond"), cut: WHOLE });
  }
});

test("a layer within a layer is undone, garbage behind either; a layer too many is not", async () => {
  const bytes = noise(200_000);
  const inner = Buffer.concat([gzipSync(bytes), Buffer.from("inner tail")]);
  assert.deepEqual(await unpack(Buffer.concat([gzipSync(inner), Buffer.from("outer tail")])), { text: bytes, cut: WHOLE });
  assert.deepEqual((await unpack(gzipSync(inner), { ...LIMITS, maxLayers: 1 })).cut, { error: "compressed more than 1 times", limit: "layers" });
  assert.deepEqual(await unpack(gzipSync("")), { text: Buffer.alloc(0), cut: WHOLE });
});

test("a file that was cut off gives what it has, at every length", async () => {
  const bytes = Buffer.from(urlset(200));
  const zipped = gzipSync(bytes);
  for (let n = 3; n < zipped.length; n++) {
    const { text, cut } = await unpack(zipped.subarray(0, n));
    assert.equal(cut.error, "the gzip data is cut off", `${n}`);
    assert.ok(bytes.subarray(0, text.length).equals(text));
    if (n >= zipped.length - 8) assert.equal(text.length, bytes.length);
  }
  const large = gzipSync(urlset(5000));
  const half = await readPacked(large.subarray(0, large.length / 2));
  assert.equal(half.result.error, "the gzip data is cut off");
  assert.ok(half.locs.length > 1000 && half.locs.length < 5000);
  for (const [i, loc] of half.locs.entries()) assert.equal(loc, `http://h/${i * 7919}`);
});

test("what comes before damage is kept, and the damage is said", async () => {
  const zipped = gzipSync(urlset(5000), { level: 0 });
  // A stored block's length, in the middle of the file.
  const second = 10 + 5 + zipped.readUInt16LE(11);
  zipped[second + 3]! ^= 0xff;
  const found = await readPacked(zipped);
  assert.equal(found.result.bytes, second - 15);
  assert.match(found.result.error ?? "", /^the gzip data is damaged: /);
  assert.ok(found.locs.length > 100);
  const sum = gzipSync(urlset(50));
  sum[sum.length - 7]! ^= 1;
  const whole = await readPacked(sum);
  assert.deepEqual([whole.locs.length, whole.result.error], [50, "the gzip data is damaged: incorrect data check"]);
  assert.match((await readPacked(Buffer.concat([gzipSync(urlset(3)), Buffer.of(0x1f, 0x8b, 9, 0)]))).result.error ?? "", /damaged/);
});

test("property: what the platform compresses is decoded, at every level and strategy", async () => {
  const strategies = [constants.Z_DEFAULT_STRATEGY, constants.Z_FILTERED, constants.Z_HUFFMAN_ONLY, constants.Z_RLE, constants.Z_FIXED];
  await fc.assert(
    fc.asyncProperty(data, fc.integer({ min: 0, max: 9 }), fc.constantFrom(...strategies), async (bytes, level, strategy) => {
      assert.deepEqual(await unpack(gzipSync(bytes, { level, strategy })), { text: bytes, cut: WHOLE });
    }),
    { numRuns: 100 },
  );
});

test("property: whatever is changed, what is given without a fault is the text, and nothing throws or hangs", async () => {
  await fc.assert(
    fc.asyncProperty(data, fc.nat(), fc.integer({ min: 1, max: 255 }), async (bytes, where, flip) => {
      const zipped = gzipSync(bytes);
      const at = 10 + (where % (zipped.length - 10));
      zipped[at]! ^= flip;
      const { text, cut } = await unpack(zipped);
      if (cut.error === null) assert.ok(text.equals(bytes));
    }),
    { numRuns: 100 },
  );
});

/** A gigabyte of one byte, compressed in the same steps as a server would. */
async function gigabyteOf(byte: number, before: string): Promise<Buffer> {
  const gzip = createGzip({ level: 1 });
  const pieces: Buffer[] = [];
  gzip.on("data", (piece: Buffer) => pieces.push(piece));
  gzip.write(before);
  const block = Buffer.alloc(16 * 1024 * 1024, byte);
  for (let i = 0; i < 64; i++) await new Promise((resolve) => gzip.write(block, resolve));
  await new Promise((resolve) => gzip.end(resolve));
  return Buffer.concat(pieces);
}

test("a bomb ends at the limit, with flat memory and the loop in between", async () => {
  const bomb = await gigabyteOf(0x20, "<urlset>");
  const before = process.memoryUsage().rss;
  let peak = before;
  const timer = setInterval(() => {
    peak = Math.max(peak, process.memoryUsage().rss);
  }, 20);
  const maxBytes = 100_000_000;
  for (const body of [bomb, gzipSync(bomb)]) {
    const { result } = await readPacked(body, { maxBytes });
    assert.deepEqual([result.limit, result.bytes, result.urls], ["bytes", maxBytes, 0]);
  }
  clearInterval(timer);
  assert.ok(peak - before < 150_000_000, `${peak - before} bytes more`);
});

test("the limit of bytes holds for the layers within, too", async () => {
  const empty = gzipSync("");
  const members = Buffer.concat(Array.from({ length: 60_000 }, () => empty));
  const { result } = await readPacked(gzipSync(members), { maxBytes: 1_000_000 });
  assert.deepEqual([result.kind, result.limit, result.error], ["empty", "bytes", null]);
  const zeros = await readPacked(gzipSync(gzipSync(gzipSync(Buffer.alloc(10_000_000, 0x20)))), { maxBytes: 1_000_000 });
  assert.deepEqual([zeros.result.limit, zeros.locs], ["bytes", []]);
  const cut = await readPacked(gzipSync(urlset(200)), { maxBytes: 1000 });
  assert.deepEqual([cut.result.limit, cut.result.bytes, cut.result.error], ["bytes", 1000, null]);
  assert.ok(cut.locs.length > 20);
});

test("the reader may stop early", async () => {
  const cut: Cut = { error: null, limit: null };
  let pieces = 0;
  for await (const piece of unpacked(gzipSync(gzipSync(Buffer.alloc(5_000_000))), LIMITS, cut)) {
    assert.ok(piece.length > 0);
    if (++pieces === 2) break;
  }
  assert.deepEqual([pieces, cut], [2, WHOLE]);
});
