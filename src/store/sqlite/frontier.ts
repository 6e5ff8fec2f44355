/** The durable frontier: the memory frontier with a journal in SQLite. A call's promise resolves once what it changed is committed (docs/decisions/0011). */
import { CrawlError } from "../../core/errors.ts";
import type { Claim, Frontier, FrontierConfig, FrontierHooks } from "../../core/frontier.ts";
import { MAX_CRASHES } from "../../core/frontier.ts";
import type { Output } from "../../core/records.ts";
import type { FingerprintSeed } from "../../core/request.ts";
import { createStopwatch } from "../../core/stopwatch.ts";
import { countCrash, crashOutput } from "../memory/claim.ts";
import { completeIfOver, type Desk, isDetached, type MemoryEnv, renumbered, write } from "../memory/desk.ts";
import { forgetCut, isRest } from "../memory/items.ts";
import { DROPPED, depthOf, pack } from "../memory/place.ts";
import { delayOfRate } from "../memory/rate.ts";
import { createFrontierParts, disposeDesk, frontierOf, revokeAll } from "../memory.ts";
import { type OpenDirectory, openDirectory, type StateDirectory } from "./directory.ts";
import { compactLogs, loadDesk, restore } from "./load.ts";
import type { StoredPlace } from "./rows.ts";
import { unreadable, unwritable } from "./trouble.ts";
import { createWriter, type Writer } from "./writer.ts";

/** `normal` survives the death of the process; `strict` a power cut too, at the price of a sync for every commit. */
export type Durability = "normal" | "strict";

/** Where a step may be interrupted; tests kill the process there. */
export type FaultPoint = "during-start" | "after-claim" | "after-append" | "inside-commit" | "after-commit";

export interface SqliteEnv extends Omit<MemoryEnv, "journal" | "restFrom"> {
  /** Called at each point that is passed; absent outside of tests. What it throws counts as a failure of the step. */
  readonly passing?: (point: FaultPoint) => void;
}

export interface SqliteFrontierOptions {
  readonly config: FrontierConfig;
  readonly hooks: FrontierHooks;
  readonly env: SqliteEnv;
  readonly durability: Durability;
  /**
   * What was in flight when a process died comes first, one request at a time, for at most so many ms: a page that kills the process is then told from
   * those that only were in flight beside it. Only a death with that one lease, before anything was settled, counts against it (decision 0011).
   * Absent: every lease that was lost counts.
   */
  readonly probationMs?: number;
  /** False: the death of the process is held against no page, and nothing is tried alone. */
  readonly blame?: boolean;
  /** How often the sinks are synced at most, unless every commit is. */
  readonly syncEveryMs?: () => number;
}

export interface DurableFrontier extends Frontier {
  readonly state: StateDirectory;
  /** Ms of work over all resumes of the run; while it is paused none pass. */
  elapsedMs(): number;
  /** The run came to its end: commits where the sinks stand, on the disk, with the reason. */
  finish(reason: string): void;
}

/** Opens a state directory for this process alone. Throws CrawlError `state-held` or `state-unwritable`. */
export function openStateDirectory(dir: string, options: { readonly durability: Durability; readonly seed?: FingerprintSeed }): StateDirectory {
  const words = crypto.getRandomValues(new Int32Array(4));
  const seed: FingerprintSeed = options.seed ?? [words[0]!, words[1]!, words[2]!, words[3]!];
  const opened = openDirectory(dir, { seed, strict: options.durability === "strict" });
  directories.set(opened, opened);
  return opened;
}

/** The databases of the directories opened above. */
const directories = new WeakMap<StateDirectory, OpenDirectory>();

/** For tests that make its disk full. */
export const databaseOf = (state: StateDirectory) => directories.get(state)?.db;

/** Both steps at once, for callers that have nothing to decide in between. */
export async function openSqliteFrontier(options: SqliteFrontierOptions & { readonly dir: string; readonly seed?: FingerprintSeed }): Promise<DurableFrontier> {
  const state = openStateDirectory(options.dir, options);
  try {
    return await openFrontierIn(state, options);
  } catch (error) {
    state.close();
    throw error;
  }
}

/** Calls that commit even when no row changed: the counters did. */
const ALWAYS = new Set(["settle", "seedsComplete", "control", "setPageLimit"]);
/** Claims do not commit; but the set of leases is never older than this while claims are made. */
const LEASES_STALE_MS = 250;
const SYNC_EVERY_MS = 1_000;

/** The frontier of a state directory, as its last commit left it. Disposing of it closes the directory. */
export async function openFrontierIn(state: StateDirectory, options: SqliteFrontierOptions): Promise<DurableFrontier> {
  const opened = directories.get(state);
  if (opened === undefined) throw new CrawlError("internal", "the state directory was not opened here");
  const { db, dir } = opened;
  const { config, durability } = options;
  const probationMs = options.probationMs ?? 0;
  const { clock } = options.env;
  const pass = options.env.passing ?? (() => undefined);
  const openedAt = clock.now();
  const progressed = db.prepare("SELECT count(*) AS n FROM progress").get()?.n !== 0;

  let wrote = false;
  let writeFailed = false;
  const hooks: FrontierHooks = {
    ...options.hooks,
    write(outputs: readonly Output[]) {
      wrote = true;
      try {
        options.hooks.write(outputs);
      } catch (error) {
        writeFailed = true;
        throw error;
      }
      pass("after-append");
    },
  };

  let writer: Writer | null = null;
  const journal = delegate(() => writer);
  const env = { ...options.env, journal, ...(progressed ? { restFrom: openedAt } : {}), seed: state.seed };
  const parts = createFrontierParts(config, hooks, env);
  const { desk } = parts;
  const loaded = reading(dir, () => loadDesk(db, desk));
  writer = createWriter(db, loaded.nextSeq, () => desk);
  const journalled = writer;

  let settled = false;
  let claimed = false;
  let suspects = 0;
  /** The lease that is out is one of them. */
  let trying = false;
  let dead: unknown = null;
  let lastCommitAt = -Infinity;
  let lastSyncAt = openedAt;
  const worked = createStopwatch(clock, loaded.counters?.elapsedMs ?? 0);
  /** While it is paused no time counts. */
  const heedPause = (): void => (desk.control === "pause" ? worked.hold() : worked.go());
  heedPause();

  function die(error: unknown): never {
    dead ??= error;
    journalled.abandon();
    throw dead;
  }

  function sinkStates(sync: boolean) {
    if (hooks.checkpoint === undefined || !(wrote || sync)) return null;
    const now = clock.now();
    const onDisk = sync || durability === "strict" || now - lastSyncAt >= (options.syncEveryMs?.() ?? SYNC_EVERY_MS);
    const states = hooks.checkpoint(onDisk);
    if (onDisk) lastSyncAt = now;
    return states;
  }

  /** Memory has changed already: when this fails, the frontier is dead, and the last commit is what a restart finds. */
  function commit(sync = false, alongWith: () => void = () => undefined): void {
    try {
      const sinks = sinkStates(sync);
      journalled.commit(desk, {
        elapsedMs: worked.ms(),
        settled,
        sinks,
        beforeEnd: () => {
          alongWith();
          pass("inside-commit");
        },
      });
    } catch (error) {
      die(unwritable(dir, error));
    }
    if (wrote || sync) hooks.committed?.();
    wrote = false;
    lastCommitAt = clock.now();
    pass("after-commit");
  }

  const onProbation = (): boolean => (suspects > 0 || (trying && desk.leases.size > 0)) && clock.now() - openedAt < probationMs;

  /** As the memory frontier's, but one at a time while what died with the last process is tried. */
  async function claim(max: number): Promise<Claim> {
    if (dead !== null || !onProbation()) return frontier.claim(max);
    if (desk.leases.size > 0) return { kind: "wait", waitMs: probationMs - (clock.now() - openedAt), cause: "leased" };
    const one = await frontier.claim(1);
    trying = one.kind === "leases" && one.leases.some(({ crashes }) => crashes > 0);
    if (trying) suspects--;
    return one;
  }

  function around<T>(name: string, run: () => T): T {
    if (dead !== null) throw dead;
    if (desk.disposed) throw new CrawlError("internal", "the frontier was disposed of");
    if (name === "settle") settled = true;
    let answer: T;
    try {
      answer = run();
    } catch (error) {
      // Sinks that took half of it must not be taken for further than the last commit says.
      if (writeFailed && hooks.checkpoint !== undefined) die(error);
      if (writeFailed || error instanceof CrawlError) {
        writeFailed = false;
        throw error;
      }
      die(unwritable(dir, error));
    }
    if (name === "control") heedPause();
    if (name === "claim") {
      const stale = !claimed || onProbation() || clock.now() - lastCommitAt >= LEASES_STALE_MS;
      if (journalled.pending || (desk.leases.size > 0 && stale)) commit();
      claimed ||= desk.leases.size > 0;
      pass("after-claim");
    } else if (journalled.pending || wrote || ALWAYS.has(name)) commit();
    return answer;
  }

  try {
    pass("during-start");
    compactLogs(db, desk, loaded);
    for (const seq of loaded.stale) journalled.gone(seq);
    const blame = options.blame ?? true;
    const alone = blame && (probationMs === 0 || (loaded.lost.length === 1 && loaded.counters?.settled === false));
    const back = takeBackLost(desk, loaded.lost, alone);
    suspects = blame ? back : 0;
    if (progressed && config.ratePerMinute !== null) desk.nextRateAt = delayOfRate(-Infinity, clock.now(), config.ratePerMinute);
    completeIfOver(desk);
    commit();
  } catch (error) {
    journalled.abandon();
    throw error instanceof CrawlError ? error : unwritable(dir, error);
  }

  /** After a failure: only the leases are taken back, with the last commit as it is. */
  function releaseLeases(): void {
    try {
      db.exec("UPDATE progress SET leased = x''");
    } catch {
      // Told already by the failure; all that is lost is that the next run counts a crash for these places.
    }
  }

  async function dispose(): Promise<void> {
    if (desk.disposed) return;
    // What is still leased was not lost to a crash.
    revokeAll(desk);
    try {
      if (dead === null) commit();
      else releaseLeases();
    } finally {
      disposeDesk(desk);
      state.close();
    }
  }

  const frontier = frontierOf(parts, around, dispose);
  return {
    ...frontier,
    claim,
    seed: parts.seed,
    state,
    elapsedMs: worked.ms,
    finish(reason) {
      if (dead !== null) throw dead;
      commit(true, () => state.finishRun(reason, clock.epoch()));
    },
  };
}

function reading<T>(dir: string, run: () => T): T {
  try {
    return run();
  } catch (error) {
    throw unreadable(dir, error);
  }
}

/** Places of the dead run: back to the front, or given up at the third crash, with their record. Answers how many came back. */
function takeBackLost(desk: Desk, lost: readonly StoredPlace[], alone: boolean): number {
  const crashed: Output[] = [];
  const back: StoredPlace[] = [];
  for (const { place, relink } of lost) {
    const again = { ...place, crashes: alone ? place.crashes + 1 : Math.max(1, place.crashes) };
    if (again.crashes < MAX_CRASHES) {
      back.push({ place: renumbered(desk, again, relink, null), relink, dueEpoch: null });
      continue;
    }
    if (!relink && !isRest(desk, place)) crashed.push(crashOutput(desk, again));
    forgetCut(desk, place);
    desk.journal?.gone(place.seq);
    desk.dropped++;
    desk.places++;
    if (isDetached(place)) continue;
    const { request } = place;
    const value = pack(DROPPED, depthOf(desk.seen.get(request.idHi, request.idLo)));
    desk.seen.replace(request.idHi, request.idLo, value);
    desk.journal?.seen(request, value);
  }
  // The last one put in front is the first to go.
  for (const stored of back.reverse()) restore(desk, stored, true);
  for (const { place } of back) desk.hosts.place(desk.hosts.of(place.request.host));
  write(desk, crashed);
  for (const _ of crashed) countCrash(desk);
  return back.length;
}

/** A journal whose writer is made after the desk that holds it. */
function delegate(writer: () => Writer | null): NonNullable<MemoryEnv["journal"]> {
  const to = (): Writer => {
    const made = writer();
    if (made === null) throw new CrawlError("internal", "a change was journalled while the state was read");
    return made;
  };
  return {
    queued: (place, relink, dueAt) => to().queued(place, relink, dueAt),
    gone: (seq) => to().gone(seq),
    seen: (id, value) => to().seen(id, value),
    skipped: (id) => to().skipped(id),
    found: (id) => to().found(id),
    host: (host) => to().host(host),
    origin: (origin) => to().origin(origin),
    cookies: (site) => to().cookies(site),
    seeds: (urls) => to().seeds(urls),
    value: (key, value) => to().value(key, value),
  };
}
