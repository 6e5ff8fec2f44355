/** The common endings of a visit: a page with its record, a refusal, a failure, a request that is dropped. */
import type { Lease, Settled, Settlement, ValueChange } from "../core/frontier.ts";
import type { ExchangeFacts, FetchedResponse } from "../core/outcome.ts";
import type { ErrorCode, Output, PageRecord } from "../core/records.ts";
import type { CrawlRequest } from "../core/request.ts";
import { NO_HANDLER, RUN_BROKEN, RUN_FAILED } from "../rules/values.ts";
import type { Concluded } from "./concluded.ts";
import type { Parts } from "./parts.ts";
import { outputOf, pageRecord, skippedOf, tallyOf } from "./record.ts";
import type { VisitDesk } from "./visits.ts";

/** What the exchange leaves for the settle step. */
export type Facts = Pick<ExchangeFacts, "sinceStartMs" | "answer" | "host" | "setCookies">;
export type PageError = { readonly code: ErrorCode; readonly message: string };

export const UNTOUCHED: Facts = { sinceStartMs: null, answer: null, host: null, setCookies: null };
export const NO_LINKS: readonly CrawlRequest[] = [];
export const NO_SKIPS: Output["skipped"] = [];

export interface Settling {
  settled(lease: Lease, facts: Facts, settlement: Settlement, page: PageRecord | null): Settled;
  /** The page's record and those its redirect chain owes, as one settlement. */
  done(lease: Lease, facts: Facts | null, page: PageRecord, output: Output, links?: readonly CrawlRequest[]): Concluded;
  /** Ended without having been fetched. */
  refused(lease: Lease, outcome: "disallowed" | "failed", error: PageError | null, skipped: Output["skipped"]): Concluded;
  failedPage(lease: Lease, facts: ExchangeFacts, response: FetchedResponse | null, error: PageError, status: number | null): Concluded;
  /** The record of a page that failed after it was fetched. */
  failedLater(lease: Lease, facts: Facts, page: PageRecord, error: PageError): Concluded;
  dropped(lease: Lease, facts: Facts, skipped: Output["skipped"]): Concluded;
  /** Reused results: what is listed depends on the URL alone. */
  listed(url: string): boolean;
}

/** `first`: the handler of requests that name none; null: there are no handlers. */
export function createSettling(parts: Parts, first: string | null, visits: VisitDesk | null): Settling {
  const { clock, admit } = parts;
  const listed = (url: string): boolean => admit.scope.lists(url);

  /** What a failure means for the watermarks of this run (engine/values.ts), and for those of stop rules. */
  function failureValues({ rest }: CrawlRequest, page: PageRecord | null): readonly ValueChange[] | null {
    if (page === null || !isMissing(page) || (first === null && parts.spec.stopWhen.length === 0)) return null;
    const scrape = rest?.scrape;
    if (scrape?.series !== undefined) return [{ op: "min", key: RUN_FAILED + scrape.series, value: String(scrape.index ?? 0) }];
    return [{ op: "set", key: RUN_BROKEN + (scrape?.handler ?? first ?? NO_HANDLER), value: "true" }];
  }

  function settled(lease: Lease, facts: Facts, settlement: Settlement, page: PageRecord | null): Settled {
    const base = {
      token: lease.token,
      settlement,
      sinceStartMs: facts.sinceStartMs,
      answer: facts.answer,
      host: facts.host,
      setCookies: facts.setCookies,
      newSeeds: null,
      tally: tallyOf(page),
    };
    const values = failureValues(lease.request, page);
    return values === null ? base : { ...base, values };
  }

  function withOwed(lease: Lease, output: Output): Output {
    const owed = lease.request.rest?.owed;
    return owed === undefined || owed.length === 0 ? output : { ...output, owed };
  }

  function done(lease: Lease, facts: Facts | null, page: PageRecord, output: Output, links = NO_LINKS): Concluded {
    const counted = page.outcome === "fetched" || page.outcome === "unchanged";
    const noted =
      visits !== null && output.page !== null && (page.outcome === "failed" || page.outcome === "disallowed")
        ? visits.failed(lease.request, { ...output, page: output.page })
        : output;
    const settlement: Settlement = { kind: "done", counted, output: withOwed(lease, noted) };
    return { settled: settled(lease, facts ?? UNTOUCHED, settlement, page), links };
  }

  return {
    settled,
    done,
    listed,
    refused(lease, outcome, error, skipped) {
      const page = pageRecord({
        request: lease.request,
        outcome,
        status: null,
        attempts: lease.attempt,
        facts: { startedAt: clock.epoch(), durationMs: 0 },
        response: null,
        extraction: null,
        error,
        location: null,
        digest: false,
      });
      return done(lease, null, page, outputOf(page, listed(page.url), skipped));
    },
    failedPage(lease, facts, response, error, status) {
      const page = pageRecord({
        request: lease.request,
        outcome: "failed",
        status,
        attempts: lease.attempt + 1,
        facts,
        response,
        extraction: null,
        error,
        location: null,
        digest: false,
      });
      const skipped = error.code === "blocked-address" ? skippedOf(lease.request, "private-address", error.message) : undefined;
      return done(lease, facts, page, outputOf(page, listed(page.url), skipped));
    },
    failedLater(lease, facts, fetched, error) {
      const { title: _title, canonical: _canonical, robots: _robots, images: _images, change: _change, ...rest } = fetched;
      const page: PageRecord = { ...rest, outcome: "failed", links: [], error };
      return done(lease, facts, page, outputOf(page, listed(page.url)));
    },
    dropped(lease, facts, skipped) {
      const output = withOwed(lease, outputOf(null, false, skipped));
      return { settled: settled(lease, facts, { kind: "dropped", output }, null), links: NO_LINKS };
    },
  };
}

/** Not read, although it may be there: it failed, or was refused (403 and the like). 404 and 410 say that there is no such page, as behind the end of a listing. */
function isMissing({ outcome, status }: PageRecord): boolean {
  return outcome === "failed" || (outcome === "fetched" && status !== null && status >= 400 && status !== 404 && status !== 410);
}
