/** What becomes of a request whose lease was lost to crashes too often: the record of a failed page, with whatever it owes. */
import type { Output, PageRecord } from "../core/records.ts";
import type { CrawlRequest } from "../core/request.ts";
import type { Parts } from "./parts.ts";
import { outputOf, pageRecord } from "./record.ts";
import { failedVisit } from "./visits.ts";

/** The record of a request whose lease was lost to crashes (product contract, section 5). */
export function crashedOutput(
  parts: Pick<Parts, "clock"> & { readonly admit: { readonly scope: Pick<Parts["admit"]["scope"], "lists"> } },
  request: CrawlRequest,
  crashes: number,
): Output {
  const page: PageRecord = pageRecord({
    request,
    outcome: "failed",
    status: null,
    attempts: crashes,
    facts: { startedAt: parts.clock.epoch(), durationMs: 0 },
    response: null,
    extraction: null,
    error: { code: "crashed", message: `the worker died ${crashes} times while it fetched this page` },
    location: null,
    digest: false,
  });
  const output = { ...outputOf(page, parts.admit.scope.lists(page.url)), visit: failedVisit(request, page) };
  return request.rest?.owed === undefined ? output : { ...output, owed: request.rest.owed };
}
