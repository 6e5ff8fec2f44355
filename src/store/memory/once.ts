/** Lets each skipped URL and each found link of a run pass once. */
import type { Once, Output } from "../../core/records.ts";
import { createSeenTable, type SeenTable } from "../../rules/seen.ts";

export interface OnceFilter {
  /** The output with what has not passed before. Until `forget` its entries count as passed. */
  pass(output: Output): Output;
  /** Takes back what `pass` answered, because it could not be written. */
  forget(passed: readonly Output[]): void;
}

export function createOnceFilter(): OnceFilter {
  const skipped = createSeenTable();
  const found = createSeenTable();

  function fresh<T>(entries: readonly Once<T>[], table: SeenTable): readonly Once<T>[] {
    let kept: Once<T>[] | null = null;
    for (let i = 0; i < entries.length; i++) {
      const entry = entries[i]!;
      const isNew = table.putIfAbsent(entry.idHi, entry.idLo, 0) < 0;
      if (isNew) kept?.push(entry);
      else kept ??= entries.slice(0, i);
    }
    return kept ?? entries;
  }

  function pass(output: Output): Output {
    const skips = output.skipped.length === 0 ? output.skipped : fresh(output.skipped, skipped);
    const finds = output.found.length === 0 ? output.found : fresh(output.found, found);
    const owed = output.owed?.map(pass);
    if (skips === output.skipped && finds === output.found && owed === undefined) return output;
    return { ...output, skipped: skips, found: finds, ...(owed === undefined ? {} : { owed }) };
  }

  function forget(passed: readonly Output[]): void {
    for (const output of passed) {
      for (const entry of output.skipped) skipped.remove(entry.idHi, entry.idLo);
      for (const entry of output.found) found.remove(entry.idHi, entry.idLo);
      if (output.owed !== undefined) forget(output.owed);
    }
  }

  return { pass, forget };
}
