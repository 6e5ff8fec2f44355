/** For tests only: the real HTTP side with jobs that a test moves by hand, and the dashboard made from its sources. */
import type { JobCounts, JobHost, JobService, JobState, JobTable } from "../../src/core/jobs.ts";
import { parseSpec } from "../../src/core/spec.ts";
import { dashboardFiles } from "../../src/service/dashboard/files.ts";
import type { ServiceOptions } from "../../src/service/open.ts";
import { type FakeJobs, fakeJobs } from "./fake-jobs.ts";
import { bench } from "./harness.ts";

export interface DashboardBench extends AsyncDisposable {
  readonly jobs: FakeJobs;
  readonly url: string;
  /** Hosts of each job; a test changes them, and the dashboard's PATCH does. */
  readonly hosts: Map<number, JobHost[]>;
  /** A job of these seeds in a state; its id. */
  add(seeds: readonly string[], state: JobState, counts?: Partial<JobCounts>): Promise<number>;
  /** Settles so many pages: counts, records and events. Every 7th fails. */
  work(id: number, pages: number): void;
  end(id: number, state: JobState): void;
  fill(id: number, table: JobTable, values: readonly unknown[]): void;
}

const PLAIN = parseSpec({});
let assets: ReturnType<typeof dashboardFiles> | null = null;
/** From the sources, once: the bundler takes its time. */
export const dashboardAssets = () => (assets ??= dashboardFiles());

const tally = (counts: Readonly<Record<string, number>>, word: string) => ({ ...counts, [word]: (counts[word] ?? 0) + 1 });

/** A page record, the `at`th of a job. */
export function pageOf(at: number, failed: boolean): Record<string, unknown> {
  const url = `https://www.example.org/articles/${2000 + (at % 26)}/${at}${at % 9 === 0 ? `?session=${"0123456789abcdef".repeat(12)}` : ""}`;
  return {
    ...{
      url,
      status: failed ? 503 : 200,
      outcome: failed ? "failed" : "fetched",
      depth: at % 5,
      referrer: null,
      contentType: "text/html",
      bytes: 4_000 + at * 37,
    },
    ...(failed ? { error: { code: "http", message: "status 503 after 3 tries" } } : { title: `Article ${at}: a <b>title</b> & more` }),
    ...{ links: [], attempts: failed ? 3 : 1, fetchedAt: "2026-03-01T10:00:00.000Z", durationMs: 40 + (at % 90) },
  };
}

/** `token`: what the service asks for. */
export async function dashboardBench(options: Partial<ServiceOptions> = {}, mostJobs = 20_000): Promise<DashboardBench> {
  const jobs = fakeJobs({ mostJobs });
  const hosts = new Map<number, JobHost[]>();
  const plain = jobs.patchHost;
  const moved: Partial<JobService> = {
    hosts: async (id, most) => (hosts.get(id) ?? []).slice(0, most),
    async patchHost(id, host, patch) {
      const { paused, delayMs, concurrency } = patch;
      const change = (one: JobHost): JobHost => ({
        ...one,
        ...(paused === undefined ? {} : { paused }),
        ...(delayMs === undefined ? {} : { delayMs: delayMs ?? 0 }),
        ...(concurrency === undefined ? {} : { concurrency: concurrency ?? 8 }),
      });
      hosts.set(
        id,
        (hosts.get(id) ?? []).map((one) => (one.host === host ? change(one) : one)),
      );
      return plain(id, host, patch);
    },
    explain: async (_id, url) => ({ url, lines: [`fetched: 200 at depth 1`, `found on https://www.example.org/ <first>`] }),
  };
  const service = await bench({ assets: await dashboardAssets(), ...options }, Object.assign(jobs, moved));
  const find = (id: number) => {
    const found = jobs.all.find((job) => job.view.id === id);
    if (found === undefined) throw new Error(`there is no job ${id}`);
    return found;
  };
  const tellState = (id: number) => {
    const { events, view } = find(id);
    jobs.tell(id, { id: String(events.length + 1), kind: "state", state: view.state, finishReason: view.finishReason });
  };
  for (const name of ["pause", "resume", "stop", "cancel"] as const) {
    const inner = jobs[name].bind(jobs) as (id: number, ...more: never[]) => ReturnType<JobService["pause"]>;
    const told = async (id: number, ...more: never[]) => {
      const answer = await inner(id, ...more);
      if (answer.kind === "done") tellState(id);
      return answer;
    };
    // `as`: the same arguments and answer as those of the function it stands for.
    Object.assign(jobs, { [name]: told as unknown as JobService["pause"] });
  }
  return {
    ...{ jobs, hosts, url: service.url },
    async add(seeds, state, counts = {}) {
      const created = await jobs.create({ spec: PLAIN, lines: seeds, idempotency: null });
      if (created.kind !== "created") throw new Error(`the job was not made: ${created.kind}`);
      const { id } = created.job;
      jobs.set(id, state, counts);
      const job = find(id);
      const startedAt = Date.parse("2026-03-01T10:00:00Z") + id * 60_000;
      const ended = job.view.endedAt !== null;
      job.view = {
        ...job.view,
        createdAt: startedAt - 2_000,
        startedAt: state === "queued" ? null : startedAt,
        endedAt: ended ? startedAt + job.view.counts.elapsedMs : null,
      };
      return id;
    },
    work(id, pages) {
      const { view, tables } = find(id);
      let { counts } = view;
      for (let left = pages; left > 0; left--) {
        const at = counts.completed;
        const failed = at % 7 === 6;
        const page = pageOf(at, failed);
        tables.pages.push(JSON.stringify(page));
        counts = {
          ...counts,
          ...{
            total: counts.total + (at % 3),
            completed: at + 1,
            queued: Math.max(0, counts.queued + (at % 3) - 1),
            inProgress: 8,
            bytes: counts.bytes + 4_000 + at * 37,
          },
          ...(failed ? { failed: counts.failed + 1, byError: tally(counts.byError, "http") } : { pages: counts.pages + 1 }),
          ...{ byStatus: tally(counts.byStatus, failed ? "503" : "200"), byOutcome: tally(counts.byOutcome, failed ? "failed" : "fetched") },
          ...{ elapsedMs: counts.elapsedMs + 25, pagesPerSecond: 40 + 12 * Math.sin(at / 40) + (at % 7), bottleneck: "per-host" },
        };
        if (left <= 20) jobs.tell(id, { id: String(find(id).events.length + 1), kind: "page", page });
        if (left % 10 === 1) jobs.tell(id, { id: String(find(id).events.length + 1), kind: "counts", counts });
      }
      jobs.set(id, view.state, counts);
    },
    end(id, state) {
      jobs.set(id, state, { inProgress: 0, bottleneck: null });
      tellState(id);
    },
    fill(id, table, values) {
      find(id).tables[table].push(...values.map((value) => JSON.stringify(value)));
    },
    [Symbol.asyncDispose]: () => service[Symbol.asyncDispose](),
  };
}
