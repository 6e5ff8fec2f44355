/** The response cache in Redis, for workers on any number of machines: each response goes after its time, and the oldest go when the whole grows too large. */
import { hash } from "node:crypto";
import { zstdCompressSync, zstdDecompressSync } from "node:zlib";
import type { CacheStats, PageCache, StoredResponse } from "../../core/cache.ts";
import type { Link } from "./connect.ts";

export interface RedisCacheOptions {
  /** A response that nobody has put or refreshed for so long goes; 30 days. */
  readonly keepMs?: number;
  /** Bytes of all responses as kept, keys apart; 1 GB. */
  readonly maxBytes?: number;
  /** Epoch ms of the store; the server's clock by default. */
  readonly nowMs?: () => number;
}

const LEAST_COMPRESSED = 128;
const AT_ONCE = 200;
const MONTH_MS = 30 * 86_400_000;

type Head = Omit<StoredResponse, "body">;

function packBody(body: Uint8Array): Buffer {
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength);
  if (bytes.length >= LEAST_COMPRESSED) {
    const packed = zstdCompressSync(bytes);
    if (packed.length < bytes.length) return Buffer.concat([Buffer.of(1), packed]);
  }
  return Buffer.concat([Buffer.of(0), bytes]);
}

function unpackBody(bytes: Buffer): Uint8Array {
  const body = bytes.subarray(1);
  return bytes[0] === 1 ? zstdDecompressSync(body) : Uint8Array.from(body);
}

/** `link`: of a database or under a prefix of its own, when the cache is to be apart from crawls. Keys: {prefix}:c… */
export function createRedisCache(link: Link, { keepMs = MONTH_MS, maxBytes = 1_000_000_000, nowMs }: RedisCacheOptions = {}): PageCache {
  const { tag } = link;
  const nameOf = (key: string): string => hash("sha256", key, "base64url").slice(0, 22);
  const keyOf = (name: string): string => `${tag}:c:${name}`;

  async function now(): Promise<number> {
    if (nowMs !== undefined) return nowMs();
    const [seconds, micros] = (await link.command("TIME")) as [Buffer, Buffer]; // TIME
    return Number(seconds.toString()) * 1_000 + Number(micros.toString()) / 1_000;
  }

  /** `key` null: whatever lies under the name. */
  async function read(name: string, key: string | null): Promise<readonly [string, StoredResponse] | null> {
    const [is, head, body] = (await link.command("HMGET", keyOf(name), "key", "head", "body")) as (Buffer | null)[]; // HMGET
    if (!is || !head || !body || (key !== null && is.toString("utf8") !== key)) return null;
    return [is.toString("utf8"), { ...(JSON.parse(head.toString("utf8")) as Head), body: unpackBody(body) }]; // written by put
  }

  async function store(key: string, mode: "new" | "old", head: Head, body: Buffer | null): Promise<void> {
    const text = Buffer.from(JSON.stringify(head));
    const size = text.length + Buffer.byteLength(key) + (body?.length ?? 0);
    const fields = ["key", key, "head", text, ...(body === null ? [] : ["body", body])];
    await link.script("cache-put", [tag], [nameOf(key), String(size), String(await now()), String(keepMs), String(maxBytes), mode, ...fields]);
  }

  async function names(from: number): Promise<readonly string[]> {
    return ((await link.command("ZRANGE", `${tag}:cz`, from, from + AT_ONCE - 1)) as Buffer[]).map((name) => name.toString("latin1")); // ZRANGE
  }

  async function edge(end: 0 | -1): Promise<number | null> {
    const [, score] = (await link.command("ZRANGE", `${tag}:cz`, end, end, "WITHSCORES")) as Buffer[]; // ZRANGE
    return score === undefined ? null : Number(score.toString("latin1"));
  }

  return {
    async get(key) {
      return (await read(nameOf(key), key))?.[1] ?? null;
    },
    async put(key, { body, ...head }) {
      await store(key, "new", head, packBody(body));
    },
    async refresh(key, head) {
      const kept = await read(nameOf(key), key);
      if (kept === null) return;
      const { body: _, ...before } = kept[1];
      await store(key, "old", { ...before, ...head }, null);
    },
    async delete(key) {
      await link.script("cache-drop", [tag], [nameOf(key)]);
    },
    async *all() {
      for (let from = 0; ; from += AT_ONCE) {
        const some = await names(from);
        for (const name of some) {
          const found = await read(name, null);
          if (found !== null) yield found;
        }
        if (some.length < AT_ONCE) return;
      }
    },
    async stats(): Promise<CacheStats> {
      // Those that have gone by their time are counted no more.
      const gone = (await link.command("ZRANGEBYSCORE", `${tag}:cz`, "-inf", String((await now()) - keepMs))) as Buffer[]; // ZRANGEBYSCORE
      for (let from = 0; from < gone.length; from += AT_ONCE) await link.script("cache-drop", [tag], gone.slice(from, from + AT_ONCE));
      const [responses, bytes, oldest, newest] = await Promise.all([link.command("ZCARD", `${tag}:cz`), link.command("GET", `${tag}:cb`), edge(0), edge(-1)]);
      const sum = Number(String(bytes ?? 0));
      return { responses: Number(responses), bodyBytes: sum, diskBytes: sum, oldest, newest };
    },
    async clear() {
      for (let some = await names(0); some.length > 0; some = await names(0)) await link.script("cache-drop", [tag], some);
      await link.command("UNLINK", `${tag}:cb`, `${tag}:cs`, `${tag}:cz`);
    },
    async [Symbol.asyncDispose]() {},
  };
}
