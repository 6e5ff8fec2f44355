/** Throughput of extraction over a folder of HTML files: `node src/parse/html.bench.ts FOLDER…`. Prints MB/s and µs a page, best of the rounds. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { extractPage } from "./extract.ts";
import { collectReferences } from "./html.ts";
import { htmlResponse } from "./response-for-tests.ts";

const MAX_BYTES = 40_000_000;

function pages(directory: string): Buffer[] {
  const files = readdirSync(directory, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile() && /\.html?$|^[^.]+$/.test(entry.name));
  const found: Buffer[] = [];
  let bytes = 0;
  for (const entry of files) {
    const page = readFileSync(join(entry.parentPath, entry.name));
    found.push(page);
    bytes += page.length;
    if (bytes > MAX_BYTES) break;
  }
  return found;
}

function measure(name: string, all: readonly Buffer[], work: (page: Buffer) => number): void {
  const bytes = all.reduce((sum, page) => sum + page.length, 0);
  let best = Number.POSITIVE_INFINITY;
  let count = 0;
  for (let round = 0; round < 6; round++) {
    const start = process.cpuUsage().user;
    count = 0;
    for (const page of all) count += work(page);
    best = Math.min(best, process.cpuUsage().user - start);
  }
  process.stdout.write(
    `${name}: ${(bytes / best).toFixed(0)} MB/s, ${(best / all.length).toFixed(1)} µs a page, ${count} references in ${all.length} pages of ${bytes} bytes\n`,
  );
}

for (const directory of process.argv.slice(2)) {
  const all = pages(directory);
  measure(`${directory} scan   `, all, (page) => collectReferences(page, { images: false, xml: false }).size / 5);
  const options = { images: false, robotsToken: "skein", maxUrlLength: 8192 };
  const url = "http://127.0.0.1:8080/d/page.html";
  measure(`${directory} extract`, all, (page) => extractPage(htmlResponse(page, "text/html"), url, options).links.length);
}
