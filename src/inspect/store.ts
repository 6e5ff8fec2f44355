/** Crawls on a shared store as `skein status`, `explain` and `export` find them. Nothing is changed. */
import { CrawlError } from "../core/errors.ts";
import type { Logger } from "../core/log.ts";
import type { SinkState } from "../core/sink.ts";
import { type CrawlSpec, parseSpec } from "../core/spec.ts";
import { shownSeed } from "../rules/seeds.ts";
import { connectRedis, type Link } from "../store/redis/connect.ts";
import { createCrawls } from "../store/redis/crawls.ts";
import { type Glance, glance } from "../store/redis/look.ts";
import { serverFacts } from "../store/redis/server.ts";
import { listWorkers, type WorkerView } from "../store/redis/workers.ts";
import { whyNoWrites } from "./store-writes.ts";

/** `waiting`: it has work, and no worker. `stopped`: the command that created it goes on. */
export type JobState = "running" | "waiting" | "paused" | "stopping" | "stopped" | "finished";

/** A crawl in one line. */
export interface JobLine {
  readonly job: number;
  /** What created it: `crawl`, or a service. */
  readonly kind: string;
  /** The number that its service gave it; null: it belongs to none. */
  readonly serviceJob: number | null;
  readonly state: JobState;
  readonly finishReason: string | null;
  readonly queued: number;
  readonly delayed: number;
  readonly inFlight: number;
  readonly done: number;
  /** Outputs that wait for a writer. */
  readonly results: number;
  readonly workers: number;
  readonly createdAt: string;
  readonly endedAt: string | null;
  readonly seeds: readonly string[];
}

export interface StoreOverview {
  /** Host and port, and /DATABASE?prefix=NAME where they are not the usual ones. */
  readonly store: string;
  readonly jobs: readonly JobLine[];
  /** Older ones that are not listed. */
  readonly more: boolean;
  readonly workers: readonly WorkerView[];
  /** Why the store takes no writes now, so that nobody who works there can say that he lives; null: it does. */
  readonly noWrites: string | null;
}

/** How long the first connection is waited for. */
const START_WITHIN_MS = 10_000;
const LISTED = 100;
/** A worker that has said nothing for so long counts no more. */
export const SILENT_MS = 15_000;

/** Rejects with CrawlError `store-unreachable`. `waitMs`: how long a store is waited for that goes away afterwards; once `leaving` resolves, some seconds. */
export function connectStore(url: string, log: Logger, waitMs: number = START_WITHIN_MS, leaving?: Promise<unknown>): Promise<Link> {
  return connectRedis(url, { log, startWithinMs: START_WITHIN_MS, waitMs, leaving });
}

export const atWork = (workers: readonly WorkerView[], job: number): readonly WorkerView[] =>
  workers.filter(({ shares, silentMs }) => silentMs < SILENT_MS && shares.some(({ crawl }) => crawl === job));

export const specOf = ({ info }: Glance): CrawlSpec => parseSpec(JSON.parse(info.get("spec") ?? "{}"));

/** Null: it has not come to its end, or was stopped so as to go on. */
export function endOf(at: Glance, spec: CrawlSpec): string | null {
  const noted = at.info.get("finished") ?? null;
  if (noted !== null) return noted === "interrupted" ? null : noted;
  if (!at.over) return null;
  const left = at.queued + at.delayed;
  if (left === 0) return "finished";
  return spec.limits.pages !== null && at.counted >= spec.limits.pages ? "limit-pages" : null;
}

export function stateOf(at: Glance, end: string | null, workers: number): JobState {
  if (end !== null) return "finished";
  if (at.over) return "stopped";
  if (at.control === "pause") return "paused";
  if (at.control === "drain" || at.control === "now") return "stopping";
  return workers > 0 ? "running" : "waiting";
}

/** The first of them, without credentials. */
export function seedsOf({ seeds }: CrawlSpec): readonly string[] {
  return Array.isArray(seeds) ? seeds.slice(0, 3).map((seed) => shownSeed(String(seed))) : [];
}

/** Of the name that a service gave its crawl (jobs/cluster.ts). */
export function serviceJobOf({ info }: Pick<Glance, "info">): number | null {
  const id = /-(\d+)$/.exec(info.get("job") ?? "")?.[1];
  return id === undefined ? null : Number(id);
}

function lineOf(at: Glance, workers: readonly WorkerView[]): JobLine {
  const spec = specOf(at);
  const end = endOf(at, spec);
  const here = atWork(workers, at.id).length;
  return {
    job: at.id,
    kind: at.info.get("kind") ?? "crawl",
    serviceJob: serviceJobOf(at),
    state: stateOf(at, end, here),
    finishReason: end,
    queued: at.queued,
    delayed: at.delayed,
    inFlight: at.leased,
    done: at.done,
    results: at.waiting,
    workers: here,
    createdAt: new Date(at.createdAt).toISOString(),
    endedAt: at.endedAt === null ? null : new Date(at.endedAt).toISOString(),
    seeds: seedsOf(spec),
  };
}

/** Newest first. */
export async function overviewOf(link: Link, most = LISTED): Promise<StoreOverview> {
  const [ids, workers, facts] = await Promise.all([createCrawls(link).list(most + 1), listWorkers(link), serverFacts(link)]);
  const found = await Promise.all(ids.slice(0, most).map((id) => glance(link, id)));
  const jobs = found.flatMap((at) => (at === null ? [] : [lineOf(at, workers)]));
  return { store: link.address.shown, jobs, more: ids.length > most, workers, noWrites: whyNoWrites(facts) };
}

/** Throws CrawlError `invalid-options`, naming the jobs that there are. */
export async function findJob(link: Link, job: number): Promise<Glance> {
  const at = await glance(link, job);
  if (at !== null) return at;
  const { jobs, more } = await overviewOf(link, 20);
  const list = jobs.map(({ job: id, state, seeds }) => `${id} (${state}, ${seeds[0] ?? "no seeds"})`).join(", ");
  const there = jobs.length === 0 ? "there is none" : `there ${jobs.length === 1 && !more ? "is" : "are"} ${list}${more ? ", …" : ""}`;
  const message = `there is no job ${job} in the store at ${link.address.shown}; ${there}`;
  throw new CrawlError("invalid-options", message, { problems: [{ option: "--job", message }] });
}

/** A file that somebody writes, or wrote, what comes out of a crawl to. */
export interface OutputFile {
  /** As its writer named it: by `crawl` as it was spelt, by `export` in full. */
  readonly path: string;
  readonly by: "crawl" | "export";
  /** The machine of an export; null: not known. */
  readonly host: string | null;
  readonly records: number | null;
  readonly bytes: number | null;
}

const EXPORTED = /^export\|([^|]*)\|(.*)$/s;

/** The name under which the place of a file of an export is kept: apart from those of the crawl itself. */
export const exportName = (host: string, path: string): string => `export|${host}|${path}`;

export function outputFiles(states: ReadonlyMap<string, SinkState>): readonly OutputFile[] {
  const number = (value: unknown): number | null => (typeof value === "number" ? value : null);
  return [...states].map(([name, state]) => {
    const [, host = null, path = name] = EXPORTED.exec(name) ?? [];
    return { path, by: host === null ? "crawl" : "export", host, records: number(state.records), bytes: number(state.bytes) };
  });
}
