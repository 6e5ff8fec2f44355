/** Crawls of jobs in a store: created and found there, opened with their journals in the job's directory, asked about, deleted. Workers anywhere take their URLs. */
import { basename } from "node:path";
import { frontierConfig, type OpenInput } from "../assemble.ts";
import { SHARED_LEASES } from "../cluster/cluster.ts";
import { noteTime } from "../cluster/crawl-time.ts";
import { startDrain } from "../cluster/drain.ts";
import { startPulse } from "../cluster/pulse.ts";
import { minding } from "../cluster/refused-address.ts";
import type { Clock } from "../core/clock.ts";
import { LostCrawl } from "../core/errors.ts";
import type { FinishReason } from "../core/events.ts";
import type { Frontier, FrontierHooks } from "../core/frontier.ts";
import type { JobHost } from "../core/jobs.ts";
import type { Logger } from "../core/log.ts";
import type { FingerprintSeed } from "../core/request.ts";
import type { Sink, SinkState } from "../core/sink.ts";
import type { CrawlSpec } from "../core/spec.ts";
import type { OpenedStore } from "../engine/parts.ts";
import { journalSinks } from "../sinks/open.ts";
import { openOwnSinks } from "../sinks/own.ts";
import { sharedLines } from "../sinks/shared-lines.ts";
import type { JobRow } from "../store/jobs/book.ts";
import type { Committed } from "../store/jobs/committed.ts";
import { connectRedis } from "../store/redis/connect.ts";
import { createCrawls } from "../store/redis/crawls.ts";
import { openRedisFrontier } from "../store/redis/frontier.ts";
import { glance, tallyOf, writerOf } from "../store/redis/look.ts";
import { openOutbox } from "../store/redis/outbox.ts";
import { explainStored } from "./cluster-explain.ts";
import { workerSeeds } from "./cluster-seeds.ts";
import { workedUnseen } from "./cluster-time.ts";
import { watchStore } from "./cluster-watch.ts";
import { type HomeRun, type JobHome, ownDirectories } from "./home.ts";
import { allHosts } from "./inspect.ts";
import { sinkOf, wholeLines } from "./lines.ts";

/** How long the first connection is waited for. */
const START_WITHIN_MS = 10_000;
const LISTED_AT_ONCE = 500;

/** By it a crawl is known to be that of this job and of no other service's. */
const nameOf = ({ id, nonce }: JobRow): string => `${nonce}-${id}`;

const specOf = (row: JobRow): CrawlSpec => JSON.parse(row.spec) as CrawlSpec; // written by intake.ts

/** What workers are given: no word of this machine but the scraper's file name, which they look for in folders of their own. */
async function infoOf({ row, spec, seeds }: HomeRun): Promise<Readonly<Record<string, string>>> {
  const scraper = spec.scraper === null ? null : basename(spec.scraper);
  const stored = { ...specOf(row), scraper, seeds: await workerSeeds(spec, row.seedsTotal, seeds) };
  return { kind: "serve", job: nameOf(row), spec: JSON.stringify(stored), ...(scraper === null ? {} : { scraper }) };
}

export interface ClusterOptions {
  readonly url: string;
  /** This process takes no URLs: workers do. */
  readonly looksOn: boolean;
  readonly log: Logger;
  readonly clock: Clock;
}

/** Rejects with CrawlError `store-unreachable` when the store does not answer, or `invalid-options` for one that must not be used. */
export async function openCluster({ url, looksOn, log, clock }: ClusterOptions): Promise<JobHome> {
  const link = await connectRedis(url, { log, writes: true, startWithinMs: START_WITHIN_MS });
  const crawls = createCrawls(link);
  const pulse = looksOn ? null : startPulse(link, { kind: "serve", clock });
  let onBack = (): void => undefined;
  const watch = watchStore(link, clock, () => onBack());
  const { ask, tell } = watch;
  /** For jobs that ended before the service had a store. */
  const own = ownDirectories(clock);
  /** Where the journals of running jobs stand. */
  const taken = new Map<number, ReadonlyMap<string, SinkState>>();
  /** What crawls of jobs that do not run are being told; it may come late. */
  const telling = new Map<number, Promise<void>>();

  async function isOurs(row: JobRow, crawl: number): Promise<boolean> {
    return (await crawls.get(crawl))?.info.get("job") === nameOf(row);
  }

  /** A process that died before it noted the number of its crawl left one that bears the job's name. */
  async function findByName(row: JobRow): Promise<number | null> {
    for (let before: number | undefined; ; ) {
      const ids = await crawls.list(LISTED_AT_ONCE, before);
      for (const id of ids) if (await isOurs(row, id)) return id;
      if (ids.length < LISTED_AT_ONCE) return null;
      before = ids.at(-1);
    }
  }

  /** Null: there is none that is this job's. */
  async function crawlIn(row: JobRow): Promise<number | null> {
    const crawl = row.crawl ?? (row.startedAt === null ? null : await findByName(row));
    return crawl !== null && (await isOurs(row, crawl)) ? crawl : null;
  }

  async function tellRest(row: JobRow): Promise<void> {
    const crawl = await crawlIn(row);
    if (crawl !== null) await crawls.tell(crawl, "control", "pause");
  }

  async function crawlOf(run: HomeRun): Promise<number> {
    const { row } = run;
    if (row.crawl !== null) {
      if (await isOurs(row, row.crawl)) return row.crawl;
      throw new LostCrawl("the crawl of the job is no longer in the store");
    }
    const crawl = (run.begun ? await findByName(row) : null) ?? (await crawls.create(await infoOf(run)));
    run.note({ crawl });
    return crawl;
  }

  async function open(
    run: HomeRun,
    input: OpenInput,
    hooks: FrontierHooks,
    use: (sinks: readonly Sink[]) => void,
  ): Promise<OpenedStore & { readonly seed: FingerprintSeed }> {
    const { row, dir } = run;
    const id = await crawlOf(run);
    const elapsedBeforeMs = Number((await crawls.read(id, "elapsed")) ?? 0) + (await workedUnseen(link, id));
    // Whoever wrote before held the data directory, as this process does now: it is dead.
    const outbox = await openOutbox(link, id, { crashed: hooks.crashed, kind: "serve", heirOf: nameOf(row) });
    const states = outbox.states.size > 0 ? outbox.states : null;
    const files = journalSinks(dir, states, sharedLines(), input.items);
    const given = await openOwnSinks(input.sinks, { id: nameOf(row), clock, durable: null });
    const sinks = [...files, ...given.sinks];
    use(sinks);
    const opened = await openRedisFrontier({ ...input.config, ...SHARED_LEASES }, { link, id, siteOf: input.siteOf, onControl: () => hooks.wake?.() });
    const frontier =
      pulse === null ? opened : pulse.watch(id, minding(opened, { crawl: id, log, further: false, leave: () => undefined }), () => input.spec.concurrency);
    // A word that is still on its way must not come after what this run says.
    await telling.get(row.id);
    const { control: now } = await frontier.counts();
    if (now === "pause" && run.current().state === "running") await frontier.control("run");
    const time = noteTime(crawls, id, clock, elapsedBeforeMs);
    const elapsed = (): string => String(Math.round(time.elapsedMs()));
    let latest = outbox.states;
    taken.set(row.id, latest);
    const drain = startDrain({
      outbox,
      clock,
      strict: input.spec.durability === "strict",
      hooks: {
        write: hooks.write,
        checkpoint: (sync) => (latest = hooks.checkpoint?.(sync) ?? new Map()),
        committed() {
          taken.set(row.id, latest);
          hooks.committed?.();
        },
      },
    });
    return {
      frontier: {
        ...time.heeding(frontier),
        seed: frontier.seed,
        async [Symbol.asyncDispose]() {
          time.close();
          await drain.leave().catch(() => undefined); // told by `finish`, or by the failure that led here
          taken.delete(row.id);
          await frontier[Symbol.asyncDispose]();
          await outbox[Symbol.asyncDispose]();
        },
      },
      seed: frontier.seed,
      sinks,
      gates: given.gates,
      broken: drain.broken,
      ...({ shared: true, goesOn: true, looksOn, visits: null, say: null, elapsedBeforeMs, resumed: true } as const),
      async finish(end) {
        time.close();
        if (end.reason === "interrupted") {
          await drain.leave();
          await crawls.note(id, { elapsed: elapsed() });
          return nameOf(row);
        }
        await drain.end();
        await crawls.note(id, { elapsed: elapsed(), finished: end.reason });
        return end.over ? null : nameOf(row);
      },
    };
  }

  async function committed(row: JobRow, dir: string): Promise<Committed | null> {
    const { crawl } = row;
    if (crawl === null) return own.committed(row, dir);
    const [at, tally, { states }] = await ask(() => Promise.all([glance(link, crawl), tallyOf(link, crawl), writerOf(link, crawl)]));
    if (at === null || at.info.get("job") !== nameOf(row)) return null;
    const { queued, delayed, leased, done, dropped, counted, level, seedsComplete, over } = at;
    return {
      run: { elapsedMs: Number(at.info.get("elapsed") ?? 0), finishReason: (at.info.get("finished") ?? null) as FinishReason | null }, // written by `finish`
      sinks: states,
      counters: {
        ...{ queued, delayed, leased, done, dropped, counted, level, seedsComplete, control: at.control, completed: over },
        tally: [...tally],
      },
    };
  }

  /** A frontier for one question. */
  async function withFrontier<T>(row: JobRow, crawl: number, use: (frontier: Frontier) => Promise<T>): Promise<T> {
    const frontier = await openRedisFrontier({ ...frontierConfig(specOf(row)), ...SHARED_LEASES }, { link, id: crawl });
    try {
      return await use(frontier);
    } finally {
      await frontier[Symbol.asyncDispose]();
    }
  }

  return {
    get trouble() {
      return watch.trouble;
    },
    ask,
    tell,
    onBack(listener) {
      onBack = listener;
    },
    committed,
    async bytesOf(row, dir, table) {
      const states = taken.get(row.id) ?? (await committed(row, dir))?.sinks;
      if (states === undefined) return wholeLines(dir, table);
      const bytes = states.get(sinkOf(table))?.["bytes"];
      return typeof bytes === "number" ? bytes : 0;
    },
    run: (run) => ({ spec: run.spec, options: { opens: (input, hooks, use) => open(run, input, hooks, use) } }),
    explain(row, dir, asked) {
      const { crawl } = row;
      if (crawl === null) return own.explain(row, dir, asked);
      const robotsOf = (origin: string) => withFrontier(row, crawl, (frontier) => frontier.robotsOf(origin));
      return ask(() => explainStored(link, { row, crawl, dir, spec: specOf(row), clock, states: taken.get(row.id) ?? null, robotsOf }, asked));
    },
    async hosts(row, dir, most): Promise<readonly JobHost[]> {
      const { crawl } = row;
      if (crawl === null) return own.hosts(row, dir, most);
      const known = await ask(async () => ((await isOurs(row, crawl)) ? withFrontier(row, crawl, (frontier) => frontier.hosts(most)) : []));
      return allHosts(known, row, most);
    },
    async holdOpen({ crawl }) {
      if (crawl === null) return true;
      await tell(() => crawls.tell(crawl, "seeds", "0"));
      return (await ask(() => glance(link, crawl)))?.over === false;
    },
    rest(row) {
      if (telling.has(row.id)) return;
      const told = tellRest(row)
        // A service that ends tells it at its next start; a crawl that is gone needs no rest.
        .catch((error: unknown) => log("debug", "a crawl was not told to rest", { job: row.id, why: String(error) }))
        .finally(() => telling.delete(row.id));
      telling.set(row.id, told);
    },
    async halt({ crawl }) {
      if (crawl !== null) await ask(() => crawls.tell(crawl, "control", "now"));
    },
    async remove(row) {
      await ask(async () => {
        const crawl = await crawlIn(row);
        if (crawl === null) return;
        // For workers that are still at it. A store without room is given some by what follows.
        await link.offer("control", [link.tag, `${link.tag}:${crawl}`], ["", "0", "control", "now"]);
        await crawls.delete(crawl);
      });
    },
    async close() {
      watch.close();
      await pulse?.close();
      await link.close();
    },
  };
}
