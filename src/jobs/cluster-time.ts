/** How long workers went on with a job after its service was killed: they note time themselves only once the hold of the dead one has run out (cluster/crawl-time.ts). */
import { atWork } from "../inspect/store.ts";
import type { Link } from "../store/redis/connect.ts";
import { type Glance, glance, serverNow } from "../store/redis/look.ts";
import { type OutboxOwner, outboxOwner } from "../store/redis/outbox.ts";
import { listWorkers, type WorkerView } from "../store/redis/workers.ts";

/** As store/redis/outbox.ts has it unless it is told otherwise. */
const HOLD_MS = 15_000;

export interface Unseen {
  /** Whoever held the outputs last and has not said that he left; null: his time is noted by others, or by himself. */
  readonly owner: Pick<OutboxOwner, "leftMs"> | null;
  readonly at: Pick<Glance, "id" | "control" | "endedAt">;
  readonly workers: readonly WorkerView[];
  /** Of the store's clock. */
  readonly now: number;
}

/** Ms since the owner was last heard of in which others worked on the crawl. */
export function unseenMs({ owner, at, workers, now }: Unseen): number {
  if (owner === null || at.control === "pause") return 0;
  const silentMs = Math.max(0, HOLD_MS - owner.leftMs);
  if (at.endedAt !== null) return Math.max(0, silentMs - Math.max(0, now - at.endedAt));
  const others = atWork(workers, at.id).filter(({ kind }) => kind !== "serve");
  return Math.min(silentMs, Math.max(0, ...others.map(({ ageMs, silentMs: quiet }) => ageMs + quiet)));
}

/** Asked before the outputs are taken over. */
export async function workedUnseen(link: Link, id: number): Promise<number> {
  const [owner, at, workers, now] = await Promise.all([outboxOwner(link, id), glance(link, id), listWorkers(link), serverNow(link)]);
  return at === null ? 0 : unseenMs({ owner, at, workers, now });
}
