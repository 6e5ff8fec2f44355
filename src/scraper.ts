/** Loads the user's scraper module (`scraper`, `-s FILE`): its default export is a plain function (url, html) => links. */
import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { CrawlError } from "./core/errors.ts";
import type { Scrape } from "./engine/parts.ts";

function problem(file: string, message: string, cause?: unknown): CrawlError {
  return new CrawlError("invalid-options", `scraper: ${file}: ${message}`, { cause, problems: [{ option: "scraper", message: `${file}: ${message}` }] });
}

/** Throws CrawlError `invalid-options` that names the file. */
export async function loadScraper(file: string, cwd: string): Promise<Scrape> {
  const path = resolve(cwd, file);
  if (!existsSync(path)) throw problem(file, "no such file");
  let module: { readonly default?: unknown };
  try {
    module = await import(pathToFileURL(path).href);
  } catch (error) {
    throw problem(file, `cannot be loaded: ${error instanceof Error ? error.message : String(error)}`, error);
  }
  const scrape = module.default;
  if (typeof scrape !== "function") throw problem(file, "expected a default export that is a function (url, html) => links");
  // `as`: what a function of the user's returns is checked by the crawl when it is called.
  return scrape as Scrape;
}
