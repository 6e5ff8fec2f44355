/**
 * The crawler of the textbook: a callback sees every page, may return more links, and only links that match an expression are followed.
 * It prints a title for each page as CSV. Usage: node examples/textbook-scrape.ts [URL]
 */
import { crawl } from "skein";

const start = process.argv[2] ?? "https://example.com/";
const rows: string[] = [];

const run = crawl(
  { seeds: [start], maxDepth: 3, follow: ["re:/(index|docs)"], concurrency: 8 },
  {
    scrape(url, html) {
      const title = /<title[^>]*>([^<]*)</i.exec(html)?.[1]?.trim() ?? "";
      rows.push(`${url},"${title.replaceAll('"', '""')}"`);
      // Links returned here are added to those of the page itself; they pass scope, follow, depth and robots.txt like any other.
      return [new URL("/docs/hidden.html", url).href];
    },
  },
);

await run.done;
console.log(["url,title", ...rows.sort()].join("\n"));
