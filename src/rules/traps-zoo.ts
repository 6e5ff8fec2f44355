/** For tests only: small webs as functions from a URL to its links, and a crawl over them that does nothing but ask for verdicts. */
import { siteOf } from "./site.ts";
import { createTraps, type TrapOptions, type Traps, type TrapVerdict } from "./traps.ts";

/** Links of a page, absolute. */
export type Web = (url: string) => readonly string[];

export interface ZooCrawl {
  readonly visited: ReadonlySet<string>;
  /** URL → verdict, of links that were refused. */
  readonly refused: ReadonlyMap<string, TrapVerdict>;
  readonly traps: Traps;
  /** False when the crawl was given up. */
  readonly ended: boolean;
}

export const STARTED_AT = Date.UTC(2026, 10, 29);

export function zooTraps(options: Partial<TrapOptions> = {}): Traps {
  return createTraps({ startedAt: STARTED_AT, siteOf, ...options });
}

/** Crawls from `seed` in order of discovery, or newest first; gives up after `most` pages. */
export function crawlZoo(
  web: Web,
  seed: string,
  settings: { most?: number; newestFirst?: boolean; options?: Partial<TrapOptions>; traps?: Traps } = {},
): ZooCrawl {
  const traps = settings.traps ?? zooTraps(settings.options);
  const most = settings.most ?? 100_000;
  const seen = new Set([seed]);
  const visited = new Set<string>();
  const refused = new Map<string, TrapVerdict>();
  const queue: { url: string; depth: number }[] = [{ url: seed, depth: 0 }];
  traps.verdict(seed, null, 0);
  for (let head = 0; head < queue.length && visited.size < most; ) {
    const page = settings.newestFirst === true ? queue.pop() : queue[head++];
    if (page === undefined) break;
    visited.add(page.url);
    for (const link of web(page.url)) {
      const verdict = traps.verdict(link, page.url, page.depth + 1);
      if (verdict !== null) {
        refused.set(link, verdict);
        continue;
      }
      if (seen.has(link)) continue;
      seen.add(link);
      queue.push({ url: link, depth: page.depth + 1 });
    }
  }
  return { visited, refused, traps, ended: visited.size < most };
}

/** The same numbers from the same start. */
export function lottery(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

/** Whole number below `n` that depends on `text` alone. */
export function lotOf(text: string, n: number): number {
  let state = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) state = Math.imul(state ^ text.charCodeAt(i), 0x01000193);
  state ^= state >>> 15;
  return (Math.imul(state, 0x2c1b3c6d) >>> 0) % n;
}

export const range = (n: number) => Array.from({ length: n }, (_, i) => i);
