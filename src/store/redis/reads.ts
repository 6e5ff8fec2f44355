/** Which commands and scripts only read. Before the first call of a connection that is none of these the store is marked as ours: who only looks leaves nothing behind. */
import type { ScriptName } from "./scripts.ts";

const COMMANDS: ReadonlySet<string> = new Set([
  ...["CONFIG", "INFO", "PING", "TIME"],
  ...["EXISTS", "GET", "PTTL", "HEXISTS", "HGET", "HGETALL", "HKEYS", "HLEN", "HMGET", "HSCAN", "HSTRLEN", "LLEN", "LRANGE"],
  ...["SISMEMBER", "SMEMBERS", "XLEN", "XRANGE", "ZCARD", "ZCOUNT", "ZRANGE", "ZRANGEBYSCORE", "ZREVRANGE", "ZSCORE"],
]);

export const READING_SCRIPTS: ReadonlySet<ScriptName> = new Set<ScriptName>(["counts", "remaining", "robots", "views"]);

/** A command that is not known counts as one that writes. */
export const onlyReads = (command: string): boolean => COMMANDS.has(command);
