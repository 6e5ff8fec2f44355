/** For tests only: jobs kept in memory that do nothing by themselves; a test says what becomes of them. */
import type { ControlAnswer, Created, JobCounts, JobEvent, JobLine, JobService, JobState, JobTable, JobView, RejectedLine } from "../../src/core/jobs.ts";
import { ENDED_STATES, JOB_STATES } from "../../src/core/jobs.ts";

export interface FakeJob {
  view: JobView;
  readonly tables: Record<JobTable, string[]>;
  readonly events: JobEvent[];
  readonly rejected: RejectedLine[];
}

export interface FakeJobs extends JobService {
  readonly all: FakeJob[];
  /** Lines that were handed out, over all reads. */
  readonly read: { lines: number; open: number };
  set(id: number, state: JobState, counts?: Partial<JobCounts>): void;
  tell(id: number, event: JobEvent): void;
  /** Every call throws it while it is set. */
  failure: Error | null;
}

const NO_COUNTS: JobCounts = {
  ...{ total: 0, completed: 0, inProgress: 0, queued: 0, pages: 0, failed: 0, items: 0, images: 0, skipped: 0, bytes: 0 },
  ...{ byStatus: {}, byOutcome: {}, byError: {}, bySkipReason: {}, pagesPerSecond: 0, elapsedMs: 0, bottleneck: null },
};

export function fakeJobs({ mostUrls = 2_000_000, mostJobs = 1_000 } = {}): FakeJobs {
  const all: FakeJob[] = [];
  const keys = new Map<string, { fingerprint: string; job: FakeJob }>();
  const waiting = new Set<() => void>();
  const read = { lines: 0, open: 0 };
  const wake = () => {
    for (const one of [...waiting]) one();
    waiting.clear();
  };
  const find = (id: number) => all.find((job) => job.view.id === id) ?? null;
  const change = (job: FakeJob, patch: Partial<JobView>) => {
    job.view = { ...job.view, ...patch };
    wake();
  };

  function control(id: number, from: readonly JobState[], to: JobState): ControlAnswer {
    const job = find(id);
    if (job === null) return { kind: "unknown" };
    if (!from.includes(job.view.state)) return { kind: "conflict", job: job.view, why: `the job is ${job.view.state}` };
    change(job, { state: to });
    return { kind: "done", job: job.view };
  }

  async function take(
    lines: AsyncIterable<string> | Iterable<string>,
    seeds: string[],
  ): Promise<{ good: number; rejected: RejectedLine[]; total: number; over: boolean }> {
    const rejected: RejectedLine[] = [];
    let [good, total, line] = [0, 0, 0];
    for await (const text of lines) {
      line++;
      const trimmed = text.trim();
      if (trimmed === "" || trimmed.startsWith("#")) continue;
      if (/^https?:\/\/[^[\s]/.test(trimmed) && URL.canParse(trimmed)) {
        good++;
        if (good > mostUrls) return { good, rejected, total, over: true };
        if (seeds.length < 1_000) seeds.push(trimmed);
        continue;
      }
      total++;
      if (rejected.length < 1_000) rejected.push({ line, text: trimmed.slice(0, 200), reason: "invalid-url" });
    }
    return { good, rejected, total, over: false };
  }

  const fake: FakeJobs = {
    ...{ all, read, failure: null },
    set(id, state, counts = {}) {
      const job = find(id);
      if (job !== null)
        change(job, {
          state,
          counts: { ...job.view.counts, ...counts },
          endedAt: ENDED_STATES.has(state) ? 2_000 : null,
          finishReason: state === "completed" ? "finished" : null,
        });
    },
    tell(id, event) {
      find(id)?.events.push(event);
      wake();
    },
    async create({ spec, lines, idempotency }): Promise<Created> {
      if (fake.failure) throw fake.failure;
      const known = idempotency === null ? undefined : keys.get(idempotency.key);
      if (known !== undefined) {
        for await (const _ of lines); // the fingerprint is known at their end
        if (idempotency?.fingerprint !== known.fingerprint) return { kind: "conflict", job: known.job.view };
        return { kind: "repeated", job: known.job.view, rejected: known.job.rejected, rejectedTotal: known.job.rejected.length };
      }
      if (all.length >= mostJobs) return { kind: "too-many", what: "jobs", limit: mostJobs };
      const seeds: string[] = [];
      const { good, rejected, total, over } = await take(lines, seeds);
      if (over) return { kind: "too-many", what: "urls", limit: mostUrls };
      if (good === 0) return { kind: "no-seeds", rejected, rejectedTotal: total };
      const view: JobView = {
        ...{ id: all.length, state: "queued", spec, seeds, seedsTotal: good, counts: { ...NO_COUNTS, total: good, queued: good } },
        ...{ createdAt: 1_000, startedAt: null, endedAt: null, finishReason: null, detail: null, rejected, rejectedTotal: total },
      };
      const job: FakeJob = { view, rejected, events: [], tables: { pages: [], items: [], skipped: [], images: [] } };
      all.push(job);
      if (idempotency !== null) keys.set(idempotency.key, { fingerprint: idempotency.fingerprint, job });
      return { kind: "created", job: view, rejected, rejectedTotal: total };
    },
    problemsOf: async () => [],
    async get(id) {
      if (fake.failure) throw fake.failure;
      return find(id)?.view ?? null;
    },
    async list({ states, before, limit }) {
      return all
        .map(({ view }) => view)
        .filter(({ id, state }) => (states === null || states.includes(state)) && (before === null || id < before))
        .sort((a, b) => b.id - a.id)
        .slice(0, limit);
    },
    stop: async (id, mode) => control(id, ["queued", "running", "paused"], mode === "now" ? "stopped" : "stopping"),
    pause: async (id) => control(id, ["queued", "running"], "paused"),
    resume: async (id) => control(id, ["paused"], "running"),
    async cancel(id) {
      const job = find(id);
      if (job !== null && ENDED_STATES.has(job.view.state)) {
        all.splice(all.indexOf(job), 1);
        return { kind: "deleted" };
      }
      return control(id, JOB_STATES, "cancelled");
    },
    async addUrls(id, lines) {
      const job = find(id);
      if (job === null) return { kind: "unknown" };
      if (ENDED_STATES.has(job.view.state)) return { kind: "conflict", job: job.view, why: "the job has ended" };
      const { good, rejected, total } = await take(lines, []);
      return { added: good, known: 0, rejected, rejectedTotal: total };
    },
    async lines(id, table, cursor) {
      const texts = find(id)?.tables[table];
      const from = cursor === null ? 0 : /^c\d+$/.test(cursor) ? Number(cursor.slice(1)) : -1;
      if (texts === undefined || from < 0) return null;
      async function* give(list: readonly string[]): AsyncGenerator<JobLine> {
        read.open++;
        try {
          for (let at = from; at < list.length; at++) {
            read.lines++;
            yield { cursor: `c${at + 1}`, text: list[at] ?? "" };
          }
        } finally {
          read.open--;
        }
      }
      return give(texts);
    },
    explain: async (id, url) => (find(id) === null ? null : { url, lines: ["It was fetched."] }),
    async hosts(id) {
      const host = { host: "a.example", queued: 1, inFlight: 0, concurrency: 8, delayMs: 0, dueInMs: 0, settled: 2, meanLatencyMs: 10, paused: false };
      // `as`: a host key is a branded text.
      return find(id) === null ? null : ([host] as unknown as Awaited<ReturnType<JobService["hosts"]>>);
    },
    async patchHost(id) {
      const job = find(id);
      if (job === null) return { kind: "unknown" };
      return ENDED_STATES.has(job.view.state) ? { kind: "conflict", job: job.view, why: "the job has ended" } : { kind: "done", job: job.view };
    },
    async events(id, after, signal) {
      const job = find(id);
      if (job === null) return null;
      async function* give({ events }: FakeJob): AsyncGenerator<JobEvent> {
        read.open++;
        try {
          for (let at = after === null ? 0 : Number(after) || 0; !signal.aborted; ) {
            const event = events[at];
            if (event !== undefined) {
              at++;
              yield event;
            } else if (ENDED_STATES.has(find(id)?.view.state ?? "cancelled")) return;
            else
              await new Promise<void>((resolve) => {
                waiting.add(resolve);
                signal.addEventListener("abort", () => resolve(), { once: true });
              });
          }
        } finally {
          read.open--;
        }
      }
      return give(job);
    },
    async health() {
      const jobs = Object.fromEntries(JOB_STATES.map((state) => [state, all.filter(({ view }) => view.state === state).length]));
      // `as`: the entries are all states.
      return {
        ready: fake.failure === null,
        why: fake.failure === null ? null : "the store is away",
        jobs: jobs as Record<JobState, number>,
        totals: { pages: 3 },
      };
    },
    async close() {},
  };
  return fake;
}
