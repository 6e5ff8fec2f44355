/** GET /v1/jobs/{id}/events: what happens to a job, as server-sent events (HTML Standard §9.2), until it ends. */
import type { Clock } from "../core/clock.ts";
import { ENDED_STATES, type JobEvent } from "../core/jobs.ts";
import { type Ask, goneSignal, jobOf, type Service, typeOf } from "./context.ts";
import { HttpProblem, notFound } from "./problem.ts";
import { streamOf } from "./stream.ts";
import { eventData } from "./views.ts";

/** A comment keeps proxies from closing a quiet stream, and tells us of clients that are gone. */
const HEARTBEAT_MS = 15_000;
const RETRY_MS = 2_000;

function spelt(event: JobEvent): string {
  return `id: ${event.id.replace(/[\r\n\0]/g, "")}\nevent: ${event.kind}\ndata: ${JSON.stringify(eventData(event))}\n\n`;
}

/** Events and, where none comes for a while, heartbeats. */
async function* frames(
  first: IteratorResult<JobEvent> | null,
  events: AsyncIterator<JobEvent>,
  { clock }: { readonly clock: Clock },
): AsyncGenerator<Uint8Array> {
  try {
    yield Buffer.from(`retry: ${RETRY_MS}\n\n`);
    let pending: Promise<IteratorResult<JobEvent>> = first === null ? events.next() : Promise.resolve(first);
    for (;;) {
      let beat: () => void = () => undefined;
      const silence = new Promise<null>((resolve) => (beat = () => resolve(null)));
      const timer = clock.after(HEARTBEAT_MS, beat);
      const next = await Promise.race([pending, silence]).finally(() => timer.cancel());
      if (next === null) yield Buffer.from(": still here\n\n");
      else if (next.done) return;
      else {
        yield Buffer.from(spelt(next.value));
        pending = events.next();
      }
    }
  } finally {
    await events.return?.();
  }
}

/** Jobs whose last event is remembered. */
const MOST_FINALS = 1_000;

/** Hands events on; `onEnd` learns the id of the last one. */
async function* watched(events: AsyncIterable<JobEvent>, onEnd: (last: string) => void): AsyncGenerator<JobEvent> {
  let last: string | null = null;
  for await (const event of events) {
    last = event.id;
    yield event;
  }
  if (last !== null) onEnd(last);
}

/** Counts the open streams of one service. */
export function eventsAnswer(service: Service): { readonly answer: (ask: Ask) => Promise<Response>; open(): number } {
  let open = 0;
  /** Ids of jobs that have ended → the last event that was told of them, the oldest entry first. */
  const finals = new Map<number, string>();
  const noteFinal = (id: number, last: string): void => {
    finals.delete(id);
    finals.set(id, last);
    const [oldest] = finals.size > MOST_FINALS ? finals.keys() : [];
    if (oldest !== undefined) finals.delete(oldest);
  };
  const headers = { "content-type": "text/event-stream", "cache-control": "no-store", "x-accel-buffering": "no" };
  return {
    open: () => open,
    async answer(ask) {
      typeOf(ask, ["text/event-stream"]);
      const job = await jobOf(ask, service);
      if (ask.req.method === "HEAD") return new Response(null, { headers });
      if (open >= service.limits.eventStreams)
        throw new HttpProblem({ status: 503, detail: `${open} event streams are open, the most that there may be`, headers: { "retry-after": "5" } });
      const after = ask.req.header("last-event-id") ?? null;
      const hasEnded = ENDED_STATES.has(job.state);
      // A client that comes back to a job that has ended, and knows all, is told to stay away: otherwise it would ask again for ever.
      if (hasEnded && after !== null && finals.get(job.id) === after) return new Response(null, { status: 204 });
      const ended = new AbortController();
      const signal = AbortSignal.any([goneSignal(ask), service.closing, ended.signal]);
      const found = await service.jobs.events(job.id, after === null || after.length > 200 ? null : after, signal);
      if (found === null) throw notFound("there is no such job");
      const events = watched(found, (last) => noteFinal(job.id, last));
      const first = hasEnded ? await events.next() : null;
      if (first?.done) return new Response(null, { status: 204 });
      open++;
      async function* counted(): AsyncGenerator<Uint8Array> {
        try {
          yield* frames(first, events, service);
        } finally {
          open--;
          ended.abort();
        }
      }
      return new Response(streamOf(counted(), signal), { headers });
    },
  };
}
