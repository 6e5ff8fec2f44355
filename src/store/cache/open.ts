/** The response cache in one SQLite file: PageCache for any number of processes at once. Puts wait in memory for a batch, reads see them. Whether an answer may serve is rules/caching.ts. */
import { join } from "node:path";
import type { DatabaseSync } from "node:sqlite";
import type { PageCache, StoredResponse } from "../../core/cache.ts";
import type { Clock, Timer } from "../../core/clock.ts";
import { createEviction } from "./evict.ts";
import { emptyCache, statsOf } from "./look.ts";
import { headText, type PackedBody, packBody, readHead, unpackBody } from "./pack.ts";
import { CACHE_FILE, cacheTrouble, openForWriting } from "./schema.ts";

export interface CacheFileOptions {
  /** Most bytes on the disk; below 1 MB it is kept roughly. The oldest responses go first. */
  readonly maxBytes: number;
  readonly clock: Clock;
}

/** What a crash may cost at most, beside what it costs in memory. */
const BATCH_RESPONSES = 512;
const BATCH_MS = 1_000;
const MAX_WAL_BYTES = 16_000_000;

interface Row {
  readonly id: number;
  readonly key: string;
  readonly url: string | null;
  readonly status: number;
  readonly head: string;
  readonly wire_bytes: number;
  readonly truncated: number;
  readonly requested_at: number;
  readonly responded_at: number;
  readonly packed: number;
  readonly bytes: Uint8Array;
}

/** A response that waits for its batch. */
interface Waiting {
  readonly response: Omit<StoredResponse, "body">;
  readonly body: PackedBody;
}

const READ = `SELECT response.id, key, url, status, head, wire_bytes, truncated, requested_at, responded_at, packed, bytes
  FROM response JOIN body ON body.id = response.body`;

/** Most keys begin with the method and end with the URL: it is not kept twice. */
const urlInKey = (key: string): string => key.slice(key.indexOf(" ") + 1);

function ofRow(row: Row): StoredResponse {
  return {
    url: row.url ?? urlInKey(row.key),
    status: row.status,
    ...readHead(row.head),
    body: unpackBody({ packed: row.packed === 1, bytes: row.bytes }),
    wireBytes: row.wire_bytes,
    truncated: row.truncated === 1,
    requestedAt: row.requested_at,
    respondedAt: row.responded_at,
  };
}

export interface CacheFile extends PageCache {
  /** Commits what waits. A durable crawl does it before it settles a page, so that no page is settled whose answer a kill can still take away. */
  flush(): void;
}

/** Creates the folder and the file if need be. Throws `state-unwritable` for a file that is damaged, someone else's or of another version. */
export function openCache(dir: string, { maxBytes, clock }: CacheFileOptions): CacheFile {
  const path = join(dir, CACHE_FILE);
  const walBytes = Math.min(MAX_WAL_BYTES, Math.max(65_536, Math.floor(maxBytes / 8)));
  const batchBytes = walBytes / 4;
  const db = openForWriting(dir, walBytes);
  const select = db.prepare(`${READ} WHERE key = ?`);
  const batch = createBatch(db);
  const eviction = createEviction(db, Math.max(maxBytes - 2 * walBytes, maxBytes / 2));
  const waiting = new Map<string, Waiting>();
  let waitingBytes = 0;
  let timer: Timer | null = null;
  let closed = false;
  /** Of a batch that was written by the timer, with nobody to tell. */
  let failure: { readonly error: unknown } | null = null;

  function flush(): void {
    timer?.cancel();
    timer = null;
    if (failure !== null) throw failure.error;
    if (waiting.size === 0) return;
    try {
      db.exec("BEGIN IMMEDIATE");
      eviction.makeRoom(waitingBytes);
      for (const [key, { response, body }] of waiting) batch.put(key, response, body);
      db.exec("COMMIT");
      waiting.clear();
      waitingBytes = 0;
      eviction.shrink();
    } catch (error) {
      if (db.isTransaction) db.exec("ROLLBACK");
      throw cacheTrouble(path, error);
    }
  }

  function flushLater(): void {
    timer ??= clock.after(BATCH_MS, () => {
      try {
        flush();
      } catch (error) {
        failure ??= { error };
      }
    });
  }

  function put(key: string, response: StoredResponse): void {
    const body = packBody(response.body);
    const { body: _, ...rest } = response;
    const size = body.bytes.byteLength + 1_024;
    drop(key);
    // One that would throw out most of the others is not worth it.
    if (size > maxBytes / 4) {
      write(() => batch.remove(key));
      return;
    }
    waiting.set(key, { response: rest, body });
    waitingBytes += size;
    if (waiting.size >= BATCH_RESPONSES || waitingBytes >= batchBytes) flush();
    else flushLater();
  }

  function drop(key: string): void {
    const old = waiting.get(key);
    if (old === undefined) return;
    waiting.delete(key);
    waitingBytes -= old.body.bytes.byteLength + 1_024;
  }

  function write(step: () => void): void {
    try {
      db.exec("BEGIN IMMEDIATE");
      step();
      db.exec("COMMIT");
    } catch (error) {
      if (db.isTransaction) db.exec("ROLLBACK");
      throw cacheTrouble(path, error);
    }
  }

  /** Everything that reads or writes: a failure of the timer's batch comes out here, and SQLite's own are explained. */
  async function guarded<T>(run: () => T): Promise<T> {
    if (failure !== null) throw failure.error;
    try {
      return run();
    } catch (error) {
      throw cacheTrouble(path, error);
    }
  }

  return {
    flush,
    get: (key) =>
      guarded(() => {
        const fresh = waiting.get(key);
        if (fresh !== undefined) return { ...fresh.response, body: unpackBody(fresh.body) };
        const row = select.get(key);
        return row === undefined ? null : ofRow(row as unknown as Row); // the columns are declared so
      }),
    put: (key, response) => guarded(() => put(key, response)),
    refresh: (key, head) =>
      guarded(() => {
        const fresh = waiting.get(key);
        if (fresh !== undefined) waiting.set(key, { ...fresh, response: { ...fresh.response, ...head } });
        else write(() => batch.refresh(key, head));
      }),
    delete: (key) =>
      guarded(() => {
        drop(key);
        write(() => batch.remove(key));
      }),
    async *all() {
      await guarded(flush);
      const next = db.prepare(`${READ} WHERE response.id > ? ORDER BY response.id LIMIT 64`);
      for (let after = -1; ; ) {
        const rows = (await guarded(() => next.all(after))) as unknown as Row[]; // the columns are declared so
        for (const row of rows) yield [row.key, ofRow(row)];
        const last = rows.at(-1);
        if (last === undefined) return;
        after = last.id;
      }
    },
    stats: () =>
      guarded(() => {
        flush();
        return statsOf(db, dir);
      }),
    clear: () =>
      guarded(() => {
        waiting.clear();
        waitingBytes = 0;
        emptyCache(db);
      }),
    async [Symbol.asyncDispose]() {
      if (closed) return;
      closed = true;
      try {
        flush();
      } finally {
        db.close();
      }
    },
  };
}

/** The steps of a transaction that someone else begins and ends. */
function createBatch(db: DatabaseSync) {
  const bodyOf = db.prepare("SELECT id FROM body WHERE digest = ?");
  const addBody = db.prepare("INSERT INTO body (digest, responses, packed, bytes) VALUES (?, 1, ?, ?)");
  const useBody = db.prepare("UPDATE body SET responses = responses + 1 WHERE id = ?");
  const releaseBody = db.prepare("UPDATE body SET responses = responses - 1 WHERE id = (SELECT body FROM response WHERE key = ?) RETURNING id, responses");
  const dropBody = db.prepare("DELETE FROM body WHERE id = ?");
  const drop = db.prepare("DELETE FROM response WHERE key = ?");
  const add = db.prepare(
    "INSERT INTO response (key, url, status, head, body, wire_bytes, truncated, requested_at, responded_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
  );
  const headOf = db.prepare("SELECT head FROM response WHERE key = ?");
  // It is the youngest again.
  const renew = db.prepare("UPDATE response SET id = (SELECT max(id) + 1 FROM response), head = ?, requested_at = ?, responded_at = ? WHERE key = ?");

  function remove(key: string): void {
    const left = releaseBody.get(key);
    drop.run(key);
    if (left?.responses === 0) dropBody.run(left.id ?? null);
  }

  return {
    remove,
    put(key: string, response: Omit<StoredResponse, "body">, body: PackedBody): void {
      const digest = Buffer.from(body.digest, "base64");
      const known = bodyOf.get(digest)?.id;
      // Used before the old response lets go of it: it may be the same body.
      if (known !== undefined) useBody.run(known);
      const id = known ?? addBody.run(digest, body.packed ? 1 : 0, body.bytes).lastInsertRowid;
      remove(key);
      const url = response.url === urlInKey(key) ? null : response.url;
      const { status, wireBytes, truncated, requestedAt, respondedAt } = response;
      add.run(key, url, status, headText(response), id, wireBytes, truncated ? 1 : 0, requestedAt, respondedAt);
    },
    refresh(key: string, { headers, requestedAt, respondedAt }: Pick<StoredResponse, "headers" | "requestedAt" | "respondedAt">): void {
      const old = headOf.get(key)?.head;
      if (typeof old === "string") renew.run(headText({ ...readHead(old), headers }), requestedAt, respondedAt, key);
    },
  };
}
