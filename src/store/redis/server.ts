/** What is asked of a server before anything is kept there: its version, that it evicts nothing, and what of it is on a disk. */
import type { Redis } from "ioredis";
import { CrawlError } from "../../core/errors.ts";
import type { Logger } from "../../core/log.ts";
import type { RedisAddress } from "./address.ts";
import type { Link } from "./connect.ts";
import { isReply, NO_ROOM } from "./trouble.ts";

export interface ServerView {
  /** `redis` or `valkey`. */
  readonly kind: string;
  readonly version: string;
  /** Changes with every start of the server. */
  readonly runId: string;
  readonly aof: boolean;
  /** Bytes; 0: no bound. */
  readonly maxMemory: number;
  readonly usedMemory: number;
  /** Host and port of the one that it is a replica of; null: it is a master, or does not say. */
  readonly master: string | null;
}

/** Of what lies in a store: raised whenever scripts of another version would misread it. */
export const STORE_VERSION = 1;
const LEAST: readonly [number, number] = [6, 2];

function fieldsOf(info: string): ReadonlyMap<string, string> {
  return new Map(
    info.split(/\r?\n/).flatMap((line) => {
      const colon = line.indexOf(":");
      return colon < 0 ? [] : [[line.slice(0, colon), line.slice(colon + 1)] as const];
    }),
  );
}

/** Null: the server of this INFO is no replica. */
export function masterOf(info: ReadonlyMap<string, string>): string | null {
  if (info.get("role") !== "slave") return null;
  const host = info.get("master_host") ?? "HOST";
  return `${host.includes(":") ? `[${host}]` : host}:${info.get("master_port") ?? "PORT"}`;
}

function refuse(address: RedisAddress, message: string): never {
  throw new CrawlError("invalid-options", `the store at ${address.shown} ${message}`, {
    problems: [{ option: "store", message: `${address.shown} ${message}` }],
  });
}

/** One setting; null: the server does not say. */
async function settingOf(config: () => Promise<unknown>): Promise<string | null> {
  try {
    const answer = await config();
    return Array.isArray(answer) && answer[1] !== undefined ? String(answer[1]) : null;
  } catch {
    // Hosted servers keep CONFIG to themselves.
    return null;
  }
}

/** Throws `invalid-options` for a server on which a crawl would lose what it knows. Asked at every connection: it may be another server. */
export async function checkServer(client: Redis, address: RedisAddress, log: Logger): Promise<ServerView> {
  if (address.db > 0) {
    // The client selects it as well, and goes on with database 0 when there is none.
    await client.select(address.db).catch((error: Error) => {
      if (/out of range/i.test(error.message))
        refuse(address, `has no database ${address.db}: its \`databases\` setting says how many there are, counted from 0`);
      throw error;
    });
  }
  const fields = fieldsOf(await client.info());
  const [major = 0, minor = 0] = (fields.get("redis_version") ?? "0").split(".").map(Number);
  const valkey = fields.get("valkey_version");
  const version = valkey ?? fields.get("redis_version") ?? "0";
  if (major < LEAST[0] || (major === LEAST[0] && minor < LEAST[1])) refuse(address, `is Redis ${version}; 6.2 is the oldest that will do, or Valkey`);
  if (fields.get("redis_mode") === "cluster") refuse(address, "is a node of a Redis Cluster; one server, or one with replicas and sentinels, is needed");
  const maxMemory = Number(fields.get("maxmemory") ?? 0);
  const policy = fields.get("maxmemory_policy") ?? "noeviction";
  if (maxMemory > 0 && policy !== "noeviction") {
    refuse(address, `drops keys when it is full (maxmemory-policy ${policy}): set it to noeviction, or give the crawl a Redis of its own`);
  }
  const aof = fields.get("aof_enabled") === "1";
  if (!aof) {
    const save = await settingOf(() => client.config("GET", "save"));
    if (save === "") log("warn", "the store keeps nothing on disk: a restart of Redis loses the crawl; set appendonly yes", { store: address.shown });
    else if (save !== null)
      log("warn", "the store keeps snapshots only: a restart of Redis goes back to the last one; set appendonly yes", { store: address.shown });
  }
  return {
    kind: valkey === undefined ? "redis" : "valkey",
    version,
    runId: fields.get("run_id") ?? "",
    aof,
    maxMemory,
    usedMemory: Number(fields.get("used_memory") ?? 0),
    master: masterOf(fields),
  };
}

/**
 * Redis 7.0 keeps what was cut off in the middle of a MULTI in its append-only file and applies half a step at the start after the next; a rewritten
 * file has no such end. So a rewrite is asked for whenever the server has started since the store last saw it.
 */
export async function askForRewrite(client: Redis, of: { readonly view: ServerView; readonly tag: string; readonly log: Logger }): Promise<void> {
  const { view, tag, log } = of;
  if (!view.aof || view.runId === "") return;
  const key = `${tag}:run`;
  if ((await client.get(key)) === view.runId) return;
  try {
    await client.bgrewriteaof();
    await client.set(key, view.runId);
    log("info", "the server has started anew; its append-only file is being rewritten", { version: view.version });
  } catch (error) {
    // One is under way, the server is full, or a hosted server does not allow it; the next connection asks again.
    log("debug", "no rewrite of the append-only file", { why: error instanceof Error ? error.message : String(error) });
  }
}

/** A store says in `:version` how it is laid out; one that says nothing is nobody's yet. Throws `invalid-options` for one that this program would misread. */
export async function checkVersion(client: Redis, address: RedisAddress, tag: string): Promise<void> {
  const version = await client.get(`${tag}:version`);
  if (version === null || version === String(STORE_VERSION)) return;
  const newer = Number(version) > STORE_VERSION ? "a newer" : "another";
  const rest = `(store version ${version}; this one knows ${STORE_VERSION}). Use that version, or another ?prefix=NAME`;
  refuse(address, `holds crawls of ${newer} version of this program under ${tag} ${rest}`);
}

/** The layout, which a connection leaves behind before its first write. Answers how a server without room refused it: it may take what needs none. Throws as checkVersion does. */
export async function markStore(client: Redis, address: RedisAddress, tag: string): Promise<Error | null> {
  let set: string | null = null;
  let refused: Error | null = null;
  try {
    set = await client.set(`${tag}:version`, STORE_VERSION, "NX");
  } catch (error) {
    if (!isReply(error) || /^READONLY\b/.test(error.message)) throw error;
    // A login that may not set it may read it.
    if (NO_ROOM.test(error.message)) refused = error;
  }
  // Another version may have come since this connection looked.
  if (set === null) await checkVersion(client, address, tag);
  return refused;
}

export interface ServerFacts {
  /** INFO, by field. */
  readonly info: ReadonlyMap<string, string>;
  /** Null: the server does not say. */
  readonly snapshots: boolean | null;
  /** Whether a snapshot that fails stops all writes; null: the server does not say. */
  readonly stopsWrites: boolean | null;
  /** The run of the server whose append-only file was last asked to be written anew; null: none. */
  readonly rewrittenRun: string | null;
}

/** What a server says of itself now, for doctor. */
export async function serverFacts(link: Link): Promise<ServerFacts> {
  const [info, save, stops, run] = await Promise.all([
    link.command("INFO"),
    settingOf(() => link.command("CONFIG", "GET", "save")),
    settingOf(() => link.command("CONFIG", "GET", "stop-writes-on-bgsave-error")),
    link.command("GET", `${link.tag}:run`),
  ]);
  return {
    info: fieldsOf(String(info)),
    snapshots: save === null ? null : save !== "",
    stopsWrites: stops === null ? null : stops === "yes",
    rewrittenRun: run === null ? null : String(run),
  };
}
