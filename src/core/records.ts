/** The records users read: pages, skipped URLs, edges, items (product contract, section 5). Field names and order here are the format. */
import type { Fingerprint, RedirectHop } from "./request.ts";
import type { ChangeRecord, Visit } from "./visits.ts";

export type Outcome = "fetched" | "redirected" | "unchanged" | "disallowed" | "failed" | "gone";

/** Why a page failed. */
export type ErrorCode =
  | "dns"
  | "connect"
  | "tls"
  | "timeout"
  | "reset"
  | "protocol"
  | "http"
  | "rate-limited"
  | "robots-unavailable"
  | "redirect"
  | "too-large"
  | "decode"
  | "parse"
  | "scraper"
  | "crashed"
  | "blocked-address";

/** Where the charset of a page came from, strongest first (HTML Standard §13.2.3). */
export type CharsetSource = "bom" | "header" | "meta" | "utf-8-valid" | "default";

/** One line of `-o pages.jsonl`. A field with `?` is absent when it has nothing to say. */
export interface PageRecord {
  readonly url: string;
  /** HTTP status; null when no answer came. */
  readonly status: number | null;
  readonly outcome: Outcome;
  readonly depth: number;
  readonly referrer: string | null;
  readonly location?: string;
  /** The chain that led here, oldest first; empty: none did. Lines of older files may lack it then: who reads files takes both. */
  readonly redirects: readonly RedirectHop[];
  /** As the server wrote it; null when it did not say. */
  readonly contentType: string | null;
  readonly charset?: string;
  readonly charsetSource?: CharsetSource;
  /** Body bytes on the wire. */
  readonly bytes: number;
  readonly bytesDecoded: number;
  readonly truncated?: true;
  readonly bodySkipped?: true;
  /** `sha256:` and the hex digest of the decoded body. */
  readonly digest?: string;
  readonly etag?: string;
  readonly lastModified?: string;
  readonly title?: string;
  readonly canonical?: string;
  /** Directives of meta robots and X-Robots-Tag that applied, lower case. */
  readonly robots?: readonly string[];
  /** Absolute, canonical, distinct, in page order. */
  readonly links: readonly string[];
  readonly images?: readonly string[];
  readonly attempts: number;
  readonly fromCache?: true;
  readonly change?: "new" | "changed" | "unchanged" | "gone";
  readonly error?: { readonly code: ErrorCode; readonly message: string };
  /** ISO 8601 in UTC, when the request was sent or the verdict fell. */
  readonly fetchedAt: string;
  readonly durationMs: number;
  /** Items that their schema refused. */
  readonly itemErrors?: readonly BadItem[];
}

/** What a scraper gave for one thing on a page: fields untouched, as JSON text of one object. */
export interface ItemRecord {
  /** Its kind: a table in a database. */
  readonly type: string;
  /** Value of the field that tells items of this type apart; null where none is named. */
  readonly key: string | null;
  readonly json: string;
}

/** An item that the schema of its type refused. It is written nowhere but in the page's record. */
export interface BadItem {
  readonly type: string;
  /** Path of the field, `price` or `offers[0].price`; empty: the item as a whole. */
  readonly field: string;
  readonly message: string;
  /** The item's JSON, cut to 1,000 characters. */
  readonly item: string;
}

/** Every field of a page record, in the order of the format. */
export const PAGE_FIELDS = [
  ...(["url", "status", "outcome", "depth", "referrer", "location", "redirects", "contentType", "charset", "charsetSource"] as const),
  ...(["bytes", "bytesDecoded", "truncated", "bodySkipped", "digest", "etag", "lastModified", "title", "canonical", "robots", "links", "images"] as const),
  ...(["attempts", "fromCache", "change", "error", "fetchedAt", "durationMs", "itemErrors"] as const),
] satisfies readonly (keyof PageRecord)[];

export type SkipReason =
  | "out-of-scope"
  | "excluded"
  | "not-followed"
  | "depth"
  | "page-limit"
  | "robots"
  | "nofollow"
  | "duplicate-content"
  | "trap"
  | "file-type"
  | "scheme"
  | "invalid-url"
  | "url-too-long"
  | "private-address"
  | "redirect-out-of-scope"
  | "stopped"
  /** Listed only with --skipped-all. */
  | "duplicate";

/** One line of `--skipped`. */
export interface SkippedRecord {
  readonly url: string;
  readonly referrer: string | null;
  readonly depth: number;
  readonly reason: SkipReason;
  /** The pattern, robots line or limit that decided. */
  readonly rule?: string;
}

/** One line of `--links`: `from` links to `to`. */
export interface EdgeRecord {
  readonly from: string;
  readonly to: string;
  readonly nofollow?: true;
}

/** A skipped URL or a link found, under the fingerprint by which a store writes it only once. */
export interface Once<T> extends Fingerprint {
  readonly value: T;
}

/** All that comes of settling one page. A store writes it whole, once, in the step that acknowledges the page. */
export interface Output {
  /** Null for what is settled without a page record. */
  readonly page: PageRecord | null;
  /** Printed and written to `-o` (the `list` patterns decide). */
  readonly listed: boolean;
  /** Counted by reason, written once per URL. */
  readonly skipped: readonly Once<SkippedRecord>[];
  /** For `--print links`: written once per URL. Empty when nobody asked. */
  readonly found: readonly Once<string>[];
  /** For `--links`. Empty when nobody asked. */
  readonly edges: readonly EdgeRecord[];
  /** What the scraper gave, in its order; absent: nothing. */
  readonly items?: readonly ItemRecord[];
  /** For the next run (core/visits.ts); absent: nobody keeps it. */
  readonly visit?: Visit;
  /** For `--changes`. */
  readonly changes?: readonly ChangeRecord[];
  /** Outputs of the redirect chain that led here, written before this one; whoever writes flattens them. */
  readonly owed?: readonly Output[];
}
