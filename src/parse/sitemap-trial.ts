/** For tests only: reads a sitemap and keeps what it said. */
import { parseSitemap, type SitemapFacts, type SitemapOptions, type SitemapResult } from "./sitemap.ts";

export interface Read {
  readonly locs: string[];
  readonly sitemaps: string[];
  readonly alternates: string[];
  readonly facts: SitemapFacts[];
  readonly result: SitemapResult;
}

export const URL_HERE = "http://h/sitemap.xml";

export function collector(options: Partial<SitemapOptions>) {
  const got = { locs: [] as string[], sitemaps: [] as string[], alternates: [] as string[], facts: [] as SitemapFacts[] };
  const full: SitemapOptions = {
    url: URL_HERE,
    contentType: null,
    onUrl: (loc, facts) => {
      got.locs.push(loc.url);
      got.facts.push(facts);
    },
    onSitemap: (loc, facts) => {
      got.sitemaps.push(loc.url);
      got.facts.push(facts);
    },
    onAlternate: (loc) => got.alternates.push(loc.url),
    ...options,
  };
  return { got, full };
}

export function read(body: string | Uint8Array, options: Partial<SitemapOptions> = {}): Read {
  const { got, full } = collector(options);
  return { ...got, result: parseSitemap(typeof body === "string" ? Buffer.from(body) : body, full) };
}
