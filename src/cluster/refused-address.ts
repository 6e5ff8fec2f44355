/** Says once what a worker does to a crawl when it refuses an address that others may allow. Refusing itself is the fetcher's. */
import type { Frontier, Settled } from "../core/frontier.ts";
import type { Logger } from "../core/log.ts";

function isRefused({ settlement }: Settled): boolean {
  return settlement.kind === "done" && settlement.output.page?.error?.code === "blocked-address";
}

/** The frontier, which warns at the first page of the crawl that this process gives up for its address. */
export function sayRefused(frontier: Frontier, crawl: number, log: Logger): Frontier {
  let said = false;
  return {
    ...frontier,
    settle(settled, links) {
      if (!said && settled.some(isRefused)) {
        said = true;
        log("warn", "addresses that are not public are refused here, and their pages given up for all; --allow-address opens some", { crawl });
      }
      return frontier.settle(settled, links);
    },
  };
}
