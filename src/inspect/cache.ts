/** The response cache seen from outside: where it lies, its figures, clearing it. Crawls get it from cached.ts. */
import { join, resolve } from "node:path";
import type { CacheStats } from "../core/cache.ts";
import type { Logger } from "../core/log.ts";
import { clearCache, readCacheStats } from "../store/cache/look.ts";

/** In the state directory, or `.skein/cache` below the working directory. */
export function cacheFolder(stateDir: string | null, cwd: string): string {
  return stateDir === null ? join(cwd, ".skein", "cache") : resolve(cwd, stateDir);
}

const NOTHING: CacheStats = { responses: 0, bodyBytes: 0, diskBytes: 0, oldest: null, newest: null };

export interface CacheView extends CacheStats {
  /** Folder of the cache; null: it lies in a store. */
  readonly dir: string | null;
  /** Server of the cache, without login; null: it lies in a folder. */
  readonly store: string | null;
  /** False: there is no cache yet. */
  readonly exists: boolean;
}

/** While crawls use it, too. Throws CrawlError `state-unwritable` for a file that is damaged or no cache. */
export function viewCache(dir: string): CacheView {
  const stats = readCacheStats(dir);
  return { dir, store: null, exists: stats !== null, ...(stats ?? NOTHING) };
}

/** Drops every response, also under a running crawl; a damaged cache is removed. Answers how it was before; a damaged one counts as empty. */
export function dropCache(dir: string): CacheView {
  let before: CacheView;
  try {
    before = viewCache(dir);
  } catch {
    // What cannot be read is what clearing is for; that throws by itself for what is not ours.
    before = { dir, store: null, exists: true, ...NOTHING };
  }
  return { ...before, exists: clearCache(dir) };
}

const START_WITHIN_MS = 10_000;

/** The cache of a store; dropped when told so, which touches nothing else there. Rejects with `store-unreachable`. */
export async function cacheInStore(url: string, action: "stats" | "clear", log: Logger): Promise<CacheView> {
  const [{ connectRedis }, { createRedisCache }] = await Promise.all([import("../store/redis/connect.ts"), import("../store/redis/cache.ts")]);
  const link = await connectRedis(url, { log, startWithinMs: START_WITHIN_MS, waitMs: START_WITHIN_MS });
  try {
    const cache = createRedisCache(link);
    const stats = await cache.stats();
    if (action === "clear") await cache.clear();
    return { dir: null, store: link.address.shown, exists: stats.responses > 0, ...stats };
  } finally {
    await link.close();
  }
}
