/** The public names of the library: one explicit list. */

export { CrawlError, type CrawlErrorCode, type OptionProblem } from "./core/errors.ts";
export type { Bottleneck, CrawlEvent, CrawlStats, FinishReason, StopMode, Summary } from "./core/events.ts";
export type { LogFields, Logger, LogLevel } from "./core/log.ts";
export type { CharsetSource, EdgeRecord, ErrorCode, Outcome, Output, PageRecord, SkippedRecord, SkipReason } from "./core/records.ts";
export type { Scrape } from "./core/scraping.ts";
export type { BatchItem, BatchSink, Sink } from "./core/sink.ts";
export type { CrawlSpec } from "./core/spec.ts";
export { type CrawlInput, type CrawlOptions, type CrawlRun, crawl, type StopRequest } from "./crawl.ts";
export type { AddedSeeds } from "./engine/adding.ts";
export type { Item } from "./engine/output.ts";
export type { CrawlHooks } from "./engine/parts.ts";
export {
  defineScraper,
  type FollowOptions,
  type Handler,
  type HandlerContext,
  type ItemTypeOptions,
  type PageRequest,
  type PageResponse,
  type Scraper,
  type Watermark,
} from "./parse/scrape/define.ts";
export { VERSION } from "./version.ts";
