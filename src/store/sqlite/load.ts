/** Rebuilds the memory frontier from a state directory, and sets its logs down anew when they have grown. */
import type { DatabaseSync } from "node:sqlite";
import type { Cookie, RobotsState } from "../../core/frontier.ts";
import { createSeenTable, type SeenTable } from "../../rules/seen.ts";
import { carry, type Desk, isDetached } from "../memory/desk.ts";
import { loadCuts } from "../memory/items.ts";
import { DONE, DROPPED, depthOf, HELD, levelOf, type Place, pack, QUEUED, RELINK_HELD, RELINK_QUEUED, stateOf } from "../memory/place.ts";
import { bytesOf, FOUND, type LogKind, SEEN, SKIPPED, setDown, unpack } from "./log.ts";
import { type Counters, readCounters, readLeased } from "./progress.ts";
import { isDetachedRow, type QueueRow, ROW_COLUMNS, type StoredPlace, storedPlaceOf } from "./rows.ts";

export interface Loaded {
  readonly counters: Counters | null;
  /** Larger than every number in the queue. */
  readonly nextSeq: number;
  /** Places that the dead run held, oldest first; they are in no queue and in no count yet. */
  readonly lost: readonly StoredPlace[];
  /** Rows that stand for nothing any more: their URL was queued again at a lower level. */
  readonly stale: readonly number[];
  /** Rows and bytes of the logs. */
  readonly logRows: number;
  readonly logBytes: number;
}

/** Of the logs only the last value of a fingerprint counts. `exact`: they tell what is done; otherwise only the queue tells what is not. */
function readLogs(db: DatabaseSync, desk: Desk, exact: boolean): { logRows: number; logBytes: number } {
  const tables: Readonly<Record<LogKind, SeenTable>> = { [SEEN]: desk.seen, [SKIPPED]: desk.once.skipped, [FOUND]: desk.once.found };
  let logRows = 0;
  let logBytes = 0;
  const { seen } = desk;
  const bytes = Number(db.prepare("SELECT sum(length(entries)) AS n FROM log WHERE kind = ?").get(SEEN)?.n ?? 0);
  seen.reserve(bytes / bytesOf(SEEN));
  const visitSeen = (hi: number, lo: number, value: number): void => {
    const known = exact || stateOf(value) === DROPPED ? value : pack(DONE, depthOf(value));
    if (seen.putIfAbsent(hi, lo, known) >= 0) seen.replace(hi, lo, known);
  };
  for (const row of db.prepare("SELECT kind, entries FROM log ORDER BY id").iterate()) {
    const { kind, entries } = row as { kind: LogKind; entries: Uint8Array }; // the columns are declared so
    const table = tables[kind];
    if (table === undefined) throw new Error(`there is no log of kind ${kind}`);
    unpack(kind, entries, kind === SEEN ? visitSeen : (hi, lo) => table.putIfAbsent(hi, lo, 0));
    logRows++;
    logBytes += entries.length;
  }
  return { logRows, logBytes };
}

/** With levels a lowered place has a row at each level it was queued at, of which the newest is the live one; none is when the place is settled. */
function staleRows(db: DatabaseSync, desk: Desk, exact: boolean): Set<number> {
  const stale = new Set<number>();
  const met = createSeenTable();
  for (const row of db.prepare("SELECT seq, hi, lo, facts FROM queue ORDER BY seq DESC").iterate()) {
    const { seq, hi, lo, facts } = row as { seq: number; hi: number; lo: number; facts: number }; // the columns are declared so
    if (isDetachedRow(facts)) continue;
    const over = exact && [DONE, DROPPED].includes(stateOf(desk.seen.get(hi, lo)));
    if (over || met.putIfAbsent(hi, lo, 0) >= 0) stale.add(seq);
  }
  return stale;
}

/** Takes a stored place into the counts and its level. It must be put into a queue or among the delayed next. */
function count(desk: Desk, place: Place, relink: boolean, held: boolean): number {
  const { request } = place;
  desk.places++;
  let level = 0;
  if (isDetached(place)) level = desk.levels.on ? levelOf(request.depth) : 0;
  else {
    const value = desk.seen.get(request.idHi, request.idLo);
    if (value < 0) throw new Error(`${request.url} is queued but not known`);
    const state = relink ? (held ? RELINK_HELD : RELINK_QUEUED) : held ? HELD : QUEUED;
    desk.seen.replace(request.idHi, request.idLo, pack(state, depthOf(value)));
    if (desk.levels.on) level = depthOf(value);
  }
  desk.levels.add(level);
  return level;
}

/** Puts a stored place where it belongs; `front`: before everything of its host, level and priority. */
export function restore(desk: Desk, stored: StoredPlace, front: boolean): void {
  const { place, relink, dueEpoch } = stored;
  const { clock } = desk.env;
  // The wall clock may have been set back since: no retry waits longer than the longest wait.
  const dueAt = dueEpoch === null ? 0 : clock.now() + Math.min(dueEpoch - clock.epoch(), desk.config.maxWaitMs);
  const waits = dueEpoch !== null && dueAt > clock.now();
  const level = count(desk, place, relink, waits);
  if (waits) {
    desk.waitingRetries++;
    desk.delayed.put({ place, heapAt: -1, dueAt, turn: desk.places });
    return;
  }
  const host = desk.hosts.of(place.request.host);
  const lane = desk.hosts.laneOf(host, level, place.request.priority);
  if (front) desk.arena.pushFront(lane, place);
  else desk.arena.push(lane, place.request, place.seq);
  if (!isDetached(place)) carry(desk, place);
  host.entries++;
  desk.queued++;
}

function readQueue(db: DatabaseSync, desk: Desk, leased: ReadonlySet<number>, stale: ReadonlySet<number>): { lost: StoredPlace[]; last: number } {
  const lost: StoredPlace[] = [];
  const front: StoredPlace[] = [];
  let last = 0;
  for (const row of db.prepare(`SELECT ${ROW_COLUMNS} FROM queue ORDER BY seq`).iterate()) {
    const queued = row as unknown as QueueRow; // the columns are declared so
    last = queued.seq;
    if (stale.has(queued.seq)) continue;
    const stored = storedPlaceOf(queued);
    if (leased.has(queued.seq)) lost.push(stored);
    // A place of its own keeps its history only at the front, where places are kept whole.
    else if (queued.history !== null) front.push(stored);
    else restore(desk, stored, false);
  }
  // The last one put in front is the first to go.
  for (const stored of front.reverse()) restore(desk, stored, true);
  return { lost, last };
}

/** RFC 9309 §2.4, whatever the wall clock has done since. */
const LONGEST_ROBOTS_MS = 24 * 3_600_000;

function readLearnt(db: DatabaseSync, desk: Desk): void {
  const { clock } = desk.env;
  const clockOf = (epoch: number): number => epoch - clock.epoch() + clock.now();
  for (const row of db.prepare("SELECT key, crawl_delay_ms, not_before, concurrency FROM host").iterate()) {
    const stored = row as { key: string; crawl_delay_ms: number; not_before: number | null; concurrency: number | null }; // the columns are declared so
    const notBeforeMs = stored.not_before === null ? 0 : clockOf(stored.not_before) - clock.now();
    if (stored.crawl_delay_ms === 0 && notBeforeMs <= 0 && stored.concurrency === null) continue;
    desk.hosts.tune(desk.hosts.of(stored.key), {
      ...(stored.crawl_delay_ms === 0 ? {} : { crawlDelayMs: stored.crawl_delay_ms }),
      ...(notBeforeMs <= 0 ? {} : { notBeforeMs }),
      ...(stored.concurrency === null ? {} : { concurrency: stored.concurrency }),
    });
  }
  for (const row of db.prepare("SELECT origin, host, expires_at, state FROM robots").iterate()) {
    const stored = row as { origin: string; host: string; expires_at: number; state: string }; // the columns are declared so
    const entry = desk.origins.of(stored.origin, stored.host);
    entry.state = JSON.parse(stored.state) as RobotsState; // written by writer.ts
    entry.expiresAt = Math.min(clockOf(stored.expires_at), clock.now() + LONGEST_ROBOTS_MS);
    desk.origins.versionsFrom(entry.state.version);
  }
  for (const row of db.prepare("SELECT site, jar FROM cookie").iterate()) {
    const stored = row as { site: string; jar: string }; // the columns are declared so
    const jar = JSON.parse(stored.jar) as Cookie[]; // written by writer.ts
    if (jar.length > 0) desk.jars.set(stored.site, jar);
  }
  for (const row of db.prepare("SELECT url FROM seed").iterate()) desk.newSeeds.push((row as { url: string }).url); // the column is declared so
}

/** Fills an empty desk. Reads only; throws when what it reads makes no sense. */
export function loadDesk(db: DatabaseSync, desk: Desk): Loaded {
  const row = db.prepare("SELECT counters, leased FROM progress").get() as { counters: string; leased: Uint8Array } | undefined; // the columns are declared so
  const counters = row === undefined ? null : readCounters(row.counters);
  const exact = desk.levels.on && counters?.levels === true;
  const logs = readLogs(db, desk, exact);
  const leased = new Set(row === undefined ? [] : readLeased(row.leased));
  readLearnt(db, desk);
  for (const { key, value } of db.prepare("SELECT key, value FROM val").all()) desk.values.set(String(key), String(value));
  loadCuts(desk);
  const stale = desk.levels.on ? staleRows(db, desk, exact) : new Set<number>();
  const { lost, last } = readQueue(db, desk, leased, stale);
  for (const host of desk.hosts.all()) desk.hosts.place(host);
  if (counters !== null) {
    desk.done = counters.done;
    desk.dropped = counters.dropped;
    desk.places += counters.done + counters.dropped;
    desk.counted = counters.counted;
    desk.seedsComplete = counters.seedsComplete;
    for (const [name, n] of counters.tally) desk.tally.set(name, n);
  }
  return { counters, nextSeq: last + 1, lost, stale: [...stale], ...logs };
}

const FEW_ROWS = 4_096;

/** Sets the logs down anew when half of what they hold is repetition, or when they lie in very many small rows. */
export function compactLogs(db: DatabaseSync, desk: Desk, { logRows, logBytes }: Loaded): void {
  const { seen, once } = desk;
  const needed = seen.size * bytesOf(SEEN) + (once.skipped.size + once.found.size) * bytesOf(SKIPPED);
  const rows = Math.ceil(needed / (1 << 17)) + FEW_ROWS;
  if (logRows <= rows && logBytes <= Math.max(1 << 16, needed * 2)) return;
  db.exec("BEGIN IMMEDIATE; DELETE FROM log");
  const insert = db.prepare("INSERT INTO log (kind, entries) VALUES (?, ?)");
  setDown(
    SEEN,
    seen,
    (value) => value,
    (chunk) => void insert.run(SEEN, chunk),
  );
  setDown(
    SKIPPED,
    once.skipped,
    () => 0,
    (chunk) => void insert.run(SKIPPED, chunk),
  );
  setDown(
    FOUND,
    once.found,
    () => 0,
    (chunk) => void insert.run(FOUND, chunk),
  );
  db.exec("COMMIT");
}
