/** `skein work`: a worker for the crawls of a store. */

import type { WorkOptions, work } from "../../cluster/work.ts";
import { parseDuration, spellNumber } from "../../core/units.ts";
import { afterSignal, EXIT } from "../exit.ts";
import { cliFlag } from "../flags.ts";
import type { Io, StopSignal } from "../io.ts";
import { storeAddress } from "../store-address.ts";
import { logOf, readVerb, usageError, type Verb } from "../verb.ts";

const IDLE = "1s";

export const WORK: Verb = {
  name: "work",
  head: `Usage: skein work --store URL [options]

Works on every crawl that lives in the store: takes URLs of all of them, as many as it has room for.
Workers join and leave at any time, on any machine. SIGTERM or Ctrl-C: what is in flight is finished
and settled; again: at once, and the others take over what was in flight. The same happens
when the store does not answer for 10 s after the first signal.

Examples:
  skein work --store redis://localhost:6379
  skein work --store redis://localhost:6379 --exit-when-idle 10s --scrapers ./scrapers
`,
  own: [
    cliFlag("once", { description: "One batch of URLs, waited for where hosts rest, then the end; at once where nothing is to do." }),
    cliFlag("exit-when-idle", { value: "D", bare: IDLE, allowed: "a duration such as 10s", description: "End when there was no work for so long." }),
    cliFlag("scrapers", { value: "DIR", allowed: "a directory", description: "Where the scraper modules of crawls lie on this machine, by their file names." }),
  ],
  shared: ["store", "concurrency", "threads", "allow-address", "proxy", "insecure", "parse-workers", "parse-timeout"],
  tail: `
Non-public addresses are refused unless --allow-address names them.

Exit status: 0 left in good order; 2 usage; 5 the store did not answer within a minute;
130 or 143 told to leave by Ctrl-C or SIGTERM, and the store did not answer.
`,
};

/** Answers the exit status. Throws CrawlError for what is ours; the caller says it. */
export async function workCommand(argv: readonly string[], io: Io, load: () => Promise<{ readonly work: typeof work }>): Promise<number> {
  const reading = await readVerb(WORK, argv, io);
  if (reading === null) return EXIT.ok;
  const { spec } = reading;
  const store = storeAddress(reading, argv, io.env);
  if (store === null) throw usageError("--store", "say which store to work for, such as redis://localhost:6379; REDIS_URL names it too");
  const idle = reading.text("exit-when-idle");
  io.stderr.write(`working for the store at ${store.shown} (${store.from})\n`);
  const { work } = await load();
  const options: WorkOptions = {
    url: store.url,
    concurrency: spec.concurrency,
    once: reading.isOn("once"),
    exitWhenIdleMs: idle === null ? null : parseDuration(idle), // flags.ts lets no other text pass
    scrapersDir: reading.text("scrapers"),
    operator: {
      addresses: { ...spec.addresses, refusePrivate: true },
      proxy: spec.proxy,
      insecure: spec.insecure,
      parseWorkers: spec.parseWorkers,
      parseTimeout: spec.parseTimeout,
    },
    log: logOf(io),
  };
  // One batch is one thread's.
  const threads = options.once ? 1 : spec.threads;
  const run = threads === 1 ? work(options) : (await import("../../cluster/work-threads.ts")).workTogether({ ...options, threads }, work);
  let told: StopSignal | null = null;
  const off = io.onSignal((signal) => {
    if (told !== null) io.die(signal);
    told = signal;
    io.stderr.write("finishing what is in flight, again to leave at once\n");
    run.leave();
  });
  try {
    const { crawls, requests } = await run.done;
    if (options.once && crawls === 0) io.stderr.write("nothing to do: no crawl of the store has URLs that this worker could take\n");
    else io.stderr.write(`left: ${spellNumber(requests)} request${requests === 1 ? "" : "s"} for ${spellNumber(crawls)} crawl${crawls === 1 ? "" : "s"}\n`);
    return EXIT.ok;
  } catch (error) {
    throw afterSignal(error, told, "what was in flight goes back to it by itself");
  } finally {
    off();
  }
}
