/** What a process that works on a shared store tells of itself every few seconds: its crawls, what it has in flight, how fast it is. Decides nothing. */
import { randomBytes } from "node:crypto";
import { hostname } from "node:os";
import type { Clock } from "../core/clock.ts";
import type { Frontier } from "../core/frontier.ts";
import { bottleneckOf } from "../engine/stats.ts";
import type { Link } from "../store/redis/connect.ts";
import { sayAlive, sayGone, type WorkerShare } from "../store/redis/workers.ts";

export interface Pulse {
  /** The same frontier, watched until it is disposed of. `concurrency`: what this process may have in flight there. */
  watch<F extends Frontier>(crawl: number, frontier: F, concurrency: () => number): F;
  /** Says goodbye, unless the store is away. */
  close(): Promise<void>;
}

const EVERY_MS = 3_000;
/** The rate spans so many beats. */
const SAMPLES = 5;
const GOODBYE_MS = 500;
/** Tokens of one claim begin with the same characters (store/redis/frontier.ts). */
const CLAIM_CHARS = 12;
const MOST_CLAIMS = 100;

interface Watched {
  share(cpuShare: number): WorkerShare;
}

function watched(crawl: number, frontier: Frontier, concurrency: () => number, clock: Clock): Watched & Pick<Frontier, "claim" | "settle" | "renew"> {
  const held = new Set<string>();
  let taken = 0;
  let pages = 0;
  let waitingFor: Parameters<typeof bottleneckOf>[0]["waitingFor"] = null;
  let samples: { readonly at: number; readonly pages: number }[] = [{ at: clock.now(), pages: 0 }];
  return {
    async claim(max) {
      const answer = await frontier.claim(max);
      waitingFor = answer.kind === "wait" ? answer.cause : answer.kind === "held" && answer.why === "outbox-full" ? "output" : null;
      if (answer.kind !== "leases") return answer;
      taken += answer.leases.length;
      for (const { token } of answer.leases) held.add(token);
      return answer;
    },
    async settle(settled, links) {
      const answers = await frontier.settle(settled, links);
      for (const { token, settlement } of settled) {
        held.delete(token);
        if (settlement.kind === "done") pages++;
      }
      return answers;
    },
    async renew(tokens) {
      const answer = await frontier.renew(tokens);
      for (const token of answer.lost) held.delete(token);
      return answer;
    },
    share(cpuShare) {
      const first = samples[0];
      const now = { at: clock.now(), pages };
      samples = [...samples, now].slice(-SAMPLES);
      const pagesPerSecond = first === undefined || now.at - first.at < 1_000 ? null : (pages - first.pages) / ((now.at - first.at) / 1_000);
      const limitedBy = bottleneckOf({ inFlight: held.size, requests: 0, waitingFor, scraping: null }, concurrency(), cpuShare);
      const claims = [...new Set([...held].map((token) => token.slice(0, CLAIM_CHARS)))].slice(0, MOST_CLAIMS);
      return { crawl, inFlight: held.size, taken, pagesPerSecond, limitedBy, claims };
    },
  };
}

/** `kind`: the command that this process is. */
export function startPulse(link: Link, { kind, clock }: { readonly kind: string; readonly clock: Clock }): Pulse {
  const id = randomBytes(9).toString("base64url");
  const began = clock.now();
  const crawls = new Map<number, Watched>();
  let used = performance.eventLoopUtilization();
  let closed = false;
  let timer: { cancel(): void } | null = null;

  async function beat(): Promise<void> {
    const now = performance.eventLoopUtilization();
    const cpuShare = performance.eventLoopUtilization(now, used).utilization;
    used = now;
    const shares = [...crawls.values()].map((one) => one.share(cpuShare));
    await sayAlive(link, { id, host: hostname(), pid: process.pid, kind, ageMs: Math.round(clock.now() - began), shares });
  }

  function arm(): void {
    if (closed) return;
    timer = clock.after(EVERY_MS, () => void beat().then(arm, ignore));
  }
  // A store that is away is waited for; a call that fails says that the connection is closed.
  const first = beat().then(arm, ignore);

  return {
    watch(crawl, frontier, concurrency) {
      const { share, ...steps } = watched(crawl, frontier, concurrency, clock);
      crawls.set(crawl, { share });
      return {
        ...frontier,
        ...steps,
        async [Symbol.asyncDispose]() {
          crawls.delete(crawl);
          await frontier[Symbol.asyncDispose]();
        },
      };
    },
    async close() {
      closed = true;
      timer?.cancel();
      let late: { cancel(): void } | null = null;
      await Promise.race([
        first.then(() => sayGone(link, id)).catch(ignore),
        new Promise<void>((resolve) => {
          late = clock.after(GOODBYE_MS, resolve);
        }),
      ]);
      cancelled(late);
    },
  };
}

const ignore = (): void => undefined;
const cancelled = (timer: { cancel(): void } | null): void => timer?.cancel();
