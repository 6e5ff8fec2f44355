/** What a durable crawl notes of itself about once a second beyond its counters, for `skein status`: hosts, recent rate, what it waits for. Decides nothing. */
import type { Clock, EpochMs } from "./core/clock.ts";
import type { Claim, Frontier, HostView, WaitCause } from "./core/frontier.ts";

export interface LiveNote {
  readonly at: EpochMs;
  /** Over the last seconds; null: too early to tell. */
  readonly pagesPerSecond: number | null;
  /** Share of one core the loop's thread used since the note before, 0 … 1. */
  readonly loopCpuShare: number;
  /** Just after that claim. */
  readonly inFlight: number;
  /** Why the last claim gave less than it was asked for; null: it gave all. */
  readonly waitingFor: WaitCause | null;
  /** Those with the longest queues, then those that took most time. */
  readonly hosts: readonly HostView[];
}

/** The note's place among what a state directory keeps beside the frontier. */
export const LIVE_KEY = "live";

const EVERY_MS = 1_000;
/** A crawl of many hosts notes less often, so that looking through them costs no more than this share of the time. */
const SHARE = 0.01;
const HOSTS = 50;
/** The recent rate spans so many notes. */
const SAMPLES = 10;

/** `keep` writes the text of a note down; it may throw, and the claim then fails with that. Answers the frontier that notes, and a last note for the end. */
export function noting<F extends Pick<Frontier, "claim" | "hosts" | "counts">>(
  frontier: F,
  clock: Clock,
  keep: (text: string) => void,
): { readonly frontier: F; note(): Promise<void> } {
  let waitingFor: WaitCause | null = null;
  let next = clock.now() + EVERY_MS;
  let used = performance.eventLoopUtilization();
  let samples: { readonly at: number; readonly pages: number }[] = [];

  function recentRate(pages: number): number | null {
    const at = clock.now();
    samples = [...samples, { at, pages }].slice(-SAMPLES);
    const first = samples[0];
    return first === undefined || at <= first.at ? null : (pages - first.pages) / ((at - first.at) / 1_000);
  }

  async function note(): Promise<void> {
    const began = clock.now();
    // Set first: calls may overlap.
    next = Infinity;
    const [hosts, { tally, leased }] = [await frontier.hosts(HOSTS), await frontier.counts()];
    const now = performance.eventLoopUtilization();
    const noted: LiveNote = {
      at: clock.epoch(),
      pagesPerSecond: recentRate((tally.get("outcome:fetched") ?? 0) + (tally.get("outcome:unchanged") ?? 0)),
      loopCpuShare: performance.eventLoopUtilization(now, used).utilization,
      inFlight: leased,
      waitingFor,
      hosts,
    };
    used = now;
    keep(JSON.stringify(noted));
    next = clock.now() + Math.max(EVERY_MS, (clock.now() - began) / SHARE);
  }

  async function claim(max: number): Promise<Claim> {
    const answer = await frontier.claim(max);
    waitingFor = answer.kind === "wait" ? answer.cause : null;
    // A claim that gave some but not all is followed by another at once, which knows why.
    const partial = answer.kind === "leases" && answer.leases.length < max;
    if (clock.now() >= next && !partial) await note();
    return answer;
  }

  return { frontier: { ...frontier, claim }, note };
}

/** The last note of a run; null where there is none, or one of another version. */
export function readLive(text: string | null): LiveNote | null {
  if (text === null) return null;
  const noted: Partial<LiveNote> = JSON.parse(text);
  return Array.isArray(noted.hosts) && typeof noted.at === "number" ? (noted as LiveNote) : null; // `as`: written above
}
