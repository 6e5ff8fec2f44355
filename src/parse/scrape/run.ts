/** Runs a scraper on one page, in whatever thread this is, and tells what came of it. The user's code failing is a value. */
import { inspect } from "node:util";
import type { Scrape, Scraped, ScrapeLog, ScrapeOutcome, ScrapeTask } from "../../core/scraping.ts";
import { decodeText } from "../extract.ts";
import { createPageRun } from "./context.ts";
import { whatIs } from "./define.ts";
import { detached } from "./detach.ts";
import { extractFields } from "./extract-fields.ts";
import type { ScraperModule } from "./module.ts";
import type { Values } from "./page-values.ts";

export interface Surroundings {
  readonly values: Values;
  readonly log: ScrapeLog;
  /** Made when a handler asks for it. */
  readonly signal: () => AbortSignal;
}

const NOTHING: Scraped = { links: null, follows: [], items: [], badItems: [], values: [], stop: null, stopSeries: false };

/** Never rejects. */
export async function runPage(module: ScraperModule, task: ScrapeTask, around: Surroundings): Promise<ScrapeOutcome> {
  try {
    return { kind: "scraped", scraped: await scrape(module, task, around) };
  } catch (error) {
    return threw(error);
  }
}

function scrape(module: ScraperModule, task: ScrapeTask, around: Surroundings): Promise<Scraped> | Scraped {
  switch (module.kind) {
    case "links":
      return findLinks(module.find, task);
    case "items": {
      const item = extractFields(module.fields, task);
      return item === null ? NOTHING : { ...NOTHING, items: [item] };
    }
    case "handlers":
      return handle(module, task, around);
  }
}

async function handle(module: ScraperModule & { kind: "handlers" }, task: ScrapeTask, around: Surroundings): Promise<Scraped> {
  const name = task.handler ?? module.first;
  const handler = module.names.has(name) ? module.scraper.handlers[name] : undefined;
  if (handler === undefined) throw new Error(`the scraper has no handler ${JSON.stringify(name)}; its handlers are ${[...module.names].join(", ")}`);
  const run = createPageRun(task, { ...around, handler: name, handlers: module.names, items: module.rules });
  try {
    // `as`: the data is what a `follow` of the same scraper gave; their agreement is its author's.
    const answer: unknown = await handler(run.context as never);
    if (isGenerator(answer))
      throw new TypeError(`the handler ${JSON.stringify(name)} is a generator, whose code never runs: give items with item(), not with yield`);
    return await run.finish();
  } finally {
    run.close();
  }
}

function isGenerator(answer: unknown): boolean {
  const tag = Object.prototype.toString.call(answer);
  return tag === "[object Generator]" || tag === "[object AsyncGenerator]";
}

async function findLinks(find: Scrape, task: ScrapeTask): Promise<Scraped> {
  const { text } = decodeText(task.body, task.contentType);
  const found: unknown = await find(task.url, text);
  if (found === undefined || found === null) return NOTHING;
  if (typeof found !== "object" || !(Symbol.iterator in found))
    throw new TypeError(`the scrape function must return links: several strings, not ${whatIs(found)}`);
  // `as`: it can be iterated; what comes out is looked at below.
  const links = [...(found as Iterable<unknown>)].map((link) => {
    if (typeof link !== "string" && !(link instanceof URL))
      throw new TypeError(`the scrape function must return links: several strings; one of them is ${whatIs(link)}`);
    return detached(String(link));
  });
  return { ...NOTHING, links };
}

/** Longest message and stack that are kept, in characters: authors put whole pages into their errors. */
const MAX_MESSAGE = 2_000;
const MAX_STACK = 20_000;

/** Never throws, whatever was thrown. */
export function threw(error: unknown): ScrapeOutcome & { kind: "threw" } {
  try {
    if (!(error instanceof Error)) return { kind: "threw", message: shortened(typeof error === "string" ? error : inspect(error), MAX_MESSAGE), stack: null };
    const message = String(error.message) || String(error.name);
    return { kind: "threw", message: shortened(message, MAX_MESSAGE), stack: typeof error.stack === "string" ? shortened(error.stack, MAX_STACK) : null };
  } catch {
    // A getter or an inspect method of the author's own failed in its turn: that there was an error is all that can be said of it.
    return { kind: "threw", message: "an error that cannot be read was thrown", stack: null };
  }
}

function shortened(text: string, most: number): string {
  return detached(text.length <= most ? text : `${text.slice(0, most)}… (${text.length} characters)`);
}
