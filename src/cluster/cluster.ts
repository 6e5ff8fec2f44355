/** A crawl on a store that other processes share: begins or goes on with it, opens its frontier, and writes what comes out of it. Lazily loaded: it needs Redis. */
import type { Clock } from "../core/clock.ts";
import { CrawlError } from "../core/errors.ts";
import type { FrontierConfig, FrontierHooks } from "../core/frontier.ts";
import type { Logger } from "../core/log.ts";
import type { FingerprintSeed } from "../core/request.ts";
import type { BatchSink, Sink, SinkState } from "../core/sink.ts";
import type { CrawlSpec } from "../core/spec.ts";
import type { OpenedStore } from "../engine/parts.ts";
import { checkOutputs, type ItemOutputs, openSinks } from "../sinks/open.ts";
import { openOwnSinks } from "../sinks/own.ts";
import { sharedLines } from "../sinks/shared-lines.ts";
import { connectRedis, type Link } from "../store/redis/connect.ts";
import { createCrawls } from "../store/redis/crawls.ts";
import { openRedisFrontier } from "../store/redis/frontier.ts";
import { glance } from "../store/redis/look.ts";
import { heldError, openOutbox } from "../store/redis/outbox.ts";
import { beginCrawl, placesIn, refuseOwned } from "./begin.ts";
import { noteTime } from "./crawl-time.ts";
import { startDrain } from "./drain.ts";
import { lostWords, tellingLost } from "./lost.ts";
import { namedFiles, placesOf, statesAs } from "./output-files.ts";
import { startPulse } from "./pulse.ts";

export interface SharedInput {
  readonly url: string;
  readonly spec: CrawlSpec;
  /** As it is kept, for workers and to be found again: with names for seeds that are read from a source. */
  readonly stored: CrawlSpec;
  /** Begin a crawl of its own, whatever the store has; unfinished ones that write to the same files are dropped. */
  readonly fresh: boolean;
  /** No seed was named (AssembleOptions). */
  readonly unnamed: "its-own" | "none" | null;
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
/** How long a failure waits for the store to be told of it. */
const UNDO_MS = 2_000;

type Opened = OpenedStore & { readonly seed: FingerprintSeed };
/** Of a crawl that is gone. */
const ANEW = {
  files:
    "The same command begins the crawl anew and replaces these files: move them away first; or restore the store from a backup, and the same command goes on from there",
  none: "The same command begins the crawl anew; once the store is restored from a backup, it goes on from there",
} as const;
/** What was begun, by what undoes it; the last one first. */
type Undo = (() => Promise<unknown>)[];

/** For a short while: what is not undone by then, runs out in the store by itself. */
async function undoAll(undo: Undo, clock: Clock): Promise<void> {
  const all = (async () => {
    // What led here is worth more than a failure of this.
    for (const step of undo.toReversed()) await step().catch(() => undefined);
  })();
  let timer: { cancel(): void } | null = null;
  const late = new Promise<void>((resolve) => {
    timer = clock.after(UNDO_MS, resolve);
  });
  await Promise.race([all, late]);
  cancelled(timer);
}

const cancelled = (timer: { cancel(): void } | null): void => timer?.cancel();

/** Rejects with CrawlError `store-unreachable`, `state-held` when another process writes the outputs, `output-unwritable`, or `invalid-options` when they are those of another unfinished crawl. */
export async function openShared(input: SharedInput, hooks: FrontierHooks, use: (sinks: readonly Sink[]) => void): Promise<Opened> {
  // Before there is anything in the store that would have to be taken out again.
  checkOutputs(input.spec);
  const link = await connectRedis(input.url, { log: input.log, startWithinMs: START_WITHIN_MS, leaving: hooks.leaving });
  const undo: Undo = [];
  try {
    return await openOn(link, input, { hooks, use, undo });
  } catch (error) {
    await undoAll(undo, input.clock);
    await link.close();
    throw error;
  }
}

interface Opening {
  readonly hooks: FrontierHooks;
  readonly use: (sinks: readonly Sink[]) => void;
  readonly undo: Undo;
}

async function openOn(server: Link, input: SharedInput, { hooks, use, undo }: Opening): Promise<Opened> {
  const { spec, clock } = input;
  const config: FrontierConfig = { ...input.config, ...SHARED_LEASES };
  const ownFiles = namedFiles(spec);
  const { id, say, resumed, text } = await beginCrawl(server, createCrawls(server), { ...input, files: ownFiles });
  /** As they were handed to the operating system last. */
  let written: ReadonlyMap<string, SinkState> = new Map();
  const link = tellingLost(server, () => lostWords(server, id, written, ANEW));
  const crawls = createCrawls(link);
  const outbox = await openOutbox(link, id, { crashed: hooks.crashed });
  /** A crawl of which nothing has come: nobody would ever end it. Whoever took it over meanwhile goes on with it. */
  async function remove(): Promise<void> {
    await outbox.keep();
    await crawls.tell(id, "control", "now");
    await crawls.delete(id);
  }
  undo.push(() => outbox[Symbol.asyncDispose]());
  if (!resumed) undo.push(remove);
  // Held by this process from now on, its time is noted by no worker.
  const elapsedBeforeMs = Number((await crawls.read(id, "elapsed")) ?? 0);
  // An earlier command may have spelt them otherwise.
  const places = resumed ? placesIn(new Map([["places", (await crawls.read(id, "places")) ?? "null"]])) : null;
  const states = statesAs(outbox.states, spec, places);
  written = new Map([...states].filter(([name]) => ownFiles.some(({ file }) => file === name)));
  const files = openSinks(spec, resumed && states.size > 0 ? states : null, sharedLines(), input.items);
  const given = await openOwnSinks(input.sinks, { id: `crawl-${id}`, clock, durable: null });
  const sinks = [...files, ...given.sinks];
  use(sinks);
  // Since it was found or created, the files may have become another one's (--fresh).
  const kept = await crawls.hold(
    id,
    ownFiles.map(({ name }) => name),
  );
  if (kept === "gone") throw await heldError(link, id);
  if (kept !== "held") return refuseOwned(link, crawls, kept, { files: ownFiles, text });
  if (resumed) {
    // First where files lie by all names they had, then where they stand by those of this command: a kill in between loses neither.
    await crawls.note(id, { places: JSON.stringify(placesOf(input.stored, places)) });
    await outbox.note(states);
    await crawls.note(id, { spec: text });
  }
  const pulse = startPulse(link, { kind: "crawl", clock });
  undo.push(pulse.close);
  const opened = await openRedisFrontier(config, { link, id, siteOf: input.siteOf, onControl: () => hooks.wake?.() });
  undo.push(() => opened[Symbol.asyncDispose]());
  const frontier = pulse.watch(id, opened, () => spec.concurrency);
  if (resumed) {
    await crawls.tell(id, "reopen", "");
    await frontier.setPageLimit(spec.limits.pages);
    await frontier.setItemLimit(spec.limits.items);
  }
  const time = noteTime(crawls, id, clock, elapsedBeforeMs);
  let wrote = resumed;
  let ended = false;
  const committed = (): void => {
    wrote = true;
    hooks.committed?.();
  };
  const checkpoint = (sync: boolean): ReadonlyMap<string, SinkState> => {
    written = hooks.checkpoint?.(sync) ?? written;
    return written;
  };
  const drain = startDrain({ outbox, states, clock, hooks: { ...hooks, checkpoint, committed }, strict: spec.durability === "strict" });

  /** The process failed before anything came of the crawl: no seed was added, or the first output could not be written. */
  async function isEmpty(failure: unknown): Promise<boolean> {
    if (ended || resumed) return false;
    if (!wrote && failure instanceof CrawlError && failure.code === "output-unwritable") return true;
    const at = failure === null ? await glance(link, id) : null;
    return at !== null && at.queued + at.delayed + at.leased + at.done + at.dropped === 0;
  }

  return {
    frontier: {
      ...time.heeding(frontier),
      seed: frontier.seed,
      async [Symbol.asyncDispose]() {
        time.close();
        // Told by `finish`, or by the failure that led here.
        const failure: unknown = await drain.end().then(
          () => null,
          (error: unknown) => error,
        );
        const tidy = async (): Promise<unknown> => (await isEmpty(failure)) && remove();
        if (!ended) await undoAll([tidy], clock);
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
      // Whose files have become another one's writes no last lines there.
      await outbox.keep();
      await crawls.note(id, { elapsed: String(Math.round(end.elapsedMs)), finished: end.reason });
      ended = true;
      return end.over ? null : `crawl ${id}`;
    },
  };
}
