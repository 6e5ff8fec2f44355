/** A job as it is now: read once, then kept up by its events. Keeps the course of a few figures for the charts, and the newest records. */
import { useEffect, useState } from "preact/hooks";
import { ApiProblem, getJob } from "./api.ts";
import { STATE_WORDS } from "./format.ts";
import { announce, pause, waitAfter } from "./store.ts";
import { follow, type ServerEvent } from "./stream.ts";
import { isEnded, type Job, type JobCounts, type JobState, type Page } from "./types.ts";

export interface Sample {
  readonly atMs: number;
  readonly rate: number;
  readonly queued: number;
}

export interface Seen {
  readonly key: string;
  readonly page: Page;
}

export interface Live {
  readonly job: Job | null;
  readonly samples: readonly Sample[];
  /** Newest first. */
  readonly newest: readonly Seen[];
  readonly errors: readonly Seen[];
  /** Why there is no job; it is not tried again. */
  readonly problem: string | null;
}

const MOST_SAMPLES = 400;
const MOST_NEWEST = 12;
const MOST_ERRORS = 8;
/** Between two drawings; events may come much faster. */
const DRAW_MS = 250;

/** Every other one, once there are many: the course of a day costs no more than that of a minute. */
function withSample(samples: readonly Sample[], { elapsedMs, pagesPerSecond, queued }: JobCounts): readonly Sample[] {
  const last = samples.at(-1);
  if (last !== undefined && elapsedMs <= last.atMs) return samples;
  const next = [...samples, { atMs: elapsedMs, rate: pagesPerSecond, queued }];
  if (next.length <= MOST_SAMPLES) return next;
  const widest = ((next.at(-1)?.atMs ?? 0) - (next[0]?.atMs ?? 0)) / (MOST_SAMPLES / 2);
  let kept = Number.NEGATIVE_INFINITY;
  return next.filter(({ atMs }, at) => {
    if (atMs - kept < widest && at < next.length - 1) return false;
    kept = atMs;
    return true;
  });
}

export function applied(live: Live, { kind, data, id }: ServerEvent): Live {
  const { job } = live;
  if (job === null) return live;
  // `as`: events have the forms of core/jobs.ts; the contract tests of the service hold them.
  const value: unknown = JSON.parse(data);
  if (kind === "counts") {
    const counts = value as JobCounts;
    return { ...live, job: isEnded(job.state) ? job : { ...job, counts }, samples: withSample(live.samples, counts) };
  }
  if (kind === "state") return { ...live, job: { ...job, ...(value as { state: JobState; finishReason: Job["finishReason"] }) } };
  if (kind !== "page") return live;
  const seen: Seen = { key: id, page: value as Page };
  const failed = seen.page.outcome === "failed";
  return { ...live, newest: [seen, ...live.newest].slice(0, MOST_NEWEST), errors: failed ? [seen, ...live.errors].slice(0, MOST_ERRORS) : live.errors };
}

const NOTHING: Live = { job: null, samples: [], newest: [], errors: [], problem: null };

/** Reads until it works; null: the signal. Throws when there is no such job. */
async function reading(id: number, signal: AbortSignal): Promise<Job | null> {
  for (let failures = 1; !signal.aborted; failures++) {
    try {
      return await getJob(id, signal);
    } catch (error) {
      if (error instanceof ApiProblem && error.status < 500 && error.status !== 429) throw error;
    }
    await pause(waitAfter(failures), signal);
  }
  return null;
}

/** `refresh` takes in what a button was answered, before the events tell. */
export function useLive(id: number): Live & { refresh(job: Job): void } {
  const [shown, setShown] = useState<Live>(NOTHING);
  const [box] = useState<{ live: Live; timer: number | null }>({ live: NOTHING, timer: null });
  const draw = () => {
    box.timer ??= window.setTimeout(() => {
      box.timer = null;
      setShown(box.live);
    }, DRAW_MS);
  };
  const change = (live: Live) => {
    const before = box.live.job?.state;
    const after = live.job?.state;
    box.live = live;
    if (after === undefined || before === after) return draw();
    // Changes of state are drawn at once, and told to who does not see them.
    if (before !== undefined) announce(`Job ${id}: ${STATE_WORDS[after]}`);
    setShown(live);
  };
  useEffect(() => {
    const end = new AbortController();
    const { signal } = end;
    const run = async () => {
      const job = await reading(id, signal);
      if (job === null) return;
      change({ ...NOTHING, job });
      await follow(`v1/jobs/${id}/events`, signal, {
        take: (event) => change(applied(box.live, event)),
        ended: () => isEnded(box.live.job?.state ?? job.state),
        // More streams than the service gives: then it is asked now and again.
        missing: () =>
          void getJob(id, signal).then(
            (now) => change({ ...box.live, job: now }),
            () => undefined,
          ),
      });
      const last = await reading(id, signal);
      if (last !== null) change({ ...box.live, job: last });
    };
    run().catch((error: unknown) => {
      if (!signal.aborted) change({ ...box.live, problem: error instanceof Error ? error.message : String(error) });
    });
    return () => {
      end.abort();
      if (box.timer !== null) clearTimeout(box.timer);
      box.timer = null;
    };
  }, [id]);
  return { ...shown, refresh: (job) => change({ ...box.live, job: isEnded(box.live.job?.state ?? "queued") ? box.live.job : job }) };
}
