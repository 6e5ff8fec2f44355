/** What is said at the end of a crawl. */

import type { Summary } from "../core/events.ts";
import type { CrawlSpec } from "../core/spec.ts";
import { spellNumber } from "../core/units.ts";
import { reasonWords } from "../rules/reasons.ts";
import { percent, spellBytes, spellElapsed, spellRate } from "./progress.ts";

/** "200 1,234 · 404 7", most frequent first; null when there is nothing. */
export function counted(counts: Readonly<Record<string, number>>, most = 12): string | null {
  const entries = Object.entries(counts)
    .filter(([, count]) => count > 0)
    .sort(([, a], [, b]) => b - a);
  if (entries.length === 0) return null;
  const shown = entries.slice(0, most).map(([name, count]) => `${name} ${spellNumber(count)}`);
  return [...shown, ...(entries.length > most ? [`${entries.length - most} others`] : [])].join(" · ");
}

/** What of the spec the lines speak of; `outputs`: the files it names, `-` apart. */
export interface Asked {
  readonly limits: CrawlSpec["limits"] | null;
  readonly outputs: readonly string[];
}

function filesRow(files: readonly string[], outputs: readonly string[]): string | null {
  const named = files.filter((file) => file !== "stdout");
  if (named.length > 0) return named.join(" · ");
  return outputs.length > 0 ? `nothing written to ${outputs.join(" · ")}` : null;
}

function itemsRow({ items, badItems, elapsedMs }: Summary): string | null {
  if (items === 0 && badItems === 0) return null;
  const rate = elapsedMs > 0 ? `, ${spellRate(items / (elapsedMs / 1_000))}/s` : "";
  return `${spellNumber(items)}${rate}${badItems === 0 ? "" : `, ${spellNumber(badItems)} refused by their schema`}`;
}

function cpuRow({ loopCpuShare, parseCpuShare }: Summary): string {
  return parseCpuShare === null
    ? `${percent(loopCpuShare)} of one core`
    : `loop ${percent(loopCpuShare)}, each parse worker ${percent(parseCpuShare)} of one core`;
}

/** What a scraper or a program gave as its reason, on one line. */
function detailOf({ finishReason, detail }: Summary): string {
  return finishReason === "stop-condition" && detail !== null ? ` (${detail.replaceAll(/\s+/g, " ").slice(0, 200)})` : "";
}

/** Lines for people. */
export function summaryLines(summary: Summary, readerLeft: boolean, asked: Asked = { limits: null, outputs: [] }): string[] {
  const { pages, elapsedMs, pagesPerSecond, bytes, finishReason, retries, slowestHosts, files } = summary;
  const reason = readerLeft ? "ended: the reader of stdout went away" : `${reasonWords(finishReason, asked.limits)}${detailOf(summary)}`;
  const slow = slowestHosts.filter(({ settled }) => settled > 0).sort((a, b) => b.meanLatencyMs - a.meanLatencyMs);
  const onlyPages = Object.entries(summary.byOutcome).every(([outcome, count]) => count === 0 || outcome === "fetched");
  const rows: [string, string | null][] = [
    // Every record of the run; the pages of the first line are those fetched or unchanged.
    ["records", onlyPages ? null : counted(summary.byOutcome)],
    ["items", itemsRow(summary)],
    ["status", counted(summary.byStatus)],
    ["failed", counted(summary.byError)],
    ["skipped", counted(summary.bySkipReason)],
    ["retries", retries > 0 ? spellNumber(retries) : null],
    [
      "slowest",
      pages > 0 && slow.length > 0
        ? slow
            .slice(0, 5)
            .map(({ host, meanLatencyMs }) => `${host} ${spellElapsed(meanLatencyMs)}`)
            .join(" · ")
        : null,
    ],
    ["cpu", pages > 0 ? cpuRow(summary) : null],
    ["files", filesRow(files, asked.outputs)],
  ];
  return [
    `${reason}: ${spellNumber(pages)} page${pages === 1 ? "" : "s"} in ${spellElapsed(elapsedMs)}, ${spellRate(pagesPerSecond)}/s, ${spellBytes(bytes)}`,
    ...rows.flatMap(([name, text]) => (text === null ? [] : [`  ${name.padEnd(8)} ${text}`])),
  ];
}
