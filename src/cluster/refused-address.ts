/** What a worker does when it refuses an address: hands the page back where the crawl's creator allows more, says so once. Refusing itself is the fetcher's. */
import { type Frontier, returned, type Settled } from "../core/frontier.ts";
import type { Logger } from "../core/log.ts";
import type { CrawlSpec } from "../core/spec.ts";

type Addresses = CrawlSpec["addresses"];

function isRefused({ settlement }: Settled): boolean {
  if (settlement.kind === "robots") return settlement.answer.kind === "unavailable" && settlement.answer.code === "blocked-address";
  return settlement.kind === "done" && settlement.output.page?.error?.code === "blocked-address";
}

/** Whether the crawl may reach addresses that this worker refuses. */
export function reachesFurther(crawl: Addresses, own: Addresses): boolean {
  if (!own.refusePrivate) return false;
  const allowed = new Set(own.allow.map((entry) => entry.toLowerCase()));
  return !crawl.refusePrivate || crawl.allow.some((entry) => !allowed.has(entry.toLowerCase()));
}

export interface Refusing {
  readonly crawl: number;
  readonly log: Logger;
  /** Somebody else may be allowed to: what is refused here is not given up. */
  readonly further: boolean;
  /** This worker is of no use to the crawl. */
  leave(): void;
}

/** The frontier as a worker sees it that refuses addresses. */
export function minding(frontier: Frontier, { crawl, log, further, leave }: Refusing): Frontier {
  let said = false;
  function say(): void {
    if (said) return;
    said = true;
    if (further) log("warn", "a crawl reaches addresses that are not public and are refused here: left to others; --allow-address opens some", { crawl });
    else log("warn", "addresses that are not public are refused, as the crawl has it; --allow-address of its creator opens some", { crawl });
  }
  return {
    ...frontier,
    settle(settled, links) {
      if (!settled.some(isRefused)) return frontier.settle(settled, links);
      say();
      if (!further) return frontier.settle(settled, links);
      leave();
      return frontier.settle(
        settled.map((one) => (isRefused(one) ? returned(one.token) : one)),
        links,
      );
    },
  };
}
