/** The response cache of a crawl: how it gets around the fetcher. Loaded by crawls that use it; what it does is fetch/cache-layer.ts, where responses lie store/cache/, and where that is inspect-cache.ts. */
import type { Clock } from "./core/clock.ts";
import type { Fetcher } from "./core/outcome.ts";
import type { CrawlSpec } from "./core/spec.ts";
import { withCache } from "./fetch/cache-layer.ts";
import type { FetcherOptions } from "./fetch/options.ts";
import { cacheFolder } from "./inspect-cache.ts";
import { type CacheFile, openCache } from "./store/cache/open.ts";

export interface Cached {
  readonly fetcher: Fetcher;
  /** Before pages are settled in a durable store: what came of them is in the cache then, whatever happens. */
  flush(): void;
}

/** The file is opened when the first request asks for it: by then the state directory has been found to be one. */
export function cachedFetcher(fetcher: Fetcher, spec: CrawlSpec, options: FetcherOptions, clock: Clock): Cached {
  const cache = openedLater(() => openCache(cacheFolder(spec.stateDir, process.cwd()), { maxBytes: spec.cacheSize, clock }));
  return { fetcher: withCache(fetcher, cache, { ...options, mode: spec.cache, offline: spec.offline }, clock), flush: () => cache.flush() };
}

function openedLater(open: () => CacheFile): CacheFile {
  let opened: CacheFile | null = null;
  const cache = (): CacheFile => {
    opened ??= open();
    return opened;
  };
  return {
    flush: () => opened?.flush(),
    get: async (key) => cache().get(key),
    put: async (key, response) => cache().put(key, response),
    refresh: async (key, head) => cache().refresh(key, head),
    delete: async (key) => cache().delete(key),
    async *all() {
      yield* cache().all();
    },
    stats: async () => cache().stats(),
    clear: async () => cache().clear(),
    async [Symbol.asyncDispose]() {
      await opened?.[Symbol.asyncDispose]();
    },
  };
}
