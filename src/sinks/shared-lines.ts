/** Page records as JSON Lines, made once for all files that get the same batch. Writes nothing. */
import type { Output } from "../core/records.ts";
import { appendPage, lineBuffer } from "../rules/lines.ts";

export interface SharedBatch {
  /** Valid until the next call of `of`. */
  readonly bytes: Uint8Array;
  /** Where the line of each output ends, its line feed included; that of one without a page is empty. */
  readonly ends: readonly number[];
}

export interface SharedLines {
  /** Called by each sink that would use it. */
  join(): void;
  /** Two or more would: one alone is faster without. */
  readonly shared: boolean;
  of(outputs: readonly Output[]): SharedBatch;
}

export function sharedLines(): SharedLines {
  const lines = lineBuffer();
  let members = 0;
  let held: readonly Output[] = [];
  let batch: SharedBatch = { bytes: new Uint8Array(0), ends: [] };

  /** Compared by member: a caller may fill the same array anew. */
  const same = (outputs: readonly Output[]) => outputs.length === held.length && outputs.every((output, index) => output === held[index]);

  return {
    join() {
      members++;
    },
    get shared() {
      return members > 1;
    },
    of(outputs) {
      if (same(outputs)) return batch;
      const ends: number[] = [];
      for (const { page } of outputs) {
        if (page !== null) appendPage(lines, page, null);
        ends.push(lines.size);
      }
      held = outputs.slice();
      batch = { bytes: lines.take(), ends };
      return batch;
    },
  };
}
