/** Looks for the first page that mentions a word and stops the crawl there: what is in flight is finished, nothing new starts. Usage: node examples/stop-early.ts [URL] [WORD] */
import { crawl } from "skein";

const [start = "https://example.com/", word = "example"] = process.argv.slice(2);
let found: string | null = null;

const run = crawl(
  { seeds: [start] },
  {
    scrape(url, html) {
      if (found === null && html.toLowerCase().includes(word.toLowerCase())) {
        found = url;
        run.stop({ mode: "flight", reason: `found "${word}"` });
      }
    },
  },
);

const summary = await run.done;
console.log(found === null ? `"${word}" is on none of ${summary.pages} pages` : `"${word}" is on ${found} (${summary.finishReason})`);
