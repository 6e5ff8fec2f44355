/** The library's front door: crawl(spec, options) → CrawlRun. */
import { type AssembleOptions, assemble } from "./assemble.ts";
import { CrawlError } from "./core/errors.ts";
import type { CrawlStats, FinishReason, StopMode, Summary } from "./core/events.ts";
import type { PageRecord } from "./core/records.ts";
import { type CrawlSpec, type CrawlSpecInput, parseSpec } from "./core/spec.ts";
import type { AddedSeeds } from "./engine/adding.ts";
import type { SeedLines } from "./engine/feed.ts";
import { createReader, type Item, type Reader } from "./engine/output.ts";
import { type Session, startSession } from "./engine/session.ts";
import { expandBraces } from "./rules/seeds.ts";
import { checkDistinct } from "./sinks/open.ts";

/** A spec whose seeds may also be any iterable of URLs, read as the crawl has room for them. */
export type CrawlInput = Omit<CrawlSpecInput, "seeds"> & { readonly seeds: string | SeedLines };

export interface CrawlOptions extends AssembleOptions {
  /** Aborting it is `stop({ mode: "now", reason: … })`. */
  readonly signal?: AbortSignal;
}

export interface StopRequest {
  /** Default `flight`. */
  readonly mode?: StopMode;
  /** Free text; stands in the summary as `detail`. */
  readonly reason?: string;
}

/**
 * A crawl. It starts at the first call of any of its members.
 * Iterated, it gives the page records as they settle and waits for its reader (back-pressure); leaving the loop early stops the crawl.
 * Not iterated, it runs at its own pace: await `done`.
 */
export interface CrawlRun extends AsyncIterable<PageRecord>, AsyncDisposable {
  /** The items of a scraper as their pages settle, each with `_meta` unless that is off; holds the crawl back as the pages do. */
  items(): AsyncIterable<Item>;
  /** Resolves when the stop is under way; `done` tells when it is over. Lifts a pause. With mode `queue` a list of seeds counts as queued, however early it comes. */
  stop(request?: StopRequest): Promise<void>;
  /** No request starts any more until `resume`, also when the crawl has not begun yet; what is in flight is finished. Once it is over, neither does anything. */
  pause(): Promise<void>;
  resume(): Promise<void>;
  stats(): Promise<CrawlStats>;
  /**
   * More seeds while it runs, one URL each; with a state directory they are kept by the time it resolves. The crawl does not end in between.
   * Null: it is over or stops, and takes none any more.
   */
  add(lines: SeedLines): Promise<AddedSeeds | null>;
  /** Rejects with a CrawlError when we fail (an output cannot be written, no seed is a URL); what the web does is in the records. */
  readonly done: Promise<Summary>;
}

/** Throws CrawlError `invalid-options` at once when the spec is bad. Two crawls in one process share nothing. */
export function crawl(input: CrawlInput, options: CrawlOptions = {}): CrawlRun {
  const { seeds, ...rest } = input;
  const listed = typeof seeds === "string" ? [seeds] : Array.isArray(seeds) ? seeds : null;
  const spec = parseSpec({ ...rest, seeds: listed ?? [] });
  checkDistinct(spec);
  if (spec.threads > 1) checkThreads(spec, options);
  let pages: Reader<PageRecord> | null = null;
  let items: Reader<Item> | null = null;
  let session: Session | null = null;

  function begin(): Session {
    if (session !== null) return session;
    const lines = expanded(listed === null ? seeds : spec.seeds);
    const started = startSession(assemble(spec, options), lines, { pages: () => pages, items: () => items }, listed !== null);
    session = started;
    // Whoever awaits `done` sees the failure; a reader sees it from `next`.
    started.done.catch(() => undefined);
    const onAbort = () => void started.stop("now", "cancelled", String(options.signal?.reason ?? "aborted")).catch(() => undefined);
    if (options.signal?.aborted) onAbort();
    else options.signal?.addEventListener("abort", onAbort, { once: true });
    void started.done.catch(() => undefined).finally(() => options.signal?.removeEventListener("abort", onAbort));
    return started;
  }

  const leave = () =>
    void begin()
      .stop("now", "cancelled", "the reader left")
      .catch(() => undefined);

  const run: CrawlRun = {
    async stop(request = {}) {
      await begin().stop(request.mode ?? "flight", reasonOf(request), request.reason ?? null);
    },
    pause: () => begin().pause(),
    resume: () => begin().resume(),
    stats: () => begin().stats(),
    add: (lines) => begin().add(expanded(lines)),
    get done() {
      return begin().done;
    },
    [Symbol.asyncIterator]() {
      pages ??= createReader(leave);
      begin();
      return pages;
    },
    items() {
      items ??= createReader(leave);
      begin();
      const reader = items;
      return { [Symbol.asyncIterator]: () => reader };
    },
    async [Symbol.asyncDispose]() {
      if (session === null) return;
      await session.stop("now", "cancelled", "disposed");
      await session.done.catch(() => undefined);
    },
  };
  insides.set(run, begin);
  return run;
}

/** What several threads cannot have: functions of this program, and a file that has one reader and writer. */
function checkThreads(spec: CrawlSpec, { scrape, scraper, hooks = {}, world }: CrawlOptions): void {
  const module = "a function of this program cannot run in other threads: put it into a module and give its path as scraper, or give threads: 1";
  const one = "a function of this program cannot run in other threads: leave it out, or give threads: 1";
  const file = "the file of stored pages has one reader and writer, and threads cannot share it: leave this out, or ask for one thread (--threads 1)";
  // Of a store every thread has a connection.
  const cached = spec.store === null;
  const rules = [
    ["scrape", scrape !== undefined, module],
    ["scraper", scraper !== undefined, module],
    ["hooks.beforeRequest", hooks.beforeRequest !== undefined, one],
    ["hooks.afterResponse", hooks.afterResponse !== undefined, one],
    ["world.openFetcher", world?.openFetcher !== undefined, one],
    ["cache", cached && spec.cache !== null, file],
    ["offline", cached && spec.offline, file],
    ["incremental", spec.incremental, file],
  ] as const;
  const problems = rules.filter(([, given]) => given).map(([option, , message]) => ({ option, message }));
  if (problems.length > 0) throw new CrawlError("invalid-options", problems.map(({ option, message }) => `${option}: ${message}`).join("\n"), { problems });
}

const insides = new WeakMap<CrawlRun, () => Session>();

/** For the service, which shows and steers more of a crawl than a program needs. Starts it, as any member does. */
export function sessionOf(run: CrawlRun): Pick<Session, "counts" | "hosts" | "patchHost"> {
  const begin = insides.get(run);
  if (begin === undefined) throw new CrawlError("internal", "this crawl was not made by crawl()");
  return begin();
}

function reasonOf(request: StopRequest): FinishReason {
  return request.reason === INTERRUPTED ? "interrupted" : "stop-condition";
}

/** The stop reason by which the command line marks Ctrl-C and SIGTERM. */
export const INTERRUPTED = "interrupted by a signal";

function expanded(seeds: SeedLines): SeedLines {
  return Symbol.iterator in seeds ? expandedNow(seeds) : expandedLater(seeds);
}

function* expandedNow(seeds: Iterable<string>): Generator<string> {
  for (const seed of seeds) yield* expandBraces(seed);
}

async function* expandedLater(seeds: AsyncIterable<string>): AsyncGenerator<string> {
  for await (const seed of seeds) yield* expandBraces(seed);
}
