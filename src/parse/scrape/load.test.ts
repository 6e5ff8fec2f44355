import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { CrawlError } from "../../core/errors.ts";
import { loadScraper } from "./load.ts";
import { ownFiles } from "./own-files.ts";

/** Outside of the checkout: nothing there would find a package. */
const folder = mkdtempSync(join(tmpdir(), "skein-load-"));
after(() => rmSync(folder, { recursive: true, force: true }));

function load(name: string, source: string) {
  writeFileSync(join(folder, name), source);
  return loadScraper(name, folder);
}

test("a module may be TypeScript or JavaScript, made by defineScraper, an object of that shape, or a function", async () => {
  const typed = await load(
    "typed.ts",
    `import { defineScraper } from "skein";
     interface Row { id: number }
     export default defineScraper({ version: 7, items: { row: { key: "id" } }, handlers: { list({ item }) { const row: Row = { id: 1 }; item(row); } } });`,
  );
  assert.deepEqual([typed.kind, typed.version, typed.first, typed.itemTypes], ["handlers", "version 7", "list", [{ name: "row", key: "id", columns: null }]]);
  assert.equal((await load("object.mjs", "export default { handlers: { a() {} } };")).kind, "handlers");
  const plain = await load("plain.mjs", "export default (url, html) => [url];");
  assert.deepEqual([plain.kind, plain.first, plain.version.length], ["links", null, 16]);
});

test("without a version, the text of the file stands for it", async () => {
  const [a, b, c] = [
    await load("a.mjs", "export default () => [];"),
    await load("b.mjs", "export default () => []; "),
    await load("c.mjs", "export default () => [];"),
  ];
  assert.notEqual(a.version, b.version);
  assert.equal(a.version, c.version);
});

test("`skein` and `skein/testing` are the running program, wherever the file lies", async () => {
  const module = await load(
    "imports.mjs",
    `import * as skein from "skein"; import * as testing from "skein/testing";
     export default () => [typeof skein.crawl, skein.VERSION, typeof testing.createTestWeb];`,
  );
  assert.ok(module.kind === "links");
  assert.match(String(await module.find("", "")), /^function,\d+\.\d+\.\d+.*,function$/);
});

test("a CommonJS module may require `skein`", async () => {
  const module = await load("common.cjs", `const { defineScraper } = require("skein"); module.exports = defineScraper({ handlers: { a() {} } });`);
  assert.deepEqual([module.kind, module.first], ["handlers", "a"]);
});

test("in the build, the program's files lie beside the chunks", () => {
  const built = { skein: "file:///d/dist/index.js", testing: "file:///d/dist/testing.js", worker: "file:///d/dist/worker.js" };
  assert.deepEqual(ownFiles("file:///d/dist/chunks/pool-ABC.js"), built);
  assert.deepEqual(ownFiles("file:///d/dist/index.js"), built);
});

test("what cannot be loaded is named, with what was found", async () => {
  const cases: readonly (readonly [string, string, RegExp])[] = [
    ["syntax.mjs", "export default (;", /^scraper: syntax\.mjs: cannot be loaded: /],
    ["throws.mjs", "throw new Error('no key');", /^scraper: throws\.mjs: cannot be loaded: no key \(throws\.mjs:1\)$/],
    ["import.mjs", "import 'absent-package'; export default () => [];", /cannot be loaded: Cannot find package 'absent-package' imported from \S+import\.mjs$/],
    ["enum.ts", "enum A { B } export default () => [];", /cannot be loaded: /],
    ["type.ts", "export default {\n  const x = 1;\n};", /cannot be loaded: .* \(type\.ts:2\)$/],
    ["nothing.mjs", "", /expected a default export that is a function \(url, html\) => links, or is made by defineScraper; it exports nothing$/],
    ["named.mjs", "export const scrape = () => [];", /it exports only scrape$/],
    ["text.mjs", "export default 'x';", /; found the string "x"$/],
    ["object2.mjs", "export default {};", /; handlers must be an object of functions, not undefined$/],
    ["typo.mjs", "export default { handlers: { a: 1 } };", /; handlers\.a must be a function, not number 1$/],
  ];
  for (const [name, source, message] of cases) {
    await assert.rejects(load(name, source), (error) => {
      assert.ok(error instanceof CrawlError && error.code === "invalid-options");
      assert.match(error.message, message);
      assert.deepEqual(
        error.problems.map(({ option }) => option),
        ["scraper"],
      );
      return true;
    });
  }
  await assert.rejects(loadScraper(".", folder), /^CrawlError: scraper: \.: is a directory, not a module$/);
  await assert.rejects(loadScraper("absent.mjs", folder), /^CrawlError: scraper: absent\.mjs: no such file$/);
});
