/** The response cache of a crawl: how it gets around the fetcher. Loaded by crawls that use it; what it does is fetch/cache-layer.ts, where responses lie store/cache/ or, with a store, store/redis/cache.ts. */
import type { PageCache } from "./core/cache.ts";
import type { Clock } from "./core/clock.ts";
import type { Logger } from "./core/log.ts";
import type { Fetcher } from "./core/outcome.ts";
import type { CrawlSpec } from "./core/spec.ts";
import { withCache } from "./fetch/cache-layer.ts";
import type { FetcherOptions } from "./fetch/options.ts";
import { cacheFolder } from "./inspect/cache.ts";
import { type CacheFile, openCache } from "./store/cache/open.ts";

export interface Cached {
  readonly fetcher: Fetcher;
  /** Before pages are settled in a durable store: what came of them is in the cache then, whatever happens. */
  flush(): void;
}

interface Around {
  readonly spec: CrawlSpec;
  readonly options: FetcherOptions;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Most bytes unless `cacheSize` says otherwise. */
const ON_A_DISK = 10_000_000_000;
const IN_A_STORE = 1_000_000_000;
const MONTH_MS = 30 * 86_400_000;
const ROOM_EVERY_MS = 2_000;

/** With `spec.store` the cache of the store, else the file of the state directory. Both are opened when the first request asks for them: by then they have been found to be there. */
export function cachedFetcher(fetcher: Fetcher, { spec, options, clock, log }: Around): Cached {
  const how = { ...options, mode: spec.cache, offline: spec.offline };
  if (spec.store !== null) return { fetcher: withCache(fetcher, openedInStore(spec.store, { spec, clock, log }), how, clock), flush: () => undefined };
  let file: CacheFile | null = null;
  const open = async (): Promise<CacheFile> => {
    file ??= openCache(cacheFolder(spec.stateDir, process.cwd()), { maxBytes: spec.cacheSize ?? ON_A_DISK, clock });
    return file;
  };
  return { fetcher: withCache(fetcher, openedLater(open), how, clock), flush: () => file?.flush() };
}

/** On a connection of its own: large bodies must not keep the crawl's steps waiting. */
function openedInStore(url: string, { spec, clock, log }: Omit<Around, "options">): PageCache {
  return openedLater(async () => {
    const [{ connectRedis }, { createRedisCache }] = await Promise.all([import("./store/redis/connect.ts"), import("./store/redis/cache.ts")]);
    const link = await connectRedis(url, { log });
    const keepMs = Math.max(MONTH_MS, typeof spec.cache === "number" ? spec.cache : 0);
    const cache = createRedisCache(link, { keepMs, maxBytes: spec.cacheSize ?? IN_A_STORE });
    let over = false;
    let timer = clock.after(ROOM_EVERY_MS, look);
    function look(): void {
      // What stands in its way stands in the crawl's, which says so.
      void cache
        .makeRoom()
        .catch(() => 0)
        .then(() => {
          if (!over) timer = clock.after(ROOM_EVERY_MS, look);
        });
    }
    return {
      ...cache,
      async [Symbol.asyncDispose]() {
        over = true;
        timer.cancel();
        await link.close();
      },
    };
  });
}

function openedLater(open: () => Promise<PageCache>): PageCache {
  let opened: Promise<PageCache> | null = null;
  let ready: PageCache | null = null;
  const cache = (): Promise<PageCache> => {
    opened ??= open().then((found) => {
      ready = found;
      return found;
    });
    return opened;
  };
  return {
    get: async (key) => (await cache()).get(key),
    put: async (key, response) => (await cache()).put(key, response),
    refresh: async (key, head) => (await cache()).refresh(key, head),
    delete: async (key) => (await cache()).delete(key),
    async *all() {
      yield* (await cache()).all();
    },
    stats: async () => (await cache()).stats(),
    clear: async () => (await cache()).clear(),
    async [Symbol.asyncDispose]() {
      if (ready !== null) await ready[Symbol.asyncDispose]();
      // One that is still being opened is not waited for; one that could not be has told the request that asked for it.
      else
        void opened?.then(
          (late) => late[Symbol.asyncDispose](),
          () => undefined,
        );
    },
  };
}
