/** The response cache seen from outside: where it lies, its figures, clearing it. Crawls get it from cached.ts. */
import { join, resolve } from "node:path";
import type { CacheStats } from "./core/cache.ts";
import { clearCache, readCacheStats } from "./store/cache/look.ts";

/** In the state directory, or `.skein/cache` below the working directory. */
export function cacheFolder(stateDir: string | null, cwd: string): string {
  return stateDir === null ? join(cwd, ".skein", "cache") : resolve(cwd, stateDir);
}

const NOTHING: CacheStats = { responses: 0, bodyBytes: 0, diskBytes: 0, oldest: null, newest: null };

export interface CacheView extends CacheStats {
  /** Folder of the cache. */
  readonly dir: string;
  /** False: there is no cache yet. */
  readonly exists: boolean;
}

/** While crawls use it, too. Throws CrawlError `state-unwritable` for a file that is damaged or no cache. */
export function viewCache(dir: string): CacheView {
  const stats = readCacheStats(dir);
  return { dir, exists: stats !== null, ...(stats ?? NOTHING) };
}

/** Drops every response, also under a running crawl; a damaged cache is removed. Answers how it was before; a damaged one counts as empty. */
export function dropCache(dir: string): CacheView {
  let before: CacheView;
  try {
    before = viewCache(dir);
  } catch {
    // What cannot be read is what clearing is for; that throws by itself for what is not ours.
    before = { dir, exists: true, ...NOTHING };
  }
  return { ...before, exists: clearCache(dir) };
}
