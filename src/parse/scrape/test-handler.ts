/** Runs one handler of a scraper on one page, for the tests of its author (published under skein/testing). No request is made. */
import type { BadItem } from "../../core/records.ts";
import type { Scraped, ScrapeLog, ScrapeTask } from "../../core/scraping.ts";
import { MARK, RUN_MARK, STATE } from "../../rules/values.ts";
import type { Parsed, Scraper } from "./define.ts";
import { createDocument } from "./document.ts";
import { moduleOf } from "./module.ts";
import { runPage } from "./run.ts";

/** The page that a handler is tried on. One of `html` and `body` is given. */
export interface TestPage {
  readonly url: string;
  readonly html?: string;
  readonly body?: Uint8Array;
  /** Default `text/html; charset=utf-8`. */
  readonly contentType?: string;
  /** Default 200. */
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly data?: object;
  readonly series?: string;
  readonly index?: number;
  /** What the last good run left, by the key of the watermark. */
  readonly marks?: Readonly<Record<string, string | number>>;
  readonly state?: Readonly<Record<string, unknown>>;
  readonly log?: ScrapeLog;
}

export interface TestFollow {
  /** Absolute; as the handler gave it where it is no URL. */
  readonly url: string;
  readonly handler: string | null;
  readonly priority: number;
  readonly data: Parsed;
  readonly series: string | null;
  readonly index: number | null;
  readonly method: string;
  readonly body: string | null;
  readonly headers: Readonly<Record<string, string>>;
}

export interface HandlerResult {
  /** Their fields, in order. */
  readonly items: readonly Parsed[];
  /** The same by type. */
  readonly itemsByType: Readonly<Record<string, readonly Parsed[]>>;
  readonly badItems: readonly BadItem[];
  readonly follows: readonly TestFollow[];
  /** What the handler set; undefined where it deleted. */
  readonly state: Readonly<Record<string, Parsed>>;
  /** The greatest value that each watermark met. */
  readonly marks: Readonly<Record<string, string | number>>;
  readonly stop: Scraped["stop"];
  readonly stopSeries: boolean;
  /** What the handler threw; everything else is empty then. */
  readonly error: Error | null;
}

/** Throws TypeError for what is no scraper or has no such handler; what the handler throws is in the result. */
export async function testHandler(scraper: Scraper, handler: string, page: TestPage): Promise<HandlerResult> {
  const module = await moduleOf(scraper, null);
  if (module.kind !== "handlers" || !module.names.has(handler)) throw new TypeError(`the scraper has no handler ${JSON.stringify(handler)}`);
  const task = taskOf(handler, page);
  const values = new Map<string, string>();
  for (const [key, value] of Object.entries(page.marks ?? {})) values.set(MARK + key, JSON.stringify(value));
  for (const [key, value] of Object.entries(page.state ?? {})) values.set(STATE + key, JSON.stringify(value));
  const controller = new AbortController();
  const outcome = await runPage(module, task, { values, log: page.log ?? (() => undefined), signal: () => controller.signal });
  if (outcome.kind === "scraped") return resultOf(outcome.scraped, task);
  const error = new Error(outcome.kind === "aborted" ? "aborted" : outcome.message);
  if (outcome.kind === "threw" && outcome.stack !== null) error.stack = outcome.stack;
  return { items: [], itemsByType: {}, badItems: [], follows: [], state: {}, marks: {}, stop: null, stopSeries: false, error };
}

function taskOf(handler: string, page: TestPage): ScrapeTask {
  const contentType = page.contentType ?? "text/html; charset=utf-8";
  return {
    url: page.url,
    sentAs: page.url,
    status: page.status ?? 200,
    headers: [["content-type", contentType], ...Object.entries(page.headers ?? {}).map(([name, value]) => [name.toLowerCase(), value] as const)],
    contentType,
    body: page.body ?? Buffer.from(page.html ?? "", "utf8"),
    ...{ depth: 0, referrer: null, method: "GET", priority: 0, attempt: 0, handler, oldRuns: null },
    data: page.data === undefined ? null : JSON.stringify(page.data),
    series: page.series ?? null,
    index: page.index ?? null,
  };
}

function resultOf(scraped: Scraped, task: ScrapeTask): HandlerResult {
  const { base } = createDocument(task);
  const itemsByType: Record<string, Parsed[]> = {};
  for (const { type, json } of scraped.items) (itemsByType[type] ??= []).push(JSON.parse(json));
  const named = (prefix: string): Record<string, Parsed> =>
    Object.fromEntries(
      scraped.values
        .filter(({ key }) => key.startsWith(prefix))
        .map(({ key, value }) => [key.slice(prefix.length), value === null ? undefined : JSON.parse(value)]),
    );
  return {
    items: scraped.items.map(({ json }) => JSON.parse(json)),
    itemsByType,
    badItems: scraped.badItems,
    follows: scraped.follows.map((follow) => ({
      url: URL.parse(follow.href, base)?.href ?? follow.href,
      handler: follow.handler,
      priority: follow.priority,
      data: follow.data === null ? {} : JSON.parse(follow.data),
      series: follow.series,
      index: follow.index,
      method: follow.method ?? "GET",
      body: follow.body === null ? null : Buffer.from(follow.body).toString("utf8"),
      headers: follow.headers ?? {},
    })),
    state: named(STATE),
    marks: named(RUN_MARK),
    stop: scraped.stop,
    stopSeries: scraped.stopSeries,
    error: null,
  };
}
