/** For tests only: a handler on one page, and what came of it. */
import assert from "node:assert/strict";
import type { Scraped, ScrapeOutcome, ScrapeTask } from "../../core/scraping.ts";
import { defineScraper, type HandlerContext, type Scraper } from "./define.ts";
import { moduleOf } from "./module.ts";
import { runPage } from "./run.ts";
import { scrapeTask } from "./task-for-tests.ts";

export type Handle = (context: HandlerContext) => unknown;

export async function outcomeOf(scraper: Scraper, task: ScrapeTask, values: Readonly<Record<string, string>> = {}): Promise<ScrapeOutcome> {
  const module = await moduleOf(scraper, null);
  return runPage(module, task, { values: new Map(Object.entries(values)), log: () => undefined, signal: () => new AbortController().signal });
}

export async function scraped(
  handler: Handle,
  task = scrapeTask(""),
  values: Readonly<Record<string, string>> = {},
  items: Scraper["items"] = {},
): Promise<Scraped> {
  const outcome = await outcomeOf(defineScraper({ items, handlers: { list: handler, detail() {} } }), task, values);
  assert.ok(outcome.kind === "scraped", JSON.stringify(outcome));
  return outcome.scraped;
}

/** What the call throws, in words. */
export async function refusal(handler: Handle, task = scrapeTask(""), items: Scraper["items"] = {}): Promise<string> {
  const outcome = await outcomeOf(defineScraper({ items, handlers: { list: handler, detail() {} } }), task);
  assert.ok(outcome.kind === "threw", JSON.stringify(outcome));
  return outcome.message;
}
