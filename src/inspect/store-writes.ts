/** Whether a store takes writes now, by what its server says of itself: where it takes none, nobody who works there can say that he lives. Asks nothing. */
import type { ServerFacts } from "../store/redis/server.ts";

type Facts = Pick<ServerFacts, "info" | "snapshots"> & { readonly stopsWrites?: boolean | null };

/** A full server stands a little below its bound whenever a client's buffer was given back. */
const ROOM_SHARE = 0.01;
const ROOM_BYTES = 1_000_000;

function isFull(info: ServerFacts["info"]): boolean {
  const number = (name: string): number => Number(info.get(name) ?? 0);
  const most = number("maxmemory");
  // Buffers of replicas and of the append-only file count for nothing there (redis.io, INFO: mem_not_counted_for_evict).
  const used = number("used_memory") - number("mem_not_counted_for_evict");
  return most > 0 && used >= most - Math.min(most * ROOM_SHARE, ROOM_BYTES);
}

/** Why not, in a few words; null: it does, as far as it says. */
export function whyNoWrites({ info, snapshots, stopsWrites }: Facts): string | null {
  if (isFull(info)) return "it is full";
  if (info.get("aof_enabled") === "1" && info.get("aof_last_write_status") === "err") return "it cannot write its append-only file";
  // A server that lets nobody ask for its settings has the usual ones: it takes snapshots, and stops where they fail.
  if (info.get("rdb_last_bgsave_status") === "err" && snapshots !== false && stopsWrites !== false) return "it cannot write its snapshots";
  return null;
}
