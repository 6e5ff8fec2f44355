/** Which crawl a command is asked about: one in a state directory, or a job of a shared store. Opens nothing. */
import type { Flag } from "./flags.ts";
import { cliFlag } from "./flags.ts";
import type { Io } from "./io.ts";
import { storeAddress, storeOfContainers } from "./store-address.ts";
import { type Reading, stateOf, usageError } from "./verb.ts";

export type Where = { readonly kind: "state"; readonly dir: string } | { readonly kind: "store"; readonly url: string; readonly job: number | null };

export const JOB_FLAG: Flag = cliFlag("job", {
  ...{ value: "ID", allowed: "the number of a job" },
  description: "Which crawl of the store; skein status --store URL lists them.",
});

function jobOf(reading: Reading): number | null {
  const text = reading.text("job");
  if (text === null) return null;
  return Number(text); // flags.ts lets no other text pass
}

/** What is said on the command line wins, then SKEIN_STATE or the config file, then the variables of linked containers. Throws CrawlError `invalid-options`. */
export function whereOf(reading: Reading, argv: readonly string[], io: Io): Where {
  const job = jobOf(reading);
  const named = storeAddress(reading, argv, io.env);
  const flagged = named?.from === "--store";
  if (reading.text("state") !== null) {
    if (flagged) throw usageError("--state", "name a directory or a --store, not both");
    if (job !== null) throw usageError("--job", "names a crawl of a store; a state directory holds one: leave it out, or name the store with --store");
    return { kind: "state", dir: stateOf(reading, io) };
  }
  const inState = job === null && !flagged && (io.env.SKEIN_STATE ?? reading.spec.stateDir ?? "") !== "";
  const store = inState ? null : reading.spec.store === null ? storeOfContainers(io.env) : named;
  if (store !== null) return { kind: "store", url: store.url, job };
  if (job !== null) throw usageError("--job", "names a crawl of a store: add --store URL");
  return stateOrStore(reading, io);
}

/** As stateOf, where a store would do as well. */
function stateOrStore(reading: Reading, io: Io): Where {
  if ((reading.text("state") ?? io.env.SKEIN_STATE ?? reading.spec.stateDir ?? "") === "")
    throw usageError("--state", "name the state directory of the crawl, or with --store URL the store that has it");
  return { kind: "state", dir: stateOf(reading, io) };
}

/** The job that is needed here. Throws CrawlError `invalid-options`. */
export function neededJob(job: number | null): number {
  if (job === null) throw usageError("--job", "say which crawl of the store; skein status --store URL lists them");
  return job;
}
