/** A process that ends before its command: it must not look as if the crawl had finished. */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";
import { root, run, temporaryFolder } from "../command.ts";

const server = createServer((request, response) => {
  if (request.url === "/robots.txt") response.statusCode = 404;
  response.setHeader("content-type", "text/html");
  response.end("<title>A page</title>");
});
let base = "";

before(async () => {
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  const address = server.address();
  assert.ok(address !== null && typeof address === "object");
  base = `http://127.0.0.1:${address.port}/`;
});
after(() => server.close());

const entry = pathToFileURL(join(root, "src/cli/main.ts")).href;
const program = `import { main } from ${JSON.stringify(entry)}; main(process.argv.slice(1));`;

const SCRAPERS = [
  ["whose promise nothing settles", "export default () => new Promise(() => {});", 1, /ended before the command did/],
  ["that calls process.exit(0)", "export default () => process.exit(0);", 1, /ended before the command did/],
  ["that calls process.exit(9)", "export default () => process.exit(9);", 9, /lives in memory/],
  ["that answers", "export default () => [];", 0, /finished: 1 page/],
] as const;

/** The same in parse workers: what ends or holds up a worker costs its page, and no more. */
const IN_WORKERS: readonly (readonly [name: string, source: string, message: RegExp, timeout?: string])[] = [
  ["whose promise nothing settles", "export default () => new Promise(() => {});", /scraper failed \(.*(?:took|longer|300ms).*\)/, "300ms"],
  ["that never gives the thread back", "export default () => { for (;;); };", /scraper failed/, "300ms"],
  ["that calls process.exit(0)", "export default () => process.exit(0);", /scraper failed/],
  ["that throws", "export default () => { throw new Error('too odd a page'); };", /scraper failed \(too odd a page; no retries allowed\)/],
];

async function crawlWith(source: string, ...more: string[]) {
  await using folder = await temporaryFolder();
  writeFileSync(join(folder.path, "scraper.mjs"), source);
  return await run(process.execPath, ["--input-type=module", "-e", program, "crawl", base, "-s", "scraper.mjs", "--retries", "0", ...more], folder.path);
}

for (const [name, source, status, message] of SCRAPERS) {
  test(`a scraper ${name} gives exit status ${status} in the loop's own thread`, async () => {
    const ended = await crawlWith(source, "--parse-workers", "0");
    assert.equal(ended.code, status, ended.stderr);
    assert.match(ended.stderr, message);
    if (status !== 1) assert.doesNotMatch(ended.stderr, /ended before/);
  });
}

for (const [name, source, message, timeout = "60s"] of IN_WORKERS) {
  test(`a scraper ${name} fails its page in a parse worker, and the crawl ends as it should`, async () => {
    const ended = await crawlWith(source, "--parse-workers", "1", "--parse-timeout", timeout);
    assert.equal(ended.code, 0, ended.stderr);
    assert.match(ended.stderr, message);
    assert.match(ended.stderr, /finished: 0 pages/);
  });
}

test("a scraper that is missing, broken or no scraper: status 2 naming the file, and nothing else said", async () => {
  for (const workers of ["0", "1"]) {
    for (const source of [null, "export default (;", "export default {};", "export const x = 1;"]) {
      await using folder = await temporaryFolder();
      if (source !== null) writeFileSync(join(folder.path, "scraper.mjs"), source);
      const argv = ["--input-type=module", "-e", program, "crawl", base, "-s", "scraper.mjs", "--parse-workers", workers];
      const { code, stderr } = await run(process.execPath, argv, folder.path);
      assert.equal(code, 2, `${source}: ${stderr}`);
      assert.match(stderr, /^skein: scraper: scraper\.mjs: /, String(source));
    }
  }
});
