/** A state directory as other processes may read it, while a run owns it too: one consistent moment, nothing is changed. */
import type { RobotsState } from "../../core/frontier.ts";
import type { CrawlRequest, Fingerprint, FingerprintSeed } from "../../core/request.ts";
import type { SinkState } from "../../core/sink.ts";
import { DROPPED, depthOf, stateOf } from "../memory/place.ts";
import { openForReading, type RunView, readRun, readSinks } from "./directory.ts";
import { bytesOf, type LogKind, SEEN, SKIPPED } from "./log.ts";
import { type Counters, readCounters, readLeased } from "./progress.ts";
import { type QueueRow, ROW_COLUMNS, storedPlaceOf } from "./rows.ts";
import { unreadable } from "./trouble.ts";

/** Where a URL stands. */
export type Standing = "queued" | "delayed" | "leased" | "done" | "dropped";

export interface KnownPlace {
  readonly standing: Standing;
  /** The smallest known. */
  readonly depth: number;
  /** For what is queued, delayed or leased. */
  readonly request: CrawlRequest | null;
  readonly attempt: number;
  readonly crashes: number;
  /** For what is delayed: epoch ms. */
  readonly dueEpoch: number | null;
}

export interface StateReader {
  readonly seed: FingerprintSeed;
  readonly run: RunView | null;
  /** Null before the first commit of a run. */
  readonly counters: Counters | null;
  readonly sinks: ReadonlyMap<string, SinkState>;
  meta(key: string): string | null;
  /** What is queued, delayed or leased, oldest first. */
  queue(): Iterable<KnownPlace & { readonly request: CrawlRequest }>;
  /** Null: the crawl has never met it. Reads the whole log: meant for a few questions. */
  lookUp(id: Fingerprint): KnownPlace | null;
  /** Whether a skipped line was written for it. */
  wasSkipped(id: Fingerprint): boolean;
  robotsOf(origin: string): { readonly state: RobotsState; readonly expiresAt: number } | null;
  /** Hosts with a rule learnt on the way. */
  hosts(): readonly { readonly key: string; readonly crawlDelayMs: number; readonly notBefore: number | null; readonly concurrency: number | null }[];
  close(): void;
}

/** Throws CrawlError `state-unwritable` when it is no state directory, is damaged, or is newer than this program. Null: there is no state yet. */
export function readState(dir: string): StateReader | null {
  const opened = openForReading(dir);
  if (opened === null) return null;
  const { db } = opened;
  try {
    db.exec("BEGIN");
    return readerOf(opened.db);
  } catch (error) {
    db.close();
    throw unreadable(dir, error);
  }
}

type Database = NonNullable<ReturnType<typeof openForReading>>["db"];

function readerOf(db: Database): StateReader {
  const metaOf = (key: string): string | null => (db.prepare("SELECT value FROM meta WHERE key = ?").get(key) as { value: string } | undefined)?.value ?? null; // the column is declared so
  const row = db.prepare("SELECT counters, leased FROM progress").get() as { counters: string; leased: Uint8Array } | undefined; // the columns are declared so
  const counters = row === undefined ? null : readCounters(row.counters);
  const leased = new Set(row === undefined ? [] : readLeased(row.leased));

  function known(queued: QueueRow): KnownPlace & { readonly request: CrawlRequest } {
    const { place, dueEpoch } = storedPlaceOf(queued);
    const { request, attempt, crashes } = place;
    const standing = leased.has(queued.seq) ? "leased" : dueEpoch === null ? "queued" : "delayed";
    return { standing, depth: request.depth, request, attempt, crashes, dueEpoch };
  }

  /** The last value logged for the fingerprint; −1: none. */
  function logged(kind: LogKind, id: Fingerprint): number {
    const wanted = Buffer.alloc(8);
    wanted.writeInt32LE(id.idHi | 0, 0);
    wanted.writeInt32LE(id.idLo | 0, 4);
    const stride = bytesOf(kind);
    for (const entry of db.prepare("SELECT entries FROM log WHERE kind = ? ORDER BY id DESC").iterate(kind)) {
      const { entries } = entry as { entries: Uint8Array }; // the column is declared so
      const bytes = Buffer.from(entries.buffer, entries.byteOffset, entries.byteLength);
      for (let at = bytes.lastIndexOf(wanted); at >= 0; at = at === 0 ? -1 : bytes.lastIndexOf(wanted, at - 1))
        if (at % stride === 0) return kind === SEEN ? bytes.readUInt16LE(at + 8) : 0;
    }
    return -1;
  }

  return {
    seed: JSON.parse(metaOf("seed") ?? "[0,0,0,0]") as FingerprintSeed, // written by directory.ts
    run: readRun(db),
    counters,
    sinks: readSinks(db),
    meta: (key) => metaOf(`x:${key}`),
    *queue() {
      for (const queued of db.prepare(`SELECT ${ROW_COLUMNS} FROM queue ORDER BY seq`).iterate()) yield known(queued as unknown as QueueRow); // the columns are declared so
    },
    lookUp(id) {
      const queued = db.prepare(`SELECT ${ROW_COLUMNS} FROM queue WHERE hi = ? AND lo = ? ORDER BY seq DESC LIMIT 1`).get(id.idHi | 0, id.idLo | 0);
      const value = logged(SEEN, id);
      if (queued !== undefined) {
        const place = known(queued as unknown as QueueRow); // the columns are declared so
        return value < 0 ? place : { ...place, depth: Math.min(place.depth, depthOf(value)) };
      }
      if (value < 0) return null;
      return { standing: stateOf(value) === DROPPED ? "dropped" : "done", depth: depthOf(value), request: null, attempt: 0, crashes: 0, dueEpoch: null };
    },
    wasSkipped: (id) => logged(SKIPPED, id) >= 0,
    robotsOf(origin) {
      const found = db.prepare("SELECT expires_at AS expiresAt, state FROM robots WHERE origin = ?").get(origin);
      if (found === undefined) return null;
      const { expiresAt, state } = found as { expiresAt: number; state: string }; // the columns are declared so
      return { expiresAt, state: JSON.parse(state) as RobotsState }; // written by writer.ts
    },
    hosts: () =>
      db.prepare("SELECT key, crawl_delay_ms AS crawlDelayMs, not_before AS notBefore, concurrency FROM host ORDER BY key").all() as unknown as ReturnType<
        StateReader["hosts"]
      >, // the columns are declared so
    close: () => db.close(),
  };
}
