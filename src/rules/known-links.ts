/** What a worker remembers of links that the store knows already: four of five links of a crawl need not be sent. Forgetting is harmless, remembering too much is not. */
import type { Fingerprint } from "../core/request.ts";

export interface KnownLinks {
  /** Whether the store is known to have it at this depth or a smaller one. */
  has(id: Fingerprint, depth: number): boolean;
  /** The store has it now at this depth or a smaller one. */
  note(id: Fingerprint, depth: number): void;
  clear(): void;
}

const WORDS = 3;

/** One place for each fingerprint, taken over by whoever comes later: 2^17 places are 1.5 MB. */
export function createKnownLinks(bits = 17): KnownLinks {
  const mask = (1 << bits) - 1;
  const table = new Int32Array((mask + 1) * WORDS);
  const placeOf = ({ idHi, idLo }: Fingerprint): number => ((idLo ^ (idHi >>> 7)) & mask) * WORDS;
  return {
    has(id, depth) {
      const at = placeOf(id);
      // Depths are kept one larger, for an empty place is all zeros.
      const known = table[at + 2]!;
      return known > 0 && table[at] === id.idHi && table[at + 1] === id.idLo && depth >= known - 1;
    },
    note(id, depth) {
      const at = placeOf(id);
      if (table[at] === id.idHi && table[at + 1] === id.idLo && table[at + 2]! > 0 && table[at + 2]! - 1 <= depth) return;
      table[at] = id.idHi;
      table[at + 1] = id.idLo;
      table[at + 2] = depth + 1;
    },
    clear: () => void table.fill(0),
  };
}
