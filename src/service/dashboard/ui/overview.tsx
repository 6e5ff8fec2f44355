/** The figures of a job, their course, what came of its requests, and the newest records. */
import { useRef, useState } from "preact/hooks";
import { Chart } from "./chart.tsx";
import { bottleneckWords, bytes, count, duration, rate } from "./format.ts";
import type { Live, Seen } from "./live.ts";
import { Address, Tally } from "./parts.tsx";
import { hrefOf } from "./router.ts";
import { isEnded, type Job } from "./types.ts";

function Figures({ job }: { readonly job: Job }) {
  const { counts, state } = job;
  const ended = isEnded(state);
  const figures: readonly (readonly [string, string])[] = [
    ["Pages", count(counts.pages)],
    [ended ? "Mean rate" : "Rate", rate(counts.pagesPerSecond)],
    ["Queue", count(counts.queued)],
    ["In flight", count(counts.inProgress)],
    ["Failed", count(counts.failed)],
    ["Skipped", count(counts.skipped)],
    ["Items", count(counts.items)],
    ["Images", count(counts.images)],
    ["Received", bytes(counts.bytes)],
    ["Time", duration(counts.elapsedMs)],
  ];
  return (
    <dl class="figures">
      {figures.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

function Settled({ job }: { readonly job: Job }) {
  const { completed, total, bottleneck } = job.counts;
  return (
    <div class="settled">
      <label for="settled">
        {count(completed)} of {count(total)} known URLs settled
        {bottleneck !== null && bottleneck !== "nothing" && !isEnded(job.state) && (
          <span class="soft">; what limits the speed: {bottleneckWords(bottleneck)}</span>
        )}
      </label>
      <progress id="settled" max={Math.max(1, total)} value={completed} />
    </div>
  );
}

/** The list as it was when someone began to read in it or to walk through it: it does not run away, and the focus stays. */
function useHeld(current: readonly Seen[]) {
  const held = useRef<readonly Seen[] | null>(null);
  const [holding, setHolding] = useState({ pointer: false, focus: false });
  const hold = (change: Partial<typeof holding>) => setHolding((old) => ({ ...old, ...change }));
  if (holding.pointer || holding.focus) held.current ??= current;
  else held.current = null;
  return {
    shown: held.current ?? current,
    behind: held.current !== null && held.current[0] !== current[0],
    on: {
      onMouseEnter: () => hold({ pointer: true }),
      onMouseLeave: () => hold({ pointer: false }),
      onFocusIn: () => hold({ focus: true }),
      onFocusOut: () => hold({ focus: false }),
    },
  };
}

interface NewestProps {
  readonly id: number;
  readonly title: string;
  readonly seen: readonly Seen[];
  readonly empty: string;
  readonly withError?: true;
}

function Newest({ id, title, seen, empty, withError }: NewestProps) {
  const { shown, behind, on } = useHeld(seen);
  return (
    <section class="card newest" aria-label={title} {...on}>
      <h3>
        {title} {behind && <span class="soft held">held while you read</span>}
      </h3>
      {shown.length === 0 ? (
        <p class="soft">{empty}</p>
      ) : (
        <ul>
          {shown.map(({ key, page }) => (
            <li key={key}>
              <span class={`code code-${String(page.status ?? "x").charAt(0)}`}>{page.status ?? "–"}</span>
              <span class="what">
                <Address url={page.url} />
                {withError ? (
                  <span class="soft">
                    {page.error === undefined ? (page.outcome ?? "") : `${page.error.code}: ${page.error.message}`}
                    {page.url !== undefined && (
                      <>
                        {" "}
                        <a href={hrefOf(`jobs/${id}/explain`, { url: page.url })} aria-label={`Why: ${page.url}`}>
                          Why?
                        </a>
                      </>
                    )}
                  </span>
                ) : (
                  page.title !== undefined && <span class="soft title">{page.title}</span>
                )}
              </span>
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}

export function Overview({ job, live }: { readonly job: Job; readonly live: Live }) {
  const { counts, id } = job;
  const ended = isEnded(job.state);
  return (
    <>
      <h2 class="hidden">Overview</h2>
      <Figures job={job} />
      <Settled job={job} />
      {(!ended || live.samples.length > 1) && (
        <div class="pair">
          <Chart title="Pages a second" samples={live.samples} pick={(sample) => sample.rate} show={rate} />
          <Chart title="URLs in the queue" samples={live.samples} pick={(sample) => sample.queued} show={count} />
        </div>
      )}
      <div class="quarters">
        <Tally title="Status codes" name="Status" counts={counts.byStatus} empty="None." />
        <Tally title="Outcomes" name="Outcome" counts={counts.byOutcome} empty="None." />
        <Tally title="Errors" name="Error" counts={counts.byError} empty="None." />
        <Tally title="Skip reasons" name="Reason" counts={counts.bySkipReason} empty="None." />
      </div>
      {/* Of a job that ended before the page was opened, all of it is under Pages. */}
      {(!ended || live.newest.length > 0) && (
        <div class="pair">
          <Newest id={id} title="Newest pages" seen={live.newest} empty="None while this page is open." />
          <Newest id={id} title="Newest errors" seen={live.errors} empty="None while this page is open." withError />
        </div>
      )}
    </>
  );
}
