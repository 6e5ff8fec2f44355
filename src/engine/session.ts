/** One crawl from its seeds to its summary: feeds the seeds, runs the loop, obeys limits and stops, closes what it opened. */
import type { CrawlStats, FinishReason, StopMode, Summary } from "../core/events.ts";
import type { Frontier, FrontierCounts, HostPatch, HostView } from "../core/frontier.ts";
import type { Fetcher } from "../core/outcome.ts";
import type { Output } from "../core/records.ts";
import type { CrawlRequest, HostKey } from "../core/request.ts";
import type { Scraping } from "../core/scraping.ts";
import type { Sink, SinkState } from "../core/sink.ts";
import type { VisitBook } from "../core/visits.ts";
import { makeSkip } from "../rules/admit.ts";
import { limitReached, spentOf } from "../rules/limits.ts";
import { RUN_PARTIAL, RUN_STOP, type StopAsked } from "../rules/values.ts";
import { type AddedSeeds, createAdder } from "./adding.ts";
import { crashedOutput } from "./crashed.ts";
import { feedSeeds, type SeedLines } from "./feed.ts";
import { createLastSeeds } from "./last-seeds.ts";
import { createLastWord } from "./last-word.ts";
import { createLatch } from "./latch.ts";
import { createLimitWatch } from "./limit-watch.ts";
import { lookOut } from "./look-out.ts";
import { createWriter, gateOf, type Readers } from "./output.ts";
import type { Parts } from "./parts.ts";
import { outputOf } from "./record.ts";
import { CONTROL, type Loop, type LoopView, startLoop } from "./run.ts";
import { bottleneckOf, foldTally } from "./stats.ts";
import { createValues, type LeftPage, type Values } from "./values.ts";
import { tellMissed } from "./visits.ts";
import { createWorkTime } from "./work-time.ts";

export interface Session {
  readonly done: Promise<Summary>;
  stop(mode: StopMode, reason: FinishReason, detail: string | null): Promise<void>;
  pause(): Promise<void>;
  resume(): Promise<void>;
  stats(): Promise<CrawlStats>;
  /** More seeds; null: the crawl is over or stops, and what was not added by then is not taken. Meanwhile it cannot drain. */
  add(lines: SeedLines): Promise<AddedSeeds | null>;
  /** Null: not opened yet. */
  counts(): Promise<FrontierCounts | null>;
  hosts(most: number): Promise<readonly HostView[]>;
  /** Without effect before it is opened and once it is over. */
  patchHost(host: HostKey, patch: HostPatch): Promise<void>;
}

const NO_READERS: Readers = { pages: () => null, items: () => null };

/** `listed`: the seeds are one list, which a stop of what is not queued does not cut short. */
export function startSession(parts: Parts, seeds: SeedLines, readers: Readers = NO_READERS, listed = false): Session {
  const { clock, spec } = parts;
  const time = createWorkTime(clock, spec.limits.time, () => void stop("flight", "limit-time", null).catch(() => loop?.wake()));
  const { elapsedMs } = time;
  const cpuAtStart = performance.eventLoopUtilization();
  let frontier: Frontier | null = null;
  let fetcher: Fetcher | null = null;
  let loop: Loop | null = null;
  let scraping: Scraping | null = null;
  let ending: { readonly mode: StopMode; readonly reason: FinishReason; readonly detail: string | null } | null = null;
  /** How it is to be left, where it goes on without this process. */
  let leaving: StopMode | null = null;
  let goesOn = false;
  let paused = false;
  /** It is left by a signal or by its reader, to go on another time. */
  const departing = createLatch();
  let finishedAt: number | null = null;
  /** Stopped, or the loop has ended: seeds that are still to come are not read. */
  const halted = createLatch();
  /** The loop runs, or never will. */
  const ready = createLatch();
  const adder = createAdder({ parts, over: () => halted.yes, closed: () => finishedAt !== null, wake: () => loop?.wake() });
  const finishing = (): boolean => ending?.mode === "queue" && finishedAt === null;
  const lastSeeds = createLastSeeds(finishing);
  let lastCounts: FrontierCounts | null = null;
  const seen = { seeds: 0, bytes: 0, failed: 0, items: 0, leftOver: new Map<string, number>() };
  let sinks: readonly Sink[] = [];

  /** Everything that was written, once. */
  function note({ page, items }: Output): void {
    if (items !== undefined) seen.items += items.length;
    if (page === null) return;
    seen.bytes += page.bytes;
    if (page.outcome === "failed") seen.failed++;
  }

  function reached(): FinishReason | null {
    return ending === null || ending.mode === "queue" ? limitReached(spec.limits, seen, elapsedMs()) : null;
  }

  /** Nothing is stopped: what is held is finished, or with `now` handed back. */
  function leave(mode: StopMode): void {
    if (finishedAt !== null) return;
    ending = { mode: mode === "now" ? mode : "flight", reason: "interrupted", detail: ending?.detail ?? null };
    halted.set();
    loop?.leave(mode === "now");
  }

  /**
   * A call that waits for the store must not come after one that was made later: of a pause and what lifts it the store is told one at a time. What is asked for
   * before it is open it is told then; once the crawl is over, nothing.
   */
  const tellStore = createLastWord(async () => {
    try {
      if (finishedAt !== null || lastSeeds.waits) return;
      if (ending === null) await frontier?.control(paused ? "pause" : "run");
      // Lifts a pause as well. What ends more than that is told at once: the store undoes it for nobody.
      else if (finishing()) await (loop === null ? frontier?.control(CONTROL.queue) : loop.stop("queue"));
    } catch (error) {
      // It was closed meanwhile.
      if (finishedAt === null) throw error;
    }
  });

  async function stop(mode: StopMode, reason: FinishReason, detail: string | null): Promise<void> {
    if (reason === "interrupted") leaving = mode;
    if (reason === "interrupted" || reason === "cancelled") departing.set();
    if (goesOn && leaving !== null) return leave(leaving);
    const stronger = ending === null || STRENGTH[mode] > STRENGTH[ending.mode];
    if (!stronger || finishedAt !== null) return;
    // What is interrupted while it does what is queued is to be gone on with.
    const first = reason === "interrupted" && ending?.mode === "queue" ? null : ending;
    ending = { mode, reason: first?.reason ?? reason, detail: first?.detail ?? detail };
    // It lifts a pause.
    time.go();
    halted.set();
    parts.onEvent({ kind: "stopping", mode, reason, detail });
    await (mode === "queue" ? tellStore() : loop?.stop(mode));
  }

  async function feed(to: Frontier): Promise<void> {
    const drops = (): boolean => halted.yes && !finishing();
    seen.seeds = await feedSeeds({ parts, frontier: to, seeds, listed, over: halted.promise, isOver: () => halted.yes, drops, added: () => loop?.wake() });
    lastSeeds.set();
    if (finishing()) await tellStore();
    parts.onEvent({ kind: "started", seeds: seen.seeds });
    // A stop may have come before they were all read. A resume reads them again, and must not find the crawl drained before it has.
    if (ending === null || ending.mode === "queue") await adder.fed(to);
  }

  /** A stop by the scraper is kept with the page that asked for it, so that a resume obeys it too. */
  async function obeyScraper(text: string | null): Promise<void> {
    if (text === null) return;
    const { mode, reason } = JSON.parse(text) as StopAsked; // written by engine/scrape.ts
    await stop(mode, "stop-condition", reason);
  }

  /** Values that other workers settled, and limits that their pages have reached. */
  async function lookAtOthers(store: Frontier, values: Values): Promise<void> {
    if (scraping !== null) values.refresh(await store.values());
    await obeyScraper(values.get(RUN_STOP));
    const reason = reached();
    if (reason !== null) await stop("flight", reason, null);
  }

  /** Everything was looked at: pages of the last run that this one did not meet are the last lines of `--changes`, part of the run's last commit. */
  function closeBook(visits: VisitBook & { whole(): void }, write: (outputs: readonly Output[]) => void): void {
    tellMissed(visits, spec.changesFile !== null, (output) => write([output]));
    visits.whole();
  }

  /** The run came to a good end: its watermarks hold for the next one, unless something newer may have been missed. */
  async function keepMarks(store: Frontier, values: Values, left: number): Promise<void> {
    const pages: LeftPage[] = [];
    const first = scraping?.first ?? null;
    if (left > 0 && first !== null) {
      for await (const { rest } of store.remaining()) {
        const { handler = first, series = null, index = 0 } = rest?.scrape ?? {};
        pages.push({ handler, series, index });
      }
    }
    const { changes, held } = values.marks(pages);
    if (held !== null) parts.log("warn", "the watermarks stay as they were", { why: held });
    if (changes.length > 0) await store.setValues(changes);
  }

  /** What a limit or stop left in the queue: skipped lines, and the records that redirect chains still owed. */
  async function leftOver(of: Frontier, write: (outputs: readonly Output[]) => void): Promise<void> {
    const counts = await of.counts();
    const waiting = counts.queued + counts.delayed;
    if (waiting === 0) return;
    const reason = ending === null ? "page-limit" : "stopped";
    seen.leftOver.set(reason, waiting);
    let batch: Output[] = [];
    for await (const request of of.remaining()) {
      const { url, referrer, depth } = request;
      const skip = makeSkip(parts.admit.seed, { url, referrer, depth, reason });
      batch.push({ ...outputOf(null, false, [skip]), owed: request.rest?.owed ?? [] });
      if (batch.length < 256) continue;
      write(batch);
      batch = [];
    }
    write(batch);
  }

  function finishReason(counts: FrontierCounts): FinishReason {
    if (ending !== null) return ending.reason;
    // Its workers stopped it while nobody else looked after the limits (worker.ts).
    const others = counts.control === "drain" ? limitReached(spec.limits, spentOf(counts.tally), elapsedMs()) : null;
    if (others !== null) return others;
    const waiting = counts.queued + counts.delayed;
    return spec.limits.pages !== null && counts.counted >= spec.limits.pages && waiting > 0 ? "limit-pages" : "finished";
  }

  async function run(): Promise<Summary> {
    let watch: { cancel(): void } | null = null;
    let failure: { readonly error: unknown } | null = null;
    try {
      const write = createWriter(parts, () => sinks, readers, note);
      const opening = parts.openFetcher();
      opening.catch(() => undefined); // awaited below; this keeps a failure of the store from leaving it unhandled
      scraping = (await parts.openScraping?.()) ?? null;
      const hooks = {
        write,
        checkpoint: (sync: boolean) => whereSinksStand(sinks, sync),
        committed() {
          for (const sink of sinks) sink.committed?.();
        },
        crashed: (request: CrawlRequest, crashes: number) => crashedOutput(parts, request, crashes),
        wake: () => loop?.wake(),
        leaving: departing.promise,
      };
      const opened = await parts.openStore(hooks, (used) => {
        sinks = used;
      });
      const store = lastSeeds.frontier(opened.frontier);
      frontier = store;
      time.start(opened.elapsedBeforeMs);
      goesOn = opened.goesOn === true;
      if (goesOn && leaving !== null) leave(leaving);
      const gives = scraping === null || scraping.kind === "links" ? "pages" : "items";
      parts.onEvent({ kind: "opened", gives, parseWorkers: scraping?.view().workers ?? 0 });
      if (opened.say !== null) parts.onEvent({ kind: "state", message: opened.say });
      const before = await store.counts();
      Object.assign(seen, spentOf(before.tally));
      const values = createValues(await store.values(), scraping);
      fetcher = await opening;
      // Who only looks on needs no threads for it.
      const start = (opened.looksOn === true ? null : await parts.loadLoops?.()) ?? startLoop;
      // A resumed run may be past its time, bytes or errors already, and a stop may have come while things were opening: nothing is claimed then.
      const past = reached();
      if (past !== null) await stop("flight", past, null);
      await obeyScraper(values.get(RUN_STOP));
      if (paused) await tellStore();
      if (ending !== null && ending.mode !== "queue" && !(goesOn && leaving !== null)) await store.control(CONTROL[ending.mode]);
      loop = start({
        parts,
        frontier: store,
        fetcher,
        scraping,
        values,
        book: opened.visits,
        gate: lastSeeds.gate(gateOf(readers, opened.gates)),
        shared: opened.shared === true,
        looksOn: opened.looksOn === true,
        limits: createLimitWatch({
          limits: spec.limits,
          written: seen,
          ask: opened.shared === true ? async () => spentOf((await store.counts()).tally) : null,
          reached,
          stop: (reason) => stop("flight", reason, null),
        }),
        async onValues(changes) {
          values.apply(changes);
          if (changes.some(({ key }) => key === RUN_STOP)) await obeyScraper(values.get(RUN_STOP));
        },
      });
      if (goesOn && leaving !== null) leave("now");
      ready.set();
      const work = Promise.all([
        loop.done.finally(() => {
          halted.set();
        }),
        feed(store).catch(async (error) => {
          await loop?.stop("now");
          throw error;
        }),
      ]);
      if (opened.shared) watch = lookOut(clock, () => lookAtOthers(store, values));
      await (opened.broken === undefined ? work : Promise.race([work, opened.broken]));
      lastCounts = await store.counts();
      finishedAt = clock.now();
      time.end();
      const reason = finishReason(lastCounts);
      const left = lastCounts.queued + lastCounts.delayed;
      const over = reason !== "interrupted" && reason !== "cancelled";
      if (reason === "finished" || reason === "stop-condition") await keepMarks(store, values, left);
      if (reason === "finished" && left === 0 && values.get(RUN_PARTIAL) === null && opened.visits !== null) closeBook(opened.visits, write);
      const resumeFrom = await opened.finish({ reason, over, elapsedMs: elapsedMs(), left });
      for (const sink of sinks) sink.committed?.();
      // After the last commit: what is left is listed as skipped, and is no part of what a resume finds.
      if (resumeFrom === null) await leftOver(store, write);
      const summary: Summary = {
        ...(await stats()),
        finishReason: reason,
        detail: ending?.detail ?? null,
        seeds: seen.seeds,
        seedsReached: lastCounts.tally.get("seedsReached") ?? 0,
        slowestHosts: await store.hosts(5),
        files: sinks.map((sink) => sink.name).filter((name) => !name.startsWith("journal:")),
        resumeFrom,
      };
      for (const sink of sinks) await sink.close();
      parts.onEvent({ kind: "finished", summary });
      return summary;
    } catch (error) {
      failure = { error };
      // It may run on: what failed may be what is written beside it, and the crawl be gone on with by a loop that follows.
      loop?.leave(true);
      throw error;
    } finally {
      ready.set();
      halted.set();
      watch?.cancel();
      await scraping?.[Symbol.asyncDispose]();
      finishedAt ??= clock.now();
      time.end();
      await closeAll(failure);
    }
  }

  /** Closes everything; a failure to close is told only when nothing worse happened. */
  async function closeAll(failure: { readonly error: unknown } | null): Promise<void> {
    const results = await Promise.allSettled([...sinks.map(async (sink) => sink.close()), fetcher?.[Symbol.asyncDispose](), frontier?.[Symbol.asyncDispose]()]);
    const broken = results.find((result) => result.status === "rejected");
    const end = failure ?? (broken === undefined ? null : { error: broken.reason });
    readers.pages()?.end(end);
    readers.items()?.end(end);
    if (failure === null && broken !== undefined) throw broken.reason;
  }

  async function stats(): Promise<CrawlStats> {
    const counts = lastCounts ?? (await frontier?.counts()) ?? null;
    const view: LoopView = loop?.view() ?? { inFlight: 0, requests: 0, waitingFor: null, scraping: null };
    const own = performance.eventLoopUtilization(cpuAtStart).utilization;
    const loopCpuShare = Math.max(own, view.cpuShare ?? 0);
    return foldTally(counts, {
      elapsedMs: elapsedMs(),
      ...view,
      loopCpuShare,
      leftOver: seen.leftOver,
      bottleneck: bottleneckOf(view, spec.concurrency, loopCpuShare),
    });
  }

  const done = run();
  return {
    done,
    stop,
    async pause() {
      // A pause must not hold up a stop.
      if (ending !== null || finishedAt !== null) return;
      paused = true;
      time.hold();
      await tellStore();
    },
    async resume() {
      if (finishedAt !== null) return;
      paused = false;
      time.go();
      // `run` would undo a drain; what is queued must still be done after a stop of mode queue, which the store keeps over a pause.
      await tellStore();
      loop?.wake();
    },
    stats,
    async add(lines) {
      await ready.promise;
      return frontier === null || halted.yes ? null : adder.add(frontier, lines);
    },
    counts: async () => (lastCounts !== null || finishedAt !== null ? lastCounts : ((await frontier?.counts()) ?? null)),
    hosts: async (most) => (finishedAt === null ? ((await frontier?.hosts(most)) ?? []) : []),
    async patchHost(host, patch) {
      if (finishedAt !== null) return;
      await frontier?.tune(host, { patch });
      loop?.wake();
    },
  };
}

function whereSinksStand(sinks: readonly Sink[], sync: boolean): ReadonlyMap<string, SinkState> {
  const states = new Map<string, SinkState>();
  for (const sink of sinks) {
    const state = sink.checkpoint?.(sync);
    if (state !== undefined) states.set(sink.name, state);
  }
  return states;
}

const STRENGTH: Readonly<Record<StopMode, number>> = { queue: 1, flight: 2, now: 3 };
