/** Pages/s of `skein reparse` over a stored shop (docs/incremental.md): `node test/incremental/reparse.bench.ts [pages]`. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { silentLog } from "../../src/core/log.ts";
import { crawl } from "../../src/index.ts";
import { reparse } from "../../src/reparse.ts";
import { createShop } from "../../src/testing/shop.ts";

const pages = Number(process.argv[2] ?? 2_000);
const dir = mkdtempSync(join(tmpdir(), "skein-reparse-bench-"));
const scraper = join(dir, "shop.mjs");
const state = join(dir, "state");

function write(version: number): void {
  writeFileSync(
    scraper,
    `import { defineScraper } from "skein";
    export default defineScraper({ version: ${version}, handlers: {
      list({ $, follow, data }) {
        const rows = $("tr.item");
        for (const row of rows) follow($(row).find("a").attr("href"), { handler: "detail" });
        const index = (data.index ?? 0) + 1;
        if (rows.length > 0) follow("/list/" + (index + 1), { handler: "list", data: { index } });
      },
      detail({ $, item, url }) {
        const title = $("h1").text();
        for (const offer of $("li.offer")) item({ url, title, offer: $(offer).text() });
      },
    } });`,
  );
}

try {
  write(1);
  const shop = createShop({ seed: 7, products: pages, offers: pages * 27 });
  await using server = await shop.serve({ latency: [0, 1] });
  const spec = {
    seeds: [`${server.origin}/list/1`],
    stateDir: state,
    cache: 86_400_000,
    scraper,
    parseWorkers: 1,
    maxDepth: null,
    perHost: { delay: 0, concurrency: 64 },
  } as const;
  const done = await crawl(spec).done;
  process.stdout.write(`crawled ${done.pages} pages, ${Math.round(done.pages / (done.elapsedMs / 1_000))} pages/s\n`);
  const base = {
    dir: state,
    scraper,
    extract: {},
    parseTimeoutMs: 60_000,
    outputs: [join(dir, "items.jsonl")],
    sinks: [],
    meta: true,
    cwd: dir,
    log: silentLog,
  };
  for (const all of [true, false]) {
    for (const workers of all ? [0, 1, 2, 1, 2] : [1]) {
      const cpu = process.cpuUsage();
      const { parsed, kept, items, elapsedMs } = await reparse({ ...base, workers, all });
      const { user, system } = process.cpuUsage(cpu);
      const rate = Math.round(((parsed + kept) * 1_000) / elapsedMs);
      process.stdout.write(
        `${workers} workers: ${parsed} parsed, ${kept} kept, ${items} items, ${rate} pages/s, ${((user + system) / 1e6).toFixed(1)} s CPU\n`,
      );
    }
  }
} finally {
  rmSync(dir, { recursive: true, force: true });
}
