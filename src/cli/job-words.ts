/** Crawls of a shared store in lines for people: the list of them, who works on one, who writes what comes out. */
import { spellCount, spellNumber } from "../core/units.ts";
import type { JobLine, JobState, OutputFile, StoreOverview } from "../inspect/store.ts";
import type { JobStatus, JobWorker } from "../inspect/store-status.ts";
import { spellBytes, spellElapsed, spellRate } from "./progress.ts";

export const JOB_STATES: Readonly<Record<JobState, string>> = {
  running: "running",
  waiting: "has work and no worker: skein work, or the command that created it, goes on with it",
  paused: "paused",
  stopping: "stopping: what is in flight is finished",
  stopped: "stopped before its end; the command that created it resumes it",
  finished: "finished",
};

/** One server has many stores. */
const OTHERS = "others are named in its URL (redis://HOST:PORT/DATABASE?prefix=NAME)";

const spellMoment = (iso: string): string => `${iso.slice(0, 16).replace("T", " ")}`;

/** Columns as wide as their widest cell; numbers stand to the right. */
function table(rows: readonly (readonly string[])[], right: ReadonlySet<number>): string[] {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  const cell = (text: string, column: number) => (right.has(column) ? text.padStart(widths[column] ?? 0) : text.padEnd(widths[column] ?? 0));
  return rows.map((row) => row.map(cell).join("  ").trimEnd());
}

function lineOf({ job, kind, serviceJob, state, queued, delayed, inFlight, done, results, workers, createdAt, seeds }: JobLine): string[] {
  const numbers = [queued + delayed, inFlight, done, results, workers].map((n) => spellNumber(n));
  return [String(job), serviceJob === null ? kind : `${kind}, job ${serviceJob}`, state, ...numbers, spellMoment(createdAt), seeds[0] ?? ""];
}

/** Whoever is counted as working there is counted too low. */
const noWritesText = (why: string): string => `takes no writes (${why}): whoever works on it waits, and cannot say that he lives`;

/** The jobs of a store, newest first, and the workers that have nothing to do. */
export function overviewLines({ store, jobs, more, workers, noWrites }: StoreOverview): string[] {
  const idle = workers.filter(({ kind, shares, silentMs }) => kind === "work" && shares.length === 0 && silentMs < 15_000).length;
  const free = [...(idle === 0 ? [] : [`${spellCount(idle, "worker")} without work`]), ...(noWrites === null ? [] : [`the store ${noWritesText(noWrites)}`])];
  if (jobs.length === 0)
    return [`no crawls in the store at ${store}; ${/[/?]/.test(store) ? OTHERS : `these are database 0 and the prefix skein: ${OTHERS}`}`, ...free];
  const head = ["job", "kind", "state", "queued", "in flight", "done", "results", "workers", "created (UTC)", "first seed"];
  const rows = table([head, ...jobs.map(lineOf)], new Set([0, 3, 4, 5, 6, 7]));
  return [...rows, ...(more ? ["… and older ones"] : []), ...free];
}

export function workerText({ kind, host, pid, inFlight, taken, pagesPerSecond, ageMs, silentMs }: JobWorker): string {
  const rate = pagesPerSecond === null ? "" : `, ${spellRate(pagesPerSecond)}/s`;
  const seen = silentMs < 10_000 ? `here for ${spellElapsed(ageMs + silentMs)}` : `not heard of for ${spellElapsed(silentMs)}`;
  return `${kind} on ${host}, process ${pid}: ${spellNumber(inFlight)} in flight, ${spellNumber(taken)} taken${rate}, ${seen}`;
}

export function fileText({ path, by, host, records, bytes }: OutputFile): string {
  const size = records === null ? (bytes === null ? "" : ` (${spellBytes(bytes)})`) : ` (${spellCount(records, "record")})`;
  return `${path}${size}${by === "crawl" ? "" : `, by export on ${host}`}`;
}

/** Rows beside those of a state directory's status. */
export function resultRows({ results, workers, noWrites }: JobStatus): readonly (readonly [string, string | null])[] {
  const { waiting, waitingBytes, written, writer, files } = results;
  const held = writer === null ? "nobody writes them" : `written by ${writer.kind} on ${writer.host}, process ${writer.pid}`;
  const left = waiting === 0 ? "none waits" : `${spellNumber(waiting)} wait (${spellBytes(waitingBytes)})`;
  return [
    ["store", noWrites === null ? null : noWritesText(noWrites)],
    ...workers.map((worker, index) => [index === 0 ? "workers" : "", workerText(worker)] as const),
    ...(workers.length === 0 ? [["workers", noWrites === null ? "none" : "none was heard of within the last minute"] as const] : []),
    ["results", `${spellNumber(written)} written, ${left}; ${held}`],
    ...files.map((file, index) => [index === 0 ? "files" : "", fileText(file)] as const),
  ];
}
