/** Loads the user's scraper module (`scraper`, `-s FILE`) in this thread: its default export is made by defineScraper, or is a function (url, html) => links. */
import { readFileSync, statSync } from "node:fs";
import { registerHooks } from "node:module";
import { resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
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
  const found = statSync(path, { throwIfNoEntry: false });
  if (found === undefined) throw scraperProblem(file, "no such file");
  if (found.isDirectory()) throw scraperProblem(file, "is a directory, not a module");
  answerForSkein(own);
  let module: { readonly default?: unknown };
  let source: string;
  try {
    source = readFileSync(path, "utf8");
    module = await import(pathToFileURL(path).href);
  } catch (error) {
    throw scraperProblem(file, `cannot be loaded: ${error instanceof Error ? `${error.message}${placeOf(error, own)}` : String(error)}`, error);
  }
  const given = module.default;
  if (given === undefined) {
    const names = Object.keys(module);
    throw scraperProblem(file, `${EXPECTED}; it exports ${names.length === 0 ? "nothing" : `only ${names.join(", ")}`}`);
  }
  if (typeof given !== "function" && (typeof given !== "object" || given === null)) throw scraperProblem(file, `${EXPECTED}; found ${whatIs(given)}`);
  try {
    return await moduleOf(given, source);
  } catch (error) {
    throw error instanceof TypeError ? scraperProblem(file, `${EXPECTED}; ${error.message}`, error) : error;
  }
}

const PLACE = /(?:^(?:file:\/)?\/|\n\s+at [^\n]*?file:\/\/)([^\n]*?([^/\n:]+:\d+))\b/g;

/** ` (shop.ts:10)`, where the error tells: syntax errors of TypeScript, and whatever a module throws. A line of our own would only mislead. */
function placeOf({ stack = "" }: Error, own: OwnFiles): string {
  const ours = fileURLToPath(new URL(".", own.skein));
  for (const [, path = "", place] of stack.matchAll(PLACE)) if (!path.startsWith(ours)) return ` (${place})`;
  return "";
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
      // The address is whole already; what resolves a `require` would take it for a name.
      return url === undefined ? next(specifier, context) : { url, shortCircuit: true };
    },
  });
}
