/** Loads the user's scraper module (`scraper`, `-s FILE`) in this thread: its default export is made by defineScraper, or is a function (url, html) => links. */
import { existsSync, readFileSync } from "node:fs";
import { registerHooks } from "node:module";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { CrawlError } from "../../core/errors.ts";
import { whatIs } from "./define.ts";
import { moduleOf, type ScraperModule } from "./module.ts";
import { type OwnFiles, ownFiles } from "./own-files.ts";

export function scraperProblem(file: string, message: string, cause?: unknown): CrawlError {
  return new CrawlError("invalid-options", `scraper: ${file}: ${message}`, { cause, problems: [{ option: "scraper", message: `${file}: ${message}` }] });
}

const EXPECTED = "expected a default export that is a function (url, html) => links, or is made by defineScraper";

/** Throws CrawlError `invalid-options` that names the file and says what was found. */
export async function loadScraper(file: string, cwd: string, own: OwnFiles = ownFiles()): Promise<ScraperModule> {
  const path = resolve(cwd, file);
  if (!existsSync(path)) throw scraperProblem(file, "no such file");
  answerForSkein(own);
  let module: { readonly default?: unknown };
  let source: string;
  try {
    source = readFileSync(path, "utf8");
    module = await import(pathToFileURL(path).href);
  } catch (error) {
    throw scraperProblem(file, `cannot be loaded: ${error instanceof Error ? `${error.message}${placeOf(error)}` : String(error)}`, error);
  }
  const found = module.default;
  if (found === undefined) {
    const names = Object.keys(module);
    throw scraperProblem(file, `${EXPECTED}; it exports ${names.length === 0 ? "nothing" : `only ${names.join(", ")}`}`);
  }
  if (typeof found !== "function" && (typeof found !== "object" || found === null)) throw scraperProblem(file, `${EXPECTED}; found ${whatIs(found)}`);
  try {
    return await moduleOf(found, source);
  } catch (error) {
    throw error instanceof TypeError ? scraperProblem(file, `${EXPECTED}; ${error.message}`, error) : error;
  }
}

/** ` (shop.ts:10)`, where the error tells: syntax errors of TypeScript, and whatever a module throws. */
function placeOf({ stack = "" }: Error): string {
  const place = /(?:^(?:file:\/)?\/|\n\s+at [^\n]*?file:\/\/)[^\n]*?([^/\n:]+:\d+)\b/.exec(stack)?.[1];
  return place === undefined ? "" : ` (${place})`;
}

let answered = false;

/** From here on `import "skein"` means this very program, wherever the importing file lies. Once per thread; it stays, since handlers may import later. */
function answerForSkein(own: OwnFiles): void {
  if (answered) return;
  answered = true;
  const urls: Readonly<Record<string, string>> = { skein: own.skein, "skein/testing": own.testing };
  registerHooks({
    resolve(specifier, context, next) {
      const url = Object.hasOwn(urls, specifier) ? urls[specifier] : undefined;
      return url === undefined ? next(specifier, context) : next(url, context);
    },
  });
}
