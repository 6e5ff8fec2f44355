/** What a visit ends in: plain data for the settle step. */
import type { HostTuning, Settled } from "../core/frontier.ts";
import type { FetchOutcome } from "../core/outcome.ts";
import type { CrawlRequest } from "../core/request.ts";

/** What a visit hands to the settle step. */
export interface Concluded {
  readonly settled: Settled;
  readonly links: readonly CrawlRequest[];
}

/** A Retry-After is for the whole host, not for the one page that was answered with it. */
export function resting(outcome: FetchOutcome & { kind: "failed" }): HostTuning | null {
  return outcome.retryAfterMs === null ? outcome.host : { ...outcome.host, notBeforeMs: outcome.retryAfterMs };
}
