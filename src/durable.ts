/** Opens the state directory of a crawl: decides whether its last run goes on, opens journal, outputs and frontier where the last commit left them. Lazily loaded: it needs SQLite. */
import { createHash, randomUUID } from "node:crypto";
import { existsSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { deserialize, serialize } from "node:v8";
import type { Clock } from "./core/clock.ts";
import { CrawlError } from "./core/errors.ts";
import type { Frontier, FrontierConfig, FrontierHooks } from "./core/frontier.ts";
import type { FingerprintSeed } from "./core/request.ts";
import type { BatchSink, Sink, SinkState } from "./core/sink.ts";
import { type CrawlSpec, parseSpec } from "./core/spec.ts";
import type { OpenedStore } from "./engine/parts.ts";
import { BEGAN_KEY, type BeganInMemory } from "./inspect/inspect.ts";
import { journalLines } from "./inspect/journal.ts";
import { LIVE_KEY, noting } from "./live.ts";
import { decideResume, noSeeds, unnamedFault } from "./rules/resume.ts";
import type { TrapSnapshot, Traps } from "./rules/traps.ts";
import { checkOutputs, type ItemOutputs, journalSinks, openSinks } from "./sinks/open.ts";
import { openOwnSinks } from "./sinks/own.ts";
import { sharedLines } from "./sinks/shared-lines.ts";
import { droppedWords, foundRun, readStandingRun } from "./standing-run.ts";
import { CACHE_FILE } from "./store/cache/schema.ts";
import type { HostGate } from "./store/memory/gate.ts";
import { type FaultPoint, openFrontierIn, openStateDirectory } from "./store/sqlite/frontier.ts";
import { saveFrontier } from "./store/sqlite/save.ts";
import { openVisitBook, VISITS_FILE, VISITS_SINK } from "./store/visits/book.ts";

export interface DurableInput {
  readonly dir: string;
  readonly spec: CrawlSpec;
  /** The spec as it is kept and compared: with names for seeds that are read from a source. */
  readonly stored: CrawlSpec;
  /** Drop what is there. */
  readonly fresh: boolean;
  /** No seed was named (AssembleOptions). */
  readonly unnamed: "its-own" | "none" | null;
  /** Options that differ do not keep an unfinished run from going on. */
  readonly sameCrawl: boolean;
  readonly config: FrontierConfig;
  readonly clock: Clock;
  readonly random: () => number;
  readonly siteOf: (host: string) => string;
  readonly shared: { readonly gate: HostGate; readonly syncEveryMs: () => number; readonly blame: boolean } | null;
  readonly traps: Traps | null;
  /** Sinks of the user's own: written to, but no part of the exactly-once promise. */
  readonly sinks: readonly (Sink | BatchSink)[];
  readonly items: ItemOutputs;
  readonly passing?: (point: FaultPoint) => void;
}

/** How long what a dead process held is tried one by one. */
const PROBATION_MS = 5_000;
/** The trap rules' memory lies in a file of its own, written now and then: after a crash they count from there, a little more leniently. */
const TRAPS_FILE = "traps.bin";
const TRAPS_EVERY_MS = 30_000;
/** A large memory is written less often, so that it costs no more than this share of the time. */
const TRAPS_SHARE = 0.01;

/**
 * Throws CrawlError `state-held`, `state-unwritable`, `output-unwritable`, or `invalid-options` when an unfinished run was started with other options.
 * `use` is told of the sinks before the frontier may write to them.
 */
export async function openDurable(
  input: DurableInput,
  hooks: FrontierHooks,
  use: (sinks: readonly Sink[]) => void,
): Promise<OpenedStore & { readonly seed: FingerprintSeed }> {
  const { dir, spec, clock } = input;
  // Before anything is dropped or begun.
  if (statSync(dir, { throwIfNoEntry: false })?.isDirectory() === false)
    throw new CrawlError(
      "state-unwritable",
      `cannot use the state directory ${dir}: it is a file, and --state takes a directory. Name an empty or a new directory`,
    );
  checkOutputs(spec);
  // A directory is not made only to find nothing in it.
  if (input.unnamed !== null && readStandingRun(dir) === null) throw noSeeds(`there is no crawl in ${dir} to go on with`);
  const state = openStateDirectory(dir, { durability: spec.durability });
  try {
    const dropped = input.fresh ? droppedWords(dir) : null;
    if (input.fresh) {
      state.dropAll();
      for (const name of [VISITS_FILE, CACHE_FILE]) for (const suffix of ["", "-wal", "-shm"]) rmSync(join(dir, name + suffix), { force: true });
    }
    const { say, resumed } = beginRun(input, state, dropped);
    const states = resumed ? state.sinkStates() : null;
    const shared = sharedLines();
    const keepsVisits = spec.incremental || spec.cache !== null;
    const visits = keepsVisits ? openVisitBook(dir, state.run()?.name ?? "", states?.get(VISITS_SINK) ?? null) : null;
    const takesItems = input.sinks.some((sink) => "takes" in sink && sink.takes === "items");
    const files = [
      ...(visits === null ? [] : [visits]),
      ...journalSinks(dir, states, shared, input.items ?? (takesItems ? { types: [] } : null)),
      ...openSinks(spec, states, shared, input.items),
    ];
    // After the journals were cut back: what a sink of the user's own lacks is read from them.
    const own = await openOwnSinks(input.sinks, {
      id: state.run()?.name ?? "",
      clock,
      durable: {
        states,
        lines: (kind) => journalLines({ path: join(dir, `${kind}.jsonl`), bytes: Number(states?.get(`journal:${kind}`)?.["bytes"] ?? 0) }),
      },
    });
    const sinks = [...files, ...own.sinks];
    use(sinks);
    const keeper = keepTraps(input, resumed);
    const elapsedBeforeMs = resumed ? (state.run()?.elapsedMs ?? 0) : 0;
    const env = {
      clock,
      random: input.random,
      siteOf: input.siteOf,
      gate: input.shared?.gate ?? null,
      ...(input.passing === undefined ? {} : { passing: input.passing }),
    };
    const checkpoint = (sync: boolean) => {
      keeper.beside();
      return hooks.checkpoint?.(sync) ?? new Map<string, SinkState>();
    };
    const opened = await openFrontierIn(state, {
      config: input.config,
      hooks: { ...hooks, checkpoint },
      env,
      durability: spec.durability,
      probationMs: PROBATION_MS,
      ...(input.shared === null ? {} : { syncEveryMs: input.shared.syncEveryMs, blame: input.shared.blame }),
    });
    const { frontier, note } = noting(opened, clock, (text) => state.setMeta(LIVE_KEY, text));
    return {
      frontier,
      sinks,
      gates: own.gates,
      visits,
      say,
      elapsedBeforeMs,
      resumed,
      seed: state.seed,
      async finish(end) {
        keeper.end();
        await note();
        if (end.over) frontier.finish(end.reason);
        return end.over ? null : dir;
      },
    };
  } catch (error) {
    state.close();
    throw error;
  }
}

/** Reads what an earlier process kept, and keeps it from now on: `beside` a step when it is time, and at the `end`. Throws when the file cannot be written. */
function keepTraps({ dir, traps, clock }: DurableInput, resumed: boolean): { beside(): void; end(): void } {
  if (traps === null) return { beside: () => undefined, end: () => undefined };
  const path = join(dir, TRAPS_FILE);
  if (!resumed) rmSync(path, { force: true });
  else if (existsSync(path)) traps.restore(deserialize(readFileSync(path)) as TrapSnapshot); // written below, whole or not at all
  function write(): number {
    const began = clock.now();
    writeFileSync(`${path}.new`, serialize(traps?.snapshot()));
    renameSync(`${path}.new`, path);
    return clock.now() - began;
  }
  let next = clock.now() + TRAPS_EVERY_MS;
  return {
    beside() {
      if (clock.now() >= next) next = Math.max(TRAPS_EVERY_MS, write() / TRAPS_SHARE) + clock.now();
    },
    end: () => void write(),
  };
}

/** `dropped`: what was there before, in one line. */
function beginRun(
  { dir, stored, sameCrawl, unnamed, clock }: DurableInput,
  state: ReturnType<typeof openStateDirectory>,
  dropped: string | null,
): { say: string | null; resumed: boolean } {
  const text = JSON.stringify(withoutSecrets(stored));
  const run = state.run();
  const start = () => state.startRun({ name: randomUUID(), spec: text, startedAt: clock.epoch() });
  if (run === null) {
    start();
    return { say: dropped, resumed: false };
  }
  const found = foundRun(dir, run.spec, run.finishReason);
  const decision = decideResume(found, parseSpec(JSON.parse(text)), dir);
  const fault = unnamed === null ? null : unnamedFault(decision.kind, found, unnamed, `the crawl in ${dir}`);
  if (fault !== null) throw noSeeds(fault);
  switch (decision.kind) {
    case "refuse":
      if (sameCrawl) {
        state.setSpec(text);
        state.reopenRun();
        return { say: null, resumed: true };
      }
      throw new CrawlError("invalid-options", decision.say, {
        problems: decision.changed.map((option) => ({
          option,
          message: `differs from the unfinished run in ${dir}: give the same value to resume it, or --fresh to drop it`,
        })),
      });
    case "new-run":
      state.newRun();
      for (const key of [LIVE_KEY, BEGAN_KEY]) state.setMeta(key, null);
      start();
      return { say: decision.say, resumed: false };
    case "resume":
      state.setSpec(text);
      state.reopenRun();
      return { say: decision.say, resumed: true };
  }
}

const digest = (secret: string): string => `sha256:${createHash("sha256").update(secret).digest("hex").slice(0, 32)}`;
const digests = (fields: Readonly<Record<string, string>>): Record<string, string> =>
  Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, digest(value)]));
const withoutUserinfo = (url: string): string =>
  url.replace(/^([a-z]+:\/\/)([^/?#@]*)@/i, (_, scheme: string, userinfo: string) => `${scheme}${digest(userinfo).replace(":", "-")}@`);

/** The spec as it is stored: credentials are replaced by digests, which tell whether they changed. Seeds that are no list are not stored. */
function withoutSecrets(spec: CrawlSpec): CrawlSpec {
  const seeds = Array.isArray(spec.seeds) ? spec.seeds.map((seed: string) => withoutUserinfo(seed)) : [];
  const hosts = Object.fromEntries(
    Object.entries(spec.hosts).map(([host, rules]) => [host, rules.headers === undefined ? rules : { ...rules, headers: digests(rules.headers) }]),
  );
  return { ...spec, seeds, headers: digests(spec.headers), auth: digests(spec.auth), hosts, proxy: spec.proxy.map(withoutUserinfo) };
}

/** Writes a crawl that ran in memory and was interrupted into a new directory below `folder`; answers the directory. */
export async function rescue(
  frontier: Frontier,
  run: {
    folder: string;
    spec: CrawlSpec;
    startedAt: number;
    keptAt: number;
    elapsedMs: number;
    sinks: ReadonlyMap<string, SinkState>;
    seeds: readonly string[];
  },
): Promise<string> {
  const name = randomUUID().slice(0, 8);
  const dir = `${run.folder}/${name}`;
  const { done } = await frontier.counts();
  const began: BeganInMemory = { keptAt: run.keptAt, settled: done };
  try {
    saveFrontier(frontier, {
      ...run,
      dir,
      name,
      spec: JSON.stringify(withoutSecrets(run.spec)),
      finishReason: null,
      meta: { [BEGAN_KEY]: JSON.stringify(began) },
    });
  } catch (cause) {
    // Half a state would be taken for one.
    rmSync(dir, { recursive: true, force: true });
    const reason = cause instanceof CrawlError && cause.cause instanceof Error ? cause.cause : cause;
    const why = reason instanceof Error ? reason.message : String(reason);
    throw new CrawlError("state-unwritable", `the interrupted crawl cannot be kept in ${dir}: ${why}; its outputs hold what was fetched`, { cause });
  }
  return dir;
}
