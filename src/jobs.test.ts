/** Jobs from their creation to their end, and everything asked of them in between, on a small site over loopback. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { ENDED_STATES, type JobService, type JobTable, type JobView, type NewJob } from "./core/jobs.ts";
import { parseSpec } from "./core/spec.ts";
import { type JobsOptions, openJobs } from "./jobs.ts";
import { fakeSite } from "./testing/site.ts";

const LOCAL = { refusePrivate: true, allow: ["127.0.0.0/8"] };

interface Bench extends AsyncDisposable {
  readonly dir: string;
  readonly jobs: JobService;
  reopen(more?: Partial<JobsOptions>): Promise<void>;
}

async function bench(more: Partial<JobsOptions> = {}): Promise<Bench> {
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

const job = (lines: Iterable<string> | AsyncIterable<string>, spec: object = {}, more: Partial<NewJob> = {}): NewJob => ({
  spec: parseSpec(spec),
  lines,
  idempotency: null,
  ...more,
});

async function created(jobs: JobService, given: NewJob): Promise<JobView> {
  const answer = await jobs.create(given);
  assert.equal(answer.kind, "created", JSON.stringify(answer));
  assert.ok(answer.kind === "created");
  return answer.job;
}

/** The job once it is in one of the states; by its events, so that nothing is polled. */
async function until(jobs: JobService, id: number, states: ReadonlySet<string> = ENDED_STATES): Promise<JobView> {
  const events = await jobs.events(id, null, AbortSignal.timeout(20_000));
  assert.ok(events !== null);
  for await (const event of events) if (event.kind === "state" && states.has(event.state)) break;
  const view = await jobs.get(id);
  assert.ok(view !== null && states.has(view.state), `job ${id} is ${view?.state}`);
  return view;
}

async function textsOf(jobs: JobService, id: number, table: JobTable, cursor: string | null = null): Promise<string[]> {
  const lines = await jobs.lines(id, table, cursor);
  assert.ok(lines !== null);
  const texts: string[] = [];
  for await (const { text } of lines) texts.push(text);
  return texts;
}

const urlsOf = (texts: readonly string[]): string[] => texts.map((text) => (JSON.parse(text) as { url: string }).url).sort(); // records have a url

const SMALL = { "/": `<a href=/a>a</a><a href=/b>b</a><img src=/one.png>`, "/a": `<title>A</title><img src=/one.png><img src=/two.png>`, "/b": "b" };

test("a job goes from queued to completed; its figures add up, and its records are there", async () => {
  await using site = await fakeSite(SMALL);
  await using b = await bench();
  const made = await created(b.jobs, job([site.url], { images: true }));
  assert.equal(made.id, 0);
  assert.equal(made.state, "queued");
  const view = await until(b.jobs, 0);
  assert.equal(view.state, "completed");
  assert.equal(view.finishReason, "finished");
  const { counts } = view;
  assert.deepEqual([counts.total, counts.completed, counts.inProgress, counts.queued, counts.pages], [3, 3, 0, 0, 3]);
  assert.deepEqual(urlsOf(await textsOf(b.jobs, 0, "pages")), [site.url, `${site.url}a`, `${site.url}b`]);
  assert.deepEqual(await textsOf(b.jobs, 0, "images"), [JSON.stringify(`${site.url}one.png`), JSON.stringify(`${site.url}two.png`)]);
  assert.equal(counts.images, 2);
});
