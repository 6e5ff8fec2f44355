/** Where the frames of a zstd body lie (RFC 8878 §3.1). Node's decoder stops behind the first one and calls the rest done; it decodes them here one by one. */

const FRAME = 0xfd2fb528;
const SKIPPABLE = 0x184d2a50;
const CONTENT_SIZE_BYTES = [0, 2, 4, 8];
const DICTIONARY_BYTES = [0, 1, 2, 4];

const isFrame = (magic: number): boolean => magic === FRAME;
const isSkippable = (magic: number): boolean => (magic & 0xfffffff0) >>> 0 === SKIPPABLE;

/** Begins as only zstd does. */
export function hasZstdMagic(wire: Uint8Array): boolean {
  const magic = magicAt(wire, 0);
  return isFrame(magic) || isSkippable(magic);
}

/** 0, which is no mark, where fewer than four bytes are left. */
function magicAt(wire: Uint8Array, at: number): number {
  return at + 4 <= wire.byteLength ? new DataView(wire.buffer, wire.byteOffset + at, 4).getUint32(0, true) : 0;
}

/**
 * The frames that hold data, in order, as views. The last one may be cut; what begins no frame behind the last one is left out, as browsers ignore it.
 * Empty for bytes that begin no frame at all.
 */
export function zstdFrames(wire: Uint8Array): readonly Uint8Array[] {
  const frames: Uint8Array[] = [];
  let at = 0;
  for (;;) {
    const magic = magicAt(wire, at);
    if (isSkippable(magic)) {
      if (at + 8 > wire.byteLength) return frames;
      at += 8 + magicAt(wire, at + 4);
    } else if (isFrame(magic)) {
      const end = frameEnd(wire, at);
      frames.push(wire.subarray(at, end));
      at = end;
    } else return frames;
  }
}

/** Offset behind the frame at `start`, which the end of the input may cut (§3.1.1). Blocks are passed over, not read. */
function frameEnd(wire: Uint8Array, start: number): number {
  const n = wire.byteLength;
  const flags = wire[start + 4] ?? 0;
  const single = (flags >> 5) & 1;
  const sizeFlag = flags >> 6;
  let at = start + 5 + (1 - single) + DICTIONARY_BYTES[flags & 3]! + (sizeFlag === 0 ? single : CONTENT_SIZE_BYTES[sizeFlag]!); // two bits each
  for (let last = false; !last; ) {
    if (at + 3 > n) return n;
    const block = wire[at]! | (wire[at + 1]! << 8) | (wire[at + 2]! << 16); // at + 2 < n
    last = (block & 1) === 1;
    const isRun = ((block >> 1) & 3) === 1;
    at += 3 + (isRun ? 1 : block >> 3);
  }
  return Math.min(n, at + ((flags >> 2) & 1) * 4);
}
