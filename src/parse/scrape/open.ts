/** Opens the user's scraper: a module, a closure or selectors, in this thread or in parse workers. */
import { availableParallelism } from "node:os";
import { CrawlError } from "../../core/errors.ts";
import type { LogFields, Logger } from "../../core/log.ts";
import type { Scrape, ScrapeLog, Scraping } from "../../core/scraping.ts";
import type { Scraper } from "./define.ts";
import { createInlineScraping } from "./inline.ts";
import type { ItemType } from "./items.ts";
import { loadScraper } from "./load.ts";
import { fieldsModule, moduleOf, type ScraperModule } from "./module.ts";
import { type OwnFiles, ownFiles } from "./own-files.ts";
import { openPool } from "./pool.ts";
import type { ScraperSource } from "./protocol.ts";

/** Exactly one of `file`, `scrape`, `scraper` and (not empty) `extract` is given. */
export interface ScrapingOptions {
  /** Path of a module, relative to `cwd`. */
  readonly file?: string | null;
  /** A callback; runs in this thread. */
  readonly scrape?: Scrape | null;
  /** Made by defineScraper; runs in this thread. */
  readonly scraper?: Scraper | null;
  /** Selectors by field. */
  readonly extract?: Readonly<Record<string, string>>;
  readonly cwd: string;
  /** Parse workers; 0: this thread. Null: one less than there are cores for a module, none for what else there is. */
  readonly workers: number | null;
  /** Longest time for one page in a parse worker. */
  readonly parseTimeoutMs: number;
  /** Requests that may be in flight: as many pages fit into the buffer, at least 4 a worker. */
  readonly concurrency: number;
  /** Old-generation heap of each worker; default 512. */
  readonly memoryMb?: number;
  /** Bytes of the bodies that wait before the buffer is full; default 64 MiB. */
  readonly bufferBytes?: number;
  readonly log: Logger;
  /** Where the program's own files lie, if not where they are found by themselves. */
  readonly own?: OwnFiles;
}

export interface OpenedScraping {
  readonly scraping: Scraping;
  /** Kinds of items that are known beforehand, with the columns that their schemas tell. */
  readonly itemTypes: readonly ItemType[];
}

const DEFAULT_MEMORY_MB = 512;
const DEFAULT_BUFFER_BYTES = 64 * 2 ** 20;

/** Rejects with CrawlError `invalid-options` for what cannot be loaded. */
export async function openScraping(options: ScrapingOptions): Promise<OpenedScraping> {
  const { file = null, extract = {} } = options;
  const own = options.own ?? ownFiles();
  const log = scrapeLog(options.log);
  const workers = options.workers ?? (file === null ? 0 : availableParallelism() - 1);
  const source: ScraperSource | null =
    file !== null ? { kind: "file", file, cwd: options.cwd } : Object.keys(extract).length > 0 ? { kind: "fields", extract } : null;
  if (workers === 0 || source === null) {
    const module =
      source === null ? await closureModule(options) : source.kind === "file" ? await loadScraper(source.file, source.cwd, own) : await fieldsModule(extract);
    return {
      scraping: createInlineScraping(module, { log, maxPending: Math.max(1, options.concurrency), parseTimeoutMs: options.parseTimeoutMs }),
      itemTypes: module.itemTypes,
    };
  }
  const { scraping, facts } = await openPool({
    ...{ source, own, workers, log },
    parseTimeoutMs: options.parseTimeoutMs,
    memoryMb: options.memoryMb ?? DEFAULT_MEMORY_MB,
    buffer: { pages: Math.max(options.concurrency, 4 * workers), bytes: options.bufferBytes ?? DEFAULT_BUFFER_BYTES },
  });
  return { scraping, itemTypes: facts.itemTypes };
}

async function closureModule({ scrape = null, scraper = null }: ScrapingOptions): Promise<ScraperModule> {
  try {
    return await moduleOf(scrape ?? scraper, null);
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    throw new CrawlError("invalid-options", `scraper: ${error.message}`, { cause: error, problems: [{ option: "scraper", message: error.message }] });
  }
}

/** Log fields are plain values: what a scraper logs beside them is put as JSON. */
function scrapeLog(log: Logger): ScrapeLog {
  return (level, message, fields) => log(level, message, plain(fields));
}

function plain(fields: Readonly<Record<string, unknown>>): LogFields {
  const read: Record<string, string | number | boolean | null> = {};
  for (const [name, value] of Object.entries(fields)) {
    if (value === undefined) continue;
    read[name] = value === null || typeof value === "string" || typeof value === "number" || typeof value === "boolean" ? value : asText(value);
  }
  return read;
}

function asText(value: unknown): string {
  try {
    return JSON.stringify(value) ?? String(value);
  } catch {
    // Logging must not fail a page: what JSON cannot hold is only named.
    return Object.prototype.toString.call(value);
  }
}
