/**
 * EUC-KR as the Encoding Standard has it: with the syllables that Windows added (code page 949), without which Korean pages lose everyday words.
 * The platform's decoder knows the older standard KS X 1001 only; what it lacks follows a rule, so that no table is shipped.
 */

const LEADS = 0xfe - 0x81 + 1;
const TRAILS = 0xfe - 0x41 + 1;
const NONE = 0xfffd;

const FIRST_SYLLABLE = 0xac00;
const LAST_SYLLABLE = 0xd7a3;

let table: Uint16Array | null = null;

/** Code units by pointer ((lead − 0x81) · 190 + trail − 0x41, Encoding Standard §14.1.1), U+FFFD where there is none. Built when first asked for. */
export function eucKrIndex(): Uint16Array {
  return (table ??= build());
}

export function eucKrPointer(lead: number, trail: number): number {
  return (lead - 0x81) * TRAILS + trail - 0x41;
}

function build(): Uint16Array {
  const index = new Uint16Array(LEADS * TRAILS).fill(NONE);
  const known = new Set<number>();
  const decoder = new TextDecoder("euc-kr");
  const pair = new Uint8Array(2);
  for (let lead = 0xa1; lead <= 0xfe; lead++) {
    for (let trail = 0xa1; trail <= 0xfe; trail++) {
      pair[0] = lead;
      pair[1] = trail;
      const text = decoder.decode(pair);
      const unit = text.charCodeAt(0);
      // Not the two rows for characters of one's own, which the platform fills with private ones.
      if (text.length !== 1 || (unit >= 0xe000 && unit <= 0xf8ff)) continue;
      index[eucKrPointer(lead, trail)] = unit;
      known.add(unit);
    }
  }
  index[eucKrPointer(0xa2, 0xe6)] = 0x20ac; // added to KS X 1001 in 1998
  index[eucKrPointer(0xa2, 0xe7)] = 0xae;
  addSyllables(index, known);
  return index;
}

/** The syllables that KS X 1001 leaves out, in the order of Unicode, fill the pairs that it does not use: trail bytes are letters, or the high ones below its own. */
function addSyllables(index: Uint16Array, known: ReadonlySet<number>): void {
  let lead = 0x81;
  let trail = 0x41;
  for (let syllable = FIRST_SYLLABLE; syllable <= LAST_SYLLABLE; syllable++) {
    if (known.has(syllable)) continue;
    index[eucKrPointer(lead, trail)] = syllable;
    trail++;
    if (trail === 0x5b) trail = 0x61;
    else if (trail === 0x7b) trail = 0x81;
    else if (trail > (lead < 0xa1 ? 0xfe : 0xa0)) {
      trail = 0x41;
      lead++;
    }
  }
}

/** EUC-KR decoder (Encoding Standard §14.1.1). A byte that is ASCII never gets lost in a broken pair. */
export function decodeEucKr(bytes: Uint8Array): string {
  const index = eucKrIndex();
  const units = new Uint16Array(bytes.length);
  const n = bytes.length;
  let length = 0;
  for (let i = 0; i < n; i++) {
    const lead = bytes[i]!; // i < n
    if (lead < 0x80) {
      units[length++] = lead;
      continue;
    }
    const trail = lead >= 0x81 && lead <= 0xfe && i + 1 < n ? bytes[i + 1]! : 0;
    const unit = trail >= 0x41 && trail <= 0xfe ? index[eucKrPointer(lead, trail)]! : NONE; // the pointer lies within the index
    units[length++] = unit;
    // A broken pair takes its second byte along unless that is ASCII.
    if (unit !== NONE || trail >= 0x80) i++;
  }
  return Buffer.from(units.buffer, 0, length * 2).toString("utf16le");
}
