/** Writes a frontier's changes into one SQLite transaction a step: the journal of the memory frontier. When to commit is the frontier's affair (frontier.ts). */
import type { DatabaseSync } from "node:sqlite";
import type { SinkState } from "../../core/sink.ts";
import type { Desk } from "../memory/desk.ts";
import type { Host } from "../memory/hosts.ts";
import type { Journal } from "../memory/journal.ts";
import type { OriginEntry } from "../memory/robots.ts";
import { createPacker, FOUND, type LogKind, SEEN, SKIPPED } from "./log.ts";
import { countersText, leasedBlob } from "./progress.ts";
import { factsOf, historyText, restText, shortReferrer } from "./rows.ts";

export interface Writer extends Journal {
  /** Something was journalled since the last commit. */
  readonly pending: boolean;
  /** One transaction with everything journalled since the last one, the counters, the leases, and where the sinks stand (null: as before). */
  commit(
    desk: Desk,
    more: {
      readonly elapsedMs: number;
      /** Something was settled since the directory was opened. */
      readonly settled: boolean;
      readonly sinks: ReadonlyMap<string, SinkState> | null;
      readonly beforeEnd: () => void;
    },
  ): void;
  /** Forgets what was not committed. */
  abandon(): void;
}

/** `nextSeq`: larger than every number in the queue. `desk` is asked for once changes come. */
export function createWriter(db: DatabaseSync, nextSeq: number, desk: () => Desk): Writer {
  const begin = db.prepare("BEGIN IMMEDIATE");
  const end = db.prepare("COMMIT");
  const insertPlace = db.prepare("INSERT INTO queue VALUES (?, ?, ?, ?, ?, ?, ?, ?)");
  const deletePlace = db.prepare("DELETE FROM queue WHERE seq = ?");
  const insertLog = db.prepare("INSERT INTO log (kind, entries) VALUES (?, ?)");
  const putProgress = db.prepare("INSERT OR REPLACE INTO progress VALUES (1, ?, ?)");
  const putSink = db.prepare("INSERT OR REPLACE INTO sink VALUES (?, ?)");
  const packers = [createPacker(SEEN), createPacker(SKIPPED), createPacker(FOUND)] as const;
  const hosts = new Set<Host>();
  const origins = new Set<OriginEntry>();
  const sites = new Set<string>();
  const sinkTexts = new Map<string, string>();
  let seedUrls: string[] = [];
  let open = false;
  let pending = false;

  function change(): void {
    pending = true;
    if (open) return;
    begin.run();
    open = true;
  }

  const epochOf = (at: number): number => {
    const { clock } = desk().env;
    return Math.ceil(clock.epoch() + at - clock.now());
  };

  function putLearnt(): void {
    if (hosts.size > 0) {
      const put = db.prepare("INSERT OR REPLACE INTO host VALUES (?, ?, ?, ?)");
      for (const host of hosts) {
        const until = Math.max(host.notBefore, host.pace.heldUntil);
        put.run(host.key, host.crawlDelayMs, until > desk().env.clock.now() ? epochOf(until) : null, host.tuned ? host.usualLimit : null);
      }
      hosts.clear();
    }
    if (origins.size > 0) {
      const put = db.prepare("INSERT OR REPLACE INTO robots VALUES (?, ?, ?, ?)");
      for (const entry of origins) put.run(entry.origin, entry.host, epochOf(entry.expiresAt), JSON.stringify(entry.state));
      origins.clear();
    }
    if (sites.size > 0) {
      const put = db.prepare("INSERT OR REPLACE INTO cookie VALUES (?, ?)");
      for (const site of sites) put.run(site, JSON.stringify(desk().jars.get(site) ?? []));
      sites.clear();
    }
    if (seedUrls.length > 0) {
      const put = db.prepare("INSERT OR IGNORE INTO seed VALUES (?)");
      for (const url of seedUrls) put.run(url);
      seedUrls = [];
    }
  }

  function putSinks(sinks: ReadonlyMap<string, SinkState>): void {
    for (const [name, state] of sinks) {
      const text = JSON.stringify(state);
      if (sinkTexts.get(name) === text) continue;
      putSink.run(name, text);
      sinkTexts.set(name, text);
    }
  }

  function pack(kind: LogKind, hi: number, lo: number, value: number): void {
    change();
    packers[kind].add(hi, lo, value);
  }

  return {
    get pending() {
      return pending;
    },
    queued(place, relink, dueAt) {
      change();
      const { request } = place;
      const { url } = request;
      const seq = nextSeq++;
      const due = dueAt === null ? null : epochOf(dueAt);
      const referrer = shortReferrer(url, request.referrer);
      insertPlace.run(seq, request.idHi, request.idLo, factsOf(request, relink), url, referrer, restText(request.rest), historyText(place, due));
      return seq;
    },
    gone(seq) {
      change();
      deletePlace.run(seq);
    },
    seen: (id, value) => pack(SEEN, id.idHi, id.idLo, value),
    skipped: (id) => pack(SKIPPED, id.idHi, id.idLo, 0),
    found: (id) => pack(FOUND, id.idHi, id.idLo, 0),
    host(host) {
      change();
      hosts.add(host);
    },
    origin(origin) {
      change();
      origins.add(origin);
    },
    cookies(site) {
      change();
      sites.add(site);
    },
    value(key, value) {
      change();
      if (value === null) db.prepare("DELETE FROM val WHERE key = ?").run(key);
      else db.prepare("INSERT OR REPLACE INTO val VALUES (?, ?)").run(key, value);
    },
    seeds(urls) {
      change();
      seedUrls.push(...urls);
    },
    commit(from, { elapsedMs, settled, sinks, beforeEnd }) {
      change();
      for (const [kind, packer] of packers.entries()) if (packer.size > 0) insertLog.run(kind, packer.take());
      putLearnt();
      if (sinks !== null) putSinks(sinks);
      putProgress.run(countersText(from, elapsedMs, settled), leasedBlob(from));
      beforeEnd();
      end.run();
      open = pending = false;
    },
    abandon() {
      if (open && db.isTransaction) db.exec("ROLLBACK");
      open = pending = false;
      for (const packer of packers) packer.clear();
      sinkTexts.clear();
    },
  };
}
