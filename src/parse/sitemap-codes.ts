/** Prefix codes of deflate (RFC 1951 §3.2) as tables, for sitemap-gunzip.ts. */

/** Prefix code: indexed by the next bits, lowest first; symbol << 4 | length, or 0 where no code begins so. */
export interface Code {
  readonly table: Uint16Array;
  readonly mask: number;
}

/** Null when the lengths ask for more codes than there are. */
export function buildCode(lengths: Uint8Array): Code | null {
  let longest = 1;
  const next = new Uint16Array(17);
  for (const length of lengths) {
    if (length > longest) longest = length;
    if (length > 0) next[length + 1]!++;
  }
  let left = 1;
  for (let length = 1; length <= 15; length++) {
    left = left * 2 - next[length + 1]!;
    if (left < 0) return null;
    next[length + 1] = (next[length]! + next[length + 1]!) << 1;
  }
  const size = 1 << longest;
  const table = new Uint16Array(size);
  for (let symbol = 0; symbol < lengths.length; symbol++) {
    const length = lengths[symbol]!;
    if (length === 0) continue;
    let code = next[length]!++;
    let reversed = 0;
    for (let bit = 0; bit < length; bit++, code >>= 1) reversed = (reversed << 1) | (code & 1);
    for (let at = reversed; at < size; at += 1 << length) table[at] = (symbol << 4) | length;
  }
  return { table, mask: size - 1 };
}

let fixed: readonly [Code, Code] | null = null;

export function fixedCodes(): readonly [Code, Code] {
  if (fixed !== null) return fixed;
  const literals = Uint8Array.from({ length: 288 }, (_, i) => (i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8));
  // Both sets of lengths are complete codes.
  fixed = [buildCode(literals)!, buildCode(new Uint8Array(30).fill(5))!];
  return fixed;
}
