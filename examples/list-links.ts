/** Lists every .html page at most two links away from a start page, as plain lines. Usage: node examples/list-links.ts [URL] */
import { crawl } from "skein";

const start = process.argv[2] ?? "https://example.com/";

for await (const page of crawl({ seeds: [start], maxDepth: 2, list: ["*.html"] })) {
  if (page.outcome === "failed") console.error(`not accessible (${page.error?.code}): ${page.url}, moving on`);
  else if (page.outcome === "fetched" && page.status === 200) console.log(page.url);
}
