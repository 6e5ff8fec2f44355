/** How a durable crawl stands: counters, rates, what waits, and a guess when it will end. */
import type { EpochMs } from "../core/clock.ts";
import type { Bottleneck } from "../core/events.ts";
import { spellDuration, spellSize } from "../core/units.ts";
import { bottleneckOf, foldTally } from "../engine/stats.ts";
import { reasonWords } from "../rules/reasons.ts";
import type { StateView } from "./inspect.ts";

export interface StatusHost {
  readonly host: string;
  readonly waiting: number;
}

export interface SlowHost {
  readonly host: string;
  readonly settled: number;
  readonly meanLatencyMs: number;
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
  /** Of the hosts with the longest queues or the most time spent, those that took longest to answer, slowest first. */
  readonly slowest: readonly SlowHost[];
  /** Over the last seconds of a crawl that runs now; null: not known. */
  readonly recentPagesPerSecond: number | null;
  /** What limits the speed of a crawl that runs now; null: it does not run, or has not said yet. */
  readonly bottleneck: Bottleneck | null;
  /** Null: it had this directory from its start. */
  readonly beganInMemory: StateView["beganInMemory"];
  /** What the crawl is told not to exceed, as options. */
  readonly limits: readonly string[];
}

const HOSTS_SHOWN = 10;

export interface Waiting {
  readonly byHost: ReadonlyMap<string, number>;
  /** Counters of redirects whose chain is not over: raised already, their records come with the chain's end. */
  readonly owed: ReadonlyMap<string, number>;
}

function waitingOf(view: StateView): Waiting {
  const byHost = new Map<string, number>();
  const owed = new Map<string, number>();
  const raise = (counts: Map<string, number>, name: string) => counts.set(name, (counts.get(name) ?? 0) + 1);
  for (const { standing, request } of view.queue()) {
    if (standing !== "leased") raise(byHost, request.host);
    for (const { page } of request.rest?.owed ?? []) {
      if (page === null) continue;
      raise(owed, `outcome:${page.outcome}`);
      if (page.status !== null) raise(owed, `status:${page.status}`);
    }
  }
  return { byHost, owed };
}

/** What has a record, so that the counts are those of `export`. */
function recorded(tally: ReadonlyMap<string, number>, owed: Waiting["owed"]): ReadonlyMap<string, number> {
  return new Map([...tally].map(([name, count]) => [name, count - (owed.get(name) ?? 0)] as const).filter(([, count]) => count > 0));
}

function waitingHosts({ byHost }: Waiting): StatusHost[] {
  return [...byHost]
    .map(([host, waiting]) => ({ host, waiting }))
    .sort((a, b) => b.waiting - a.waiting)
    .slice(0, HOSTS_SHOWN);
}

function limitsOf({ spec }: Pick<StateView, "spec">): string[] {
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

const SLOWEST_SHOWN = 5;

function slowestOf({ live }: Pick<StateView, "live">): SlowHost[] {
  return (live?.hosts ?? [])
    .filter(({ settled, meanLatencyMs }) => settled > 0 && meanLatencyMs > 0)
    .map(({ host, settled, meanLatencyMs }) => ({ host, settled, meanLatencyMs: Math.round(meanLatencyMs) }))
    .sort((a, b) => b.meanLatencyMs - a.meanLatencyMs)
    .slice(0, SLOWEST_SHOWN);
}

/** What a status is made of. */
export type StatusSource = Pick<
  StateView,
  "dir" | "counts" | "control" | "tally" | "elapsedMs" | "finishReason" | "running" | "spec" | "startedAt" | "live" | "beganInMemory"
>;

export function statusOf(view: StateView): CrawlStatus {
  return statusFrom(view, waitingOf(view));
}

export function statusFrom(view: StatusSource, waiting: Waiting): CrawlStatus {
  const { counts, elapsedMs, finishReason, running, spec } = view;
  const live = running && finishReason === null ? view.live : null;
  const moment = {
    inFlight: counts.leased,
    requests: 0,
    waitingFor: null,
    elapsedMs,
    loopCpuShare: 0,
    scraping: null,
    bottleneck: "nothing",
    leftOver: new Map(),
  } as const;
  // `as`-free: foldTally reads the tally and what waits, and no more of the counts.
  const full = { ...counts, seen: counts.queued + counts.delayed + counts.leased + counts.done + counts.dropped, robotsLeased: 0, hostsWaiting: 0 };
  const stats = foldTally({ ...full, control: view.control, tally: recorded(view.tally, waiting.owed) }, moment);
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
    hosts: waitingHosts(waiting),
    slowest: slowestOf(view),
    recentPagesPerSecond: live?.pagesPerSecond ?? null,
    bottleneck:
      live === null
        ? null
        : bottleneckOf({ inFlight: live.inFlight, requests: 0, waitingFor: live.waitingFor, scraping: null }, spec.concurrency, live.loopCpuShare),
    beganInMemory: view.beganInMemory,
    limits: limitsOf(view),
  };
}
