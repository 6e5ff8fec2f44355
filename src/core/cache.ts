/** The response cache's contract: what is kept of an answer, and where. Whether it may serve is rules/caching.ts. */
import type { EpochMs } from "./clock.ts";

export interface StoredResponse {
  /** Canonical URL. */
  readonly url: string;
  readonly status: number;
  /** In the order of the answer, names in lower case, one entry a line; those of the connection are left out. */
  readonly headers: readonly (readonly [name: string, value: string])[];
  /** Decoded. */
  readonly body: Uint8Array;
  readonly wireBytes: number;
  readonly truncated: boolean;
  /** When the request was sent, and when the head of the answer had come (RFC 9111 §4.2.3). */
  readonly requestedAt: EpochMs;
  readonly respondedAt: EpochMs;
  /** What the request said in the fields that Vary names; null: the field was absent. */
  readonly varied: Readonly<Record<string, string | null>>;
}

export interface CacheStats {
  readonly responses: number;
  /** Of the bodies as kept, compressed. */
  readonly bodyBytes: number;
  readonly diskBytes: number;
  readonly oldest: EpochMs | null;
  readonly newest: EpochMs | null;
}

/** One owner; a store's failure is a CrawlError `state-unwritable`. `key`: method and canonical URL (and body digest), as text. */
export interface PageCache {
  get(key: string): Promise<StoredResponse | null>;
  /** Replaces what was there. */
  put(key: string, response: StoredResponse): Promise<void>;
  /** New head for a kept body, after a 304. */
  refresh(key: string, head: Pick<StoredResponse, "headers" | "requestedAt" | "respondedAt">): Promise<void>;
  delete(key: string): Promise<void>;
  /** Every response, oldest first. */
  all(): AsyncIterable<readonly [key: string, response: StoredResponse]>;
  stats(): Promise<CacheStats>;
  clear(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}
