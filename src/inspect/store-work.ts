/** What doctor says of those who work on a store and of results that wait there: who is heard of, who writes, what to do. Asks nothing. */
import { spellCount } from "../core/units.ts";
import { FULL_OUTBOX } from "../store/redis/frontier.ts";
import type { Glance } from "../store/redis/look.ts";
import type { OutboxOwner } from "../store/redis/outbox.ts";
import type { WorkerView } from "../store/redis/workers.ts";
import type { Check } from "./doctor.ts";
import { SILENT_MS, serviceJobOf } from "./store.ts";

const ROOM = "let it take writes again, see above: whoever works here waits for that, and goes on by itself";

const namesOf = (workers: readonly WorkerView[]): string => workers.map(({ host, pid }) => `process ${pid} on ${host}`).join(", ");

/** `noWrites`: why the store takes no writes now; null: it does. */
export function checkWorkers(workers: readonly WorkerView[], noWrites: string | null): Check {
  const silent = workers.filter(({ silentMs }) => silentMs >= SILENT_MS);
  const base = { name: "workers", level: "warn" } as const;
  if (noWrites !== null && (silent.length > 0 || workers.length === 0)) {
    const heard = workers.length === 0 ? "nobody was heard of within the last minute" : `heard of within the last minute: ${namesOf(workers)}`;
    return { ...base, text: `the store takes no writes (${noWrites}), so nobody who works here can say that he lives; ${heard}`, next: ROOM };
  }
  const text = workers.length === 0 ? "nobody works on this store now" : spellCount(workers.length - silent.length, "process works", "processes work");
  if (silent.length === 0) return { ...base, level: "ok", text: workers.length === 0 ? text : `${text} on this store`, next: null };
  return {
    ...base,
    text: `${text}; not heard of for a while: ${namesOf(silent)}`,
    next: "it was killed, stopped, or is cut off; what it had in flight was taken up by others",
  };
}

function nextFor(at: Pick<Glance, "id" | "info">, owner: OutboxOwner | null, noWrites: string | null): string {
  if (noWrites !== null) return ROOM;
  if (owner !== null) return `skein ${owner.kind} (process ${owner.pid} on ${owner.host}) writes them: see what slows it, its disk most likely`;
  const job = serviceJobOf(at);
  if (at.info.get("kind") !== "serve" || job === null) return `skein export --store … --job ${at.id} --follow -o FILE, or the command that created it`;
  return `start skein serve --store … again with the --state DIR that has it as job ${job}: that service alone takes them`;
}

/** None: nothing waits, or somebody writes it and keeps up. */
export function checkResults(
  at: Pick<Glance, "id" | "info" | "waiting" | "waitingBytes">,
  { owner, noWrites }: { readonly owner: OutboxOwner | null; readonly noWrites: string | null },
): Check[] {
  const full = at.waiting >= FULL_OUTBOX.most || at.waitingBytes >= FULL_OUTBOX.bytes;
  if (at.waiting === 0 || (owner !== null && !full)) return [];
  const unknown = noWrites === null ? ", and nobody writes them" : ", and nobody can take them while the store takes no writes";
  const text = `${spellCount(at.waiting, "result waits", "results wait")}${owner === null ? unknown : ""}${full ? "; until they are written its workers wait" : ""}`;
  return [{ name: `crawl ${at.id}`, level: "warn", text, next: nextFor(at, owner, noWrites) }];
}
