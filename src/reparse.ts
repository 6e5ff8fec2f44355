/** The user's scraper again, over the pages that a crawl has stored: no request is made. What was read by the same scraper from the same bytes is not read again. */
import { existsSync, lstatSync, realpathSync, renameSync, rmSync, statSync } from "node:fs";
import { availableParallelism } from "node:os";
import { basename, dirname, join, resolve } from "node:path";
import type { PageCache } from "./core/cache.ts";
import { realClock } from "./core/clock.ts";
import { CrawlError } from "./core/errors.ts";
import type { Logger } from "./core/log.ts";
import type { ItemRecord, Output } from "./core/records.ts";
import type { Scraped, Scraping } from "./core/scraping.ts";
import type { Sink } from "./core/sink.ts";
import { type CrawlSpec, parseSpec } from "./core/spec.ts";
import type { Visit } from "./core/visits.ts";
import { digestOf } from "./engine/record.ts";
import { readByOf, readingOf } from "./engine/visits.ts";
import { openStateView, type StateView } from "./inspect/inspect.ts";
import { type OpenedScraping, openScraping } from "./parse/scrape/open.ts";
import { canonicalFollows, type StoredPage, storedPage, taskOf, withPage } from "./reparse-page.ts";
import { compileScope, type Scope } from "./rules/scope.ts";
import { STATE } from "./rules/values.ts";
import { openSinks } from "./sinks/open.ts";
import { sharedLines } from "./sinks/shared-lines.ts";
import { openCache } from "./store/cache/open.ts";
import { CACHE_FILE } from "./store/cache/schema.ts";
import { openStateDirectory } from "./store/sqlite/frontier.ts";
import { editVisits, type VisitEditor } from "./store/visits/edit.ts";

export interface ReparseInput {
  /** State directory of the crawl. */
  readonly dir: string;
  readonly scraper: string | null;
  readonly extract: Readonly<Record<string, string>>;
  /** Null: one for each core. */
  readonly workers: number | null;
  readonly parseTimeoutMs: number;
  /** Files, which are replaced once all is done. */
  readonly outputs: readonly string[];
  /** Others that get the items as they come. */
  readonly sinks: readonly Sink[];
  /** Those have room again; awaited between pages. */
  readonly room?: () => Promise<void>;
  readonly meta: boolean;
  /** Read every stored page, whoever read it before. */
  readonly all: boolean;
  readonly cwd: string;
  readonly log: Logger;
}

export interface Reparsed {
  readonly parsed: number;
  /** Read before by this scraper, from the same bytes. */
  readonly kept: number;
  /** Whose items are left out: the scraper failed. */
  readonly failed: number;
  /** Whose bytes are not stored: their items are those of the crawl. */
  readonly notStored: number;
  readonly items: number;
  readonly badItems: number;
  /** URLs that pages read now lead to, and the crawl has not visited. */
  readonly unvisited: number;
  readonly elapsedMs: number;
  readonly workers: number;
  readonly files: readonly string[];
}

type Counts = { -readonly [K in "parsed" | "kept" | "failed" | "notStored" | "items" | "badItems"]: number };

/** Throws CrawlError: `invalid-options` for a scraper that cannot be loaded and for a state without stored pages, `state-held`, `state-unwritable`, `output-unwritable`. */
export async function reparse(input: ReparseInput): Promise<Reparsed> {
  const { dir } = input;
  const found = foundIn(dir, input);
  const state = openStateDirectory(dir, { durability: "normal" });
  try {
    const editor = existsSync(join(dir, CACHE_FILE)) ? editVisits(dir) : null;
    if (editor === null) throw nothingStored(dir);
    try {
      await using cache = openCache(dir, { maxBytes: Number.MAX_SAFE_INTEGER, clock: realClock });
      if ((await cache.stats()).responses === 0) throw nothingStored(dir);
      const opened = await openedScraper(input);
      await using scraping = opened.scraping;
      // Watermarks are those of crawls: by them every page would be old.
      scraping.learn([...state.values()].filter(([key]) => key.startsWith(STATE)));
      return await run(input, { editor, cache, opened, found });
    } finally {
      editor.close();
    }
  } finally {
    state.close();
  }
}

interface Found {
  readonly spec: CrawlSpec;
  readonly scope: Scope;
}

/** The crawl in the directory. Its own files may be replaced only when nothing of it can be resumed any more. */
function foundIn(dir: string, { outputs, cwd }: ReparseInput): Found {
  using view: StateView = openStateView(dir);
  const { spec, counts, sinks } = view;
  if (counts.queued + counts.delayed + counts.leased > 0 || view.finishReason === null) {
    const kept = new Set([...sinks.keys()].map((name) => resolve(cwd, name)));
    const own = outputs.find((file) => kept.has(resolve(cwd, file)));
    if (own !== undefined) throw problem("--output", `${own} is a file of the crawl in ${dir}, which is not finished and needs it as it is; name another`);
  }
  return { spec, scope: compileScope(spec.scope, spec.follow, spec.list, [], (host) => host) };
}

async function openedScraper(input: ReparseInput): Promise<OpenedScraping> {
  const { scraper, extract, cwd, log } = input;
  const workers = input.workers ?? availableParallelism();
  const opened = await openScraping({ file: scraper, extract, cwd, workers, parseTimeoutMs: input.parseTimeoutMs, concurrency: windowOf(workers), log });
  if (opened.scraping.kind !== "links") return opened;
  await opened.scraping[Symbol.asyncDispose]();
  throw problem("--scraper", `${scraper} exports a plain function, which gives no items; reparse needs one made by defineScraper, or fields with -e`);
}

function problem(option: string, message: string): CrawlError {
  return new CrawlError("invalid-options", `${option}: ${message}`, { problems: [{ option, message }] });
}

function nothingStored(dir: string): CrawlError {
  return problem(
    "--state",
    `there are no stored pages in ${dir}: crawl with --state ${dir} and --cache (for instance --cache 30d), which keeps what it fetches`,
  );
}

/** Pages under way at a time: each holds its body. */
const windowOf = (workers: number): number => 8 * Math.max(1, workers);

/** What became of one page. */
interface Outcome {
  readonly visit: Visit;
  readonly items: readonly ItemRecord[];
}

interface Parts {
  readonly editor: VisitEditor;
  readonly cache: PageCache;
  readonly opened: OpenedScraping;
  readonly found: Found;
}

async function run(input: ReparseInput, parts: Parts): Promise<Reparsed> {
  const startedAt = realClock.now();
  const { scraping, itemTypes } = parts.opened;
  const counts: Counts = { parsed: 0, kept: 0, failed: 0, notStored: 0, items: 0, badItems: 0 };
  const files = replacedFiles(input.outputs, input.cwd);
  const spec = parseSpec({ outputs: files.map(({ beside }) => beside), meta: input.meta, stateDir: input.dir });
  const sinks = [...openSinks(spec, null, sharedLines(), { types: itemTypes }), ...input.sinks];
  const visited = new Set<string>();
  const followed = new Set<string>();
  const reader = createReader(input, { ...parts, counts, followed });
  const window = windowOf(scraping.view().workers);
  const under: Promise<Outcome>[] = [];

  async function settleOldest(): Promise<void> {
    const { visit, items } = (await under.shift()) ?? { items: [] };
    if (visit === undefined) return;
    counts.items += items.length;
    const output: Output = { page: visit.page, listed: parts.found.scope.lists(visit.page.url), skipped: [], found: [], edges: [], items };
    for (const sink of sinks) sink.write([output]);
    await input.room?.();
  }

  try {
    // In the order of the book, whoever is ready first: the same pages give the same files.
    for (const { row, visit } of parts.editor.each()) {
      visited.add(visit.page.url);
      const page = reader.read(row, visit);
      page.catch(() => undefined); // awaited in its turn
      under.push(page);
      while (under.length >= window || (under.length > 0 && scraping.full())) await settleOldest();
    }
    while (under.length > 0) await settleOldest();
    for (const sink of sinks) await sink.close();
    for (const file of files) file.putInPlace();
  } catch (error) {
    await Promise.allSettled(sinks.map((sink) => sink.close()));
    for (const file of files) file.drop();
    throw error;
  }
  for (const url of visited) followed.delete(url);
  const { workers } = scraping.view();
  return { ...counts, unvisited: followed.size, elapsedMs: realClock.now() - startedAt, workers, files: input.outputs };
}

/** Reads one page, or finds that it need not be read. */
function createReader(input: ReparseInput, parts: Parts & { readonly counts: Counts; readonly followed: Set<string> }) {
  const { editor, cache, counts, followed, found } = parts;
  const { scraping } = parts.opened;
  const { log } = input;

  function parsed(row: number, visit: Visit, page: StoredPage, scraped: Scraped): Outcome {
    counts.parsed++;
    counts.badItems += scraped.badItems.length;
    for (const { type, field, message } of scraped.badItems) log("warn", "bad item", { url: visit.page.url, type, field, why: message });
    const after = withPage(visit, page, found.spec, readingOf(readByNow(visit, scraping), scraped));
    for (const url of canonicalFollows(after)) followed.add(url);
    editor.put(row, after);
    return { visit: after, items: scraped.items };
  }

  function failed(visit: Visit, message: string, stack: string | null): Outcome {
    counts.failed++;
    log("error", "the scraper threw", { url: visit.page.url, error: stack ?? message });
    return { visit, items: [] };
  }

  function kept(visit: Visit, as: "kept" | "notStored"): Outcome {
    counts[as]++;
    return { visit, items: visit.reading.items };
  }

  return {
    async read(row: number, visit: Visit): Promise<Outcome> {
      const stored = await cache.get(`${visit.method} ${visit.page.url}`);
      const same = visit.kind === "page" && visit.reading.readBy === readByNow(visit, scraping);
      const digest = stored === null ? null : digestOf(stored.body);
      if (same && !input.all && (digest === null || digest === visit.page.digest)) return kept(visit, "kept");
      // Bytes from before the visit are those of another page than the one that was read.
      if (stored === null || stored.status < 200 || stored.status >= 300) return kept(visit, "notStored");
      if (digest !== visit.page.digest && stored.respondedAt < Date.parse(visit.page.fetchedAt)) return kept(visit, "notStored");
      const page = storedPage(stored, digest ?? "");
      const outcome = await scraping.run(taskOf(visit, page));
      switch (outcome.kind) {
        case "scraped":
          return parsed(row, visit, page, outcome.scraped);
        case "threw":
          return failed(visit, outcome.message, outcome.stack);
        case "crashed":
          return failed(visit, outcome.message, null);
        case "aborted":
          throw new CrawlError("internal", `reparse: the scraper was ended while it read ${visit.page.url}`);
      }
    },
  };
}

/** What of the document itself is recorded does not change by reading it again. */
function readByNow(visit: Visit, scraping: Scraping): string {
  const [links = "links"] = (visit.reading.readBy ?? "links").split(" ");
  return readByOf(links, scraping, visit.scrape);
}

interface ReplacedFile {
  /** Where the new one is written. */
  readonly beside: string;
  putInPlace(): void;
  drop(): void;
}

const DATABASE_FILES = ["", "-wal", "-shm", "-journal"];

/** New files grow beside the old ones and take their place in the end; devices and pipes are written as they are. */
function replacedFiles(outputs: readonly string[], cwd: string): readonly ReplacedFile[] {
  return [...new Set(outputs.map((file) => targetOf(resolve(cwd, file))))].map((target) => {
    if (statSync(target, { throwIfNoEntry: false })?.isFile() === false) return { beside: target, putInPlace: () => undefined, drop: () => undefined };
    const beside = join(dirname(target), `.reparse-${basename(target)}`);
    const drop = (): void => DATABASE_FILES.forEach((suffix) => void rmSync(beside + suffix, { force: true }));
    drop();
    return {
      beside,
      drop,
      putInPlace() {
        if (!existsSync(beside)) return;
        for (const suffix of DATABASE_FILES.slice(1)) rmSync(target + suffix, { force: true });
        renameSync(beside, target);
      },
    };
  });
}

/** A link counts as the file that it names. */
function targetOf(path: string): string {
  return lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() && existsSync(path) ? realpathSync(path) : path;
}
