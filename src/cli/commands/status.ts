/** `skein status`: how a durable crawl stands. */
import type { openStateView } from "../../inspect.ts";
import type { CrawlStatus, statusOf } from "../../inspect-status.ts";
import { harmless } from "../console.ts";
import { EXIT } from "../exit.ts";
import type { Io } from "../io.ts";
import { LIMITED_BY, spellBytes, spellElapsed, spellNumber, spellRate, spellUrls } from "../progress.ts";
import { counted } from "../summary.ts";
import { JSON_FLAG, readVerb, STATE_FLAG, stateOf, usageError, type Verb } from "../verb.ts";

export interface StatusParts {
  readonly openStateView: typeof openStateView;
  readonly statusOf: typeof statusOf;
}

export const STATUS: Verb = {
  name: "status",
  head: `Usage: skein status --state DIR

Says how a crawl stands, running or not: pages, rate, what waits, a guess when it will end, answers
by status, what was skipped, the hosts with most left to do and the slowest, what limits the speed.

Example:
  skein status --state crawl1 --json | jq .queued
`,
  own: [STATE_FLAG, JSON_FLAG],
  shared: [],
  tail: `
Exit status: 0; 2 usage, or no crawl in DIR.
`,
};

const STATES: Readonly<Record<CrawlStatus["state"], string>> = {
  running: "running",
  stopped: "stopped before its end; the command that started it resumes it",
  finished: "finished",
};

const spellMoment = (iso: string): string => `${iso.slice(0, 19).replace("T", " ")} UTC`;

/** Lines for people. */
export function statusLines(status: CrawlStatus): string[] {
  const { queued, delayed, inFlight, etaMs, limitLeft, depth } = status;
  const began = status.beganInMemory;
  const recent = status.recentPagesPerSecond === null ? "" : ` (${spellRate(status.recentPagesPerSecond)}/s of late)`;
  const waiting = [
    `${spellNumber(queued)} queued`,
    ...(delayed > 0 ? [`${spellNumber(delayed)} wait for another try`] : []),
    `${spellNumber(inFlight)} in flight`,
  ];
  const ended = status.finishReason === null || status.finishReason === "finished" ? "" : ` (${status.endedBy})`;
  const rows: readonly (readonly [string, string | null])[] = [
    ["state", `${STATES[status.state]}${ended}`],
    ["started", `${spellMoment(status.startedAt)}; ${spellElapsed(status.elapsedMs)} of work`],
    [
      "began",
      began === null
        ? null
        : `in memory; kept ${spellMoment(new Date(began.keptAt).toISOString())}: the ${spellUrls(began.settled)} settled by then ${began.settled === 1 ? "has" : "have"} no record here`,
    ],
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
  return rows.flatMap(([name, text]) => (text === null ? [] : [`${name.padEnd(8)} ${text}`]));
}

/** Answers the exit status. Throws CrawlError for what is ours; the caller says it. */
export async function statusCommand(argv: readonly string[], io: Io, load: () => Promise<StatusParts>): Promise<number> {
  const reading = await readVerb(STATUS, argv, io);
  if (reading === null) return EXIT.ok;
  if (reading.args.length > 0) throw usageError(reading.args[0] ?? "", "skein status takes no arguments; name the directory with --state");
  const dir = stateOf(reading, io);
  const { openStateView, statusOf } = await load();
  using view = openStateView(dir);
  const status = statusOf(view);
  const text = reading.isOn("json") ? JSON.stringify(status) : statusLines(status).map(harmless).join("\n");
  await io.stdout.write(Buffer.from(`${text}\n`));
  return EXIT.ok;
}
