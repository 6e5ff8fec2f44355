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

for (const [name, source, status, message] of SCRAPERS) {
  test(`a scraper ${name} gives exit status ${status}`, async () => {
    await using folder = await temporaryFolder();
    writeFileSync(join(folder.path, "scraper.mjs"), source);
    const ended = await run(process.execPath, ["--input-type=module", "-e", program, "crawl", base, "-s", "scraper.mjs"], folder.path);
    assert.equal(ended.code, status, ended.stderr);
    assert.match(ended.stderr, message);
    if (status !== 1) assert.doesNotMatch(ended.stderr, /ended before/);
  });
}
