/** For tests only: reads a sitemap and keeps what it said. */
import { createSitemapParser, readSitemap, type SitemapFacts, type SitemapOptions, type SitemapResult } from "./sitemap.ts";

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

const bytesOf = (body: string | Uint8Array) => (typeof body === "string" ? Buffer.from(body) : body);

/** A file that is not compressed. */
export function read(body: string | Uint8Array, options: Partial<SitemapOptions> = {}): Read {
  const { got, full } = collector(options);
  const parser = createSitemapParser(full);
  parser.push(bytesOf(body));
  return { ...got, result: parser.end() };
}

/** A file as it came. */
export async function readPacked(body: string | Uint8Array, options: Partial<SitemapOptions> = {}): Promise<Read> {
  const { got, full } = collector(options);
  const result = await readSitemap(bytesOf(body), full, () => new Promise((resolve) => setImmediate(resolve)));
  return { ...got, result };
}
