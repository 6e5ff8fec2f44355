/** A set of 64-bit hashes with a ceiling, at 5 bytes each, that is wrong once in a hundred million questions. For traps.ts: what it counts must be counted once, and a leak of one in a hundred would keep a trap alive. */

export interface HashFilter {
  has(hi: number, lo: number): boolean;
  /** False when the ceiling is reached and the hash was not put in. Only hashes that are not in it. */
  add(hi: number, lo: number): boolean;
  save(): SavedFilter;
  load(saved: SavedFilter): void;
}

export interface SavedFilter {
  /** Hashes in the last part. */
  readonly used: number;
  /** 32-bit words of this machine's order. */
  readonly parts: readonly Uint8Array[];
}

// `hi` says where a hash lies and is not kept, so that parts cannot grow: a further, larger one is added instead.
const FIRST_SLOTS = 1024;
const GROWTH = 4;
const MAX_LOAD = 0.8;
const TO_UNIT = 2 ** -32;

/** Slot of `key` in an open-addressed part, or ~(free slot). */
function probe(part: Uint32Array, hi: number, key: number): number {
  let slot = Math.floor((hi >>> 0) * TO_UNIT * part.length);
  for (;;) {
    const found = part[slot]!;
    if (found === key) return slot;
    if (found === 0) return ~slot;
    slot = slot + 1 === part.length ? 0 : slot + 1;
  }
}

/** `maxBytes` bounds the memory. */
export function createHashFilter(maxBytes: number): HashFilter {
  let parts: Uint32Array[] = [new Uint32Array(FIRST_SLOTS)];
  let used = 0;
  let bytes = FIRST_SLOTS * 4;

  return {
    has(hi, lo) {
      const key = lo >>> 0 || 1; // 0 is a free slot
      for (let i = parts.length - 1; i >= 0; i--) if (probe(parts[i]!, hi, key) >= 0) return true;
      return false;
    },
    add(hi, lo) {
      let last = parts.at(-1)!;
      if (used >= last.length * MAX_LOAD) {
        const slots = Math.min(last.length * GROWTH, Math.floor((maxBytes - bytes) / 4));
        if (slots < FIRST_SLOTS) return false;
        last = new Uint32Array(slots);
        parts.push(last);
        bytes += slots * 4;
        used = 0;
      }
      const key = lo >>> 0 || 1;
      const slot = probe(last, hi, key);
      if (slot < 0) {
        last[~slot] = key;
        used++;
      }
      return true;
    },
    save: () => ({ used, parts: parts.map((part) => new Uint8Array(part.slice().buffer)) }),
    load(saved) {
      parts = saved.parts.map((part) => new Uint32Array(Uint8Array.from(part).buffer));
      used = saved.used;
      bytes = parts.reduce((sum, part) => sum + part.byteLength, 0);
    },
  };
}
