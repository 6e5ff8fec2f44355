/** Why a crawl ended, in words for people; programs read the token itself. */
import type { CrawlSpec } from "../core/spec.ts";
import { spellDuration, spellSize } from "../core/units.ts";

/** "ended by --limit 100": the limit with its figure where the run has one; a reason of a newer version stands as it is. */
export function reasonWords(reason: string, limits: CrawlSpec["limits"] | null): string {
  const by = (flag: string, figure: string | number | null | undefined) => `ended by ${flag}${figure == null ? "" : ` ${figure}`}`;
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
    case "stop-condition":
      return "stopped";
    default:
      return reason;
  }
}
