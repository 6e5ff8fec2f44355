/** The response cache in Redis, for processes on any number of machines: a response goes after its time, and those that are next go early when the whole grows too large or the server full. */
import { hash } from "node:crypto";
import { zstdCompressSync, zstdDecompressSync } from "node:zlib";
import type { CacheStats, PageCache, StoredResponse } from "../../core/cache.ts";
import type { Link } from "./connect.ts";

export interface RedisCacheOptions {
  /** A response that nobody has put or refreshed for so long goes; 30 days. */
  readonly keepMs?: number;
  /** Bytes of all responses as kept, with what a server needs for each; 1 GB, and never more than half of what the server may take. */
  readonly maxBytes?: number;
  /** Epoch ms of the store; the server's clock by default. */
  readonly nowMs?: () => number;
}

export interface RedisCache extends PageCache {
  /** The server is nearly full: responses make room for crawls. Answers how many went. To be asked every few seconds. */
  makeRoom(): Promise<number>;
}

const LEAST_COMPRESSED = 128;
const AT_ONCE = 200;
const MOST_STEPS = 50;
const MONTH_MS = 30 * 86_400_000;
const GIGABYTE = 1_000_000_000;
/** What a server needs for a response beside its bytes: key, hash, expiry, and its entries in the index and the sizes. */
const BESIDE = 450;
/** As in the cache on a disk: one that would take the place of so many others is not kept. */
const LARGEST_PART = 1 / 4;
const OF_THE_SERVER = 1 / 2;
const NEARLY_FULL = 0.85;
const ROOM_AGAIN = 0.8;
/** After a refusal, nothing is offered for so long. */
const REFUSED_MS = 5_000;

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

const numberIn = (text: string, name: string): number => Number(new RegExp(`^${name}:(\\d+)`, "m").exec(text)?.[1] ?? 0);

/**
 * `link`: best one of the cache's own, so that large bodies keep no step of a crawl waiting. Keys: {prefix}:c…
 * Reading waits for a store that is away, as crawls do. Writing never does: what a server does not take is not kept, which is said once.
 */
export function createRedisCache(link: Link, { keepMs = MONTH_MS, maxBytes = GIGABYTE, nowMs }: RedisCacheOptions = {}): RedisCache {
  const { tag } = link;
  const nameOf = (key: string): string => hash("sha256", key, "base64url").slice(0, 22);
  const keyOf = (name: string): string => `${tag}:c:${name}`;
  const moment = (): string => (nowMs === undefined ? "" : String(nowMs()));
  let refusedUntil = -Infinity;
  let said = false;

  function bound(): number {
    const { maxMemory } = link.server;
    return maxMemory === 0 ? maxBytes : Math.min(maxBytes, Math.floor(maxMemory * OF_THE_SERVER));
  }

  function refused(why: string): void {
    refusedUntil = performance.now() + REFUSED_MS;
    if (said) return;
    said = true;
    link.log("warn", "the store takes no responses for now: pages are not cached until it does", { store: link.address.shown, why });
  }

  async function offer(key: string, before: Buffer | null, head: Head, body: Buffer | null): Promise<void> {
    if (performance.now() < refusedUntil) return;
    const text = Buffer.from(JSON.stringify(head));
    const size = BESIDE + text.length + 2 * Buffer.byteLength(key) + (body?.length ?? 0);
    const most = bound();
    if (size > most * LARGEST_PART) return;
    const fields = ["key", key, "head", text, ...(body === null ? [] : ["body", body])];
    const args = [nameOf(key), String(size), moment(), String(keepMs), String(most), before ?? "", ...fields];
    const why = await link.offer("cache-put", [tag], args);
    if (why !== null) refused(why);
  }

  /** Many in bounded steps; answers how many went, and the bytes left. */
  async function drop(what: "name" | "past" | "most", which: string, steps: number): Promise<readonly [gone: number, left: number]> {
    let gone = 0;
    for (let step = 1; ; step++) {
      const [some, left] = (await link.script("cache-drop", [tag], [what, which, String(AT_ONCE)])) as [number, Buffer]; // cache-drop.lua
      gone += some;
      if (some < AT_ONCE || step >= steps) return [gone, Number(left.toString("latin1"))];
    }
  }

  /** Those that have gone by their time and are dropped by the next who writes: counted no more, and left to him. */
  async function pastOf(): Promise<{ readonly count: number; readonly bytes: number }> {
    const [seconds, micros] = (await link.command("TIME")) as [Buffer, Buffer]; // TIME
    const now = nowMs?.() ?? Number(String(seconds)) * 1_000 + Number(String(micros)) / 1_000;
    let count = 0;
    let bytes = 0;
    for (;;) {
      const names = (await link.command("ZRANGEBYSCORE", `${tag}:cz`, "-inf", now, "LIMIT", count, AT_ONCE)) as Buffer[]; // ZRANGEBYSCORE
      const sizes = names.length === 0 ? [] : ((await link.command("HMGET", `${tag}:cs`, ...names)) as (Buffer | null)[]); // HMGET
      for (const size of sizes) bytes += Number(String(size ?? 0));
      count += names.length;
      if (names.length < AT_ONCE) return { count, bytes };
    }
  }

  /** The one with this rank, by the time at which it goes. */
  async function edge(end: number): Promise<number | null> {
    const [name] = (await link.command("ZRANGE", `${tag}:cz`, end, end)) as Buffer[]; // ZRANGE
    const at = name === undefined ? null : ((await link.command("HGET", keyOf(name.toString("latin1")), "at")) as Buffer | null); // HGET
    return at === null ? null : Number(at.toString("latin1"));
  }

  return {
    async get(key) {
      const [is, head, body] = (await link.command("HMGET", keyOf(nameOf(key)), "key", "head", "body")) as (Buffer | null)[]; // HMGET
      if (!is || !head || !body || is.toString("utf8") !== key) return null;
      return { ...(JSON.parse(head.toString("utf8")) as Head), body: unpackBody(body) }; // written by put
    },
    put: (key, { body, ...head }) => offer(key, null, head, packBody(body)),
    async refresh(key, head) {
      const [is, before] = (await link.command("HMGET", keyOf(nameOf(key)), "key", "head")) as (Buffer | null)[]; // HMGET
      if (!is || !before || is.toString("utf8") !== key) return;
      await offer(key, before, { ...(JSON.parse(before.toString("utf8")) as Head), ...head }, null); // written by put
    },
    async delete(key) {
      await drop("name", nameOf(key), 1);
    },
    async *all() {
      for (let from = 0; ; from += AT_ONCE) {
        const names = (await link.command("ZRANGE", `${tag}:cz`, from, from + AT_ONCE - 1)) as Buffer[]; // ZRANGE
        for (const name of names) {
          const [is, head, body] = (await link.command("HMGET", keyOf(name.toString("latin1")), "key", "head", "body")) as (Buffer | null)[]; // HMGET
          if (is && head && body) yield [is.toString("utf8"), { ...(JSON.parse(head.toString("utf8")) as Head), body: unpackBody(body) }]; // written by put
        }
        if (names.length < AT_ONCE) return;
      }
    },
    async stats(): Promise<CacheStats> {
      const past = await pastOf();
      const [responses, bytes, oldest, newest] = await Promise.all([
        link.command("ZCARD", `${tag}:cz`),
        link.command("GET", `${tag}:cb`),
        edge(past.count),
        edge(-1),
      ]);
      const count = Math.max(0, Number(responses) - past.count);
      const sum = Number(String(bytes ?? 0)) - past.bytes;
      if (count === 0) return { responses: 0, bodyBytes: 0, diskBytes: 0, oldest: null, newest: null };
      return { responses: count, bodyBytes: Math.max(0, sum - count * BESIDE), diskBytes: sum, oldest, newest };
    },
    async clear() {
      if (Number(await link.command("ZCARD", `${tag}:cz`)) > 0) await drop("most", "0", Infinity);
    },
    async makeRoom() {
      const info = String(await link.command("INFO", "memory"));
      const [used, most] = [numberIn(info, "used_memory"), numberIn(info, "maxmemory")];
      if (most === 0 || used < most * NEARLY_FULL) return 0;
      const bytes = Number(String((await link.command("GET", `${tag}:cb`)) ?? 0));
      if (bytes === 0) return 0;
      // A size that all who see the same come to: together they drop no more than one of them would.
      const [gone] = await drop("most", String(Math.max(0, Math.round(bytes - (used - most * ROOM_AGAIN)))), MOST_STEPS);
      return gone;
    },
    async [Symbol.asyncDispose]() {},
  };
}
