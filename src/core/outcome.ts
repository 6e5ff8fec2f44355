/** What came of one exchange with the web. The web failing is a value. */
import type { EpochMs } from "./clock.ts";
import type { Cookie, HostAnswer, HostTuning } from "./frontier.ts";
import type { ErrorCode } from "./records.ts";
import type { CrawlRequest } from "./request.ts";

/** Header fields of a response. Names are lower case; several lines of one name are joined with ", " (Set-Cookie apart). */
export interface ResponseHeaders {
  get(name: string): string | null;
  /** One entry per header line of that name. */
  all(name: string): readonly string[];
  /** Every name there is, in the order of the answer. */
  names(): readonly string[];
}

/** A whole answer. `body` is decoded (content coding removed) and bounded by maxBodySize; it may be a view into a pooled buffer: do not keep it past the settle. */
export interface FetchedResponse {
  readonly status: number;
  readonly headers: ResponseHeaders;
  readonly contentType: string | null;
  readonly body: Uint8Array;
  /** Body bytes as they came over the wire. */
  readonly wireBytes: number;
  readonly truncated: boolean;
  /** The `types` option did not want this body. */
  readonly bodySkipped: boolean;
  /** The body is a stored one (core/cache.ts). Whether the host was asked if it still holds is told by `sinceStartMs`. */
  readonly fromCache?: true;
}

/** What every outcome tells of the exchange. */
export interface ExchangeFacts {
  readonly startedAt: EpochMs;
  readonly durationMs: number;
  /** Ms since the request head went out; null: the host was not contacted. */
  readonly sinceStartMs: number | null;
  readonly answer: HostAnswer | null;
  readonly host: HostTuning | null;
  readonly setCookies: readonly Cookie[] | null;
}

export type FetchOutcome = ExchangeFacts &
  (
    | { readonly kind: "fetched"; readonly response: FetchedResponse }
    /** 301, 302, 303, 307, 308 with a Location. `location` is decoded to a string but not resolved. */
    | { readonly kind: "redirect"; readonly response: FetchedResponse; readonly location: string }
    /** `status` when an answer came (429, 5xx, cut bodies). `retryable`: a passing failure. `retryAfterMs`: the server's wish. */
    | {
        readonly kind: "failed";
        readonly code: ErrorCode;
        readonly message: string;
        readonly status: number | null;
        readonly response: FetchedResponse | null;
        readonly retryable: boolean;
        readonly retryAfterMs: number | null;
      }
    /** Aborted by us; says nothing about the page. */
    | { readonly kind: "aborted" }
  );

/** One request on its way. The callbacks are called at most once each, start before end, and never after the outcome. */
export interface Exchange {
  readonly request: CrawlRequest;
  readonly cookies: readonly Cookie[] | null;
  /** Bodies of robots.txt and the like: fetched whatever the `types` option says, up to this many decoded bytes (then cut, flagged truncated). Null: the spec's limits. */
  readonly maxBytes: number | null;
  /** The request head was handed to a connected socket. */
  onStart(): void;
  /** The response has ended, or the connection was lost. */
  onEnd(): void;
  /** The request without the conditions that ask whether the page changed since the last run: a cache that holds the page asks for itself. Absent: there are none. */
  readonly unconditional?: CrawlRequest;
}

/** Makes exchanges. Never rejects for what the web does. */
export interface Fetcher {
  fetch(exchange: Exchange): Promise<FetchOutcome>;
  /** Ends an exchange under way with outcome `aborted`. Unknown: nothing. */
  abort(exchange: Exchange): void;
  abortAll(): void;
  [Symbol.asyncDispose](): Promise<void>;
}
