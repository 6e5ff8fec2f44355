/** Jobs as the two APIs show them: fields and their order here are the format. */
import { shownSpec } from "../core/job-spec.ts";
import type { JobEvent, JobState, JobView } from "../core/jobs.ts";
import { FEW_SEEDS, MOST_SHOWN_URLS } from "./limits.ts";

const USERINFO = /^(\s*[a-z][a-z0-9+.-]*:[\\/]+)[^\\/?#]*@/i;
/** A URL without the user and password that may stand in it. */
export const withoutUser = (url: string): string => url.replace(USERINFO, "$1");

/** The words of the three-call API. */
const SIMPLE_STATUS: Readonly<Record<JobState, string>> = {
  queued: "queued",
  running: "running",
  paused: "paused",
  stopping: "running",
  completed: "done",
  stopped: "stopped",
  failed: "failed",
  cancelled: "cancelled",
};
export const SIMPLE_STATES = [...new Set(Object.values(SIMPLE_STATUS))];

const rejections = ({ rejected, rejectedTotal }: JobView) =>
  rejectedTotal === 0
    ? {}
    : {
        rejected: rejected.map(({ line, text, reason }) => ({ line, text: withoutUser(text), reason })),
        ...(rejectedTotal > rejected.length ? { rejectedTotal } : {}),
      };

/** Of POST /, and live of GET /status. */
export function simpleJob(job: JobView): object {
  const { id, seeds, seedsTotal, counts, state } = job;
  return {
    job_id: id,
    urls: seeds.slice(0, MOST_SHOWN_URLS).map(withoutUser),
    completed: counts.completed,
    inprogress: counts.inProgress,
    status: SIMPLE_STATUS[state],
    total: counts.total,
    ...(seedsTotal > MOST_SHOWN_URLS || seedsTotal > seeds.length ? { urlsTotal: seedsTotal } : {}),
    ...rejections(job),
  };
}

const iso = (at: number | null): string | null => (at === null ? null : new Date(at).toISOString());

/** Of /v1. `brief`: for lists; a job has few seeds there, and no lines that were rejected. Seeds stand in the spec too, so that the spec makes the same job again. */
export function fullJob(job: JobView, brief = false): object {
  const { id, state, spec, counts, finishReason, detail, seedsTotal } = job;
  const seeds = job.seeds.slice(0, brief ? FEW_SEEDS : MOST_SHOWN_URLS).map(withoutUser);
  return {
    ...{ id, state, spec: { seeds, ...shownSpec(spec) }, counts, finishReason, detail, seeds, seedsTotal },
    ...{ createdAt: iso(job.createdAt), startedAt: iso(job.startedAt), endedAt: iso(job.endedAt) },
    ...(brief ? {} : rejections(job)),
  };
}

/** The data of a server-sent event; its kind is the event's name. */
export function eventData(event: JobEvent): object {
  switch (event.kind) {
    case "state":
      return { state: event.state, finishReason: event.finishReason };
    case "counts":
      return event.counts;
    case "page":
      return event.page;
  }
}
