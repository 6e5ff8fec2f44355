/** Undoes the gzip around a sitemap, beside the loop and in flat memory: for files that are gzip whatever their headers say. Bodies of answers are decoded in fetch/. */
import { createGunzip } from "node:zlib";

/** Bytes that can be read from their start as often as one likes. */
type Source = () => Iterable<Uint8Array> | AsyncIterable<Uint8Array>;

/** Why the bytes given are not all there are; null where that is not the case. */
export interface Cut {
  error: string | null;
  limit: "bytes" | "layers" | null;
}

export interface LayerLimits {
  /** Bytes read of any layer after decompression. */
  readonly maxBytes: number;
  readonly maxLayers: number;
}

/** Compressed bytes per step, of which zlib makes a thousand times as many at most. */
const SLICE = 4 * 1024;
/** Decoded bytes per step. */
const PIECE = 64 * 1024;
/** Bytes of a file that is not compressed, per step. */
const PLAIN_PIECE = 256 * 1024;

/** Does gzip with deflate begin here? (RFC 1952 §2.3) */
function isGzip(bytes: Uint8Array): boolean {
  return bytes[0] === 0x1f && bytes[1] === 0x8b && bytes[2] === 0x08;
}

function* slices(bytes: Uint8Array, size: number): Generator<Uint8Array, void> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

/** The first three bytes, or fewer if there are no more. */
async function headOf(source: Source): Promise<Uint8Array> {
  let head = Buffer.alloc(0);
  for await (const piece of source()) {
    head = Buffer.concat([head, piece.subarray(0, 3)]);
    if (head.length >= 3) break;
  }
  return head;
}

/** zlib, one write at a time. */
function createDecoder() {
  const stream = createGunzip({ chunkSize: PIECE });
  let pieces: Buffer[] = [];
  let ended = false;
  let fault: (Error & { code?: string }) | null = null;
  let wake = () => {};
  stream.on("data", (piece: Buffer) => pieces.push(piece));
  stream.on("end", () => {
    ended = true;
    wake();
  });
  stream.on("error", (error) => {
    fault = error;
    wake();
  });

  return {
    /** What came of these bytes. When they are damaged, zlib keeps a part of it to itself. */
    async write(bytes: Uint8Array): Promise<readonly Buffer[]> {
      await new Promise<void>((resolve) => {
        wake = resolve;
        // What a write leads to is told some ticks after it.
        stream.write(bytes, () => setImmediate(resolve));
      });
      const made = pieces;
      pieces = [];
      return made;
    },
    /** Null: more input is welcome. `whole`: the last member has ended, and what follows is none. */
    state(): "whole" | Error | null {
      // The first member's mark was seen, so a wrong mark is one behind the end of a member (RFC 1952 §2.3.1).
      if (fault !== null) return fault.message === "incorrect header check" ? "whole" : fault;
      return ended ? "whole" : null;
    },
    close: () => stream.destroy(),
  };
}

/** How far the decoding of one layer has come. */
interface Run {
  /** Decoded bytes handed over. */
  given: number;
  /** Bytes of input before the write that ended it; null: no write did. */
  endedAt: number | null;
  fault: string | null;
}

/** Decodes a source; a second time without what was given already, and byte by byte from where the first one ended. */
async function* decode(source: Source, run: Run): AsyncGenerator<Uint8Array, void> {
  const decoder = createDecoder();
  const skip = run.given;
  const fineFrom = run.endedAt ?? Number.POSITIVE_INFINITY;
  let made = 0;
  let at = 0;
  try {
    for await (const bytes of source()) {
      for (let from = 0; from < bytes.length; ) {
        const size = at >= fineFrom ? 1 : Math.min(SLICE, fineFrom - at);
        const slice = bytes.subarray(from, from + size);
        for (const piece of await decoder.write(slice)) {
          const known = Math.min(piece.length, Math.max(0, skip - made));
          made += piece.length;
          if (known === piece.length) continue;
          run.given = made;
          yield piece.subarray(known);
        }
        const state = decoder.state();
        if (state !== null) {
          run.endedAt = at;
          run.fault = state === "whole" ? null : `the gzip data is damaged: ${state.message}`;
          return;
        }
        from += slice.length;
        at += slice.length;
      }
    }
    // zlib takes a zero for padding if a member has just ended, and for a wrong mark behind one stray byte. All else lacks its end.
    await decoder.write(Buffer.alloc(1));
    run.endedAt = null;
    run.fault = decoder.state() === "whole" ? null : "the gzip data is cut off";
  } finally {
    decoder.close();
  }
}

/** A source with one layer of gzip less. */
function gunzipped(source: Source, maxBytes: number, cut: Cut): Source {
  return async function* () {
    const run: Run = { given: 0, endedAt: null, fault: null };
    for (const again of [false, true]) {
      // What zlib kept to itself at damage, or at garbage behind the last member, is had by a second run.
      if (again && run.endedAt === null) break;
      for await (const piece of decode(source, run)) {
        yield piece;
        // The piece that goes beyond is given too: whoever counts the bytes meets the limit as well.
        if (run.given <= maxBytes) continue;
        cut.limit = "bytes";
        return;
      }
    }
    if (cut.limit === null) cut.error ??= run.fault;
  };
}

/** The bytes without gzip around them, in pieces for one turn each. Never throws; what is missing is in `cut` at the end. */
export async function* unpacked(bytes: Uint8Array, limits: LayerLimits, cut: Cut): AsyncGenerator<Uint8Array, void> {
  let source: Source = () => slices(bytes, PLAIN_PIECE);
  for (let depth = 0; isGzip(await headOf(source)); depth++) {
    if (depth >= limits.maxLayers) {
      cut.limit = "layers";
      cut.error = `compressed more than ${limits.maxLayers} times`;
      return;
    }
    source = gunzipped(source, limits.maxBytes, cut);
  }
  yield* source();
}
