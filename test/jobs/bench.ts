/** A service's jobs without the service, in a directory of their own, and short words for what is asked of them; for tests only. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ENDED_STATES, type JobService, type JobTable, type JobView, type NewJob } from "../../src/core/jobs.ts";
import { parseSpec } from "../../src/core/spec.ts";
import { type JobsOptions, openJobs } from "../../src/jobs/jobs.ts";

export const LOCAL = { refusePrivate: true, allow: ["127.0.0.0/8"] };
/** A second is what is promised; tests share their machine. */
export const SOON_MS = 10_000;

export interface Bench extends AsyncDisposable {
  readonly dir: string;
  readonly jobs: JobService;
  reopen(more?: Partial<JobsOptions>): Promise<void>;
}

export async function bench(more: Partial<JobsOptions> = {}): Promise<Bench> {
  const dir = mkdtempSync(join(tmpdir(), "skein-jobs-"));
  let jobs = await openJobs({ dir, addresses: LOCAL, ...more });
  return {
    dir,
    get jobs() {
      return jobs;
    },
    async reopen(again = {}) {
      await jobs.close();
      jobs = await openJobs({ dir, addresses: LOCAL, ...more, ...again });
    },
    async [Symbol.asyncDispose]() {
      await jobs.close();
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

export const job = (lines: Iterable<string> | AsyncIterable<string>, spec: object = {}, more: Partial<NewJob> = {}): NewJob => ({
  spec: parseSpec(spec),
  lines,
  idempotency: null,
  ...more,
});

export async function created(jobs: JobService, given: NewJob): Promise<JobView> {
  const answer = await jobs.create(given);
  assert.equal(answer.kind, "created", JSON.stringify(answer));
  assert.ok(answer.kind === "created");
  return answer.job;
}

/** The job once it is in one of the states; by its events, so that nothing is polled. */
export async function until(jobs: JobService, id: number, states: ReadonlySet<string> = ENDED_STATES): Promise<JobView> {
  const events = await jobs.events(id, null, AbortSignal.timeout(60_000));
  assert.ok(events !== null);
  for await (const event of events) if (event.kind === "state" && states.has(event.state)) break;
  const view = await jobs.get(id);
  assert.ok(view !== null && states.has(view.state), `job ${id} is ${view?.state}`);
  return view;
}

export async function textsOf(jobs: JobService, id: number, table: JobTable, cursor: string | null = null): Promise<string[]> {
  const lines = await jobs.lines(id, table, cursor);
  assert.ok(lines !== null);
  const texts: string[] = [];
  for await (const { text } of lines) texts.push(text);
  return texts;
}

export const urlsOf = (texts: readonly string[]): string[] => texts.map((text) => (JSON.parse(text) as { url: string }).url).sort(); // records have a url

export const SMALL = { "/": `<a href=/a>a</a><a href=/b>b</a><img src=/one.png>`, "/a": `<title>A</title><img src=/one.png><img src=/two.png>`, "/b": "b" };

export const ENDLESS = {
  "/": () => ({ body: Array.from({ length: 80 }, (_, n) => `<a href=/page?n=${n}>x</a>`).join(" "), delayMs: 5 }),
  "/page": () => ({ body: "<p>page", delayMs: 20 }),
};

/** Resolves once the site was asked so many times; fails after a minute. */
export async function someRequests(site: { readonly requests: readonly unknown[] }, count: number): Promise<void> {
  for (const last = performance.now() + 60_000; site.requests.length < count; await new Promise<void>((resolve) => setTimeout(resolve, 5)))
    assert.ok(performance.now() < last, `${site.requests.length} requests, and not ${count}, within a minute`);
}

/** What was under way when nothing more may start is over. */
export async function nothingInFlight(jobs: JobService, id: number): Promise<void> {
  for (const last = performance.now() + 60_000; ; ) {
    assert.ok(performance.now() < last, "still in flight after a minute");
    const hosts = await jobs.hosts(id, 10);
    if (hosts?.every(({ inFlight }) => inFlight === 0)) return;
    await new Promise<void>((resolve) => setTimeout(resolve, 10));
  }
}
