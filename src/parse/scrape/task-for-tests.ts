/** For tests only: a fetched page as the loop hands it to the scraper. */
import type { ScrapeTask } from "../../core/scraping.ts";

export function scrapeTask(html: string | Uint8Array, rest: Partial<ScrapeTask> = {}): ScrapeTask {
  const url = rest.url ?? "http://shop.test/list/page.html";
  return {
    url,
    sentAs: url,
    status: 200,
    headers: [["content-type", "text/html; charset=utf-8"]],
    contentType: "text/html; charset=utf-8",
    body: typeof html === "string" ? Buffer.from(html, "utf8") : html,
    depth: 0,
    referrer: null,
    method: "GET",
    priority: 0,
    attempt: 0,
    handler: null,
    data: null,
    series: null,
    index: null,
    oldRuns: null,
    ...rest,
  };
}
