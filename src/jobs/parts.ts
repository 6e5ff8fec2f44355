/** What the keeper of jobs is given, and what it gives to those who answer what is asked of jobs. Types only. */
import type { AssembleOptions } from "../assemble.ts";
import type { Clock } from "../core/clock.ts";
import type { FinishReason } from "../core/events.ts";
import type { JobCounts, JobState, JobView } from "../core/jobs.ts";
import type { Logger } from "../core/log.ts";
import type { CrawlSpec } from "../core/spec.ts";
import type { JobBook, JobRow, RowChange } from "../store/jobs/book.ts";
import type { EventHub } from "./events.ts";
import type { JobHome } from "./home.ts";
import type { RunningJob, Totals } from "./run.ts";
import type { JobPolicy } from "./spec.ts";

export interface JobsOptions {
  /** The data directory; made when it is not there. */
  readonly dir: string;
  /** Where the crawls of jobs live, so that workers take their URLs; null: in the data directory. */
  readonly store?: { readonly url: string; readonly looksOn: boolean } | null;
  /** Jobs that run at a time; others wait, oldest first. */
  readonly maxRunning?: number;
  /** Jobs that have not ended, waiting ones included. */
  readonly maxJobs?: number;
  /** Seeds of one job. */
  readonly maxUrls?: number;
  /** Most requests in flight of one job; null: as the job says. */
  readonly concurrency?: number | null;
  /** Addresses that may be reached; default: none but public ones. */
  readonly addresses?: CrawlSpec["addresses"];
  /** Where scrapers lie that jobs may name; null: there are none. */
  readonly scrapersDir?: string | null;
  /** Threads for the scraper of one job. */
  readonly parseWorkers?: number;
  /** Ms after which a job that has ended is deleted; null: never. */
  readonly keepFor?: number | null;
  readonly log?: Logger;
  /** Tests replace the world. */
  readonly world?: AssembleOptions["world"];
}

export interface HowEnded {
  readonly state: JobState;
  readonly finishReason: FinishReason | null;
}

export interface JobKeeper {
  readonly book: JobBook;
  readonly home: JobHome;
  readonly policy: JobPolicy;
  readonly clock: Clock;
  readonly log: Logger;
  readonly totals: Readonly<Totals>;
  readonly closing: boolean;
  /** Jobs that wait or run. */
  readonly busy: number;
  dirOf(id: number): string;
  viewOf(row: JobRow): Promise<JobView>;
  /** Of a job that does not run; what was known of it last, where its crawl cannot be reached. */
  idleCounts(row: JobRow): Promise<JobCounts>;
  runOf(id: number): RunningJob | undefined;
  hubOf(id: number): EventHub;
  /** Writes it down (`waits`: as the book's), and tells those who watch of a new state. */
  change(id: number, to: RowChange, waits?: boolean): JobRow;
  enqueue(id: number): void;
  dequeue(id: number): void;
  /** Starts what there is room for. */
  pump(): void;
  /** At once, whatever else runs. */
  start(row: JobRow): void;
  end(row: JobRow, how: HowEnded, more: Pick<JobRow, "detail" | "counts" | "sizes">): JobRow;
  /** A job that does not run, with its files. */
  remove(id: number): Promise<void>;
  close(): Promise<void>;
}
