/** Writes a crawl that ran in memory into a new state directory, where it can be resumed. */
import { CrawlError } from "../../core/errors.ts";
import type { Frontier } from "../../core/frontier.ts";
import type { SinkState } from "../../core/sink.ts";
import { carriedKey, type Desk, isDetached, isRobots, seenValue } from "../memory/desk.ts";
import { depthOf, type Place, RELINK_HELD, RELINK_QUEUED, stateOf } from "../memory/place.ts";
import { memoryPartsOf, revokeAll } from "../memory.ts";
import { openDirectory } from "./directory.ts";
import { FOUND, SEEN, SKIPPED, setDown } from "./log.ts";
import { unusable, unwritable } from "./trouble.ts";
import { createWriter, type Writer } from "./writer.ts";

export interface SaveOptions {
  readonly dir: string;
  /** Of the run, as startRun takes them. */
  readonly name: string;
  readonly spec: string;
  readonly startedAt: number;
  readonly elapsedMs: number;
  /** Why it stopped; null: it may go on as if it had been killed. */
  readonly finishReason: string | null;
  readonly sinks: ReadonlyMap<string, SinkState>;
  /** URLs that became seeds on the way (targets of redirected seeds). */
  readonly seeds: readonly string[];
  /** Kept beside the frontier, by key. */
  readonly meta?: Readonly<Record<string, string>>;
}

/** Everything but what is in flight, which is queued again. The frontier must do nothing any more. Throws CrawlError `state-held` or `state-unwritable`. */
export function saveFrontier(frontier: Frontier, options: SaveOptions): void {
  const parts = memoryPartsOf(frontier);
  if (parts === null) throw new CrawlError("internal", "only a frontier in memory can be saved");
  const { desk, seed } = parts;
  const { dir } = options;
  const opened = openDirectory(dir, { seed, strict: true });
  try {
    const { db } = opened;
    if (opened.run() !== null) throw unusable(dir, "it holds the state of another crawl already");
    const writer = createWriter(db, 1, () => desk);
    const insertLog = db.prepare("INSERT INTO log (kind, entries) VALUES (?, ?)");
    revokeAll(desk);
    writeQueue(desk, writer);
    for (const host of desk.hosts.all()) if (host.tuned || host.crawlDelayMs > 0 || host.notBefore > 0 || host.pace.heldUntil > 0) writer.host(host);
    for (const origin of desk.origins.all()) if (origin.state !== null) writer.origin(origin);
    for (const site of desk.jars.keys()) writer.cookies(site);
    writer.seeds(options.seeds);
    for (const [key, value] of desk.values) writer.value(key, value);
    writer.commit(desk, {
      elapsedMs: options.elapsedMs,
      settled: true,
      sinks: options.sinks,
      beforeEnd() {
        setDown(
          SEEN,
          desk.seen,
          (value) => value,
          (chunk) => void insertLog.run(SEEN, chunk),
        );
        setDown(
          SKIPPED,
          desk.once.skipped,
          () => 0,
          (chunk) => void insertLog.run(SKIPPED, chunk),
        );
        setDown(
          FOUND,
          desk.once.found,
          () => 0,
          (chunk) => void insertLog.run(FOUND, chunk),
        );
        opened.startRun(options);
        for (const [key, value] of Object.entries(options.meta ?? {})) opened.setMeta(key, value);
        if (options.finishReason !== null) opened.finishRun(options.finishReason, desk.env.clock.epoch());
      },
    });
  } catch (error) {
    throw unwritable(dir, error);
  } finally {
    opened.close();
  }
}

const isRelinking = (desk: Desk, place: Place): boolean => !isDetached(place) && [RELINK_QUEUED, RELINK_HELD].includes(stateOf(seenValue(desk, place)));

/** In the order in which each host would have given them. */
function writeQueue(desk: Desk, writer: Writer): void {
  for (const { place, dueAt } of desk.delayed.members()) if (!isRobots(place)) writer.queued(place, isRelinking(desk, place), dueAt);
  for (const host of desk.hosts.all()) {
    for (const lane of host.lanes) {
      const front = lane.front.length;
      const listed = desk.arena.list(lane, host.key);
      // The last one put in front is the first to go; with dfs the last one of all is.
      const first = listed.slice(0, front);
      const rest = listed.slice(front);
      for (const place of desk.config.order === "bfs" ? [...first.reverse(), ...rest] : [...rest, ...first]) {
        if (!isDetached(place) && desk.levels.on && depthOf(seenValue(desk, place)) !== lane.level) continue;
        const history = isDetached(place) ? undefined : desk.carried.get(carriedKey(place.request));
        writer.queued(history === undefined ? place : { ...place, attempt: history.attempt, crashes: history.crashes }, isRelinking(desk, place), null);
      }
    }
  }
}
