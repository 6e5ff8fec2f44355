/** `skein init`: the files that a scraper starts from, each of them working as it stands. */
import { existsSync, mkdirSync, realpathSync, writeFileSync } from "node:fs";
import { dirname, join, relative, sep } from "node:path";
import { CrawlError } from "../../core/errors.ts";
import { parseUrl } from "../../rules/url.ts";
import { VERSION } from "../../version.ts";
import { EXIT } from "../exit.ts";
import { cliFlag } from "../flags.ts";
import type { Io } from "../io.ts";
import { readVerb, usageError, type Verb } from "../verb.ts";

export const INIT: Verb = {
  name: "init",
  head: `Usage: skein init [DIR] [--url URL]

Writes the files that a scraper starts from into DIR (here without it): scraper.ts with two handlers, a
test of one of them, and skein.config.ts with the options of the crawl. Files that exist are left alone.

Examples:
  skein init shop --url https://example.com/
  cd shop && npx skein crawl
`,
  own: [cliFlag("url", { value: "URL", allowed: "an http:// or https:// URL", description: "Where the crawl starts. [https://example.com/]" })],
  shared: [],
  tail: `
Exit status: 0; 2 usage; 3 a file cannot be written.
`,
};

const DEFAULT_URL = "https://example.com/";

/** An import of the files below, not of this one. */
const bring = (name: string, from: string): string => `import { ${name} } from "${from}";`;

const SCRAPER = `/** Reads the pages of the crawl. Try it on one page: skein fetch URL -s scraper.ts */
${bring("defineScraper", "skein")}

export default defineScraper({
  // Raise it when pages are to be understood differently: what was stored under another version is read again.
  version: 1,
  handlers: {
    /** Pages that lead to others. Seeds come here, since it is the first. */
    list({ followAll }) {
      followAll("a[href]", { handler: "detail" });
    },

    /** Pages with what we want to know. */
    detail({ $, item, url }) {
      item({ url, title: $("title").text().trim(), heading: $("h1").first().text().trim() });
    },
  },
});
`;

const PACKAGE = `${JSON.stringify(
  { private: true, type: "module", scripts: { crawl: "skein crawl", test: "node --test" }, dependencies: { skein: `^${VERSION}` } },
  null,
  2,
)}
`;

const TEST = `/** node --test */
import assert from "node:assert/strict";
import { test } from "node:test";
${bring("testHandler", "skein/testing")}
import scraper from "./scraper.ts";

test("a detail page gives one item", async () => {
  const { items, error } = await testHandler(scraper, "detail", {
    url: "https://shop.test/1",
    html: "<title>Shop</title><h1> A lamp </h1>",
  });
  assert.equal(error, null);
  assert.deepEqual(items, [{ url: "https://shop.test/1", title: "Shop", heading: "A lamp" }]);
});
`;

const config = (url: string) => `/** Options of skein crawl in this folder; flags on the command line win. All of them: skein crawl --help */
export default {
  seeds: [${JSON.stringify(url)}],
  scraper: "scraper.ts",
  outputs: ["items.jsonl"],
  // Keeps the crawl, so that it can be resumed after anything, and what the scraper remembers between runs.
  stateDir: "state",
  limits: { pages: 100 },
};
`;

/** Answers the exit status. Throws CrawlError for what is ours; the caller says it. */
export async function initCommand(argv: readonly string[], io: Io): Promise<number> {
  const reading = await readVerb(INIT, argv, io);
  if (reading === null) return EXIT.ok;
  const [dir = ".", extra] = reading.args;
  if (extra !== undefined) throw usageError(extra, "skein init takes one folder");
  if (dir.includes("://")) throw usageError(dir, "skein init takes a folder; where the crawl starts is said by --url");
  const url = reading.text("url") ?? DEFAULT_URL;
  if ("reject" in parseUrl(url)) throw usageError(url, "expected an http:// or https:// URL");
  const folder = join(io.cwd, dir);
  const files: readonly (readonly [string, string])[] = [
    ["package.json", PACKAGE],
    ["scraper.ts", SCRAPER],
    ["scraper.test.ts", TEST],
    ["skein.config.ts", config(url)],
  ];
  let written = 0;
  for (const [name, text] of files) {
    const shown = dir === "." ? name : join(dir, name);
    const path = join(folder, name);
    if (existsSync(path)) {
      io.stderr.write(`${shown} exists and is left as it is\n`);
      continue;
    }
    try {
      mkdirSync(folder, { recursive: true });
      writeFileSync(path, text, { flag: "wx" });
    } catch (cause) {
      throw new CrawlError("output-unwritable", `cannot write ${shown}: ${cause instanceof Error ? cause.message : String(cause)}`, { cause });
    }
    io.stderr.write(`wrote ${shown}\n`);
    written++;
  }
  const enter = dir === "." ? "" : `cd ${dir} && `;
  if (written > 0) io.stderr.write(`next: ${enter}${installing(folder)}npx skein fetch ${url} -s scraper.ts, then npx skein crawl\n`);
  return EXIT.ok;
}

/**
 * What makes `npx skein` and `import "skein"` work in the folder: nothing where the package is found from there already. A Node that a package brought
 * (`node_modules/node`) is not that of the folder, whose own may be older.
 */
function installing(folder: string): string {
  const above = (path: string): readonly string[] => (dirname(path) === path ? [path] : [path, ...above(dirname(path))]);
  const isPackage = (path: string) => existsSync(join(path, "bin/skein.js")) && existsSync(join(path, "package.json"));
  const real = (path: string) => (existsSync(path) ? realpathSync(path) : path);
  const parents = above(real(folder));
  if (parents.some((parent) => isPackage(parent) || existsSync(join(parent, "node_modules/skein")))) return "";
  const own = above(import.meta.dirname).find(isPackage);
  if (own === undefined) return "";
  // Installed somewhere else: then npm finds it for this folder too, by the package.json that was written.
  if (own.split(sep).includes("node_modules")) return "npm install && ";
  const node = process.execPath.includes(`${sep}node_modules${sep}`) ? " node@24" : "";
  return `npm install ${quoted(relative(real(folder), real(own)))}${node} && `;
}

const quoted = (path: string): string => (/^[\w./-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`);
