/** A crawl on a store that other processes share: finds or creates it, opens its frontier, and writes what comes out of it. Lazily loaded: it needs Redis. */
import type { Clock } from "../core/clock.ts";
import type { FinishReason } from "../core/events.ts";
import type { FrontierConfig, FrontierHooks } from "../core/frontier.ts";
import type { Logger } from "../core/log.ts";
import type { FingerprintSeed } from "../core/request.ts";
import type { BatchSink, Sink } from "../core/sink.ts";
import { type CrawlSpec, parseSpec } from "../core/spec.ts";
import type { OpenedStore } from "../engine/parts.ts";
import { decideResume, type FoundRun, forbiddenChanges } from "../rules/resume.ts";
import { type ItemOutputs, openSinks } from "../sinks/open.ts";
import { openOwnSinks } from "../sinks/own.ts";
import { sharedLines } from "../sinks/shared-lines.ts";
import { connectRedis, type Link } from "../store/redis/connect.ts";
import { type Crawls, createCrawls, KEPT_DAYS } from "../store/redis/crawls.ts";
import { openRedisFrontier } from "../store/redis/frontier.ts";
import { openOutbox } from "../store/redis/outbox.ts";
import { noteTime } from "./crawl-time.ts";
import { startDrain } from "./drain.ts";
import { startPulse } from "./pulse.ts";

export interface SharedInput {
  readonly url: string;
  readonly spec: CrawlSpec;
  /** As it is kept, for workers and to be found again: with names for seeds that are read from a source. */
  readonly stored: CrawlSpec;
  /** Begin a crawl of its own, whatever the store has. */
  readonly fresh: boolean;
  readonly config: FrontierConfig;
  readonly clock: Clock;
  readonly siteOf: (host: string) => string;
  readonly sinks: readonly (Sink | BatchSink)[];
  readonly items: ItemOutputs;
  readonly log: Logger;
}

/** Rules of a lease that other processes may hold: renewed each second, lost after so long, and begun with at once. */
export const SHARED_LEASES = { leaseMs: 15_000, startWithinMs: 250 } as const;
/** How long the first connection is waited for. */
const START_WITHIN_MS = 10_000;
const LOOKED_AT = 200;

interface Found {
  readonly id: number;
  readonly say: string | null;
  readonly resumed: boolean;
}

async function foundRun(
  link: Link,
  { id, completed, info }: { id: number; completed: boolean; info: ReadonlyMap<string, string> },
  config: FrontierConfig,
): Promise<FoundRun> {
  const frontier = await openRedisFrontier(config, { link, id });
  const { queued, delayed, leased, counted, tally } = await frontier.counts();
  const finishReason = (info.get("finished") ?? null) as FinishReason | null; // written by `finish` below
  return {
    spec: parseSpec(JSON.parse(info.get("spec") ?? "{}")),
    completed: completed && finishReason !== null && finishReason !== "interrupted" && finishReason !== "cancelled",
    left: queued + delayed + leased,
    counted,
    elapsedMs: Number(info.get("elapsed") ?? 0),
    bytes: tally.get("bytes") ?? 0,
    failed: tally.get("outcome:failed") ?? 0,
    items: tally.get("items") ?? 0,
    itemsCut: tally.get("itemsCut") ?? 0,
    finishReason,
  };
}

/** The crawl of the same command that is to go on, else a new one. */
async function findCrawl(link: Link, crawls: Crawls, { spec, stored, fresh, config }: SharedInput): Promise<Found> {
  // Not the store itself: its URL may hold a password, and whoever reads this is there.
  const text = JSON.stringify({ ...stored, store: null });
  const own = parseSpec(JSON.parse(text));
  for (const id of fresh ? [] : await crawls.list(LOOKED_AT)) {
    const crawl = await crawls.get(id);
    const kept = crawl?.info.get("spec");
    if (crawl === null || kept === undefined || forbiddenChanges(parseSpec(JSON.parse(kept)), own).length > 0) continue;
    const decision = decideResume(await foundRun(link, crawl, config), own, `the store (crawl ${id})`);
    // The newest of the same command decides.
    if (decision.kind !== "resume") break;
    await crawls.note(id, { spec: text, finished: null });
    return { id, say: decision.say, resumed: true };
  }
  await crawls.retire(KEPT_DAYS);
  const id = await crawls.create({ kind: "crawl", spec: text, ...(spec.scraper === null ? {} : { scraper: spec.scraper }) });
  return { id, say: `crawl ${id} in the store: others join it with skein work --store …`, resumed: false };
}

/** Rejects with CrawlError `store-unreachable`, `state-held` when another process writes the outputs, or `output-unwritable`. */
export async function openShared(
  input: SharedInput,
  hooks: FrontierHooks,
  use: (sinks: readonly Sink[]) => void,
): Promise<OpenedStore & { readonly seed: FingerprintSeed }> {
  const { spec, clock, log } = input;
  const link = await connectRedis(input.url, { log, startWithinMs: START_WITHIN_MS, leaving: hooks.leaving });
  try {
    const crawls = createCrawls(link);
    const config: FrontierConfig = { ...input.config, ...SHARED_LEASES };
    const { id, say, resumed } = await findCrawl(link, crawls, input);
    const outbox = await openOutbox(link, id, { crashed: hooks.crashed });
    // Held by this process from now on, its time is noted by no worker.
    const elapsedBeforeMs = Number((await crawls.read(id, "elapsed")) ?? 0);
    const states = resumed && outbox.states.size > 0 ? outbox.states : null;
    const files = openSinks(spec, states, sharedLines(), input.items);
    const given = await openOwnSinks(input.sinks, { id: `crawl-${id}`, clock, durable: null });
    const sinks = [...files, ...given.sinks];
    use(sinks);
    const pulse = startPulse(link, { kind: "crawl", clock });
    const opened = await openRedisFrontier(config, { link, id, siteOf: input.siteOf, onControl: () => hooks.wake?.() });
    const frontier = pulse.watch(id, opened, () => spec.concurrency);
    if (resumed) {
      await crawls.tell(id, "reopen", "");
      await frontier.setPageLimit(spec.limits.pages);
    }
    const time = noteTime(crawls, id, clock, elapsedBeforeMs);
    const drain = startDrain({ outbox, clock, hooks, strict: spec.durability === "strict" });

    return {
      frontier: {
        ...frontier,
        seed: frontier.seed,
        async [Symbol.asyncDispose]() {
          time.close();
          await drain.end().catch(() => undefined); // told by `finish`, or by the failure that led here
          await frontier[Symbol.asyncDispose]();
          await outbox[Symbol.asyncDispose]();
          await pulse.close();
          await link.close();
        },
      },
      seed: frontier.seed,
      sinks,
      gates: given.gates,
      broken: drain.broken,
      shared: true,
      visits: null,
      say,
      elapsedBeforeMs,
      resumed,
      async finish(end) {
        time.close();
        await drain.end();
        await crawls.note(id, { elapsed: String(Math.round(end.elapsedMs)), finished: end.reason });
        return end.over ? null : `crawl ${id}`;
      },
    };
  } catch (error) {
    await link.close();
    throw error;
  }
}
