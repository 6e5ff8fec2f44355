/** A table of 64-bit fingerprints, each with a 16-bit value, at 12.5 to 19 bytes an entry. What the values mean is the caller's affair. */

/**
 * Fingerprints must be uniformly spread (rules/url.ts `fingerprint` is). Values are 0 … 65535.
 * The pair 0, 0 marks a free slot; that one fingerprint is stored as 0, 1 (a chance of 2⁻⁶³ to meet both).
 */
export interface SeenTable {
  readonly size: number;
  /** Makes an empty table large enough at once for so many entries: filling it then moves nothing. */
  reserve(entries: number): void;
  /** Bytes of the slots held now. */
  readonly bytes: number;
  /** The value stored, or −1. */
  get(hi: number, lo: number): number;
  /** Stores the value unless the fingerprint is there already; answers the value found, or −1 when it was new. */
  putIfAbsent(hi: number, lo: number, value: number): number;
  /** Replaces the value of a fingerprint that is there; false when it is not. */
  replace(hi: number, lo: number, value: number): boolean;
  /** Removes a fingerprint; false when it was not there. */
  remove(hi: number, lo: number): boolean;
  /**
   * Every entry, segment by segment: another table filled in this order works in one small part of its memory at a time. Within a segment the slots are
   * taken in strides, since entries that come by ascending fingerprint would all crowd at the start of a table that still grows.
   */
  forEach(visit: (hi: number, lo: number, value: number) => void): void;
}

const SEGMENT_BITS = 8;
const FIRST_SLOTS = 16;
/** A segment grows by half when it is fuller than this: its load then lies between 0.53 and 0.8. */
const MAX_LOAD = 0.8;
const GROWTH = 1.5;
const TO_UNIT = 2 ** -32;

/** Open addressing with linear probing. `keys` holds hi, lo of slot i at 2i, 2i + 1. */
interface Segment {
  keys: Int32Array;
  values: Uint16Array;
  slots: number;
  used: number;
  limit: number;
}

function newSegment(slots: number): Segment {
  return { keys: new Int32Array(slots * 2), values: new Uint16Array(slots), slots, used: 0, limit: Math.floor(slots * MAX_LOAD) };
}

/** Slot of the fingerprint, or ~(free slot) where it would go. */
function probe(segment: Segment, hi: number, lo: number): number {
  const { keys, slots } = segment;
  let slot = Math.floor((lo >>> 0) * TO_UNIT * slots);
  for (;;) {
    const keyLo = keys[slot * 2 + 1]!;
    const keyHi = keys[slot * 2]!;
    if (keyLo === lo && keyHi === hi) return slot;
    if (keyLo === 0 && keyHi === 0) return ~slot;
    slot = slot + 1 === slots ? 0 : slot + 1;
  }
}

function place(segment: Segment, slot: number, hi: number, lo: number, value: number): void {
  segment.keys[slot * 2] = hi;
  segment.keys[slot * 2 + 1] = lo;
  segment.values[slot] = value;
  segment.used++;
}

function grown(old: Segment): Segment {
  const segment = newSegment(Math.ceil(old.slots * GROWTH));
  for (let slot = 0; slot < old.slots; slot++) {
    const hi = old.keys[slot * 2]!;
    const lo = old.keys[slot * 2 + 1]!;
    if (hi !== 0 || lo !== 0) place(segment, ~probe(segment, hi, lo), hi, lo, old.values[slot]!);
  }
  return segment;
}

/** Frees a slot and moves later entries of its run back, so that no probe meets a gap. */
function vacate(segment: Segment, slot: number): void {
  const { keys, values, slots } = segment;
  let gap = slot;
  let next = slot;
  for (;;) {
    next = next + 1 === slots ? 0 : next + 1;
    const hi = keys[next * 2]!;
    const lo = keys[next * 2 + 1]!;
    if (hi === 0 && lo === 0) break;
    const home = Math.floor((lo >>> 0) * TO_UNIT * slots);
    const reachable = gap <= next ? home <= gap || home > next : home <= gap && home > next;
    if (!reachable) continue;
    keys[gap * 2] = hi;
    keys[gap * 2 + 1] = lo;
    values[gap] = values[next]!;
    gap = next;
  }
  keys[gap * 2] = 0;
  keys[gap * 2 + 1] = 0;
  values[gap] = 0;
  segment.used--;
}

/** About 0.618 of the slots, and without a common divisor: adding it again and again meets every slot once, spread evenly at any moment. */
function strideOf(slots: number): number {
  const divisor = (a: number, b: number): number => (b === 0 ? a : divisor(b, a % b));
  let stride = Math.floor(slots * 0.618);
  while (divisor(slots, stride) !== 1) stride++;
  return stride;
}

/** Segments are chosen by the top bits of `hi` and grow one at a time, so that at no moment the table is held twice. */
export function createSeenTable(): SeenTable {
  const segments: (Segment | undefined)[] = new Array(1 << SEGMENT_BITS).fill(undefined);
  let size = 0;
  let firstSlots = FIRST_SLOTS;
  return {
    reserve(entries) {
      // A little more than the mean of a segment, since they are not filled evenly.
      firstSlots = Math.max(FIRST_SLOTS, Math.ceil(((entries / segments.length) * 1.05) / MAX_LOAD));
    },
    get size() {
      return size;
    },
    get bytes() {
      return segments.reduce((sum, segment) => sum + (segment === undefined ? 0 : segment.keys.byteLength + segment.values.byteLength), 0);
    },
    get(hi, lo) {
      const segment = segments[hi >>> (32 - SEGMENT_BITS)];
      if (segment === undefined) return -1;
      const slot = probe(segment, hi | 0, hi === 0 && lo === 0 ? 1 : lo | 0);
      return slot < 0 ? -1 : segment.values[slot]!;
    },
    putIfAbsent(hi, lo, value) {
      const at = hi >>> (32 - SEGMENT_BITS);
      const low = hi === 0 && lo === 0 ? 1 : lo | 0;
      let segment = segments[at] ?? (segments[at] = newSegment(firstSlots));
      let slot = probe(segment, hi | 0, low);
      if (slot >= 0) return segment.values[slot]!;
      if (segment.used >= segment.limit) {
        segment = segments[at] = grown(segment);
        slot = probe(segment, hi | 0, low);
      }
      place(segment, ~slot, hi | 0, low, value);
      size++;
      return -1;
    },
    replace(hi, lo, value) {
      const segment = segments[hi >>> (32 - SEGMENT_BITS)];
      if (segment === undefined) return false;
      const slot = probe(segment, hi | 0, hi === 0 && lo === 0 ? 1 : lo | 0);
      if (slot < 0) return false;
      segment.values[slot] = value;
      return true;
    },
    remove(hi, lo) {
      const segment = segments[hi >>> (32 - SEGMENT_BITS)];
      if (segment === undefined) return false;
      const slot = probe(segment, hi | 0, hi === 0 && lo === 0 ? 1 : lo | 0);
      if (slot < 0) return false;
      vacate(segment, slot);
      size--;
      return true;
    },
    forEach(visit) {
      for (const segment of segments) {
        if (segment === undefined) continue;
        const { keys, values, slots } = segment;
        const stride = strideOf(slots);
        for (let n = 0, slot = 0; n < slots; n++, slot = (slot + stride) % slots) {
          const hi = keys[slot * 2]!;
          const lo = keys[slot * 2 + 1]!;
          if (hi !== 0 || lo !== 0) visit(hi, lo, values[slot]!);
        }
      }
    },
  };
}
