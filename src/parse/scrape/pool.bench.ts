/** Pages a second through a scraper that reads 20 KB pages by `$`, inline and in parse workers. Run by hand: node src/parse/scrape/pool.bench.ts [PAGES] */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openScraping } from "./open.ts";
import { scrapeTask } from "./task-for-tests.ts";

const pages = Number(process.argv[2] ?? 1000);
const folder = mkdtempSync(join(tmpdir(), "skein-bench-"));
const row = (n: number) => `<tr class="item" data-date="2026-01-01"><td><a href="/detail/${n}">Thing number ${n}</a></td><td class="price">${n}.00</td></tr>\n`;
const html = `<!doctype html><title>List</title><table>${Array.from({ length: 172 }, (_, n) => row(n)).join("")}</table>`;
const scraper = `export default { handlers: { list({ $, item }) {
  for (const row of $("tr.item").slice(0, 30)) item({ name: $(row).find("a").text(), price: Number($(row).find(".price").text()) });
} } };`;
const plain = 'export default (url, html) => { for (const found of html.matchAll(/href="([^"]*)"/g)) found[1]; };';
writeFileSync(join(folder, "list.mjs"), scraper);
writeFileSync(join(folder, "plain.mjs"), plain);

try {
  for (const [file, total] of [
    ["list.mjs", pages],
    ["plain.mjs", pages * 20],
  ] as const) {
    for (const workers of [0, 1, 2]) {
      const { scraping } = await openScraping({ file, cwd: folder, workers, parseTimeoutMs: 60_000, concurrency: 64, log: () => undefined });
      await Promise.all(Array.from({ length: 100 }, () => scraping.run(scrapeTask(html))));
      const used = process.cpuUsage();
      const startedAt = performance.now();
      let left = total;
      const lane = async (): Promise<void> => {
        while (left-- > 0) await scraping.run(scrapeTask(html));
      };
      await Promise.all(Array.from({ length: 16 }, lane));
      const seconds = (performance.now() - startedAt) / 1000;
      const { user, system } = process.cpuUsage(used);
      const share = scraping.view().cpuShare;
      console.log(
        `${file}, ${workers} workers: ${Math.round(total / seconds)} pages/s, ${((user + system) / 1000 / total).toFixed(3)} ms CPU a page, share of a worker ${share.toFixed(2)}`,
      );
      await scraping[Symbol.asyncDispose]();
    }
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}
