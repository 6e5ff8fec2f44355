/** Who works on a store: each worker says so every few seconds, and is forgotten when it no longer does. For status only: nothing depends on it. */
import type { Link } from "./connect.ts";

export interface WorkerView {
  readonly id: string;
  readonly host: string;
  readonly pid: number;
  /** Epoch ms by the worker's own clock. */
  readonly since: number;
  readonly pages: number;
  /** Ms since it was last heard of, by the store's clock. */
  readonly silentMs: number;
}

export type WorkerSelf = Omit<WorkerView, "silentMs">;

const FORGOTTEN_MS = 60_000;

async function nowMs(link: Link): Promise<number> {
  const [seconds, micros] = (await link.command("TIME")) as [Buffer, Buffer]; // TIME
  return Number(seconds.toString()) * 1_000 + Number(micros.toString()) / 1_000;
}

/** To be called every few seconds. */
export async function sayAlive(link: Link, { id, ...self }: WorkerSelf): Promise<void> {
  const at = String(Math.round(await nowMs(link)));
  await link.command("HSET", `${link.tag}:workers`, id, JSON.stringify({ ...self, at: Number(at) }));
}

export async function sayGone(link: Link, id: string): Promise<void> {
  await link.command("HDEL", `${link.tag}:workers`, id);
}

export async function listWorkers(link: Link): Promise<readonly WorkerView[]> {
  const flat = (await link.command("HGETALL", `${link.tag}:workers`)) as Buffer[]; // HGETALL
  const now = await nowMs(link);
  const views: WorkerView[] = [];
  for (let i = 0; i + 1 < flat.length; i += 2) {
    const id = flat[i]!.toString("utf8"); // i + 1 < length
    const { at, ...self } = JSON.parse(flat[i + 1]!.toString("utf8")) as Omit<WorkerSelf, "id"> & { at: number }; // written by sayAlive
    const silentMs = Math.max(0, now - at);
    if (silentMs > FORGOTTEN_MS) await sayGone(link, id);
    else views.push({ id, ...self, silentMs });
  }
  return views.sort((a, b) => a.since - b.since);
}
