/** The only file that knows every concrete part: spec → Parts. */
import type { Cached } from "./cached.ts";
import { type EpochMs, realClock } from "./core/clock.ts";
import { CrawlError } from "./core/errors.ts";
import type { CrawlEvent } from "./core/events.ts";
import type { Frontier, FrontierConfig, FrontierHooks } from "./core/frontier.ts";
import { type Logger, silentLog } from "./core/log.ts";
import type { Fetcher } from "./core/outcome.ts";
import type { FingerprintSeed } from "./core/request.ts";
import type { Scrape } from "./core/scraping.ts";
import type { BatchSink, Sink } from "./core/sink.ts";
import type { CrawlSpec } from "./core/spec.ts";
import { TRAP_LIMITS, TRAP_NAMES } from "./core/traps.ts";
import type { CrawlHooks, OpenedStore, Parts } from "./engine/parts.ts";
import { extractPage } from "./parse/extract.ts";
import type { Scraper } from "./parse/scrape/define.ts";
import type { OpenedScraping } from "./parse/scrape/open.ts";
import { type AdmitRules, createRecentIds } from "./rules/admit.ts";
import { wantsBody } from "./rules/media-type.ts";
import { productToken } from "./rules/robots.ts";
import { compileScope } from "./rules/scope.ts";
import { createTraps, type Traps } from "./rules/traps.ts";
import { type ItemOutputs, openSinks } from "./sinks/open.ts";
import { openOwnSinks } from "./sinks/own.ts";
import { sharedLines } from "./sinks/shared-lines.ts";
import type { HostGate } from "./store/memory/gate.ts";
import { createMemoryFrontier } from "./store/memory.ts";
import type { FaultPoint } from "./store/sqlite/frontier.ts";
import { VERSION } from "./version.ts";

/** What a caller may give beside the spec; everything JSON cannot hold. */
export interface AssembleOptions {
  /** The textbook's callback. */
  readonly scrape?: Scrape;
  /** Made by defineScraper; runs in the loop's own thread. */
  readonly scraper?: Scraper;
  /** Against which the path of a scraper module is resolved; default: that of the process. */
  readonly cwd?: string;
  /** Of the program: synchronous ones, and such as take their time (docs/sinks.md). */
  readonly sinks?: readonly (Sink | BatchSink)[];
  /** What several crawls of one process have in common. */
  readonly shared?: SharedParts;
  readonly hooks?: CrawlHooks;
  readonly log?: Logger;
  readonly onEvent?: (event: CrawlEvent) => void;
  /** What stands for the seeds in the state directory where they are read from a source: a resume must name the same ones. */
  readonly seedNames?: readonly string[];
  /** Drop what the state directory holds. */
  readonly fresh?: boolean;
  /**
   * No seed was named: an unfinished run is gone on with, and none is begun (CrawlError `no-seeds`). `its-own`: the seeds are those that it was started
   * with; `none`: there are none, and it must have read all of its own.
   */
  readonly unnamed?: "its-own" | "none";
  /** The caller knows that an unfinished run in the state directory is this crawl: options that differ (an operator's, say) are taken as they are now. */
  readonly sameCrawl?: boolean;
  /** Opens the frontier of a crawl that others created: this process works on it, and writes nothing. */
  readonly joins?: (config: FrontierConfig, siteOf: (host: string) => string) => Promise<Frontier>;
  /** Opens a crawl that lives elsewhere than its spec says: that of a job, in the store of its service. */
  readonly opens?: (input: OpenInput, hooks: FrontierHooks, use: (sinks: readonly Sink[]) => void) => Promise<OpenedStore & { readonly seed: FingerprintSeed }>;
  /** A folder in which an interrupted crawl in memory is kept, so that it can be resumed. */
  readonly rescueTo?: string;
  /** Tests replace the world: time, chance, the web, and where a durable step may be interrupted. */
  readonly world?: Partial<Pick<Parts, "clock" | "random" | "openFetcher"> & { readonly passing: (point: FaultPoint) => void }>;
}

/** What a store is opened with. */
export interface OpenInput {
  readonly spec: CrawlSpec;
  readonly config: FrontierConfig;
  readonly clock: Parts["clock"];
  readonly siteOf: (host: string) => string;
  /** Of the program. */
  readonly sinks: readonly (Sink | BatchSink)[];
  readonly items: ItemOutputs;
}

export interface SharedParts {
  /** The clocks of hosts: all crawls together are polite. */
  readonly gate: HostGate;
  /** How often the files of a durable crawl are synced: each waits for the disk, and all others with it. */
  readonly syncEveryMs: () => number;
  /** Whether the death of the process is held against the page that was alone in flight: with several crawls it says little of any. */
  readonly blame: boolean;
}

/** The agent sent when the user names none. */
export const DEFAULT_USER_AGENT = `skein/${VERSION} (+https://www.npmjs.com/package/skein)`;

export function frontierConfig(spec: CrawlSpec): FrontierConfig {
  const { delay, concurrency, jitter } = spec.perHost;
  return {
    limitPages: spec.limits.pages,
    limitItems: spec.limits.items,
    levels: spec.maxDepth !== null && spec.depthMode === "exact",
    order: spec.order,
    perHostConcurrency: concurrency,
    perHostDelayMs: delay,
    jitter,
    hosts: new Map(
      Object.entries(spec.hosts).map(([host, over]) => [
        host,
        { ...(over.delay === undefined ? {} : { delayMs: over.delay }), ...(over.concurrency === undefined ? {} : { concurrency: over.concurrency }) },
      ]),
    ),
    ratePerMinute: spec.maxRequestsPerMinute,
    robots: spec.robots,
    maxWaitMs: spec.maxWait,
    // One process: a lease is lost only with everything else.
    leaseMs: Infinity,
    startWithinMs: Infinity,
    listDuplicates: spec.skippedAll,
  };
}

/** Opens the file sinks (nothing is created before the first record) and puts the parts together; no request is made. */
export function assemble(spec: CrawlSpec, options: AssembleOptions): Parts {
  const clock = options.world?.clock ?? realClock;
  const random = options.world?.random ?? Math.random;
  const log = options.log ?? silentLog;
  const userAgent = spec.userAgent ?? DEFAULT_USER_AGENT;
  const identity = {
    seedHosts: new Set<string>(),
    secureHosts: new Set<string>(),
    auth: new Map(Object.entries(spec.auth)),
    movedSeeds: [] as string[],
    guessed: new Set<string>(),
    onGrowth: null,
  };
  /** The loops run in threads of their own: this one fetches and reads nothing. */
  const threaded = spec.threads > 1 && options.joins === undefined;
  const seed = crypto.getRandomValues(new Int32Array(4));
  /** A state directory brings its own. */
  let fingerprintSeed: FingerprintSeed = [seed[0]!, seed[1]!, seed[2]!, seed[3]!];
  const site = siteRules(spec);
  const scraping = scrapingOf(spec, options, log);
  const admit: AdmitRules = {
    scope: compileScope(spec.scope, spec.follow, spec.list, [], site.siteOf),
    get seed() {
      return fingerprintSeed;
    },
    maxDepth: spec.maxDepth,
    robots: spec.robots,
    found: spec.print === "links",
    edges: spec.linksFile !== null,
    skipped: true,
    traps: trapsOf(spec, clock.epoch(), site.siteOf),
    passed: createRecentIds(),
  };
  const config = frontierConfig(spec);
  const gate = options.shared?.gate ?? null;
  const startedAt = clock.epoch();
  const stored = options.seedNames === undefined ? spec : { ...spec, seeds: options.seedNames };

  /** That the crawl gives items, and what is known of them; a plain function gives none. */
  async function itemsOf(): Promise<ItemOutputs> {
    if (scraping === null) return null;
    const { scraping: opened, itemTypes } = await scraping.open();
    return opened.kind === "links" ? null : { types: itemTypes };
  }

  async function openInMemory(
    hooks: FrontierHooks,
    use: (sinks: readonly Sink[]) => void,
    own: readonly (Sink | BatchSink)[],
    items: ItemOutputs,
  ): Promise<OpenedStore> {
    const files = openSinks(spec, null, sharedLines(), items);
    const given = await openOwnSinks(own, { id: crypto.randomUUID(), clock, durable: null });
    const sinks = [...files, ...given.sinks];
    use(sinks);
    const frontier = createMemoryFrontier(config, hooks, { clock, random, seed: fingerprintSeed, siteOf: site.siteOf, gate });
    return {
      frontier,
      sinks,
      gates: given.gates,
      visits: null,
      say: null,
      elapsedBeforeMs: 0,
      resumed: false,
      async finish(end) {
        const folder = options.rescueTo;
        if (folder === undefined || end.reason !== "interrupted" || end.left === 0) return null;
        const { rescue } = await import("./durable.ts");
        const kept = { keptAt: clock.epoch(), elapsedMs: end.elapsedMs, sinks: hooks.checkpoint?.(true) ?? new Map(), seeds: identity.movedSeeds };
        return rescue(frontier, { folder, spec: stored, startedAt, ...kept });
      },
    };
  }

  let cached: Cached | null = null;

  async function openInDirectory(
    dir: string,
    hooks: FrontierHooks,
    use: (sinks: readonly Sink[]) => void,
    own: readonly (Sink | BatchSink)[],
    items: ItemOutputs,
  ): Promise<OpenedStore> {
    const { openDurable } = await import("./durable.ts");
    const passing = options.world?.passing;
    const input = {
      dir,
      spec,
      stored,
      fresh: options.fresh === true,
      unnamed: options.unnamed ?? null,
      sameCrawl: options.sameCrawl === true,
      config,
      clock,
      random,
      siteOf: site.siteOf,
      shared: options.shared ?? null,
      traps: admit.traps,
      sinks: own,
      items,
    };
    // What is settled is in the cache: a kill takes away neither or both.
    const write: FrontierHooks["write"] = (outputs) => {
      cached?.flush();
      hooks.write(outputs);
    };
    const opened = await openDurable(passing === undefined ? input : { ...input, passing }, { ...hooks, write }, use);
    fingerprintSeed = opened.seed;
    return opened;
  }

  async function openInStore(
    url: string,
    hooks: FrontierHooks,
    use: (sinks: readonly Sink[]) => void,
    own: readonly (Sink | BatchSink)[],
    items: ItemOutputs,
  ): Promise<OpenedStore> {
    const { openShared } = await import("./cluster/cluster.ts");
    const input = {
      url,
      spec,
      stored,
      fresh: options.fresh === true,
      unnamed: options.unnamed ?? null,
      config,
      clock,
      siteOf: site.siteOf,
      sinks: own,
      items,
      log,
    };
    const opened = await openShared(input, hooks, use);
    fingerprintSeed = opened.seed;
    return opened;
  }

  async function openBy(opening: ReturnType<NonNullable<AssembleOptions["opens"]>>): Promise<OpenedStore> {
    const opened = await opening;
    fingerprintSeed = opened.seed;
    return opened;
  }

  async function join(open: NonNullable<AssembleOptions["joins"]>): Promise<OpenedStore> {
    const frontier = await open(config, site.siteOf);
    fingerprintSeed = frontier.seed;
    return { frontier, sinks: [], gates: [], visits: null, say: null, elapsedBeforeMs: 0, resumed: true, shared: true, finish: async () => null };
  }

  function openWhere(
    hooks: FrontierHooks,
    use: (sinks: readonly Sink[]) => void,
    own: readonly (Sink | BatchSink)[],
    items: ItemOutputs,
  ): Promise<OpenedStore> {
    if (options.joins !== undefined) return join(options.joins);
    if (options.opens !== undefined) return openBy(options.opens({ spec, config, clock, siteOf: site.siteOf, sinks: own, items }, hooks, use));
    if (spec.store !== null) return openInStore(spec.store, hooks, use, own, items);
    return spec.stateDir === null ? openInMemory(hooks, use, own, items) : openInDirectory(spec.stateDir, hooks, use, own, items);
  }

  const requestOptions = { ...fetcherOptions(spec, userAgent), seedHosts: identity.seedHosts, secureHosts: identity.secureHosts, auth: identity.auth };
  const openFetcher =
    options.world?.openFetcher ??
    (async () => {
      // undici is most of the start-up time: it loads while the seeds are read.
      const { createFetcher } = await import("./fetch/http.ts");
      return createFetcher(requestOptions, clock);
    });

  async function openCached(): Promise<Fetcher> {
    const [{ cachedFetcher }, fetcher] = await Promise.all([import("./cached.ts"), openFetcher()]);
    cached = cachedFetcher(fetcher, { spec, options: requestOptions, clock, log });
    return cached.fetcher;
  }

  return {
    spec,
    goesOn: options.unnamed !== undefined,
    clock,
    random,
    log,
    hooks: options.hooks ?? {},
    openScraping: scraping === null ? null : async () => (await scraping.open()).scraping,
    onEvent: options.onEvent ?? (() => undefined),
    admit,
    robotsToken: productToken(userAgent),
    needs: { digest: spec.fields === null || spec.fields.includes("digest") || spec.incremental || spec.cache !== null },
    extract: extractPage,
    loadSitemaps: () => import("./parse/sitemap.ts"),
    siteOf: site.siteOf,
    async openStore(hooks, use) {
      await site.load();
      const own = options.sinks ?? [];
      const items = await itemsOf();
      const opened = await openWhere(hooks, use, own, items);
      if (spec.cookies !== null && !opened.resumed) await opened.frontier.addCookies(await (await import("./cookie-file.ts")).readCookies(spec.cookies, log));
      return opened;
    },
    openFetcher: threaded ? async () => (await import("./threads/threads.ts")).noFetcher : spec.cache === null && !spec.offline ? openFetcher : openCached,
    loadLoops: threaded ? async () => (await import("./threads/threads.ts")).createLoops({ cwd: options.cwd ?? process.cwd() }) : null,
    identity,
  };
}

function fetcherOptions(spec: CrawlSpec, userAgent: string) {
  return {
    timeoutMs: spec.timeout,
    maxBodySize: spec.maxBodySize,
    types: spec.types,
    wantsBody,
    userAgent,
    headers: spec.headers,
    hosts: spec.hosts,
    proxy: spec.proxy,
    insecure: spec.insecure,
    addresses: spec.addresses,
    perHostConcurrency: spec.perHost.concurrency,
    environment: process.env,
  };
}

/**
 * Registrable domains are needed by crawls that span hosts. The public suffix list is large, so that others do without:
 * a cookie for a whole domain is then one for the host that set it.
 */
function siteRules(spec: CrawlSpec) {
  const wide = spec.scope.preset === "domain" || spec.scope.preset === "any" || spec.sitemaps.length > 0;
  let loaded: typeof import("./rules/site.ts") | null = null;
  return {
    async load() {
      if (wide) loaded ??= await import("./rules/site.ts");
    },
    siteOf: (host: string) => loaded?.siteOf(host) ?? host,
    isPublicSuffix: (domain: string) => loaded?.isPublicSuffix(domain) ?? null,
  };
}

/** The rules against spider traps with the figures of the spec; null when all are lifted. */
function trapsOf(spec: CrawlSpec, startedAt: EpochMs, siteOf: (host: string) => string): Traps | null {
  const { all, ...own } = spec.traps;
  const limits: Record<string, number | null> = {};
  for (const name of TRAP_NAMES) limits[name] = all === undefined ? TRAP_LIMITS[name] : all;
  // Newest first, depths say nothing of how far a chain of pages has led.
  if (spec.order === "dfs") limits["chain"] = null;
  for (const [name, limit] of Object.entries(own)) if (limit !== undefined) limits[name] = limit;
  return Object.values(limits).every((limit) => limit === null) ? null : createTraps({ ...limits, startedAt, siteOf });
}

/** The user's scraper: a module, a closure, or selectors. Loaded before the first request, so that a mistake in it ends the crawl at its start. Null: there is none. */
function scrapingOf(spec: CrawlSpec, { scrape, scraper, cwd, joins }: AssembleOptions, log: Logger): { open(): Promise<OpenedScraping> } | null {
  const given = [spec.scraper !== null, scrape !== undefined, scraper !== undefined, Object.keys(spec.extract).length > 0].filter(Boolean).length;
  if (given === 0 && spec.stopWhen.length > 0) {
    const message = "looks at items, and nothing gives any: give a scraper module (-s), or fields to extract (-e)";
    throw new CrawlError("invalid-options", `stopWhen: ${message}`, { problems: [{ option: "stopWhen", message }] });
  }
  if (given === 0) return null;
  if (given > 1) {
    const message = "give one of them only: a scraper module, a scraper or scrape function, or fields to extract";
    throw new CrawlError("invalid-options", `scraper: ${message}`, { problems: [{ option: "scraper", message }] });
  }
  let opened: Promise<OpenedScraping> | null = null;
  return {
    open() {
      opened ??= import("./parse/scrape/open.ts").then(({ openScraping }) =>
        openScraping({
          file: spec.scraper,
          scrape: scrape ?? null,
          scraper: scraper ?? null,
          extract: spec.extract,
          cwd: cwd ?? process.cwd(),
          // With several loops they have the parse workers; here only what the module says of itself is asked for.
          workers: spec.threads > 1 && joins === undefined ? 0 : spec.parseWorkers,
          parseTimeoutMs: spec.parseTimeout,
          concurrency: spec.concurrency,
          log,
        }),
      );
      return opened;
    },
  };
}
