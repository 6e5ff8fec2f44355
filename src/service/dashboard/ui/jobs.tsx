/** The list of jobs, newest first, as they stand. */
import { type Listed, listJobs } from "./api.ts";
import { capital, count, duration, rate } from "./format.ts";
import { Moment, Notice, State, TableBox } from "./parts.tsx";
import { hrefOf } from "./router.ts";
import { usePoll } from "./store.ts";
import { isEnded, type Job } from "./types.ts";

const PAGE = 50;
/** Ms until the next look: jobs that have ended do not move. */
const paceOf = ({ entries }: Listed<Job>) => (entries.some(({ state }) => !isEnded(state)) ? 2_000 : 5_000);
const FILTERS = [
  ["", "All"],
  ["queued,running,paused,stopping", "Under way"],
  ["completed", "Completed"],
  ["stopped,cancelled", "Stopped"],
  ["failed", "Failed"],
] as const;

/** What the job is about, in a line. */
export function subjectOf({ seeds, seedsTotal }: Job): string {
  const [first] = seeds;
  if (first === undefined) return "no seeds";
  return seedsTotal > 1 ? `${first} and ${count(seedsTotal - 1)} more` : first;
}

function Row({ job }: { readonly job: Job }) {
  const { id, state, counts } = job;
  const ended = isEnded(state);
  const done = counts.total === 0 ? 0 : counts.completed / counts.total;
  const startedAt = job.startedAt ?? null;
  return (
    <tr>
      <th scope="row">
        <a class="row" href={hrefOf(`jobs/${id}`)}>
          <span class="number">{id}</span>
          <span class="subject">
            <span class="address" title={subjectOf(job)}>
              {subjectOf(job).replace(/^https?:\/\//i, "")}
            </span>
            <span class="narrow">
              <State state={state} />
            </span>
          </span>
        </a>
      </th>
      <td class="wide">
        <State state={state} />
      </td>
      <td class="figure">{count(counts.pages)}</td>
      <td class="wide">
        {ended ? (
          <span class="soft figure">
            {count(counts.completed)} {counts.completed === 1 ? "URL" : "URLs"}
          </span>
        ) : (
          <span class="done">
            <progress max={1} value={done} aria-label={`Job ${id}: share of the known URLs that are settled`} />
            <span class="figure">
              {count(counts.completed)} / {count(counts.total)}
            </span>
          </span>
        )}
      </td>
      <td class="figure wide">{ended || counts.queued === 0 ? "–" : count(counts.queued)}</td>
      <td class="figure wide">{state === "running" || state === "stopping" ? rate(counts.pagesPerSecond) : "–"}</td>
      <td class="wide">{startedAt === null ? "–" : <Moment at={startedAt} />}</td>
      <td class="figure wide">{startedAt === null ? "–" : duration(counts.elapsedMs)}</td>
    </tr>
  );
}

function Empty({ filtered }: { readonly filtered: boolean }) {
  if (filtered) return <p class="empty">No job is in this state.</p>;
  return (
    <div class="empty">
      <p>There are no jobs yet.</p>
      <p>
        <a class="button primary" href="#/new">
          Start the first one
        </a>
      </p>
      <p class="soft">
        Or from a shell: <code>curl -F urls=@list.txt {location.origin}/</code>
      </p>
    </div>
  );
}

export function JobsPage({ state, cursor }: { readonly state: string | null; readonly cursor: string | null }) {
  const { value, problem } = usePoll(`${state ?? ""} ${cursor ?? ""}`, paceOf, (signal) => listJobs({ state, cursor, limit: PAGE }, signal));
  return (
    <>
      <div class="heading">
        <h1 tabIndex={-1}>Jobs</h1>
        <a class="button primary" href="#/new">
          New job
        </a>
      </div>
      <nav class="filters" aria-label="Jobs by state">
        {FILTERS.map(([states, label]) => (
          <a key={label} href={hrefOf("jobs", { state: states })} {...((state ?? "") === states ? { "aria-current": "true" as const } : {})}>
            {label}
          </a>
        ))}
      </nav>
      {problem !== null && <Notice kind="bad">{capital(problem)}</Notice>}
      {value === null ? (
        problem === null && <p class="soft">Loading …</p>
      ) : value.entries.length === 0 ? (
        <Empty filtered={state !== null || cursor !== null} />
      ) : (
        <TableBox label="Jobs">
          <table class="jobs">
            <thead>
              <tr>
                <th scope="col">Job</th>
                <th scope="col" class="wide">
                  State
                </th>
                <th scope="col" class="figure">
                  Pages
                </th>
                <th scope="col" class="wide">
                  Settled
                </th>
                <th scope="col" class="figure wide">
                  Queue
                </th>
                <th scope="col" class="figure wide">
                  Rate
                </th>
                <th scope="col" class="wide">
                  Started
                </th>
                <th scope="col" class="figure wide">
                  Time
                </th>
              </tr>
            </thead>
            <tbody>
              {value.entries.map((job) => (
                <Row key={job.id} job={job} />
              ))}
            </tbody>
          </table>
        </TableBox>
      )}
      {value !== null && (cursor !== null || value.next !== null) && (
        <nav class="pager" aria-label="Pages of the list">
          {cursor !== null && <a href={hrefOf("jobs", { state })}>Newest</a>}
          {value.next !== null && <a href={hrefOf("jobs", { state, cursor: value.next })}>Older jobs</a>}
        </nav>
      )}
    </>
  );
}
