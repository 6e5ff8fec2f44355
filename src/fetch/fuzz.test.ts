/** Chance as the server: nothing it sends is taken for a whole page when it is not, throws, hangs, or harms the next page. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync, zstdCompressSync } from "node:zlib";
import fc from "fast-check";
import { type Coding, type Decoded, decodeBody } from "./body.ts";
import { page, startRawServer } from "./raw-server.ts";
import { bodyOf, exchangeFor, openFetcher } from "./trial.ts";

const COMPRESS: readonly (readonly [Coding, (bytes: Uint8Array) => Uint8Array])[] = [
  ["gzip", gzipSync],
  ["deflate", deflateSync],
  ["deflate", deflateRawSync],
  ["br", brotliCompressSync],
  ["zstd", zstdCompressSync],
];

test("a compressed body cut anywhere is never a whole one, and a whole one comes back as it was", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.uint8Array({ minLength: 1, maxLength: 3_000 }),
      fc.array(fc.constantFrom(...COMPRESS), { minLength: 1, maxLength: 3 }),
      fc.double({ min: 0, max: 1, noNaN: true }),
      async (bytes, layers, where) => {
        const wire = layers.reduce<Uint8Array>((inner, [, compress]) => compress(inner), bytes);
        const codings = layers.map(([coding]) => coding);
        const whole = await decodeBody(wire, codings, 1_000_000);
        assert.deepEqual([Buffer.from(whole.body), whole.truncated, whole.problem], [Buffer.from(bytes), false, null]);
        const length = 1 + Math.floor(where * (wire.byteLength - 1));
        if (length === wire.byteLength) return;
        assert.notEqual((await decodeBody(wire.subarray(0, length), codings, 1_000_000)).problem, null);
      },
    ),
    { numRuns: 300 },
  );
});

test("no more than the limit is ever given out, and never anything but a prefix of what was meant", async () => {
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(...COMPRESS), fc.nat(400_000), fc.integer({ min: 1, max: 300_000 }), async ([coding, compress], size, limit) => {
      const bytes = Buffer.alloc(size, "skein ");
      const { body, truncated, problem }: Decoded = await decodeBody(compress(bytes), [coding], limit);
      assert.deepEqual([body.byteLength, truncated, problem], [Math.min(size, limit), size > limit, null]);
      assert.ok(bytes.subarray(0, limit).equals(body));
    }),
    { numRuns: 60 },
  );
});

test("random bytes under any coding are an answer, never an exception", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.uint8Array({ maxLength: 600 }),
      fc.array(fc.constantFrom<Coding>("gzip", "deflate", "br", "zstd"), { minLength: 1, maxLength: 5 }),
      async (bytes, codings) => {
        const { body } = await decodeBody(bytes, codings, 10_000);
        assert.ok(body.byteLength <= 10_000);
      },
    ),
    { numRuns: 300 },
  );
});

/** A server that gives `answer.bytes` and closes, or a healthy page at /ok. */
async function withServer(run: (ask: (bytes: Uint8Array) => Promise<ReturnType<typeof exchange>>) => Promise<void>): Promise<void> {
  let bytes: Uint8Array = new Uint8Array(0);
  await using server = await startRawServer((request, socket) => (request.target === "/ok" ? page("well") : void socket.end(bytes)));
  await using fetcher = openFetcher({ timeoutMs: 10_000, perHostConcurrency: 2 });
  await run(async (given) => {
    bytes = given;
    const outcome = await fetcher.fetch(exchangeFor(`${server.origin}/x`));
    assert.equal(bodyOf(await fetcher.fetch(exchangeFor(`${server.origin}/ok`))), "well");
    return exchange(outcome);
  });
}
const exchange = (outcome: Awaited<ReturnType<ReturnType<typeof openFetcher>["fetch"]>>) => outcome;

test("a framed answer cut anywhere is never a page", async () => {
  const framings: readonly ((bytes: Buffer, cuts: readonly number[]) => Buffer)[] = [
    (bytes) => Buffer.concat([Buffer.from(`HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: ${bytes.byteLength}\r\n\r\n`), bytes]),
    (bytes, cuts) => {
      const points = [0, ...cuts.map((cut) => cut % bytes.byteLength).sort((a, b) => a - b), bytes.byteLength];
      const chunks = points.slice(1).map((end, i) => bytes.subarray(points[i], end));
      const framed = chunks
        .filter((chunk) => chunk.byteLength > 0)
        .flatMap((chunk) => [Buffer.from(`${chunk.byteLength.toString(16)}\r\n`), chunk, Buffer.from("\r\n")]);
      return Buffer.concat([Buffer.from("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"), ...framed, Buffer.from("0\r\n\r\n")]);
    },
  ];
  await withServer(async (ask) => {
    await fc.assert(
      fc.asyncProperty(
        fc.string({ minLength: 1, maxLength: 400 }),
        fc.array(fc.nat(), { maxLength: 5 }),
        fc.constantFrom(...framings),
        fc.double({ min: 0, max: 1, noNaN: true }),
        async (text, cuts, frame, where) => {
          const wire = frame(Buffer.from(text), cuts);
          assert.equal(bodyOf(await ask(wire)), text);
          const length = Math.floor(where * (wire.byteLength - 1));
          assert.equal((await ask(wire.subarray(0, length))).kind, "failed");
        },
      ),
      { numRuns: 80 },
    );
  });
});

test("whatever bytes a server sends, there is one outcome, and the next page is well", async () => {
  const piece = fc.oneof(
    fc.constantFrom(
      "HTTP/1.1 200 OK\r\n",
      "HTTP/1.0 301 M\r\n",
      "HTTP/1.1 503 S\r\n",
      "HTTP/1.1 100 C\r\n\r\n",
      "HTTP/1.1 \r\n",
      "\r\n",
      "\n",
      "\r",
      "\0",
      ":",
      " ",
    ),
    fc.constantFrom(
      "Content-Length: 10\r\n",
      "Content-Length: x\r\n",
      "Transfer-Encoding: chunked\r\n",
      "Content-Encoding: gzip\r\n",
      "Connection: close\r\n",
      "Location: /y\r\n",
      "Set-Cookie: =;=\r\n",
      "Retry-After: -1\r\n",
    ),
    fc.constantFrom("5\r\nhello\r\n", "0\r\n\r\n", "ffffffffffffffffff\r\n", "hello"),
    fc.string({ maxLength: 12, unit: "binary" }),
  );
  await withServer(async (ask) => {
    await fc.assert(
      fc.asyncProperty(fc.array(piece, { maxLength: 14 }), async (pieces) => {
        const outcome = await ask(Buffer.from(pieces.join(""), "latin1"));
        assert.match(outcome.kind, /^(fetched|redirect|failed)$/);
      }),
      { numRuns: 300 },
    );
  });
});
