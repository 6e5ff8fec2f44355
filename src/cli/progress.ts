/** The progress line: what it says of a crawl, and how it is drawn and taken away on a terminal. */

import type { Bottleneck, CrawlStats } from "../core/events.ts";
import { spellCount, spellNumber } from "../core/units.ts";
import type { Io } from "./io.ts";

export const REDRAW_MS = 200;

/** "1 URL", "1,234 URLs". */
export function spellUrls(count: number): string {
  return spellCount(count, "URL");
}

export function spellBytes(bytes: number): string {
  const units = ["B", "KB", "MB", "GB", "TB"];
  let value = bytes;
  let unit = 0;
  while (value >= 999.5 && unit < units.length - 1) {
    value /= 1000;
    unit++;
  }
  return `${unit > 0 && value < 9.95 ? value.toFixed(1) : Math.round(value)} ${units[unit]}`;
}

/** 950ms, 12.3s, 4m 05s, 2h 03m. */
export function spellElapsed(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)}ms`;
  if (ms < 59_950) return `${(ms / 1_000).toFixed(1)}s`;
  const seconds = Math.round(ms / 1_000);
  const two = (value: number) => String(value).padStart(2, "0");
  return seconds < 3_600 ? `${Math.floor(seconds / 60)}m ${two(seconds % 60)}s` : `${Math.floor(seconds / 3_600)}h ${two(Math.floor(seconds / 60) % 60)}m`;
}

export function spellRate(perSecond: number): string {
  return perSecond < 9.95 ? perSecond.toFixed(1) : spellNumber(Math.round(perSecond));
}

/** What holds the crawl back, and what could be done. */
export const LIMITED_BY: Readonly<Record<Bottleneck, string>> = {
  concurrency: "limited by --concurrency",
  "per-host": "limited by --per-host",
  delay: "limited by the delay per host",
  "back-off": "hosts asked for a pause",
  robots: "waiting for robots.txt",
  rate: "limited by --rate",
  cpu: "limited by the CPU",
  parse: "limited by parsing: downloads wait",
  network: "limited by the network",
  output: "limited by the output's reader",
  nothing: "",
};

export const percent = (share: number): string => `${Math.round(share * 100)}%`;

/** The line, cut to the columns there are: parts fall away from the end. */
export function progressLine(stats: CrawlStats, columns: number): string {
  const parts = [
    `${spellNumber(stats.pages)} page${stats.pages === 1 ? "" : "s"}`,
    `${spellRate(stats.pagesPerSecond)}/s`,
    ...(stats.items > 0 ? [`${spellNumber(stats.items)} item${stats.items === 1 ? "" : "s"}`] : []),
    `${spellNumber(stats.queued)} queued`,
    `${stats.inFlight} in flight`,
    ...(stats.failed > 0 ? [`${spellNumber(stats.failed)} failed`] : []),
    ...(LIMITED_BY[stats.bottleneck] === "" ? [] : [LIMITED_BY[stats.bottleneck]]),
    ...(stats.parseCpuShare === null ? [] : [`cpu ${percent(stats.loopCpuShare)} loop, ${percent(stats.parseCpuShare)} parse`]),
    spellElapsed(stats.elapsedMs),
  ];
  let line = "";
  for (const part of parts) {
    const longer = line === "" ? part : `${line} · ${part}`;
    // The last column stays free: writing it moves some terminals to the next line.
    if (longer.length >= columns) break;
    line = longer;
  }
  return line;
}

export interface Progress {
  draw(stats: CrawlStats): void;
  /** Takes the line away so that something else can be written, and keeps it away until `release`. */
  hold(): void;
  /** Puts the line back. */
  release(): void;
  /** Takes the line away for good. */
  end(): void;
}

export function terminalProgress(stderr: Io["stderr"]): Progress {
  /** What should stand there, and whether it does. */
  let line = "";
  let shown = false;
  let held = false;
  function show(): void {
    if (held || line === "") return;
    stderr.write(`\r${line}\u001b[K`);
    shown = true;
  }
  function hide(): void {
    if (shown) stderr.write("\r\u001b[K");
    shown = false;
  }
  return {
    draw(stats) {
      const next = progressLine(stats, stderr.columns());
      if (next === line && shown) return;
      line = next;
      show();
    },
    hold() {
      held = true;
      hide();
    },
    release() {
      held = false;
      show();
    },
    end() {
      line = "";
      hide();
    },
  };
}

export const noProgress: Progress = { draw: () => undefined, hold: () => undefined, release: () => undefined, end: () => undefined };
