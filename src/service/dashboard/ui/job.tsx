/** A job's page: its state and what can be done with it on top, everything else under tabs. */
import { useEffect, useRef } from "preact/hooks";
import { Controls } from "./controls.tsx";
import { ExplainTab } from "./explain.tsx";
import { capital, count, reasonWords } from "./format.ts";
import { HostsTab } from "./hosts.tsx";
import { subjectOf } from "./jobs.tsx";
import { useLive } from "./live.ts";
import { OptionsTab } from "./options.tsx";
import { Overview } from "./overview.tsx";
import { Moment, Notice, State } from "./parts.tsx";
import { ImagesTab, RecordsTab } from "./records.tsx";
import { hrefOf } from "./router.ts";
import type { Job } from "./types.ts";

const TABS = [
  ["overview", "Overview"],
  ["pages", "Pages"],
  ["items", "Items"],
  ["images", "Images"],
  ["skipped", "Skipped"],
  ["hosts", "Hosts"],
  ["explain", "Explain"],
  ["options", "Options"],
] as const;

function Course({ job }: { readonly job: Job }) {
  const reason = reasonWords(job);
  return (
    <p class="soft course">
      Made <Moment at={job.createdAt} />
      {job.startedAt !== null && (
        <>
          , started <Moment at={job.startedAt} />
        </>
      )}
      {job.endedAt !== null && (
        <>
          , ended <Moment at={job.endedAt} />
        </>
      )}
      . {reason}
      {job.detail !== null && job.detail !== job.state && ` ${job.state === "failed" ? capital(job.detail) : `Reason given: ${job.detail}`}`}
    </p>
  );
}

export function JobPage({ id, tab, query }: { readonly id: number; readonly tab: string; readonly query: URLSearchParams }) {
  const live = useLive(id);
  const { job, problem, refresh } = live;
  const [, label] = TABS.find(([name]) => name === tab) ?? TABS[0];
  useEffect(() => {
    document.title = `${label === "Overview" ? "" : `${label} · `}Job ${id} · Skein`;
  }, [id, label]);
  const tabs = useRef<HTMLElement>(null);
  const known = job !== null;
  // On a narrow screen the tabs scroll; the one that is open is not left out of sight.
  useEffect(() => {
    const current = known ? tabs.current?.querySelector("[aria-current]") : null;
    current?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }, [known, label]);
  if (job === null)
    return (
      <>
        <h1 tabIndex={-1}>Job {id}</h1>
        {problem === null ? <p class="soft">Loading …</p> : <Notice kind="bad">{capital(problem)}.</Notice>}
        {problem !== null && <a href="#/">All jobs</a>}
      </>
    );
  const rejected = query.get("rejected");
  return (
    <>
      <div class="heading">
        <div class="names">
          <h1 tabIndex={-1}>
            Job {id} <State state={job.state} />
          </h1>
          <p class="subject" title={subjectOf(job)}>
            {subjectOf(job)}
          </p>
        </div>
        <Controls job={job} refresh={refresh} />
      </div>
      <Course job={job} />
      {rejected !== null && /^\d+$/.test(rejected) && (
        <Notice>
          {count(Number(rejected))} {rejected === "1" ? "line was" : "lines were"} no URL and {rejected === "1" ? "was" : "were"} left out.
        </Notice>
      )}
      {problem !== null && <Notice kind="bad">{capital(problem)}.</Notice>}
      <nav class="tabs" ref={tabs} aria-label={`Job ${id}`}>
        {TABS.map(([name, text]) => (
          <a key={name} href={hrefOf(`jobs/${id}${name === "overview" ? "" : `/${name}`}`)} {...(label === text ? { "aria-current": "page" as const } : {})}>
            {text}
          </a>
        ))}
      </nav>
      <section class="tab" aria-label={label}>
        <Tab key={label} tab={tab} job={job} live={live} query={query} />
      </section>
    </>
  );
}

function Tab({
  tab,
  job,
  live,
  query,
}: {
  readonly tab: string;
  readonly job: Job;
  readonly live: ReturnType<typeof useLive>;
  readonly query: URLSearchParams;
}) {
  switch (tab) {
    case "pages":
    case "items":
    case "skipped":
      return <RecordsTab job={job} table={tab} />;
    case "images":
      return <ImagesTab job={job} />;
    case "hosts":
      return <HostsTab job={job} />;
    case "explain":
      return <ExplainTab job={job} asked={query.get("url")} />;
    case "options":
      return <OptionsTab job={job} />;
    default:
      return <Overview job={job} live={live} />;
  }
}
