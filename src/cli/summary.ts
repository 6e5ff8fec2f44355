/** What is said at the end of a crawl. */
import type { FinishReason, Summary } from "../core/events.ts";
import { spellBytes, spellElapsed, spellNumber, spellRate } from "./progress.ts";

const REASONS: Readonly<Record<FinishReason, string>> = {
  finished: "finished",
  "limit-pages": "ended by --limit",
  "limit-items": "ended by the limit of items",
  "limit-time": "ended by --time-limit",
  "limit-bytes": "ended by --max-bytes",
  "limit-errors": "ended by --max-errors",
  "stop-condition": "stopped",
  cancelled: "cancelled",
  interrupted: "interrupted",
  failed: "failed",
};

/** "200 1,234 · 404 7", most frequent first; null when there is nothing. */
export function counted(counts: Readonly<Record<string, number>>, most = 12): string | null {
  const entries = Object.entries(counts)
    .filter(([, count]) => count > 0)
    .sort(([, a], [, b]) => b - a);
  if (entries.length === 0) return null;
  const shown = entries.slice(0, most).map(([name, count]) => `${name} ${spellNumber(count)}`);
  return [...shown, ...(entries.length > most ? [`${entries.length - most} others`] : [])].join(" · ");
}

/** Lines for people. */
export function summaryLines(summary: Summary, readerLeft: boolean): string[] {
  const { pages, elapsedMs, pagesPerSecond, bytes, finishReason, retries, slowestHosts, files } = summary;
  const reason = readerLeft ? "ended: the reader of stdout went away" : REASONS[finishReason];
  const slow = slowestHosts.filter(({ settled }) => settled > 0).sort((a, b) => b.meanLatencyMs - a.meanLatencyMs);
  const named = files.filter((file) => file !== "stdout");
  const rows: [string, string | null][] = [
    ["status", counted(summary.byStatus)],
    ["failed", counted(summary.byError)],
    ["skipped", counted(summary.bySkipReason)],
    ["retries", retries > 0 ? spellNumber(retries) : null],
    [
      "slowest",
      slow.length > 1
        ? slow
            .slice(0, 5)
            .map(({ host, meanLatencyMs }) => `${host} ${spellElapsed(meanLatencyMs)}`)
            .join(" · ")
        : null,
    ],
    ["cpu", elapsedMs > 1_000 ? `${Math.round(summary.loopCpuShare * 100)}% of one core` : null],
    ["files", named.length > 0 ? named.join(" · ") : null],
  ];
  return [
    `${reason}: ${spellNumber(pages)} page${pages === 1 ? "" : "s"} in ${spellElapsed(elapsedMs)}, ${spellRate(pagesPerSecond)}/s, ${spellBytes(bytes)}`,
    ...rows.flatMap(([name, text]) => (text === null ? [] : [`  ${name.padEnd(8)} ${text}`])),
  ];
}
