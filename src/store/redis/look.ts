/** A crawl on Redis as those see it who do not work on it: its numbers, where a URL stands, what waits for a writer. Nothing is changed. */
import type { Control, RobotsState } from "../../core/frontier.ts";
import type { Output } from "../../core/records.ts";
import type { CrawlRequest, FingerprintSeed, Origin } from "../../core/request.ts";
import type { SinkState } from "../../core/sink.ts";
import { fingerprintOf } from "../../rules/url.ts";
import type { KnownPlace } from "../sqlite/read.ts";
import type { Link } from "./connect.ts";
import { type OutboxOwner, outboxOwner } from "./outbox.ts";
import { packId, readEntry, type Unpacked } from "./pack.ts";
import { readOutputs } from "./packet.ts";
import { ofHost } from "./remaining.ts";
import { robotsStates, runOn } from "./views.ts";

/** The numbers of a crawl at one moment, and what its creator stored. */
export interface Glance {
  readonly id: number;
  readonly info: ReadonlyMap<string, string>;
  readonly createdAt: number;
  readonly endedAt: number | null;
  /** When a worker was last heard of, of those that hold leases; null: never. */
  readonly aliveAt: number | null;
  readonly control: Control;
  /** Nothing is left to do, or it was stopped. */
  readonly over: boolean;
  /** All seeds have been read. */
  readonly seedsComplete: boolean;
  readonly queued: number;
  readonly delayed: number;
  readonly leased: number;
  readonly done: number;
  readonly dropped: number;
  readonly counted: number;
  readonly level: number;
  /** Outputs that wait for a writer, and their bytes; and how many were ever taken. */
  readonly waiting: number;
  readonly waitingBytes: number;
  readonly written: number;
  /** Null: nobody has begun with it. */
  readonly seed: FingerprintSeed | null;
  /** How large its maps are, as lua/seen.lua has them. */
  readonly maps: { readonly v: BucketCount; readonly o: BucketCount };
}

interface BucketCount {
  readonly bits: number;
  readonly split: number;
}

const AT_ONCE = 500;
/** Of a lease (lua/places.lua): priority 1, bits 1, epoch 4, depth 2, length of the host 2. */
const LEASE_HEAD = 10;
/** Of a delayed entry: number 8, priority 1, more 3, length of the host 2. */
const DELAYED_HEAD = 13;

/** A value of the seen-map is depth × 8 + state (lua/seen.lua). */
const STATES = 8;
const DROPPED = 3;

const text = (value: unknown): string => (Buffer.isBuffer(value) ? value.toString("utf8") : String(value));

function pairs(flat: unknown): Map<string, string> {
  const list = flat as readonly Buffer[]; // HGETALL
  return new Map(Array.from({ length: list.length / 2 }, (_, n) => [text(list[2 * n]), text(list[2 * n + 1])]));
}

export async function serverNow(link: Link): Promise<number> {
  const [seconds, micros] = (await link.command("TIME")) as [Buffer, Buffer]; // TIME
  return Number(text(seconds)) * 1_000 + Number(text(micros)) / 1_000;
}

/** What was said last to those who work on it. */
export async function controlOf(link: Link, id: number): Promise<Control> {
  const value = await link.command("HGET", `${link.tag}:${id}:m`, "ctl");
  return value === null ? "run" : (text(value) as Control); // control.lua takes no other
}

/** Null: there is no such crawl (any more). */
export async function glance(link: Link, id: number): Promise<Glance | null> {
  const crawl = `${link.tag}:${id}`;
  const [stored, numbers, alive] = await Promise.all([
    link.command("HGETALL", `${crawl}:info`),
    link.command("HGETALL", `${crawl}:m`),
    link.command("HGET", `${link.tag}:alive`, id),
  ]);
  const info = pairs(stored);
  if (info.size === 0) return null;
  const state = pairs(numbers);
  const number = (name: string): number => Number(state.get(name) ?? 0);
  const createdAt = Number(info.get("created"));
  info.delete("created");
  const [s0 = 0, s1 = 0, s2 = 0, s3 = 0] = (state.get("seed") ?? "").split(",").map(Number);
  const over = state.get("over") === "1";
  return {
    ...{ id, info, createdAt, over },
    endedAt: over ? number("endedAt") : null,
    aliveAt: alive === null ? null : Number(text(alive)),
    control: (state.get("ctl") ?? "run") as Control, // control.lua takes no other
    seedsComplete: number("sc") === 1,
    ...{ queued: number("queued"), delayed: number("delayed"), leased: number("leased"), done: number("done"), dropped: number("dropped") },
    ...{ counted: number("counted"), level: number("base") },
    ...{ waiting: number("oin") - number("oout"), waitingBytes: number("oinb") - number("ooutb"), written: number("oout") },
    seed: state.has("seed") ? [s0, s1, s2, s3] : null,
    maps: { v: { bits: number("vb"), split: number("vp") }, o: { bits: number("ob"), split: number("op") } },
  };
}

/** The named counters: outcomes, statuses, skip reasons and the like. */
export async function tallyOf(link: Link, id: number): Promise<ReadonlyMap<string, number>> {
  const flat = pairs(await link.command("HGETALL", `${link.tag}:${id}:t`));
  return new Map([...flat].map(([name, value]) => [name, Number(value)]));
}

export interface WriterView {
  readonly owner: OutboxOwner | null;
  /** Where each file stood at the last checkpoint, by the name that its writer gave it. */
  readonly states: ReadonlyMap<string, SinkState>;
}

export async function writerOf(link: Link, id: number): Promise<WriterView> {
  const [owner, saved] = await Promise.all([outboxOwner(link, id), link.command("HGET", `${link.tag}:${id}:sink`, "states")]);
  return { owner, states: new Map(Object.entries(JSON.parse(saved === null ? "{}" : text(saved)) as Record<string, SinkState>)) }; // written by outbox.ts
}

/** URLs that say what belongs to the crawl: its seeds and where they were redirected to. */
export async function notedSeeds(link: Link, id: number): Promise<readonly string[]> {
  return ((await link.command("LRANGE", `${link.tag}:${id}:ns`, 0, -1)) as Buffer[]).map(text); // LRANGE
}

/** The first output that waits for a writer and that `wanted` says yes to. Reads no more than what the bound of the outbox lets wait. */
export async function findWaiting(link: Link, id: number, wanted: (output: Output) => boolean): Promise<Output | null> {
  const none: Output = { page: null, listed: false, skipped: [], found: [], edges: [] };
  for (let cursor = "-"; ; ) {
    const entries = (await link.command("XRANGE", `${link.tag}:${id}:out`, cursor, "+", "COUNT", 64)) as readonly [Buffer, Buffer[]][]; // XRANGE
    for (const [, fields] of entries) {
      const output = readOutputs(fields[1] ?? Buffer.alloc(0), () => none).find(wanted);
      if (output !== undefined) return output;
    }
    const last = entries.at(-1);
    if (last === undefined) return null;
    cursor = `(${text(last[0])}`;
  }
}

export interface CrawlLook {
  /** Where it stands; null: the crawl has never met this canonical URL. */
  lookUp(url: string): Promise<(KnownPlace & { readonly token: string | null }) | null>;
  /** Whether a skipped line was made for it. */
  wasSkipped(url: string): Promise<boolean>;
  /** What is queued at a host, in the order in which it is given out. */
  queueOf(host: string): AsyncIterable<CrawlRequest>;
  /** What is known of its robots.txt; null: nothing. */
  robotsOf(origin: Origin): Promise<RobotsState | null>;
}

function bucketOf(id: Buffer, { bits, split }: BucketCount): number {
  const hash = id.readUInt32LE(0);
  const half = hash % 2 ** bits;
  return half < split ? hash % 2 ** (bits + 1) : half;
}

/** For a crawl that has begun (`seed` is there). */
export function lookAt(link: Link, at: Glance, seed: FingerprintSeed, hostOf: (url: string) => string): CrawlLook {
  const crawl = `${link.tag}:${at.id}`;
  const run = runOn(link, at.id);

  function idOf(url: string): Buffer {
    const { idHi, idLo } = fingerprintOf(url, seed);
    return packId(idHi, idLo);
  }

  async function valueIn(map: "v" | "o", id: Buffer): Promise<number | null> {
    const value = await link.command("HGET", `${crawl}:${map}${bucketOf(id, at.maps[map])}`, id);
    return value === null ? null : Number(text(value));
  }

  async function leaseOf(id: Buffer, depth: number): Promise<(Unpacked & { readonly token: string }) | null> {
    let cursor = "0";
    do {
      const [next, flat] = (await link.command("HSCAN", `${crawl}:L`, cursor, "COUNT", AT_ONCE)) as [Buffer, Buffer[]]; // HSCAN
      for (let i = 0; i + 1 < flat.length; i += 2) {
        const bytes = flat[i + 1]!; // i + 1 < length
        const from = LEASE_HEAD + bytes.readUInt16LE(8);
        if (!bytes.subarray(from, from + 8).equals(id)) continue;
        return { ...readEntry(bytes.subarray(from), bytes.toString("utf8", LEASE_HEAD, from), bytes.readInt8(0), depth), token: text(flat[i]) };
      }
      cursor = text(next);
    } while (cursor !== "0");
    return null;
  }

  async function delayedOf(id: Buffer, depth: number): Promise<(Unpacked & { readonly dueAt: number }) | null> {
    for (let from = 0; ; from += AT_ONCE) {
      const flat = (await link.command("ZRANGE", `${crawl}:rt`, from, from + AT_ONCE - 1, "WITHSCORES")) as Buffer[]; // ZRANGE
      for (let i = 0; i + 1 < flat.length; i += 2) {
        const bytes = flat[i]!; // i + 1 < length
        const entry = DELAYED_HEAD + bytes.readUInt16LE(DELAYED_HEAD - 2);
        if (!bytes.subarray(entry, entry + 8).equals(id)) continue;
        return { ...readEntry(bytes.subarray(entry), bytes.toString("utf8", DELAYED_HEAD, entry), bytes.readInt8(8), depth), dueAt: Number(text(flat[i + 1])) };
      }
      if (flat.length === 0) return null;
    }
  }

  return {
    async lookUp(url) {
      const id = idOf(url);
      const value = await valueIn("v", id);
      if (value === null) return null;
      const depth = Math.floor(value / STATES);
      const leased = await leaseOf(id, depth);
      if (leased !== null) return { standing: "leased", depth, ...leased, dueEpoch: null };
      const delayed = await delayedOf(id, depth);
      if (delayed !== null) return { standing: "delayed", depth, ...delayed, dueEpoch: delayed.dueAt, token: null };
      for await (const request of ofHost(hostOf(url), run))
        if (request.url === url) return { standing: "queued", depth, request, attempt: 0, crashes: 0, dueEpoch: null, token: null };
      return { standing: value % STATES === DROPPED ? "dropped" : "done", depth, request: null, attempt: 0, crashes: 0, dueEpoch: null, token: null };
    },
    async wasSkipped(url) {
      const value = await valueIn("o", idOf(url));
      return value !== null && value % 2 === 1;
    },
    queueOf: (host) => ofHost(host, run),
    robotsOf: async (origin) => (await robotsStates([origin], run))[0] ?? null,
  };
}
