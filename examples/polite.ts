/** A slow, considerate crawl of one site: one request at a time, a pause between two, at most 20 pages, a name to complain to. Usage: node examples/polite.ts [URL] [DELAY] */
import { crawl } from "skein";

const [start = "https://example.com/", delay = "1s"] = process.argv.slice(2);

const run = crawl({
  seeds: [start],
  userAgent: "example-bot/1.0 (+https://example.com/bot)",
  perHost: { concurrency: 1, delay },
  limits: { pages: 20 },
});

for await (const page of run) console.log(`${page.outcome} ${page.status ?? "-"} ${page.url}`);

const summary = await run.done;
console.log(`${summary.pages} pages in ${Math.round(summary.elapsedMs)} ms, ended: ${summary.finishReason}`);
