/** What one handler is given for one page, and what it said by the end. After the end it takes nothing more. */
import type { LogLevel } from "../../core/log.ts";
import type { Scraped, ScrapeLog, ScrapeTask } from "../../core/scraping.ts";
import { type FollowOptions, type HandlerContext, isRecord, type Reference, whatIs } from "./define.ts";
import { detached } from "./detach.ts";
import { createDocument } from "./document.ts";
import { type PendingFollow, readFollow, referencesOf } from "./follows.ts";
import { createItemTaker, type ItemRules } from "./items.ts";
import { createPageValues, type Values } from "./page-values.ts";

/** Thrown at code that goes on after its page has ended. */
export class SettledError extends Error {}

export interface PageRun {
  readonly context: HandlerContext;
  /** No more is taken; what was said. */
  finish(): Promise<Scraped>;
  /** No more is taken, and nothing of it counts. */
  close(): void;
}

export interface ContextOptions {
  /** Name of the handler that runs. */
  readonly handler: string;
  readonly handlers: ReadonlySet<string>;
  readonly items: ItemRules;
  readonly values: Values;
  readonly log: ScrapeLog;
  readonly signal: () => AbortSignal;
}

const MODES = ["queue", "flight", "now"] as const;

export function createPageRun(task: ScrapeTask, options: ContextOptions): PageRun {
  const document = createDocument(task);
  const taker = createItemTaker(options.items);
  const values = createPageValues(task, options.values);
  const follows: PendingFollow[] = [];
  let stop: Scraped["stop"] = null;
  let stopSeries = false;
  let open = true;

  function live(what: string): void {
    if (!open) throw new SettledError(`${what}: the page ${task.url} is settled: await what you start`);
  }

  function follow(href: Reference, how?: FollowOptions): void {
    live("follow");
    const found = readFollow(href, how, options.handlers);
    if (found !== null) follows.push(found);
  }

  /** The count of a watermark goes on where the series does; a page outside of any begins each that it starts. */
  function withRuns(pending: PendingFollow, oldRuns: Scraped["follows"][number]["oldRuns"]): Scraped["follows"][number] {
    const continues = pending.series !== null && (task.series === null || task.series === pending.series);
    return { ...pending, oldRuns: continues ? oldRuns : null };
  }

  const context: HandlerContext = {
    url: task.url,
    request: requestOf(task, options.handler),
    response: document.response,
    body: task.body,
    get html() {
      return document.html;
    },
    get $() {
      return document.$;
    },
    get links() {
      return document.links;
    },
    get images() {
      return document.images;
    },
    get signal() {
      return options.signal();
    },
    json: document.json,
    item(fields, type) {
      live("item");
      taker.take(fields, type);
    },
    follow,
    followAll(target, how) {
      live("followAll");
      for (const href of referencesOf(target, document)) follow(href, how);
    },
    state: {
      get: (key) => values.get(key),
      set(key, value) {
        live("state.set");
        values.set(key, value);
      },
    },
    stop(how) {
      live("stop");
      stop = stronger(stop, readStop(how));
    },
    stopSeries() {
      live("stopSeries");
      stopSeries = true;
    },
    watermark(key, how) {
      live("watermark");
      const mark = values.watermark(key, readPatience(how));
      return {
        value: mark.value,
        old(value) {
          live("watermark");
          return mark.old(value);
        },
      };
    },
    log: logOf(task.url, options.log),
    data: task.data === null ? {} : JSON.parse(task.data),
  };

  return {
    context,
    async finish() {
      open = false;
      const { items, badItems } = await taker.finish();
      const oldRuns = values.oldRuns();
      return { links: null, follows: follows.map((one) => withRuns(one, oldRuns)), items, badItems, values: values.changes(), stop, stopSeries };
    },
    close() {
      open = false;
    },
  };
}

function requestOf(task: ScrapeTask, handler: string): HandlerContext["request"] {
  const { url, depth, referrer, method, priority, series, index, attempt } = task;
  return { url, depth, referrer, method, priority, handler, series, index, attempt };
}

function readStop(how: Parameters<HandlerContext["stop"]>[0]): NonNullable<Scraped["stop"]> {
  if (how !== undefined && !isRecord(how)) throw new TypeError(`stop: expected { mode, reason }, not ${whatIs(how)}`);
  const unknown = Object.keys(how ?? {}).find((key) => key !== "mode" && key !== "reason");
  if (unknown !== undefined) throw new TypeError(`stop: there is no option ${JSON.stringify(unknown)}; there are mode and reason`);
  const mode = MODES.find((one) => one === (how?.mode ?? "flight"));
  if (mode === undefined) throw new TypeError(`stop: mode must be one of ${MODES.join(", ")}, not ${whatIs(how?.mode)}`);
  const reason = how?.reason;
  if (reason !== undefined && typeof reason !== "string") throw new TypeError(`stop: the reason must be a text, not ${whatIs(reason)}`);
  return { mode, reason: reason === undefined ? null : detached(reason) };
}

function readPatience(how: Parameters<HandlerContext["watermark"]>[1]): number {
  if (how !== undefined && !isRecord(how)) throw new TypeError(`watermark: expected { olderInARow }, not ${whatIs(how)}`);
  const unknown = Object.keys(how ?? {}).find((key) => key !== "olderInARow");
  if (unknown !== undefined) throw new TypeError(`watermark: there is no option ${JSON.stringify(unknown)}; there is olderInARow`);
  return how?.olderInARow ?? 1;
}

/** The first of those that stop soonest. */
function stronger(before: Scraped["stop"], next: NonNullable<Scraped["stop"]>): NonNullable<Scraped["stop"]> {
  return before === null || MODES.indexOf(next.mode) > MODES.indexOf(before.mode) ? next : before;
}

function logOf(url: string, log: ScrapeLog): HandlerContext["log"] {
  const at =
    (level: LogLevel) =>
    (message: string, fields: Readonly<Record<string, unknown>> = {}): void =>
      log(level, detached(String(message)), { url, ...fields });
  return { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };
}
