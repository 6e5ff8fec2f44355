/** The connection to Redis: opened, checked, and every call on it repeated for as long as an outage may last. What is called is the others' affair. */
import type { Redis } from "ioredis";
import { CrawlError, LostCrawl } from "../../core/errors.ts";
import type { Logger } from "../../core/log.ts";
import { parseRedisUrl, type RedisAddress } from "./address.ts";
import { createPatience, LEAVE_WITHIN_MS, type PatientCall } from "./patience.ts";
import { diagnose } from "./probe.ts";
import { onlyReads, READING_SCRIPTS } from "./reads.ts";
import { type ScriptName, scriptOf } from "./scripts.ts";
import { askForRewrite, checkServer, checkVersion, markStore, type ServerView } from "./server.ts";
import { adviceFor, GIBBERISH, isReply, NO_ROOM, NO_WRITES, NOBODY, PASSING, REFUSED, refusalWords, replicaWords, troubleOf, wordOf } from "./trouble.ts";

export interface ConnectOptions {
  /** First part of every key, in braces; that of the URL, or else `skein`. */
  readonly prefix?: string;
  /** How long the first connection is waited for, in ms; 60,000. */
  readonly startWithinMs?: number;
  /** The store is written to: one that takes no writes (full, unable to save, a replica) is no store to start with. Others find out at their first call that writes. */
  readonly writes?: boolean;
  /** How long a call waits for a store that was lost in mid-run, in ms; without end. */
  readonly waitMs?: number;
  /** A call that gets no answer for so long counts as lost; 15,000. */
  readonly answerWithinMs?: number;
  /** Resolves when the process is told to leave: from then on a store that does not answer is waited for some seconds only, and every call rejects after that. */
  readonly leaving?: Promise<unknown> | undefined;
  readonly log: Logger;
  /** PEM of an authority that is trusted beside the usual ones. */
  readonly ca?: string;
}

type Args = readonly (string | Buffer)[];

/** `writes`: the store is marked as ours before. `waitsForRoom`: a server that is full is waited for. */
interface How {
  readonly writes: boolean;
  readonly waitsForRoom: boolean;
}
const READS: How = { writes: false, waitsForRoom: true };
const WRITES: How = { writes: true, waitsForRoom: true };
const OFFERS: How = { writes: true, waitsForRoom: false };

export interface Link {
  /** `{prefix}`: what all keys begin with. */
  readonly tag: string;
  readonly address: RedisAddress;
  readonly log: Logger;
  /** Of the last connection. */
  readonly server: ServerView;
  /** Counts the connections: a new one may be to another server. */
  readonly connections: number;
  /** `args`: a function is asked anew when the call has to be repeated. */
  script(name: ScriptName, keys: readonly string[], args: Args | (() => Args)): Promise<unknown>;
  /** The last word of something that is closed: tried for a short while only. False: it did not get through, and what it would have said comes out by itself. */
  parting(name: ScriptName, keys: readonly string[], args: Args): Promise<boolean>;
  /** A write that nothing depends on: a server without room is not waited for, an outage only briefly. Answers why it was not taken; null: it was. */
  offer(name: ScriptName, keys: readonly string[], args: Args): Promise<string | null>;
  /** A command that may be sent twice. Binary answers. */
  command(name: string, ...args: (string | Buffer | number)[]): Promise<unknown>;
  /** Calls back with what is published; answers what ends it. */
  subscribe(channel: string, listener: (message: string) => void): Promise<() => Promise<void>>;
  close(): Promise<void>;
}

const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 2_000;
/** A connection that is only just being made is no trouble. */
const SAY_AFTER_MS = 1_000;
const SAY_AGAIN_MS = 30_000;
const PARTING_MS = 2_000;
const OFFER_MS = 2_000;
/** A replica is asked no more often whether it has become a master, or whether the name now leads to another. */
const TURN_EVERY_MS = 1_000;
const NO_ANSWER = "no answer";

function clientOptions(address: RedisAddress, { answerWithinMs = 15_000, ca }: ConnectOptions) {
  const tls = ca === undefined ? {} : { ca };
  return {
    ...(address.sentinels === null
      ? { host: address.host, port: address.port }
      : { sentinels: address.sentinels.nodes.map((node) => ({ ...node })), name: address.sentinels.name }),
    ...(address.username === null ? {} : { username: address.username }),
    ...(address.password === null ? {} : { password: address.password }),
    ...(address.tls ? { tls, ...(address.sentinels === null ? {} : { sentinelTLS: tls, enableTLSForSentinelMode: true }) } : {}),
    db: address.db,
    protocol: 2 as const,
    lazyConnect: true,
    disableClientInfo: true,
    connectionName: "skein",
    connectTimeout: 5_000,
    // Of a server that no longer takes part in the closing of a connection.
    disconnectTimeout: 500,
    socketTimeout: answerWithinMs,
    keepAlive: 10_000,
    // Whatever was under way when the connection broke is told so; `attempt` below decides what comes of it.
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
    enableReadyCheck: false,
    retryStrategy: (times: number) => Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** Math.min(times - 1, 10)),
  };
}

/**
 * Rejects with `store-unreachable` (bad password, something else than Redis, no answer within the bound), or `invalid-options` for a server that must not be used.
 * Nothing is written before the first call that writes.
 */
export async function connectRedis(url: string, options: ConnectOptions): Promise<Link> {
  const address = parseRedisUrl(url);
  const prefix = options.prefix ?? address.prefix ?? "skein";
  const {
    default: { Redis: Client },
  } = await import("ioredis");
  const client = new Client(clientOptions(address, options));
  return linkOf(client, address, `{${prefix}}`, options);
}

async function linkOf(client: Redis, address: RedisAddress, tag: string, options: ConnectOptions): Promise<Link> {
  const { log, startWithinMs = 60_000, waitMs = Infinity } = options;
  let server: ServerView | null = null;
  let connections = 0;
  let closed = false;
  let closedWhy = "was closed";
  /** Of the connection; forgotten once a call gets an answer. */
  let lastTrouble = NO_ANSWER;
  let saidAt = -Infinity;
  let saidWhy = "";
  /** Of the connection that is open now; null: none is. */
  let checked: Promise<void> | null = null;
  let marked: Promise<void> | null = null;
  /** Whether the store has taken a write of this process; until then it is at its start, which is not waited for without end. */
  let proved = false;
  /** How the last mark was refused for want of room. */
  let noRoom: Error | null = null;
  let turnedAt = -Infinity;
  let asked = false;
  const waiting = new Set<() => void>();

  const unreachable = (why: string, cause?: unknown): CrawlError =>
    new CrawlError("store-unreachable", `the store at ${address.shown} ${why}`, cause === undefined ? {} : { cause });

  client.on("error", (error: Error) => {
    lastTrouble = troubleOf(error.message);
  });
  client.on("close", () => {
    checked = null;
    marked = null;
  });
  client.on("ready", () => {
    connections++;
    for (const go of [...waiting]) go();
  });

  async function check(): Promise<void> {
    const view = await checkServer(client, address, log);
    await checkVersion(client, address, tag);
    server = view;
  }

  /** Each connection is looked at once before the first call, by whoever comes first. */
  async function verified(): Promise<void> {
    if (client.status !== "ready") throw new Error(REFUSED.test(lastTrouble) ? lastTrouble : "not connected");
    const mine = (checked ??= check());
    try {
      await mine;
    } catch (error) {
      // A verdict stays; a server that was still loading is looked at again.
      if (!(error instanceof CrawlError) && checked === mine) checked = null;
      throw error;
    }
  }

  const replica = (master: string | null): CrawlError => unreachable(replicaWords(master));
  /** Sentinels have not named the new master yet; who names a server means that one. */
  const meansThis = (): boolean => !proved && address.sentinels === null;

  async function mark(view: ServerView): Promise<void> {
    if (view.master !== null && meansThis()) throw replica(view.master);
    noRoom = await markStore(client, address, tag);
    proved ||= noRoom === null;
    if (proved) await askForRewrite(client, { view, tag, log });
  }

  /** As ours, before the first write; also once for each connection. */
  async function markedAsOurs(): Promise<void> {
    if (server === null) return;
    const mine = (marked ??= mark(server));
    try {
      await mine;
      if (!proved && marked === mine) marked = null;
    } catch (error) {
      if (!(error instanceof CrawlError) && marked === mine) marked = null;
      throw error;
    }
  }

  /** Until something changes, or the pause is over. */
  function pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(go, ms);
      function go(): void {
        clearTimeout(timer);
        waiting.delete(go);
        resolve();
      }
      waiting.add(go);
    });
  }

  function say(why: string): void {
    const now = performance.now();
    if (now - saidAt < SAY_AGAIN_MS) return;
    saidAt = now;
    saidWhy = why;
    log("warn", "the store does not take calls; waiting", { store: address.shown, why });
  }

  /** Whether the call may be made again after this failure; throws when it may not. */
  function judge(error: unknown): void {
    if (error instanceof CrawlError) throw error;
    const word = wordOf(error);
    if (REFUSED.test(word)) throw unreachable(refusalWords(word, { tag, username: address.username }), error);
    // The code of scripts that are asked about a crawl that is not there (lua/base.lua).
    if (isReply(error) && /^NOCRAWL\b/.test(word)) throw new LostCrawl(`the store at ${address.shown} answered: ${word}`);
    if (isReply(error) && !PASSING.test(word)) throw new CrawlError("internal", `the store at ${address.shown} answered: ${word}`);
    if (!/^READONLY/.test(word)) return;
    if (meansThis()) throw replica(server?.master ?? null);
    // A replica by now: sentinels or the name know the new master.
    const now = performance.now();
    if (now - turnedAt < TURN_EVERY_MS || client.status !== "ready") return;
    turnedAt = now;
    lastTrouble = word;
    client.disconnect(true);
  }

  /** Of a start that does not come about: what stands in the way is asked for once it is no mere delay. Throws when waiting does not help. */
  async function ask(why: string, atTheEnd: boolean): Promise<void> {
    const known = NOBODY.test(why) && address.sentinels === null;
    if (server !== null || known || (asked && !atTheEnd)) return;
    asked = true;
    const found = await diagnose(address);
    if (found !== null && (found.final || atTheEnd)) throw unreachable(found.text);
  }

  async function attempt<T>(call: () => Promise<T>, boundMs: number, how: How = WRITES): Promise<T> {
    const patient = boundMs < LEAVE_WITHIN_MS ? null : patience.begin();
    try {
      return await repeat(call, boundMs, how, patient);
    } finally {
      patient?.end();
    }
  }

  /** `refused`: this call itself was refused as one that writes. */
  function heard(refused: boolean): void {
    lastTrouble = NO_ANSWER;
    // A server that takes no writes goes on answering whatever is none.
    if (saidAt === -Infinity || (NO_WRITES.test(saidWhy) && !refused)) return;
    log("info", "the store answers again", { store: address.shown });
    saidAt = -Infinity;
  }

  /** It was waited for as long as it is worth. */
  function tooLate(why: string, boundMs: number, cause: unknown): CrawlError {
    const what = NO_WRITES.test(why) ? "took no writes" : "did not answer";
    return unreachable(`${what} within ${Math.round(boundMs / 1_000)} s: ${why.replace(/\.$/, "")}. ${adviceFor(why)}`, cause);
  }

  async function repeat<T>(call: () => Promise<T>, waitMs: number, { writes, waitsForRoom }: How, patient: PatientCall | null): Promise<T> {
    const begun = performance.now();
    let pauseMs = FIRST_PAUSE_MS;
    let refused = false;
    for (;;) {
      if (closed) throw unreachable(closedWhy);
      try {
        patient?.sent();
        await verified();
        if (writes) await markedAsOurs();
        const answer = await call();
        heard(refused);
        return answer;
      } catch (error) {
        judge(error);
        if (closed) continue;
        const why = isReply(error) ? wordOf(error) : lastTrouble;
        patient?.failed(why);
        // A call whose connection was given up for the refusal of another one was not refused itself.
        refused ||= isReply(error) && NO_WRITES.test(why);
        const boundMs = NO_WRITES.test(why) && !proved ? Math.min(waitMs, startWithinMs) : waitMs;
        if (!waitsForRoom && NO_ROOM.test(why)) throw unreachable(`takes no writes: ${why}`, error);
        const waited = performance.now() - begun;
        if (GIBBERISH.test(why) || waited >= Math.min(SAY_AFTER_MS, boundMs)) await ask(why, waited >= boundMs);
        if (waited >= boundMs) throw tooLate(why, boundMs, error);
        if (waited >= Math.min(SAY_AFTER_MS, boundMs / 4)) say(why);
        await pause(Math.min(pauseMs * (0.5 + Math.random() / 2), Math.max(1, boundMs - (performance.now() - begun))));
        pauseMs = Math.min(LONGEST_PAUSE_MS, pauseMs * 2);
      }
    }
  }

  /** Follows the mark of the connection, which is the write. */
  async function takesWrites(): Promise<void> {
    if (noRoom !== null) throw noRoom;
  }

  async function send(name: ScriptName, keys: readonly string[], args: Args): Promise<unknown> {
    const { sha, text } = scriptOf(name);
    try {
      return await client.callBuffer("EVALSHA", [sha, keys.length, ...keys, ...args]);
    } catch (error) {
      if (!(isReply(error) && error.message.startsWith("NOSCRIPT"))) throw error;
      return client.callBuffer("EVAL", [text, keys.length, ...keys, ...args]);
    }
  }

  const patience = createPatience({
    leaving: options.leaving,
    say: (seconds, why) => log("warn", `the store does not answer: waiting ${seconds} s more for it`, { store: address.shown, why: why ?? lastTrouble }),
    over(why) {
      closedWhy = `did not answer within ${LEAVE_WITHIN_MS / 1_000} s: ${why ?? lastTrouble}`;
      void close();
    },
  });

  // What stands in the way is an `error` of its own; this only says that there is no connection.
  client.connect().catch(() => undefined);
  const close = async (): Promise<void> => {
    closed = true;
    patience.close();
    for (const go of [...waiting]) go();
    client.disconnect();
  };
  try {
    // Not PING, which a server refuses that cannot save.
    await attempt(() => client.exists(`${tag}:version`), startWithinMs, READS);
    if (options.writes === true) await attempt(takesWrites, startWithinMs);
  } catch (error) {
    await close();
    throw error;
  }

  return {
    tag,
    address,
    log,
    get server() {
      return server!; // the first check has passed
    },
    get connections() {
      return connections;
    },
    script: (name, keys, args) =>
      attempt(() => send(name, keys, typeof args === "function" ? args() : args), waitMs, READING_SCRIPTS.has(name) ? READS : WRITES),
    async parting(name, keys, args) {
      try {
        await attempt(() => send(name, keys, args), PARTING_MS);
        return true;
      } catch (error) {
        log("debug", "the store was not told of an end", { store: address.shown, why: wordOf(error) });
        return false;
      }
    },
    async offer(name, keys, args) {
      try {
        await attempt(() => send(name, keys, args), OFFER_MS, OFFERS);
        return null;
      } catch (error) {
        if (!(error instanceof CrawlError) || error.code !== "store-unreachable") throw error;
        return error.cause instanceof Error && isReply(error.cause) ? wordOf(error.cause) : error.message;
      }
    },
    command: (name, ...args) => attempt(() => client.callBuffer(name, args), waitMs, onlyReads(name) ? READS : WRITES),
    async subscribe(channel, listener) {
      const {
        default: { Redis: Client },
      } = await import("ioredis");
      const ear = new Client({ ...clientOptions(address, options), enableOfflineQueue: true, maxRetriesPerRequest: null, autoResendUnfulfilledCommands: true });
      // A broken connection is made again, and what was missed meanwhile is heard of by asking (renew).
      ear.on("error", () => undefined);
      ear.on("message", (_: string, message: string) => listener(message));
      await ear.connect().catch(() => undefined);
      ear.subscribe(channel).catch((error: unknown) => log("debug", "no messages from the store", { store: address.shown, why: wordOf(error) }));
      return async () => ear.disconnect();
    },
    close,
  };
}
