/** Where the crawls of jobs live: what the keeper of jobs asks of it, and the one that is nothing but their own directories. The other one: cluster.ts. */
import type { AssembleOptions, SharedParts } from "../assemble.ts";
import type { Clock } from "../core/clock.ts";
import { CrawlError } from "../core/errors.ts";
import type { JobHost, JobTable } from "../core/jobs.ts";
import type { CrawlSpec } from "../core/spec.ts";
import type { JobRow, RowChange } from "../store/jobs/book.ts";
import { type Committed, committedOf } from "../store/jobs/committed.ts";
import { type Explained, explainJob, hostsOf } from "./inspect.ts";
import { sinkOf, wholeLines } from "./lines.ts";

/** A job whose crawl is about to run. */
export interface HomeRun {
  readonly row: JobRow;
  readonly dir: string;
  /** As the crawl gets it, but for where it lives. */
  readonly spec: CrawlSpec;
  readonly shared: SharedParts;
  /** It has begun before, perhaps in a process that died before it noted where. */
  readonly begun: boolean;
  /** The job as the book has it now. */
  current(): JobRow;
  /** The seeds that are whole, one a line. */
  seeds(): Iterable<string>;
  note(change: RowChange): void;
}

export interface JobHome {
  /** Why crawls cannot be reached, or changed, now; null: they can. */
  readonly trouble: string | null;
  /** Does what the call does; rejects with CrawlError `store-unreachable` as soon as crawls cannot be reached, instead of waiting for them. */
  ask<T>(call: () => Promise<T>): Promise<T>;
  /** The same for a call that changes them: nothing is called where they take no changes now. */
  tell<T>(call: () => Promise<T>): Promise<T>;
  /** Called when crawls can be changed again after they could not, or may have lost what they were told last. */
  onBack(listener: () => void): void;
  /** Null: there is no crawl yet. Throws CrawlError when it cannot be read. */
  committed(row: JobRow, dir: string): Promise<Committed | null>;
  /** Bytes of one of its journals that will not be taken back; where its crawl is gone, all that are whole lines: nobody goes on with it. */
  bytesOf(row: JobRow, dir: string, table: JobTable): Promise<number>;
  /** What crawl() is given. */
  run(run: HomeRun): { readonly spec: CrawlSpec; readonly options: AssembleOptions };
  explain(row: JobRow, dir: string, url: string): Promise<Explained>;
  /** Of a job that does not run in this process. */
  hosts(row: JobRow, dir: string, most: number): Promise<readonly JobHost[]>;
  /** From now on its crawl does not end before it has run here again. False: it has ended. Of a job that does not run in this process. */
  holdOpen(row: JobRow): Promise<boolean>;
  /** The crawl of a paused job that does not run here rests, as soon as it can be told so; it goes on with its next run. */
  rest(row: JobRow): void;
  /** Nobody works on it any more. Of a job that has failed. */
  halt(row: JobRow): Promise<void>;
  /** What is kept of the job elsewhere than in its directory is deleted. Idempotent. */
  remove(row: JobRow): Promise<void>;
  close(): Promise<void>;
}

const ELSEWHERE = "Its crawl lives in a store: a service that is started with --store can tell more.";

/** Every crawl lies in the directory of its job, and nowhere else. */
export function ownDirectories(clock: Clock): JobHome {
  return {
    trouble: null,
    ask: (call) => call(),
    tell: (call) => call(),
    onBack: () => undefined,
    committed: async (_, dir) => committedOf(dir),
    async bytesOf({ crawl }, dir, table) {
      // Only one that has ended gets here with a crawl elsewhere.
      if (crawl !== null) return wholeLines(dir, table);
      const bytes = committedOf(dir)?.sinks.get(sinkOf(table))?.["bytes"];
      return typeof bytes === "number" ? bytes : 0;
    },
    run: ({ spec, dir, shared }) => ({ spec: { ...spec, stateDir: dir }, options: { shared, sameCrawl: true } }),
    explain: async ({ crawl }, dir, url) => (crawl === null ? explainJob(dir, url, clock) : { url, lines: [ELSEWHERE] }),
    hosts: async (row, dir, most) => hostsOf(dir, row, most),
    holdOpen: async () => true,
    rest: () => undefined,
    halt: async () => undefined,
    async remove({ crawl }) {
      if (crawl !== null) throw new CrawlError("store-unreachable", "the job has a crawl in a store, which a service without --store cannot delete");
    },
    close: async () => undefined,
  };
}
