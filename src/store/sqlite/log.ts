/** Packed fingerprints, as rows of the table `log`: 10 bytes for one that was seen (with its value), 8 for one that passed the once filter. */
import type { SeenTable } from "../../rules/seen.ts";

export const SEEN = 0;
export const SKIPPED = 1;
export const FOUND = 2;
export type LogKind = typeof SEEN | typeof SKIPPED | typeof FOUND;

export const bytesOf = (kind: LogKind): number => (kind === SEEN ? 10 : 8);

/** Rows written when a whole table is set down hold about this many bytes. */
const CHUNK = 1 << 18;

export interface Packer {
  readonly size: number;
  add(hi: number, lo: number, value: number): void;
  /** What was added since the last time; valid until the next `add`. */
  take(): Uint8Array;
  clear(): void;
}

export function createPacker(kind: LogKind): Packer {
  const stride = bytesOf(kind);
  let buffer = Buffer.allocUnsafeSlow(stride * 256);
  let used = 0;
  return {
    get size() {
      return used;
    },
    add(hi, lo, value) {
      if (used + stride > buffer.length) {
        const wider = Buffer.allocUnsafeSlow(buffer.length * 2);
        buffer.copy(wider, 0, 0, used);
        buffer = wider;
      }
      buffer.writeInt32LE(hi | 0, used);
      buffer.writeInt32LE(lo | 0, used + 4);
      if (kind === SEEN) buffer.writeUInt16LE(value, used + 8);
      used += stride;
    },
    take() {
      const taken = buffer.subarray(0, used);
      used = 0;
      return taken;
    },
    clear() {
      used = 0;
    },
  };
}

/** Throws when the blob is no whole number of entries. */
export function unpack(kind: LogKind, blob: Uint8Array, visit: (hi: number, lo: number, value: number) => void): void {
  const stride = bytesOf(kind);
  if (blob.length % stride !== 0) throw new Error(`a log of kind ${kind} has ${blob.length} bytes`);
  const view = new DataView(blob.buffer, blob.byteOffset, blob.byteLength);
  for (let at = 0; at < blob.length; at += stride)
    visit(view.getInt32(at, true), view.getInt32(at + 4, true), kind === SEEN ? view.getUint16(at + 8, true) : 0);
}

/** The whole table in chunks, in its own order: read back, neighbours lie near each other. */
export function setDown(kind: LogKind, table: SeenTable, stored: (value: number) => number, write: (chunk: Uint8Array) => void): void {
  const packer = createPacker(kind);
  table.forEach((hi, lo, value) => {
    packer.add(hi, lo, stored(value));
    if (packer.size >= CHUNK) write(packer.take());
  });
  if (packer.size > 0) write(packer.take());
}
