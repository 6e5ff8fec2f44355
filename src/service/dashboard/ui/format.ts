/** Figures, times and the words of the API as people read them. */
import type { Job, JobState } from "./types.ts";

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const tenth = new Intl.NumberFormat("en", { maximumFractionDigits: 1, minimumFractionDigits: 1 });
const short = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });

export const count = (value: number): string => whole.format(value);
/** Of an axis. */
export const brief = (value: number): string => (value < 10 && value % 1 !== 0 ? tenth.format(value) : short.format(value));
export const rate = (perSecond: number): string => `${perSecond < 9.95 && perSecond > 0 ? tenth.format(perSecond) : whole.format(perSecond)}/s`;

export function bytes(value: number): string {
  const units = ["B", "KB", "MB", "GB", "TB"];
  let step = 0;
  let left = value;
  for (; left >= 1_000 && step < units.length - 1; step++) left /= 1_000;
  return `${step === 0 || left >= 100 ? whole.format(left) : tenth.format(left)} ${units[step]}`;
}

export function duration(ms: number): string {
  if (ms < 1_000) return `${whole.format(ms)} ms`;
  if (ms < 60_000) return ms < 10_000 ? `${tenth.format(ms / 1_000)} s` : `${whole.format(Math.floor(ms / 1_000))} s`;
  const minutes = Math.floor(ms / 60_000);
  if (minutes < 60) return `${minutes} min ${Math.floor((ms % 60_000) / 1_000)} s`;
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? `${hours} h ${minutes % 60} min` : `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

export function moment(iso: string): string {
  const at = new Date(iso);
  const now = new Date();
  const time = { hour: "2-digit", minute: "2-digit", hourCycle: "h23" } as const;
  if (at.toDateString() === now.toDateString()) return at.toLocaleTimeString("en", { ...time, second: "2-digit" });
  return at.toLocaleString("en", { ...time, day: "numeric", month: "short", ...(at.getFullYear() === now.getFullYear() ? {} : { year: "numeric" }) });
}

export const capital = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);

export const STATE_WORDS: Readonly<Record<JobState, string>> = {
  ...{ queued: "Queued", running: "Running", paused: "Paused", stopping: "Stopping" },
  ...{ completed: "Completed", stopped: "Stopped", failed: "Failed", cancelled: "Cancelled" },
};

const REASON_WORDS: Readonly<Record<string, string>> = {
  finished: "Everything that belongs to the crawl was done.",
  "limit-pages": "The page limit was reached.",
  "limit-items": "The item limit was reached.",
  "limit-time": "The time limit was reached.",
  "limit-bytes": "The limit of bytes was reached.",
  "limit-errors": "More pages failed than the limit allows.",
  "stop-condition": "A stop condition was met.",
  cancelled: "It was cancelled; what was found so far stays.",
  interrupted: "It was stopped early; what was found stays.",
  failed: "It failed.",
};
export function reasonWords({
  finishReason,
  state,
  counts,
}: Pick<Job, "finishReason" | "state"> & { readonly counts: Pick<Job["counts"], "pages" | "failed"> }) {
  if (finishReason === null) return null;
  if (finishReason === "finished" && counts.pages === 0 && counts.failed > 0) return "No page could be fetched: the reasons stand with the pages below.";
  // Who stops a job ends it by the same rule as a condition of its options; only the state tells them apart.
  if (state === "stopped") return "It was stopped.";
  return REASON_WORDS[finishReason] ?? finishReason;
}

const BOTTLENECK_WORDS: Readonly<Record<string, string>> = {
  concurrency: "concurrency of the crawl",
  "per-host": "concurrency per host",
  delay: "delay between requests",
  "back-off": "hosts that asked to wait",
  robots: "robots.txt not answered yet",
  rate: "request rate of the crawl",
  cpu: "this machine's CPU",
  parse: "the scraper",
  network: "the network and its hosts",
  output: "writing the output",
  nothing: "nothing",
};
export const bottleneckWords = (word: string): string => BOTTLENECK_WORDS[word] ?? word;

/** A link's target; null for what is no address of the web: it is shown as text, never followed. */
export const webAddress = (url: string | undefined): string | null => (url !== undefined && /^https?:\/\//i.test(url) ? url : null);
