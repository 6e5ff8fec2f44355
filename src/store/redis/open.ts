/** A store on Redis: crawls, their frontiers and outboxes, the shared response cache, its workers and its health, over one connection. */
import type { PageCache } from "../../core/cache.ts";
import type { Frontier, FrontierConfig } from "../../core/frontier.ts";
import { createRedisCache, type RedisCacheOptions } from "./cache.ts";
import { type ConnectOptions, connectRedis } from "./connect.ts";
import { type Crawls, createCrawls } from "./crawls.ts";
import { type ScanReport, scanInvariants } from "./doctor.ts";
import { openRedisFrontier, type RedisFrontierEnv } from "./frontier.ts";
import { type Outbox, type OutboxOptions, openOutbox } from "./outbox.ts";
import type { ServerView } from "./server.ts";
import { listWorkers, sayAlive, sayGone, type WorkerSelf, type WorkerView } from "./workers.ts";

export type { RedisCacheOptions } from "./cache.ts";
export type { ConnectOptions } from "./connect.ts";
export type { CrawlEnd, Crawls, StoredCrawl } from "./crawls.ts";
export type { ScanReport } from "./doctor.ts";
export type { RedisFrontierEnv } from "./frontier.ts";
export type { Outbox, OutboxBatch, OutboxOptions } from "./outbox.ts";
export type { ServerView } from "./server.ts";
export type { WorkerSelf, WorkerView } from "./workers.ts";

export interface RedisStore {
  /** Host and port, for messages; never the password. */
  readonly shown: string;
  readonly crawls: Crawls;
  /** The rules of the worker that opens a crawl first are kept with it and hold for all. */
  openFrontier(id: number, config: FrontierConfig, env: Omit<RedisFrontierEnv, "link" | "id">): Promise<Frontier>;
  /** Rejects with `state-held` while another drain has it. */
  outbox(id: number, options: OutboxOptions): Promise<Outbox>;
  cache(options?: RedisCacheOptions): PageCache;
  doctor(id: number): Promise<ScanReport>;
  readonly workers: {
    sayAlive(self: WorkerSelf): Promise<void>;
    sayGone(id: string): Promise<void>;
    list(): Promise<readonly WorkerView[]>;
  };
  /** Asked for now: rejects with `store-unreachable` when it does not answer in time. */
  health(): Promise<ServerView & { readonly usedNow: number }>;
  /** Calls back when a crawl has ended (number, `completed`); a message may be missed: crawls.ends tells all. */
  onEnd(listener: (id: number) => void): Promise<() => Promise<void>>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** See address.ts for the forms of the URL. Nothing outside of the prefix is touched; nothing is ever flushed. */
export async function openRedisStore(url: string, options: ConnectOptions): Promise<RedisStore> {
  const link = await connectRedis(url, options);
  return {
    shown: link.address.shown,
    crawls: createCrawls(link),
    openFrontier: (id, config, env) => openRedisFrontier(config, { ...env, link, id }),
    outbox: (id, given) => openOutbox(link, id, given),
    cache: (given) => createRedisCache(link, given),
    doctor: (id) => scanInvariants(link, id),
    workers: {
      sayAlive: (self) => sayAlive(link, self),
      sayGone: (id) => sayGone(link, id),
      list: () => listWorkers(link),
    },
    async health() {
      const info = String(await link.command("INFO", "memory"));
      return { ...link.server, usedNow: Number(/^used_memory:(\d+)/m.exec(info)?.[1] ?? 0) };
    },
    onEnd: (listener) => link.subscribe(`${link.tag}:events`, (message) => listener(Number.parseInt(message, 10))),
    [Symbol.asyncDispose]: link.close,
  };
}
