/**
 * Gzip, decoded piece by piece in the caller's own turn (RFC 1951, RFC 1952): for sitemaps, whose files are gzip whatever their headers say. Bodies of answers are decoded in fetch/.
 * The platform's decoder is either one-shot (the whole text in memory, nothing kept of a damaged file) or asynchronous (what precedes an error may be lost).
 */
import { crc32 } from "node:zlib";
import { buildCode, type Code, fixedCodes } from "./sitemap-codes.ts";

export interface Gunzip {
  /** False: no more is wanted (the taker has enough, or the data is damaged). */
  push(input: Uint8Array): boolean;
  /** Null, or what was wrong; all that could be decoded has been given by then. */
  end(): string | null;
}

/** Does gzip with deflate begin here? */
export function isGzip(bytes: Uint8Array): boolean {
  return bytes[0] === 0x1f && bytes[1] === 0x8b && bytes[2] === 0x08;
}

const WINDOW = 32_768;
const OUT_SIZE = 4 * WINDOW;
/** A header with a longer name or comment is taken for damage. */
const MAX_HEADER = 65_536;

const LENGTH_BASE = Uint16Array.of(3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 23, 27, 31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258);
const LENGTH_EXTRA = Uint8Array.of(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0);
const DISTANCE_BASE = Uint16Array.from({ length: 30 }, (_, i) => (i < 2 ? i + 1 : 1 + ((2 + (i & 1)) << ((i >> 1) - 1))));
const DISTANCE_EXTRA = Uint8Array.from({ length: 30 }, (_, i) => (i < 2 ? 0 : (i >> 1) - 1));
const LENGTHS_ORDER = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15] as const;

/** What a step came to: it is done, lacks input (nothing was consumed), or met damage. */
type Step = "done" | "starved" | "damaged";
type Stage = "header" | "block" | "stored" | "coded" | "trailer" | "after" | "failed" | "stopped";

/** `take` gets pieces that are valid only during the call; false ends it. */
export function createGunzip(take: (piece: Uint8Array) => boolean): Gunzip {
  let stage: Stage = "header";
  let fault: string | null = null;
  let input: Uint8Array = new Uint8Array(0);
  let pos = 0;
  let hold = 0; // bits read ahead, lowest first
  let held = 0;
  const out = new Uint8Array(OUT_SIZE);
  let filled = 0;
  let flushed = 0;
  let distanceLimit = 0; // bytes of this member that a match may reach back to
  let crc = 0;
  let size = 0;
  let lastBlock = false;
  let storedLeft = 0;
  let literals: Code | null = null;
  let distances: Code | null = null;

  function flush(): boolean {
    if (filled > flushed) {
      const piece = out.subarray(flushed, filled);
      crc = crc32(piece, crc);
      size = (size + piece.length) | 0;
      flushed = filled;
      if (!take(piece)) {
        stage = "stopped";
        return false;
      }
    }
    if (filled >= OUT_SIZE - 258) {
      out.copyWithin(0, filled - WINDOW, filled);
      filled = WINDOW;
      flushed = WINDOW;
    }
    return true;
  }

  /** The next `n` (≤ 16) bits, or −1 if there are not so many. */
  function bits(n: number): number {
    while (held < n) {
      if (pos >= input.length) return -1;
      hold |= input[pos++]! << held;
      held += 8;
    }
    const value = hold & ((1 << n) - 1);
    hold >>>= n;
    held -= n;
    return value;
  }

  function symbol(code: Code): number {
    while (held < 15 && pos < input.length) {
      hold |= input[pos++]! << held;
      held += 8;
    }
    const entry = code.table[hold & code.mask]!;
    const length = entry & 15;
    if (length > held) return -1;
    if (length === 0) return held < 15 ? -1 : -2;
    hold >>>= length;
    held -= length;
    return entry >> 4;
  }

  function readHeader(): Step {
    const start = pos;
    if (input.length - start < 10) return "starved";
    if (!isGzip(input.subarray(start)) || (input[start + 3]! & 0xe0) !== 0) return "damaged";
    const flags = input[start + 3]!;
    let at = start + 10;
    if (flags & 4) at += 2 + (at + 1 < input.length ? input[at]! | (input[at + 1]! << 8) : 0);
    for (const flag of [8, 16]) {
      if (!(flags & flag)) continue;
      const zero = at > input.length ? -1 : input.indexOf(0, at);
      at = zero < 0 ? input.length + 1 : zero + 1;
    }
    if (flags & 2) at += 2;
    if (at > input.length) return input.length - start > MAX_HEADER ? "damaged" : "starved";
    pos = at;
    hold = 0;
    held = 0;
    crc = 0;
    size = 0;
    distanceLimit = 0;
    return "done";
  }

  function readBlockHead(): Step {
    const last = bits(1);
    const type = bits(2);
    if (last < 0 || type < 0) return "starved";
    lastBlock = last === 1;
    if (type === 3) return "damaged";
    if (type === 0) {
      hold >>>= held & 7;
      held -= held & 7;
      const length = bits(16);
      const check = bits(16);
      if (length < 0 || check < 0) return "starved";
      if ((length ^ check) !== 0xffff) return "damaged";
      storedLeft = length;
      stage = "stored";
      return "done";
    }
    if (type === 2) {
      const step = readCodes();
      if (step !== "done") return step;
    } else [literals, distances] = fixedCodes();
    stage = "coded";
    return "done";
  }

  function readCodes(): Step {
    const literalCount = bits(5) + 257;
    const distanceCount = bits(5) + 1;
    const lengthCount = bits(4) + 4;
    if (literalCount < 257 || distanceCount < 1 || lengthCount < 4) return "starved";
    const codeLengths = new Uint8Array(19);
    for (let i = 0; i < lengthCount; i++) {
      const length = bits(3);
      if (length < 0) return "starved";
      codeLengths[LENGTHS_ORDER[i]!] = length;
    }
    const lengthCode = buildCode(codeLengths);
    if (lengthCode === null || literalCount > 286) return "damaged";
    const lengths = new Uint8Array(literalCount + distanceCount);
    for (let at = 0; at < lengths.length; ) {
      const value = symbol(lengthCode);
      if (value < 0) return value === -1 ? "starved" : "damaged";
      if (value < 16) {
        lengths[at++] = value;
        continue;
      }
      const extra = bits(value === 16 ? 2 : value === 17 ? 3 : 7);
      if (extra < 0) return "starved";
      const times = extra + (value === 18 ? 11 : 3);
      if (at + times > lengths.length || (value === 16 && at === 0)) return "damaged";
      lengths.fill(value === 16 ? lengths[at - 1]! : 0, at, at + times);
      at += times;
    }
    literals = buildCode(lengths.subarray(0, literalCount));
    distances = buildCode(lengths.subarray(literalCount));
    return literals === null || distances === null || lengths[256] === 0 ? "damaged" : "done";
  }

  function copyStored(): Step {
    while (storedLeft > 0 && held >= 8) {
      out[filled++] = bits(8);
      storedLeft--;
    }
    while (storedLeft > 0) {
      const n = Math.min(storedLeft, input.length - pos, OUT_SIZE - filled);
      if (n === 0) return "starved";
      out.set(input.subarray(pos, pos + n), filled);
      pos += n;
      filled += n;
      storedLeft -= n;
      distanceLimit = Math.min(WINDOW, distanceLimit + n);
      if (filled >= OUT_SIZE - 258 && !flush()) return "starved";
    }
    stage = lastBlock ? "trailer" : "block";
    return "done";
  }

  /** The hot loop, all state in locals (three times as fast): one symbol a turn, and a turn that lacks input leaves no trace. */
  function decode(literalCode: Code, distanceCode: Code): Step {
    const { table, mask } = literalCode;
    const { table: distanceTable, mask: distanceMask } = distanceCode;
    const bytes = input;
    const end = bytes.length;
    let at = pos;
    let word = hold;
    let count = held;
    let to = filled;
    let limit = distanceLimit;
    let step: Step = "starved";
    for (;;) {
      if (to >= OUT_SIZE - 258) {
        filled = to;
        if (!flush()) break;
        to = filled;
      }
      while (count < 20 && at < end) {
        word |= bytes[at++]! << count;
        count += 8;
      }
      const entry = table[word & mask]!;
      let used = entry & 15;
      if (used > count) break;
      if (used === 0) {
        if (count >= 15) step = "damaged";
        break;
      }
      const value = entry >> 4;
      if (value < 256) {
        word >>>= used;
        count -= used;
        out[to++] = value;
        if (limit < WINDOW) limit++;
        continue;
      }
      if (value === 256) {
        word >>>= used;
        count -= used;
        stage = lastBlock ? "trailer" : "block";
        step = "done";
        break;
      }
      if (value > 285) {
        step = "damaged";
        break;
      }
      const lengthExtra = LENGTH_EXTRA[value - 257]!;
      if (used + lengthExtra > count) break;
      const length = LENGTH_BASE[value - 257]! + ((word >>> used) & ((1 << lengthExtra) - 1));
      used += lengthExtra;
      // Up to 28 more bits are needed. What is read ahead here is kept apart until the turn is certain.
      let ahead = at;
      let rest = word >>> used;
      let left = count - used;
      while (left < 15 && ahead < end) {
        rest |= bytes[ahead++]! << left;
        left += 8;
      }
      const distanceEntry = distanceTable[rest & distanceMask]!;
      const distanceUsed = distanceEntry & 15;
      if (distanceUsed > left) break;
      if (distanceUsed === 0 || distanceEntry >> 4 > 29) {
        if (distanceUsed !== 0 || left >= 15) step = "damaged";
        break;
      }
      rest >>>= distanceUsed;
      left -= distanceUsed;
      const distanceExtra = DISTANCE_EXTRA[distanceEntry >> 4]!;
      while (left < distanceExtra && ahead < end) {
        rest |= bytes[ahead++]! << left;
        left += 8;
      }
      if (distanceExtra > left) break;
      const distance = DISTANCE_BASE[distanceEntry >> 4]! + (rest & ((1 << distanceExtra) - 1));
      if (distance > limit) {
        step = "damaged";
        break;
      }
      at = ahead;
      word = rest >>> distanceExtra;
      count = left - distanceExtra;
      for (let from = to - distance, stop = to + length; to < stop; ) out[to++] = out[from++]!;
      limit = Math.min(WINDOW, limit + length);
    }
    pos = at;
    hold = word;
    held = count;
    filled = to;
    distanceLimit = limit;
    return step;
  }

  function readTrailer(): Step {
    hold >>>= held & 7;
    held -= held & 7;
    const parts = [bits(16), bits(16), bits(16), bits(16)] as const;
    if (parts.includes(-1)) return "starved";
    if (!flush()) return "starved";
    const rightSum = (parts[0] | (parts[1] << 16)) >>> 0 === crc >>> 0;
    if (!rightSum || (parts[2] | (parts[3] << 16)) !== size) fault ??= "the gzip checksum does not fit";
    stage = "after";
    return "done";
  }

  function nextStep(): Step {
    switch (stage) {
      case "header": {
        const step = readHeader();
        if (step === "done") stage = "block";
        return step;
      }
      case "block":
        return readBlockHead();
      case "stored":
        return copyStored();
      case "coded":
        // Set by the block head that led here.
        return decode(literals!, distances!);
      case "trailer":
        return readTrailer();
      case "after":
        // Members follow one another; what is no member is padding.
        if (input.length - pos < 3) return "starved";
        stage = isGzip(input.subarray(pos)) ? "header" : "stopped";
        return "done";
      case "failed":
      case "stopped":
        return "starved";
    }
  }

  const isOver = () => stage === "stopped" || stage === "failed";

  return {
    push(chunk) {
      if (isOver()) return false;
      input = pos >= input.length ? chunk : Buffer.concat([input.subarray(pos), chunk]);
      pos = 0;
      for (;;) {
        const state = [pos, hold, held] as const;
        const before = stage;
        const step = nextStep();
        // Heads and trailers are read whole or not at all.
        if (step === "starved" && (before === "block" || before === "trailer")) [pos, hold, held] = state;
        if (step === "damaged") {
          flush();
          fault = "the gzip data is damaged";
          stage = "failed";
        }
        if (step !== "done") break;
      }
      if (isOver()) return false;
      // What is left is short, and the caller may use its bytes again.
      input = Uint8Array.prototype.slice.call(input, pos);
      pos = 0;
      return flush();
    },
    end() {
      if (isOver() || stage === "after") return fault;
      return fault ?? "the gzip data is cut off";
    },
  };
}
