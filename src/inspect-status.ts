/** How a durable crawl stands: counters, rates, what waits, and a guess when it will end. */
import type { EpochMs } from "./core/clock.ts";
import { spellDuration, spellSize } from "./core/units.ts";
import { foldTally } from "./engine/stats.ts";
import type { StateView } from "./inspect.ts";
import { reasonWords } from "./rules/reasons.ts";

export interface StatusHost {
  readonly host: string;
  readonly waiting: number;
}

export interface CrawlStatus {
  readonly dir: string;
  /** `stopped`: neither finished nor held by a process; the same command resumes it. */
  readonly state: "running" | "stopped" | "finished";
  readonly finishReason: string | null;
  /** The same in words, with the figure of the limit. */
  readonly endedBy: string | null;
  readonly startedAt: string;
  /** Of work, over all resumes. */
  readonly elapsedMs: number;
  readonly pages: number;
  readonly pagesPerSecond: number;
  readonly queued: number;
  readonly delayed: number;
  readonly inFlight: number;
  readonly failed: number;
  readonly bytes: number;
  readonly bytesDecoded: number;
  readonly retries: number;
  readonly duplicates: number;
  readonly byStatus: Readonly<Record<string, number>>;
  readonly byOutcome: Readonly<Record<string, number>>;
  readonly byError: Readonly<Record<string, number>>;
  readonly bySkipReason: Readonly<Record<string, number>>;
  readonly depth: number | null;
  /** Pages that --limit still allows; null without one. */
  readonly limitLeft: number | null;
  /** At the rate so far: what waits now, and no more than the limit allows. Pages yet to be found come on top. Null when nothing can be said. */
  readonly etaMs: number | null;
  /** Hosts with most waiting first. */
  readonly hosts: readonly StatusHost[];
  /** What the crawl is told not to exceed, as options. */
  readonly limits: readonly string[];
}

const HOSTS_SHOWN = 10;

function waitingHosts(view: StateView): StatusHost[] {
  const counts = new Map<string, number>();
  for (const { standing, request } of view.queue()) if (standing !== "leased") counts.set(request.host, (counts.get(request.host) ?? 0) + 1);
  return [...counts]
    .map(([host, waiting]) => ({ host, waiting }))
    .sort((a, b) => b.waiting - a.waiting)
    .slice(0, HOSTS_SHOWN);
}

function limitsOf({ spec }: StateView): string[] {
  const { limits, perHost } = spec;
  return [
    ...(limits.pages === null ? [] : [`--limit ${limits.pages}`]),
    ...(limits.time === null ? [] : [`--time-limit ${spellDuration(limits.time)}`]),
    ...(limits.bytes === null ? [] : [`--max-bytes ${spellSize(limits.bytes)}`]),
    ...(limits.errors === null ? [] : [`--max-errors ${limits.errors}`]),
    `--concurrency ${spec.concurrency}`,
    `--per-host ${perHost.concurrency}`,
    `--delay ${perHost.delay === "auto" ? "auto" : spellDuration(perHost.delay)}`,
    ...(spec.maxRequestsPerMinute === null ? [] : [`--rate ${spec.maxRequestsPerMinute}/min`]),
  ];
}

export function statusOf(view: StateView): CrawlStatus {
  const { counts, elapsedMs, finishReason, running, spec } = view;
  const moment = { inFlight: counts.leased, requests: 0, waitingFor: null, elapsedMs, loopCpuShare: 0, bottleneck: "nothing", leftOver: new Map() } as const;
  // `as`-free: foldTally reads the tally and what waits, and no more of the counts.
  const full = { ...counts, seen: counts.queued + counts.delayed + counts.leased + counts.done + counts.dropped, robotsLeased: 0, hostsWaiting: 0 };
  const stats = foldTally({ ...full, control: view.control, tally: view.tally }, moment);
  const limitLeft = spec.limits.pages === null ? null : Math.max(0, spec.limits.pages - counts.counted);
  const left = Math.min(counts.queued + counts.delayed + counts.leased, limitLeft ?? Infinity);
  const settledPerMs = elapsedMs > 0 ? (counts.done + counts.dropped) / elapsedMs : 0;
  return {
    dir: view.dir,
    state: finishReason !== null ? "finished" : running ? "running" : "stopped",
    finishReason,
    endedBy: finishReason === null ? null : reasonWords(finishReason, spec.limits),
    startedAt: new Date(view.startedAt satisfies EpochMs).toISOString(),
    elapsedMs,
    pages: stats.pages,
    pagesPerSecond: stats.pagesPerSecond,
    queued: counts.queued,
    delayed: counts.delayed,
    inFlight: counts.leased,
    failed: stats.failed,
    bytes: stats.bytes,
    bytesDecoded: stats.bytesDecoded,
    retries: stats.retries,
    duplicates: stats.duplicates,
    byStatus: stats.byStatus,
    byOutcome: stats.byOutcome,
    byError: stats.byError,
    bySkipReason: stats.bySkipReason,
    depth: spec.maxDepth === null ? null : counts.level,
    limitLeft,
    etaMs: finishReason !== null || settledPerMs === 0 ? null : Math.round(left / settledPerMs),
    hosts: waitingHosts(view),
    limits: limitsOf(view),
  };
}
