/** Opens a data directory of jobs and the place where their crawls live, and starts what keeps them. */
import { join } from "node:path";
import { realClock } from "../core/clock.ts";
import { CrawlError } from "../core/errors.ts";
import { silentLog } from "../core/log.ts";
import { type JobBook, openBook } from "../store/jobs/book.ts";
import { committedOf } from "../store/jobs/committed.ts";
import { type JobHome, ownDirectories } from "./home.ts";
import { startKeeper } from "./keeper.ts";
import type { JobKeeper, JobsOptions } from "./parts.ts";

/** Jobs that have begun stay where they are. */
function checkPlaces(book: JobBook, dir: string, inStore: boolean): void {
  const isElsewhere = (id: number): boolean => {
    const elsewhere = book.get(id)?.crawl === null;
    return inStore ? elsewhere && committedOf(join(dir, "jobs", String(id))) !== null : !elsewhere;
  };
  const strangers = book.inStates(["queued", "running", "paused", "stopping"]).filter(isElsewhere).length;
  if (strangers === 0) return;
  const which = `${strangers} job${strangers === 1 ? "" : "s"} of this data directory ${strangers === 1 ? "has" : "have"} begun`;
  const message = inStore
    ? `${which} without a store: end ${strangers === 1 ? "it" : "them"} without --store first, or name another directory (--state)`
    : `${which} in a store: name it (--store), or another directory (--state)`;
  throw new CrawlError("invalid-options", message, { problems: [{ option: "--store", message }] });
}

/** Takes the directory for this process alone and goes on with its jobs. Rejects with CrawlError `state-held`, `state-unwritable` or `store-unreachable`. */
export async function openKeeper(options: JobsOptions): Promise<JobKeeper> {
  const { dir, store = null, log = silentLog } = options;
  const clock = options.world?.clock ?? realClock;
  const book = openBook(dir);
  let home: JobHome | null = null;
  try {
    checkPlaces(book, dir, store !== null);
    home = store === null ? ownDirectories(clock) : await (await import("./cluster.ts")).openCluster({ ...store, log, clock });
    return startKeeper(options, book, home);
  } catch (error) {
    await home?.close();
    book.close();
    throw error;
  }
}
