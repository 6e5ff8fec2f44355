/** The figures of a job whose crawl is gone, from what is written of it: nobody else knows them. Read once, at its end. */
import { join } from "node:path";
import { LostCrawl } from "../core/errors.ts";
import type { JobCounts, JobTable } from "../core/jobs.ts";
import type { PageRecord, SkippedRecord } from "../core/records.ts";
import { tallyOf } from "../engine/record.ts";
import { foldTally } from "../engine/stats.ts";
import { journalLines } from "../inspect/journal.ts";
import type { JobRow } from "../store/jobs/book.ts";
import { endedCounts } from "./counts.ts";
import { fileOf } from "./lines.ts";
import type { Ending } from "./run.ts";

type Sizes = NonNullable<JobRow["sizes"]>;

/** Throws CrawlError `state-unwritable` where a file cannot be read. */
async function recordedCounts(before: JobCounts, dir: string, sizes: Sizes): Promise<JobCounts> {
  const tally = new Map<string, number>();
  const add = (name: string, n: number): void => void tally.set(name, (tally.get(name) ?? 0) + n);
  /** Answers how many lines there are. */
  async function each(table: JobTable, take: ((line: string) => void) | null): Promise<number> {
    let n = 0;
    for await (const lines of journalLines({ path: join(dir, fileOf(table)), bytes: sizes[table] })) {
      n += lines.length;
      if (take !== null) for (const line of lines) take(line);
    }
    return n;
  }
  const settled = await each("pages", (line) => {
    for (const [name, n] of tallyOf(JSON.parse(line) as PageRecord)) add(name, n); // written by a sink of the job
  });
  const skipped = await each("skipped", (line) => add(`skip:${(JSON.parse(line) as SkippedRecord).reason}`, 1)); // as above
  const items = await each("items", null);
  const images = await each("images", null);
  const { pages, failed, bytes, byStatus, byOutcome, byError, bySkipReason } = foldTally(
    {
      ...{ queued: 0, delayed: 0, leased: 0, done: settled, dropped: 0, seen: settled, counted: 0, robotsLeased: 0, hostsWaiting: 0 },
      ...{ level: 0, control: "run", completed: false, tally },
    },
    { elapsedMs: before.elapsedMs, inFlight: 0, requests: 0, waitingFor: null, scraping: null, loopCpuShare: 0, leftOver: new Map(), bottleneck: "nothing" },
  );
  const completed = Math.max(before.completed, settled);
  const total = Math.max(before.total, completed);
  const counts = { ...before, total, completed, inProgress: 0, queued: total - completed, pages, failed, items, images, skipped, bytes };
  return endedCounts({ ...counts, byStatus, byOutcome, byError, bySkipReason }, false);
}

/** Whoever finds the crawl of a job gone saw it last a moment ago, or never, and results that waited in the store are gone with it. Others end with the figures that they have. */
export async function withRecorded(ending: Ending, dir: string, sizes: JobRow["sizes"]): Promise<Ending> {
  if (ending.kind !== "failed" || !(ending.error instanceof LostCrawl) || sizes === null) return ending;
  try {
    return { ...ending, counts: await recordedCounts(ending.counts, dir, sizes) };
  } catch {
    // A line that is none, or a file that cannot be read: whoever asks for the records is told so.
    return ending;
  }
}
