/** Lets each skipped URL and each found link of a run pass once. */
import type { Once, Output, SkippedRecord, SkipReason } from "../../core/records.ts";
import { createSeenTable, type SeenTable } from "../../rules/seen.ts";

export interface OnceFilter {
  /** What has passed. */
  readonly skipped: SeenTable;
  readonly found: SeenTable;
  /** The output with what has not passed before. Until `forget` its entries count as passed. */
  pass(output: Output): Output;
  /** Takes back what `pass` answered, because it could not be written. */
  forget(passed: readonly Output[]): void;
}

/** Reasons that speak of one link, not of its URL: another link to it may have been followed. */
const OF_THE_LINK: ReadonlySet<SkipReason> = new Set(["depth", "nofollow", "not-followed"]);

const isDuplicate = (value: unknown): boolean => typeof value === "object" && value !== null && "reason" in value && value.reason === "duplicate";

/** `isQueued`: the frontier knows the URL; a link to it that was not followed is then no skipped URL. */
export function createOnceFilter(isQueued: (hi: number, lo: number) => boolean): OnceFilter {
  const skipped = createSeenTable();
  const found = createSeenTable();

  const counts = (entry: Once<SkippedRecord>): boolean => !OF_THE_LINK.has(entry.value.reason) || !isQueued(entry.idHi, entry.idLo);

  function fresh<T>(entries: readonly Once<T>[], table: SeenTable): readonly Once<T>[] {
    let kept: Once<T>[] | null = null;
    for (let i = 0; i < entries.length; i++) {
      const entry = entries[i]!;
      // A repetition is listed each time, and must not hide what is said of its URL otherwise.
      const isNew = isDuplicate(entry.value) || table.putIfAbsent(entry.idHi, entry.idLo, 0) < 0;
      if (isNew) kept?.push(entry);
      else kept ??= entries.slice(0, i);
    }
    return kept ?? entries;
  }

  function pass(output: Output): Output {
    const skips = output.skipped.length === 0 ? output.skipped : fresh(output.skipped.every(counts) ? output.skipped : output.skipped.filter(counts), skipped);
    const finds = output.found.length === 0 ? output.found : fresh(output.found, found);
    const owed = output.owed?.map(pass);
    if (skips === output.skipped && finds === output.found && owed === undefined) return output;
    return { ...output, skipped: skips, found: finds, ...(owed === undefined ? {} : { owed }) };
  }

  function forget(passed: readonly Output[]): void {
    for (const output of passed) {
      for (const entry of output.skipped) if (!isDuplicate(entry.value)) skipped.remove(entry.idHi, entry.idLo);
      for (const entry of output.found) found.remove(entry.idHi, entry.idLo);
      if (output.owed !== undefined) forget(output.owed);
    }
  }

  return { skipped, found, pass, forget };
}
