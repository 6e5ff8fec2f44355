/** The response cache of a crawl: how it gets around the fetcher. Loaded by crawls that use it; what it does is fetch/cache-layer.ts, where responses lie store/cache/, and where that is inspect-cache.ts. */
import type { PageCache } from "./core/cache.ts";
import type { Clock } from "./core/clock.ts";
import type { Fetcher } from "./core/outcome.ts";
import type { CrawlSpec } from "./core/spec.ts";
import { withCache } from "./fetch/cache-layer.ts";
import type { FetcherOptions } from "./fetch/options.ts";
import { cacheFolder } from "./inspect-cache.ts";
import { openCache } from "./store/cache/open.ts";

/** The file is opened when the first request asks for it: by then the state directory has been found to be one. */
export function cachedFetcher(fetcher: Fetcher, spec: CrawlSpec, options: FetcherOptions, clock: Clock): Fetcher {
  const cache = openedLater(() => openCache(cacheFolder(spec.stateDir, process.cwd()), { maxBytes: spec.cacheSize, clock }));
  return withCache(fetcher, cache, { ...options, mode: spec.cache, offline: spec.offline }, clock);
}

function openedLater(open: () => PageCache): PageCache {
  let opened: PageCache | null = null;
  const cache = (): PageCache => {
    opened ??= open();
    return opened;
  };
  return {
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
