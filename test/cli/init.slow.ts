/** `skein init`: what it writes works as it stands. */
import assert from "node:assert/strict";
import { mkdirSync, readdirSync, readFileSync, realpathSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import test from "node:test";
import { pathToFileURL } from "node:url";
import { main } from "../../src/cli/main.ts";
import { root, run, temporaryFolder } from "../command.ts";
import { html, serve } from "../crawl/served.ts";
import { fakeCrawl } from "./fake-crawl.ts";
import { fakeIo } from "./fake-io.ts";

async function init(cwd: string, ...argv: string[]) {
  const io = fakeIo({ cwd });
  const status = await main(["init", ...argv], io, fakeCrawl(async () => ({})).load);
  return { status, out: io.out(), err: io.err() };
}

const entry = pathToFileURL(join(root, "src/cli/main.ts")).href;
const program = `import { main } from ${JSON.stringify(entry)}; main(process.argv.slice(1));`;
const library = pathToFileURL(join(root, "src/testing.ts")).href;

test("the files of a new scraper crawl, and its test passes", async () => {
  await using served = await serve((request, response) =>
    html(response, request.url === "/" ? '<a href="/a">a</a> <a href="/b">b</a>' : `<title>T</title><h1>${request.url}</h1>`),
  );
  await using folder = await temporaryFolder();
  const { status, err } = await init(folder.path, "shop", "--url", `${served.origin}/`);
  assert.equal(status, 0, err);
  assert.match(
    err,
    /^wrote shop\/package\.json\n.*\nnext: cd shop && npm install \S+ (?:node@24 )?&& npx skein fetch .* -s scraper\.ts, then npx skein crawl\n$/s,
  );
  const shop = join(folder.path, "shop");
  const ended = await run(process.execPath, ["--input-type=module", "-e", program, "crawl", "--parse-workers", "0"], shop);
  assert.equal(ended.code, 0, ended.stderr);
  const items = readFileSync(join(shop, "items.jsonl"), "utf8")
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line).heading);
  assert.deepEqual(items.sort(), ["/a", "/b"]);
  // What an installed package resolves by its name.
  writeFileSync(
    join(shop, "skein.mjs"),
    `import { registerHooks } from "node:module";
registerHooks({ resolve: (name, context, next) => name === "skein/testing" ? next(${JSON.stringify(library)}, context) : name === "skein" ? next(${JSON.stringify(library.replace("testing.ts", "index.ts"))}, context) : next(name, context) });`,
  );
  const tested = await run(process.execPath, ["--import", "./skein.mjs", "--test"], shop);
  assert.equal(tested.code, 0, tested.stdout);
});

test("the hint installs the package only where it is not found", async () => {
  await using folder = await temporaryFolder();
  const { err } = await init(folder.path);
  const [, path = ""] = /^next: npm install (\S+) (?:node@24 )?&& npx skein fetch/m.exec(err) ?? [];
  assert.equal(realpathSync(resolve(realpathSync(folder.path), path)), realpathSync(root));
  mkdirSync(join(folder.path, "shop/node_modules/skein"), { recursive: true });
  assert.match((await init(folder.path, "shop")).err, /^next: cd shop && npx skein fetch/m);
});

test("what is there already is left alone, and wrong usage has status 2", async () => {
  await using folder = await temporaryFolder();
  writeFileSync(join(folder.path, "scraper.ts"), "mine");
  const { status, err } = await init(folder.path);
  assert.equal(status, 0);
  assert.match(err, /scraper\.ts exists and is left as it is/);
  assert.equal(readFileSync(join(folder.path, "scraper.ts"), "utf8"), "mine");
  assert.deepEqual(readdirSync(folder.path).sort(), ["package.json", "scraper.test.ts", "scraper.ts", "skein.config.ts"]);
  assert.equal((await init(folder.path, "--url", "ftp://x/")).status, 2);
  assert.equal((await init(folder.path, "a", "b")).status, 2);
  writeFileSync(join(folder.path, "file"), "");
  const refused = await init(folder.path, "file");
  assert.equal(refused.status, 3);
  assert.match(refused.err, /cannot write file\/package\.json/);
});

test("a URL is no folder, and the crawl says whose options it takes", async () => {
  await using folder = await temporaryFolder();
  const { status, err } = await init(folder.path, "https://example.com/");
  assert.equal(status, 2);
  assert.match(err, /https:\/\/example\.com\/: skein init takes a folder; where the crawl starts is said by --url/);
  assert.deepEqual(readdirSync(folder.path), []);
  writeFileSync(join(folder.path, "skein.config.json"), '{"maxDepth":0}');
  await using served = await serve((_, response) => html(response, "<p>"));
  const { code, stderr } = await run(process.execPath, ["--input-type=module", "-e", program, "crawl", `${served.origin}/`], folder.path);
  assert.equal(code, 0, stderr);
  assert.match(stderr, /^options from skein\.config\.json$/m);
});
