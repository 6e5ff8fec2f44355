/** Who works on a store: each process says so every few seconds, and is forgotten when it no longer does. For status and explain only: nothing depends on it. */
import type { Link } from "./connect.ts";

/** What a process does for one crawl. */
export interface WorkerShare {
  readonly crawl: number;
  readonly inFlight: number;
  /** Requests that it was given since it joined. */
  readonly taken: number;
  /** Over the last beats; null: too early to tell. */
  readonly pagesPerSecond: number | null;
  /** What keeps it from going faster, as in a crawl's status. */
  readonly limitedBy: string;
  /** First characters of the tokens that it holds. */
  readonly claims: readonly string[];
}

export interface WorkerSelf {
  readonly id: string;
  readonly host: string;
  readonly pid: number;
  /** Which command it is. */
  readonly kind: string;
  /** Ms since it came. */
  readonly ageMs: number;
  readonly shares: readonly WorkerShare[];
}

export interface WorkerView extends WorkerSelf {
  /** Ms since it was last heard of, by the store's clock. */
  readonly silentMs: number;
}

const FORGOTTEN_MS = 60_000;

const keyOf = (link: Link, id: string): string => `${link.tag}:worker:${id}`;

/** Links on which the forgotten were taken out of the list. */
const swept = new WeakSet<Link>();

/** Those that were killed, by the next process that comes: who only looks changes nothing. */
async function sweep(link: Link): Promise<void> {
  swept.add(link);
  const ids = ((await link.command("SMEMBERS", `${link.tag}:workers`)) as Buffer[]).map(String); // SMEMBERS
  const there = await Promise.all(ids.map((id) => link.command("EXISTS", keyOf(link, id))));
  const gone = ids.filter((_, index) => Number(there[index]) === 0);
  if (gone.length > 0) await link.command("SREM", `${link.tag}:workers`, ...gone);
}

/** To be called every few seconds: two commands, and once for each link a few more. The store's clock decides when it is forgotten. */
export async function sayAlive(link: Link, { id, ...self }: WorkerSelf): Promise<void> {
  if (!swept.has(link)) await sweep(link);
  await link.command("SET", keyOf(link, id), JSON.stringify(self), "PX", FORGOTTEN_MS);
  await link.command("SADD", `${link.tag}:workers`, id);
}

export async function sayGone(link: Link, id: string): Promise<void> {
  await link.command("DEL", keyOf(link, id));
  await link.command("SREM", `${link.tag}:workers`, id);
}

/** Who came first, first. */
export async function listWorkers(link: Link): Promise<readonly WorkerView[]> {
  const ids = ((await link.command("SMEMBERS", `${link.tag}:workers`)) as Buffer[]).map(String); // SMEMBERS
  const views = await Promise.all(
    ids.map(async (id): Promise<WorkerView | null> => {
      const [text, left] = await Promise.all([link.command("GET", keyOf(link, id)), link.command("PTTL", keyOf(link, id))]);
      if (text === null) return null;
      const self = JSON.parse(String(text)) as Omit<WorkerSelf, "id">; // written by sayAlive
      return { id, ...self, silentMs: Math.max(0, FORGOTTEN_MS - Number(left)) };
    }),
  );
  return views.filter((view) => view !== null).sort((a, b) => b.ageMs + b.silentMs - (a.ageMs + a.silentMs));
}
