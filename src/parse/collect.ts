/** Gathers the URLs of one page: distinct, in order, with what belongs to them. */
import type { Extraction, RejectedLink } from "../core/page.ts";
import type { Resolved } from "../rules/url-resolve.ts";

export interface Collector {
  /** `href` as written; it is kept only where it cannot become a request. */
  link(resolved: Resolved, href: string, nofollow: boolean): void;
  image(resolved: Resolved): void;
  /** The first that is a URL counts. */
  canonical(resolved: Resolved): void;
  result(): Pick<Extraction, "canonical" | "links" | "nofollow" | "sentAs" | "images" | "rejected">;
}

const MAX_REJECTED_LENGTH = 2000;

export function createCollector(withImages: boolean): Collector {
  const links = new Set<string>();
  const images = withImages ? new Set<string>() : null;
  const rejected = new Map<string, RejectedLink>();
  let nofollow: Set<string> | null = null;
  let sentAs: Map<string, string> | null = null;
  let canonical: string | null = null;

  function reject(href: string, reason: RejectedLink["reason"]): void {
    const shown = href.length > MAX_REJECTED_LENGTH ? copied(href.slice(0, MAX_REJECTED_LENGTH)) : href;
    if (!rejected.has(shown)) rejected.set(shown, { href: shown, reason });
  }

  return {
    link(resolved, href, isNofollow) {
      if (typeof resolved !== "string" && "reject" in resolved) {
        reject(href, resolved.reject);
        return;
      }
      const url = typeof resolved === "string" ? resolved : resolved.url;
      const before = links.size;
      links.add(url);
      if (links.size === before) {
        if (!isNofollow) nofollow?.delete(url); // one occurrence without the mark is enough
        return;
      }
      if (isNofollow) (nofollow ??= new Set()).add(url);
      if (typeof resolved !== "string" && resolved.sentAs !== null) (sentAs ??= new Map()).set(url, resolved.sentAs);
    },
    image(resolved) {
      if (typeof resolved === "string") images?.add(resolved);
      else if (!("reject" in resolved)) images?.add(resolved.url);
    },
    canonical(resolved) {
      if (canonical === null && (typeof resolved === "string" || !("reject" in resolved))) canonical = typeof resolved === "string" ? resolved : resolved.url;
    },
    result: () => ({
      canonical,
      links: [...links],
      nofollow: nofollow === null || nofollow.size === 0 ? null : nofollow,
      sentAs,
      images: images === null ? null : [...images],
      rejected: [...rejected.values()],
    }),
  };
}

/** A slice would keep the whole string alive. */
function copied(text: string): string {
  return Buffer.from(text, "utf8").toString("utf8");
}
