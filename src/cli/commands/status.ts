/** `skein status`: how a crawl stands, in a state directory or on a shared store, and which crawls a store has. */
import { spellNumber } from "../../core/units.ts";
import type { openStateView } from "../../inspect/inspect.ts";
import type { CrawlStatus, statusOf } from "../../inspect/status.ts";
import type { connectStore, overviewOf } from "../../inspect/store.ts";
import type { JobStatus, jobStatus } from "../../inspect/store-status.ts";
import { harmless } from "../console.ts";
import { EXIT } from "../exit.ts";
import type { Io } from "../io.ts";
import { JOB_STATES, overviewLines, resultRows } from "../job-words.ts";
import { LIMITED_BY, spellBytes, spellElapsed, spellRate, spellUrls } from "../progress.ts";
import { counted } from "../summary.ts";
import { JSON_FLAG, logOf, readVerb, STATE_FLAG, type Verb } from "../verb.ts";
import { JOB_FLAG, type Where, whereOf } from "../where.ts";

export interface StatusParts {
  readonly openStateView: typeof openStateView;
  readonly statusOf: typeof statusOf;
}

export interface StoreStatusParts {
  readonly connectStore: typeof connectStore;
  readonly overviewOf: typeof overviewOf;
  readonly jobStatus: typeof jobStatus;
}

export const STATUS: Verb = {
  name: "status",
  head: `Usage: skein status --state DIR
       skein status --store URL [--job ID]

Says how a crawl stands, running or not: pages, rate, what waits, a guess when it will end, answers
by status, what was skipped, the hosts with most left to do and the slowest, what limits the speed.
Of a crawl on a store also who works on it, how many results wait, and who writes them to which
files. With --store alone, the crawls of the store, newest first.

Examples:
  skein status --state crawl1 --json | jq .queued
  skein status --store redis://localhost:6379
  skein status --store redis://localhost:6379 --job 3
`,
  own: [STATE_FLAG, JOB_FLAG, JSON_FLAG],
  shared: ["store"],
  tail: `
Exit status: 0; 2 usage, no crawl in DIR, or no such job; 5 the store does not answer.
`,
};

const STATES: Readonly<Record<CrawlStatus["state"], string>> = {
  running: "running",
  stopped: "stopped before its end; the command that started it resumes it",
  finished: "finished",
};

const spellMoment = (iso: string): string => `${iso.slice(0, 19).replace("T", " ")} UTC`;

/** What a status of a directory and one of a job have in common. */
type Counted = Omit<CrawlStatus, "dir" | "state" | "beganInMemory">;
type Row = readonly [string, string | null];

const linesOf = (rows: readonly Row[]): string[] => rows.flatMap(([name, text]) => (text === null ? [] : [`${name.padEnd(8)} ${text}`]));

function endedRow({ finishReason, endedBy }: Counted): string {
  return finishReason === null || finishReason === "finished" ? "" : ` (${endedBy})`;
}

function workRows(status: Counted): readonly Row[] {
  const { queued, delayed, inFlight, etaMs, limitLeft, depth } = status;
  const recent = status.recentPagesPerSecond === null ? "" : ` (${spellRate(status.recentPagesPerSecond)}/s of late)`;
  const waiting = [
    `${spellNumber(queued)} queued`,
    ...(delayed > 0 ? [`${spellNumber(delayed)} wait for another try`] : []),
    `${spellNumber(inFlight)} in flight`,
  ];
  return [
    ["pages", `${spellNumber(status.pages)}, ${spellRate(status.pagesPerSecond)}/s${recent}, ${spellBytes(status.bytes)}`],
    ["waiting", waiting.join(", ")],
    ["depth", depth === null ? null : `level ${depth}`],
    ["left", etaMs === null ? null : `about ${spellElapsed(etaMs)} at the rate so far, and more for what is yet to be found`],
    ["limit", limitLeft === null ? null : `${spellNumber(limitLeft)} pages left of --limit`],
    ["records", counted(status.byOutcome)],
    ["status", counted(status.byStatus)],
    ["failed", counted(status.byError)],
    ["skipped", counted(status.bySkipReason)],
    ["retries", status.retries > 0 ? spellNumber(status.retries) : null],
    ["hosts", status.hosts.length > 0 ? status.hosts.map(({ host, waiting: left }) => `${host} ${spellNumber(left)}`).join(" · ") : null],
    ["slowest", status.slowest.length > 0 ? status.slowest.map(({ host, meanLatencyMs }) => `${host} ${spellElapsed(meanLatencyMs)}`).join(" · ") : null],
    ["speed", status.bottleneck === null || LIMITED_BY[status.bottleneck] === "" ? null : LIMITED_BY[status.bottleneck]],
    ["options", status.limits.join(" ")],
  ];
}

/** Lines for people. */
export function statusLines(status: CrawlStatus): string[] {
  const began = status.beganInMemory;
  return linesOf([
    ["state", `${STATES[status.state]}${endedRow(status)}`],
    ["started", `${spellMoment(status.startedAt)}; ${spellElapsed(status.elapsedMs)} of work`],
    [
      "began",
      began === null
        ? null
        : `in memory; kept ${spellMoment(new Date(began.keptAt).toISOString())}: the ${spellUrls(began.settled)} settled by then ${began.settled === 1 ? "has" : "have"} no record here`,
    ],
    ...workRows(status),
  ]);
}

/** The same of a job of a store. */
export function jobLines(status: JobStatus): string[] {
  const { job, kind, serviceJob, store, seeds, state } = status;
  const feeding = status.seedsComplete || state === "finished" ? null : "not all read yet: the command that created the crawl reads them";
  return linesOf([
    [
      "job",
      `${job} (${kind}${serviceJob === null ? "" : `, where it is job ${serviceJob}`}) in the store at ${store}${seeds.length === 0 ? "" : `: ${seeds[0]}${seeds.length > 1 ? ", …" : ""}`}`,
    ],
    ["state", state === "waiting" && status.noWrites !== null ? "has work" : `${JOB_STATES[state]}${endedRow(status)}`],
    ["started", `${spellMoment(status.startedAt)}; ${spellElapsed(status.elapsedMs)}`],
    ["seeds", feeding],
    ...workRows(status),
    ...resultRows(status),
  ]);
}

async function storeText({ url, job }: Where & { kind: "store" }, json: boolean, io: Io, load: () => Promise<StoreStatusParts>): Promise<string> {
  const { connectStore, overviewOf, jobStatus } = await load();
  const link = await connectStore(url, logOf(io));
  try {
    if (job === null) {
      const overview = await overviewOf(link);
      return json ? JSON.stringify(overview) : overviewLines(overview).map(harmless).join("\n");
    }
    const status = await jobStatus(link, job);
    return json ? JSON.stringify(status) : jobLines(status).map(harmless).join("\n");
  } finally {
    await link.close();
  }
}

/** Answers the exit status. Throws CrawlError for what is ours; the caller says it. */
export async function statusCommand(
  argv: readonly string[],
  io: Io,
  load: () => Promise<StatusParts>,
  loadStore: () => Promise<StoreStatusParts>,
): Promise<number> {
  const reading = await readVerb(STATUS, argv, io);
  if (reading === null) return EXIT.ok;
  const where = whereOf(reading, argv, io);
  const json = reading.isOn("json");
  if (where.kind === "store") {
    await io.stdout.write(Buffer.from(`${await storeText(where, json, io, loadStore)}\n`));
    return EXIT.ok;
  }
  const { openStateView, statusOf } = await load();
  using view = openStateView(where.dir);
  const status = statusOf(view);
  const text = json ? JSON.stringify(status) : statusLines(status).map(harmless).join("\n");
  await io.stdout.write(Buffer.from(`${text}\n`));
  return EXIT.ok;
}
