/** What a body says, as far as a crawl needs it: links, images, charset, title, directives. */
import type { FetchedResponse } from "./outcome.ts";
import type { CharsetSource, SkipReason } from "./records.ts";

/** A reference that cannot become a request. */
export interface RejectedLink {
  /** As written, cut to 2,000 characters. */
  readonly href: string;
  readonly reason: Extract<SkipReason, "scheme" | "invalid-url" | "url-too-long">;
}

export interface Extraction {
  /** Encoding Standard name in lower case; null when the body is not text. */
  readonly charset: string | null;
  readonly charsetSource: CharsetSource | null;
  readonly title: string | null;
  readonly canonical: string | null;
  /** Against what the document's references were resolved, where its base element says so; absent: the page's own URL. */
  readonly base?: string;
  /** Canonical URLs (rules/url.ts), distinct, page order: header Link first, then the document. */
  readonly links: readonly string[];
  /** Those of `links` that every occurrence marks rel=nofollow. */
  readonly nofollow: ReadonlySet<string> | null;
  /** Where the page's own spelling must be sent: canonical → URL to send (rules/url.ts). */
  readonly sentAs: ReadonlyMap<string, string> | null;
  readonly images: readonly string[] | null;
  readonly rejected: readonly RejectedLink[];
  /** Directives for this crawler from meta robots and X-Robots-Tag, lower case, distinct; `none` is given as noindex, nofollow. */
  readonly robots: readonly string[];
}

export interface ExtractOptions {
  readonly images: boolean;
  /** Product token of the user agent, lower case: which robots metas and X-Robots-Tag lines speak to us. */
  readonly robotsToken: string;
  readonly maxUrlLength: number;
}

/** Bytes → Extraction. Pure and synchronous; any bytes give an answer. */
export type ExtractPage = (response: FetchedResponse, url: string, options: ExtractOptions) => Extraction;
