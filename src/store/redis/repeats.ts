/**
 * What a drain has taken lately. A server that lost its last moments (a power cut, a failover) has steps done again, and with them come outputs that were
 * written already: they are known by their URLs and pass once. What the drain itself forgets when it dies is kept in the store (checkpoint.lua, `again`).
 */
import type { Output } from "../../core/records.ts";

export interface Repeats {
  /** The outputs of a batch without what was taken before; notes them under the batch's cursor. */
  pass(cursor: string, outputs: readonly Output[]): readonly Output[];
  /** Keys of everything noted behind the cursor, as far as it is remembered. */
  after(cursor: string): readonly string[];
  /** Keys that are known for good. */
  know(keys: readonly string[]): void;
  /** A server that has been there for so long has what was taken before on its disk: called again and again while it is. */
  age(nowMs: number): void;
  /** It was away: nothing is forgotten for what it may have lost. */
  hold(nowMs: number): void;
}

/** Redis writes its log to the disk each second, and may be two behind. */
const KEPT_MS = 10_000;
const MOST_KEYS = 50_000;

interface Generation {
  readonly keys: Set<string>;
  readonly batches: { readonly cursor: string; readonly keys: readonly string[] }[];
}

const newGeneration = (): Generation => ({ keys: new Set(), batches: [] });

/** Of two ids of a stream. */
export function isBefore(a: string, b: string): boolean {
  const [ms = 0, n = 0] = a.split("-").map(Number);
  const [thanMs = 0, thanN = 0] = b.split("-").map(Number);
  return ms < thanMs || (ms === thanMs && n < thanN);
}

export function createRepeats(): Repeats {
  const forGood = new Set<string>();
  let young = newGeneration();
  let old = newGeneration();
  let agedAt: number | null = null;

  const isKnown = (key: string): boolean => young.keys.has(key) || old.keys.has(key) || forGood.has(key);

  function passOne(output: Output, keys: string[]): Output | null {
    const first = (key: string): boolean => {
      if (isKnown(key)) return false;
      keys.push(key);
      return true;
    };
    const { page, skipped, found } = output;
    const rest = {
      skipped: skipped.filter(({ idHi, idLo, value }) =>
        first(value.reason === "duplicate" ? `d${value.url} ${value.referrer} ${value.depth}` : `s${idHi} ${idLo}`),
      ),
      found: found.filter(({ idHi, idLo }) => first(`f${idHi} ${idLo}`)),
    };
    if (page === null) return { ...output, ...rest };
    if (first(`p${page.url}`)) return rest.skipped.length === skipped.length && rest.found.length === found.length ? output : { ...output, ...rest };
    return rest.skipped.length + rest.found.length === 0 ? null : { page: null, listed: false, edges: [], ...rest };
  }

  return {
    pass(cursor, outputs) {
      const passed: Output[] = [];
      const batch: string[] = [];
      for (const output of outputs) {
        const keys: string[] = [];
        const one = passOne(output, keys);
        for (const key of keys) {
          young.keys.add(key);
          batch.push(key);
        }
        if (one !== null) passed.push(one);
      }
      young.batches.push({ cursor, keys: batch });
      return passed;
    },
    after: (cursor) => [...old.batches, ...young.batches].filter((batch) => isBefore(cursor, batch.cursor)).flatMap(({ keys }) => keys),
    know(keys) {
      for (const key of keys) forGood.add(key);
    },
    age(nowMs) {
      agedAt ??= nowMs;
      if (nowMs - agedAt < KEPT_MS && young.keys.size < MOST_KEYS) return;
      agedAt = nowMs;
      old = young;
      young = newGeneration();
    },
    hold(nowMs) {
      agedAt = nowMs;
    },
  };
}
