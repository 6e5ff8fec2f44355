/** How a crawl on a shared store stands: what `skein status` says of a state directory, and who works on it and writes what comes out. */
import { NOTED_EVERY_MS } from "../cluster/crawl-time.ts";
import type { Bottleneck } from "../core/events.ts";
import type { HostView } from "../core/frontier.ts";
import type { Link } from "../store/redis/connect.ts";
import { type Glance, serverNow, tallyOf, writerOf } from "../store/redis/look.ts";
import type { OutboxOwner } from "../store/redis/outbox.ts";
import { serverFacts } from "../store/redis/server.ts";
import { hostViews } from "../store/redis/views.ts";
import { listWorkers, type WorkerView } from "../store/redis/workers.ts";
import { type CrawlStatus, statusFrom } from "./status.ts";
import { atWork, endOf, findJob, type JobState, type OutputFile, outputFiles, seedsOf, serviceJobOf, specOf, stateOf } from "./store.ts";
import { whyNoWrites } from "./store-writes.ts";

export interface JobWorker {
  readonly kind: string;
  readonly host: string;
  readonly pid: number;
  readonly inFlight: number;
  readonly taken: number;
  readonly pagesPerSecond: number | null;
  readonly limitedBy: string;
  /** Since it came, and since it was last heard of. */
  readonly ageMs: number;
  readonly silentMs: number;
}

export interface JobStatus extends Omit<CrawlStatus, "dir" | "state" | "beganInMemory"> {
  readonly store: string;
  readonly job: number;
  readonly kind: string;
  /** The number that its service gave it; null: it belongs to none. */
  readonly serviceJob: number | null;
  readonly state: JobState;
  readonly seeds: readonly string[];
  /** False: its creator has not read all of them. */
  readonly seedsComplete: boolean;
  readonly endedAt: string | null;
  readonly workers: readonly JobWorker[];
  /** Why the store takes no writes now, so that nobody who works there can say that he lives; null: it does. */
  readonly noWrites: string | null;
  readonly results: {
    /** Outputs that wait for a writer, and their bytes. */
    readonly waiting: number;
    readonly waitingBytes: number;
    /** Written until now, to whatever files. */
    readonly written: number;
    /** Who holds the outputs; null: nobody. */
    readonly writer: OutboxOwner | null;
    readonly files: readonly OutputFile[];
  };
}

const HOSTS = 50;

/** None of a crawl that nobody has begun with. */
const hostsOf = async (link: Link, { id, seed }: Glance): Promise<readonly HostView[]> => (seed === null ? [] : hostViews(link, id, HOSTS));

/** Workers that were killed are told of for a minute. */
function workersOf(workers: readonly WorkerView[], job: number): JobWorker[] {
  return workers.flatMap(({ kind, host, pid, ageMs, silentMs, shares }) =>
    shares
      .filter(({ crawl }) => crawl === job)
      .map(({ inFlight, taken, pagesPerSecond, limitedBy }) => ({ kind, host, pid, inFlight, taken, pagesPerSecond, limitedBy, ageMs, silentMs })),
  );
}

/** What most of them say. */
function commonest(workers: readonly JobWorker[]): Bottleneck | null {
  const said = new Map<string, number>();
  for (const { limitedBy } of workers) said.set(limitedBy, (said.get(limitedBy) ?? 0) + 1);
  const [first] = [...said].sort(([, a], [, b]) => b - a);
  return first === undefined ? null : (first[0] as Bottleneck); // cluster/pulse.ts says no other
}

/**
 * Of work, as it is noted every few seconds by who writes the outputs, or by workers (cluster/crawl-time.ts): all runs together. Since the creator came, but not since before
 * the creation, is at least as long. Without creator and notes: until the crawl ended, or was last worked on.
 */
export function elapsedOf(at: Pick<Glance, "info" | "over" | "createdAt" | "endedAt" | "aliveAt">, now: number, here: readonly WorkerView[]): number {
  const noted = Number(at.info.get("elapsed") ?? 0);
  const creator = at.over ? undefined : here.find(({ kind }) => kind === at.info.get("kind"));
  if (creator === undefined && noted > 0) return noted;
  const until = at.endedAt ?? (here.length > 0 ? now : (at.aliveAt ?? at.createdAt));
  const since = Math.max(0, until - at.createdAt);
  // More than what is noted next it cannot be: while it is paused nothing is added.
  const most = noted > 0 ? noted + NOTED_EVERY_MS : Infinity;
  return Math.round(creator === undefined ? since : Math.max(noted, Math.min(since, creator.ageMs + creator.silentMs, most)));
}

/** Rejects with CrawlError `invalid-options` when there is no such job. */
export async function jobStatus(link: Link, job: number): Promise<JobStatus> {
  const at = await findJob(link, job);
  const [tally, workers, writer, hosts, now, facts] = await Promise.all([
    tallyOf(link, job),
    listWorkers(link),
    writerOf(link, job),
    hostsOf(link, at),
    serverNow(link),
    serverFacts(link),
  ]);
  const spec = specOf(at);
  const end = endOf(at, spec);
  const here = atWork(workers, job);
  const told = workersOf(here, job);
  const rates = told.flatMap(({ pagesPerSecond }) => (pagesPerSecond === null ? [] : [pagesPerSecond]));
  const running = here.length > 0;
  const pagesPerSecond = rates.length === 0 ? null : rates.reduce((sum, rate) => sum + rate, 0);
  const live = { at: now, pagesPerSecond, loopCpuShare: 0, inFlight: at.leased, waitingFor: null, hosts };
  const {
    dir: _,
    beganInMemory: __,
    ...status
  } = statusFrom(
    {
      ...{ dir: "", counts: { ...at, completed: at.over }, control: at.control, tally, spec, live, running, finishReason: end, beganInMemory: null },
      elapsedMs: elapsedOf(at, now, here),
      startedAt: at.createdAt,
    },
    { byHost: new Map(hosts.filter(({ queued }) => queued > 0).map(({ host, queued }) => [host, queued])), owed: new Map() },
  );
  return {
    store: link.address.shown,
    job,
    kind: at.info.get("kind") ?? "crawl",
    serviceJob: serviceJobOf(at),
    ...status,
    state: stateOf(at, end, here.length),
    bottleneck: end === null ? commonest(told) : null,
    seeds: seedsOf(spec),
    seedsComplete: at.seedsComplete,
    endedAt: at.endedAt === null ? null : new Date(at.endedAt).toISOString(),
    workers: workersOf(workers, job),
    noWrites: whyNoWrites(facts),
    results: { waiting: at.waiting, waitingBytes: at.waitingBytes, written: at.written, writer: writer.owner, files: outputFiles(writer.states) },
  };
}
