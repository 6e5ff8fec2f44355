/** Which limit a crawl has reached, by what it has spent. Pure; that of pages is the store's own, which hands out no more requests than it leaves. */
import type { FinishReason } from "../core/events.ts";
import type { CrawlSpec } from "../core/spec.ts";

/** What the limits look at: bytes on the wire, pages that failed, items written. */
export interface Spent {
  readonly bytes: number;
  readonly failed: number;
  readonly items: number;
}

/** As the named counters of a store tell it. */
export const spentOf = (tally: ReadonlyMap<string, number>): Spent => ({
  bytes: tally.get("bytes") ?? 0,
  failed: tally.get("outcome:failed") ?? 0,
  items: tally.get("items") ?? 0,
});

/** `elapsedMs`: of work, over all resumes. */
export function limitReached({ bytes, errors, items, time }: CrawlSpec["limits"], spent: Spent, elapsedMs: number): FinishReason | null {
  if (items !== null && spent.items >= items) return "limit-items";
  if (bytes !== null && spent.bytes >= bytes) return "limit-bytes";
  if (errors !== null && spent.failed > errors) return "limit-errors";
  if (time !== null && elapsedMs >= time) return "limit-time";
  return null;
}
