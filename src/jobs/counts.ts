/** The figures of a job: of a crawl that runs, of one whose state is read, of one that never began. Keeps nothing. */
import type { CrawlStats } from "../core/events.ts";
import type { FrontierCounts } from "../core/frontier.ts";
import type { JobCounts } from "../core/jobs.ts";
import { foldTally } from "../engine/stats.ts";
import type { Committed } from "../store/jobs/committed.ts";

type Balance = Pick<FrontierCounts, "queued" | "delayed" | "leased" | "done" | "dropped">;

export const NO_COUNTS: JobCounts = {
  ...{ total: 0, completed: 0, inProgress: 0, queued: 0, pages: 0, failed: 0, items: 0, images: 0, skipped: 0, bytes: 0 },
  ...{ byStatus: {}, byOutcome: {}, byError: {}, bySkipReason: {}, pagesPerSecond: 0, elapsedMs: 0, bottleneck: null },
};

/** A job that has not begun: its seeds wait. */
export const waitingCounts = (seeds: number): JobCounts => ({ ...NO_COUNTS, total: seeds, queued: seeds });

/** `seedsToCome`: they are still read; at least so many URLs there will be, less what is given twice. */
export function runningCounts(stats: CrawlStats, balance: Balance | null, more: { images: number; seedsToCome: number; pagesPerSecond: number }): JobCounts {
  const { queued, delayed, leased, done, dropped } = balance ?? { queued: 0, delayed: 0, leased: 0, done: 0, dropped: 0 };
  const seen = queued + delayed + leased + done + dropped;
  const total = Math.max(seen, more.seedsToCome);
  return {
    total,
    completed: done + dropped,
    inProgress: leased,
    queued: queued + delayed + total - seen,
    pages: stats.pages,
    failed: stats.failed,
    items: stats.items,
    images: more.images,
    skipped: Object.values(stats.bySkipReason).reduce((sum, count) => sum + count, 0),
    bytes: stats.bytes,
    byStatus: stats.byStatus,
    byOutcome: stats.byOutcome,
    byError: stats.byError,
    bySkipReason: stats.bySkipReason,
    pagesPerSecond: more.pagesPerSecond,
    elapsedMs: Math.round(stats.elapsedMs),
    bottleneck: stats.bottleneck,
  };
}

/** `whole`: what a limit or stop left in the queue is skipped, and thereby settled. */
export function endedCounts(counts: JobCounts, whole: boolean): JobCounts {
  const { elapsedMs, pages } = counts;
  const left = whole ? { completed: counts.total, queued: 0 } : { queued: counts.queued + counts.inProgress };
  return { ...counts, ...left, inProgress: 0, pagesPerSecond: elapsedMs > 0 ? pages / (elapsedMs / 1_000) : 0, bottleneck: null };
}

/** As the last commit left them. */
export function committedCounts({ counters, run, sinks }: Committed, seeds: number): JobCounts {
  if (counters === null) return waitingCounts(seeds);
  const tally = new Map(counters.tally);
  const { queued, delayed, leased, done, dropped } = counters;
  const seen = queued + delayed + leased + done + dropped;
  const balance: FrontierCounts = {
    ...{ queued: queued + leased, delayed, leased: 0, done, dropped, seen, counted: counters.counted, robotsLeased: 0, hostsWaiting: 0 },
    ...{ level: counters.level, control: counters.control, completed: counters.completed, tally },
  };
  const stats = foldTally(balance, {
    ...{ elapsedMs: run.elapsedMs, inFlight: 0, requests: 0, waitingFor: null, scraping: null, loopCpuShare: 0, leftOver: new Map(), bottleneck: "nothing" },
  });
  const images = sinks.get("journal:images")?.["records"];
  return {
    ...runningCounts(stats, balance, {
      images: typeof images === "number" ? images : 0,
      seedsToCome: counters.seedsComplete ? 0 : seeds,
      pagesPerSecond: 0,
    }),
    bottleneck: null,
  };
}
