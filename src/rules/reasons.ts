/** Why a crawl ended, in words for people; programs read the token itself. */
import type { CrawlSpec } from "../core/spec.ts";
import { spellDuration, spellSize } from "../core/units.ts";

/** "--limit 100": the limit behind a reason, with its figure where there is one; null: the reason is no limit. */
export function limitWords(reason: string, limits: CrawlSpec["limits"] | null): string | null {
  const by = (flag: string, figure: string | number | null | undefined) => `${flag}${figure == null ? "" : ` ${figure}`}`;
  switch (reason) {
    case "limit-pages":
      return by("--limit", limits?.pages);
    case "limit-items":
      return by("--max-items", limits?.items);
    case "limit-time":
      return by("--time-limit", limits?.time == null ? null : spellDuration(limits.time));
    case "limit-bytes":
      return by("--max-bytes", limits?.bytes == null ? null : spellSize(limits.bytes));
    case "limit-errors":
      return by("--max-errors", limits?.errors);
    default:
      return null;
  }
}

/** "ended by --limit 100"; a reason of a newer version stands as it is. */
export function reasonWords(reason: string, limits: CrawlSpec["limits"] | null): string {
  const limit = limitWords(reason, limits);
  if (limit !== null) return `ended by ${limit}`;
  return reason === "stop-condition" ? "stopped" : reason;
}
