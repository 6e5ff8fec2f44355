/** The body of a request, unpacked where it comes as gzip (RFC 9110 §8.4.1.3): a stream whose size is bounded before and after. Knows no media types. */
import type { IncomingMessage } from "node:http";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createGunzip } from "node:zlib";
import { type Bytes, bodyOf, bounded } from "./bytes.ts";
import { HttpProblem } from "./problem.ts";

const GZIP: ReadonlySet<string> = new Set(["gzip", "x-gzip"]);

/** Pulled piece by piece: what nobody reads is not unpacked, so that a body that would grow without end costs no more than the limit. */
async function* unpacked(packed: Bytes): AsyncGenerator<Uint8Array> {
  const gunzip = createGunzip();
  let failure: unknown = null;
  async function* watched(): AsyncGenerator<Uint8Array> {
    try {
      yield* packed;
    } catch (error) {
      failure = error;
      throw error;
    }
  }
  // Not waited for: its end may wait for a client that sends nothing. What it throws, reading throws too.
  pipeline(Readable.from(watched(), { objectMode: false }), gunzip).catch(() => undefined);
  try {
    for await (const piece of gunzip) yield piece;
  } catch {
    // The body's own fault: too large as it comes, or cut off on its way.
    throw failure ?? new HttpProblem({ status: 400, detail: "the body is no gzip, or ends before its end", close: true });
  }
}

/** Throws HttpProblem 413 past the limit, 415 for a coding other than gzip, 400 for what is none, as it is read. */
export function plainBody(incoming: IncomingMessage, limit: number): Bytes {
  const coding = incoming.headers["content-encoding"]?.trim().toLowerCase() ?? "";
  if (coding === "" || coding === "identity") return bodyOf(incoming, limit);
  if (GZIP.has(coding)) return bounded(unpacked(bodyOf(incoming, limit)), limit, "the body, unpacked,");
  throw new HttpProblem({
    status: 415,
    detail: "expected a body without Content-Encoding, or with gzip",
    headers: { "accept-encoding": "gzip, identity" },
    close: true,
  });
}
