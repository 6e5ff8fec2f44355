/** Jobs from their creation to their end, and everything asked of them in between, on a small site over loopback. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { ENDED_STATES, type JobService, type JobTable, type JobView, type NewJob } from "./core/jobs.ts";
import { parseSpec } from "./core/spec.ts";
import { type JobsOptions, openJobs } from "./jobs.ts";
import { fakeSite } from "./testing/site.ts";

const LOCAL = { refusePrivate: true, allow: ["127.0.0.0/8"] };
/** A second is what is promised; tests share their machine. */
const SOON_MS = 3_000;

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

test("F120 a job is there the moment its number is", async () => {
  await using site = await fakeSite(SMALL);
  await using b = await bench();
  for (let n = 0; n < 30; n++) {
    const { id } = await created(b.jobs, job([site.url]));
    assert.equal(id, n);
    assert.ok((await b.jobs.get(id)) !== null);
  }
  for (let n = 0; n < 30; n++) assert.equal((await until(b.jobs, n)).state, "completed");
});

test("F122 lines that are no URLs are told by number, and the good ones are crawled; none good: no job, and no number is used up", async () => {
  await using site = await fakeSite(SMALL);
  await using b = await bench();
  const lines = [site.url, "site.example", "", "http://[bad", "# a comment", "ftp://user:secret@a.example/"];
  const none = await b.jobs.create(job(["site.example", "http://[bad"]));
  assert.equal(none.kind, "no-seeds");
  const answer = await b.jobs.create(job(lines, {}, { emptyLines: "reject" }));
  assert.ok(answer.kind === "created");
  assert.equal(answer.job.id, 0);
  assert.deepEqual(
    answer.rejected.map(({ line }) => line),
    [2, 3, 4, 6],
  );
  assert.ok(!JSON.stringify(answer).includes("secret"));
  assert.equal(answer.rejectedTotal, 4);
  assert.equal((await until(b.jobs, 0)).counts.pages, 3);
});

test("F121 a page that times out and one whose connection breaks count as failed, and the job ends", async () => {
  await using site = await fakeSite({
    ...SMALL,
    "/": `<a href=/a>a</a><a href=/hang>h</a><a href=/reset>r</a>`,
    "/hang": () => new Promise<string>(() => undefined),
  });
  await using b = await bench();
  await created(b.jobs, job([site.url], { timeout: "200ms", retry: { max: 0 } }));
  const view = await until(b.jobs, 0);
  assert.equal(view.state, "completed");
  assert.equal(view.counts.failed, 2);
  assert.equal(view.counts.completed, view.counts.total);
});

test("private addresses are refused unless the operator allows them, whatever the job says", async () => {
  await using site = await fakeSite(SMALL);
  await using b = await bench({ addresses: { refusePrivate: true, allow: [] } });
  await created(b.jobs, job([site.url], { addresses: { refusePrivate: false, allow: ["127.0.0.1"] }, retry: { max: 0 } }));
  const view = await until(b.jobs, 0);
  assert.equal(view.state, "completed");
  assert.equal(view.counts.pages, 0);
  assert.equal(view.counts.byError["blocked-address"], 1);
  assert.equal(site.requests.length, 0);
});

test("what only the operator may say is dropped from a job's spec", async () => {
  await using site = await fakeSite(SMALL);
  await using b = await bench();
  const { spec } = await created(
    b.jobs,
    job([site.url], { outputs: ["/tmp/never.jsonl"], proxy: ["http://127.0.0.1:1"], stateDir: "/tmp/never", maxDepth: 1, headers: { "x-key": "s3cret" } }),
  );
  assert.deepEqual([spec.outputs, spec.proxy, spec.stateDir, spec.maxDepth], [[], [], null, 1]);
  assert.ok(!JSON.stringify(spec).includes("s3cret"));
  assert.equal((await until(b.jobs, 0)).state, "completed");
  assert.equal(site.requests.find(({ path }) => path === "/")?.headers["x-key"], "s3cret");
});

test("a scraper is a bare name of the service; anything else is a problem of the option", async () => {
  await using b = await bench({ scrapersDir: "/nowhere" });
  for (const scraper of ["../x.ts", "/etc/passwd", "a.b.c", "a/b", "none.ts"]) {
    await assert.rejects(b.jobs.create(job(["http://a.example/"], { scraper })), (error: Error & { problems?: { option: string; message: string }[] }) => {
      assert.equal(error.problems?.[0]?.option, "scraper");
      assert.ok(!error.message.includes("/nowhere"));
      return true;
    });
  }
});

test("a second job with the same key is the first one; with another body it is refused", async () => {
  await using site = await fakeSite(SMALL);
  await using b = await bench();
  const keyed = (fingerprint: string) => b.jobs.create(job([site.url, "nonsense"], {}, { idempotency: { key: "k", fingerprint } }));
  const [first, second] = await Promise.all([keyed("x"), keyed("x")]);
  assert.equal(first.kind, "created");
  assert.equal(second.kind, "repeated");
  assert.ok(second.kind === "repeated" && second.rejectedTotal === 1 && second.job.id === 0);
  await until(b.jobs, 0);
  await b.reopen();
  assert.equal((await keyed("x")).kind, "repeated");
  assert.equal((await keyed("y")).kind, "conflict");
  await b.jobs.cancel(0);
  const again = await keyed("y");
  assert.ok(again.kind === "created" && again.job.id === 1);
});

test("jobs beyond the number that may run wait, oldest first; a paused one takes no place", async () => {
  await using site = await fakeSite({ "/": `<a href=/slow>s</a>`, "/slow": { body: "x", delayMs: 300 } });
  await using b = await bench({ maxRunning: 1 });
  for (let n = 0; n < 3; n++) await created(b.jobs, job([site.url]));
  await until(b.jobs, 0, new Set(["running"]));
  assert.equal((await b.jobs.get(1))?.state, "queued");
  assert.equal((await b.jobs.get(1))?.counts.total, 1);
  assert.equal((await b.jobs.pause(1)).kind, "done");
  await until(b.jobs, 2);
  assert.equal((await b.jobs.get(0))?.state, "completed");
  assert.equal((await b.jobs.get(1))?.state, "paused");
  await b.jobs.resume(1);
  assert.equal((await until(b.jobs, 1)).state, "completed");
});

const ENDLESS = {
  "/": () => ({ body: Array.from({ length: 80 }, (_, n) => `<a href=/page?n=${n}>x</a>`).join(" "), delayMs: 5 }),
  "/page": () => ({ body: "<p>page", delayMs: 20 }),
};

for (const mode of ["queue", "flight", "now"] as const) {
  test(`a stop in mode ${mode} takes hold within a second and is a stopped job`, async () => {
    await using site = await fakeSite(ENDLESS);
    await using b = await bench();
    await created(b.jobs, job([site.url], { perHost: { concurrency: 2 } }));
    await someRequests(site, 10);
    const answer = await b.jobs.stop(0, mode, "enough");
    assert.ok(answer.kind === "done" && ["stopping", "stopped"].includes(answer.job.state));
    const asked = performance.now();
    const view = await until(b.jobs, 0);
    if (mode !== "queue") assert.ok(performance.now() - asked < SOON_MS);
    assert.deepEqual([view.state, view.finishReason, view.detail], ["stopped", "stop-condition", "enough"]);
    assert.equal(view.counts.completed, view.counts.total);
    assert.equal(view.counts.inProgress, 0);
    if (mode === "queue") assert.equal(view.counts.pages, 81);
    assert.equal((await b.jobs.stop(0, "now", null)).kind, "conflict");
  });
}

/** Resolves once the site was asked so many times. */
async function someRequests(site: { readonly requests: readonly unknown[] }, count: number): Promise<void> {
  while (site.requests.length < count) await new Promise<void>((resolve) => setTimeout(resolve, 5));
}

test("pause stops the requests within a second, resume goes on; a job that was paused stays so over a restart", async () => {
  await using site = await fakeSite(ENDLESS);
  await using b = await bench();
  await created(b.jobs, job([site.url], { perHost: { concurrency: 2 } }));
  await someRequests(site, 10);
  await b.jobs.pause(0);
  const paused = await b.jobs.get(0);
  assert.equal(paused?.state, "paused");
  await new Promise((resolve) => setTimeout(resolve, 300));
  const before = site.requests.length;
  await new Promise((resolve) => setTimeout(resolve, 300));
  assert.equal(site.requests.length, before);
  await b.reopen();
  assert.equal((await b.jobs.get(0))?.state, "paused");
  assert.ok(((await b.jobs.get(0))?.counts.pages ?? 0) > 0);
  assert.equal(site.requests.length, before);
  await b.jobs.resume(0);
  const view = await until(b.jobs, 0);
  assert.equal(view.counts.pages, 81);
  assert.equal(new Set(urlsOf(await textsOf(b.jobs, 0, "pages"))).size, 81);
});

test("cancel aborts what is in flight; a job that has ended is deleted with its files, and its number does not come again", async () => {
  await using site = await fakeSite({ "/": "x", "/hang": () => new Promise<string>(() => undefined) });
  await using b = await bench({ maxRunning: 1 });
  await created(b.jobs, job([site.url, `${site.url}hang`]));
  await created(b.jobs, job([site.url]));
  await someRequests(site, 3);
  const asked = performance.now();
  await b.jobs.cancel(1);
  assert.equal((await b.jobs.get(1))?.state, "cancelled");
  await b.jobs.cancel(0);
  const view = await until(b.jobs, 0);
  assert.ok(performance.now() - asked < SOON_MS);
  assert.equal(view.state, "cancelled");
  assert.deepEqual(urlsOf(await textsOf(b.jobs, 0, "pages")), [site.url]);
  assert.equal((await b.jobs.cancel(1)).kind, "deleted");
  assert.equal((await b.jobs.cancel(1)).kind, "unknown");
  assert.equal(await b.jobs.get(1), null);
  await b.reopen();
  assert.equal((await created(b.jobs, job([site.url]))).id, 2);
  assert.deepEqual(
    (await b.jobs.list({ states: null, before: null, limit: 10 })).map(({ id }) => id),
    [2, 0],
  );
});

test("a limit ends a job as completed, with what it left out as skipped", async () => {
  await using site = await fakeSite(ENDLESS);
  await using b = await bench();
  await created(b.jobs, job([site.url], { limits: { pages: 20 } }));
  const view = await until(b.jobs, 0);
  assert.deepEqual([view.state, view.finishReason, view.counts.pages], ["completed", "limit-pages", 20]);
  assert.equal(view.counts.total, view.counts.completed);
  assert.equal((await textsOf(b.jobs, 0, "skipped")).length, 61);
});

test("URLs are added to a job that runs, that waits and that is paused; they widen its scope, over a restart too", async () => {
  await using site = await fakeSite({ ...ENDLESS, "/more": "<a href=/deeper>d</a>", "/deeper": "x" });
  await using b = await bench({ maxRunning: 1 });
  await created(b.jobs, job([site.url], { perHost: { concurrency: 2 }, scope: { preset: "prefix" } }));
  await created(b.jobs, job([`${site.url}more`], { scope: { preset: "page" } }));
  await someRequests(site, 5);
  const running = await b.jobs.addUrls(0, [`${site.url}more`, "nonsense", site.url]);
  assert.deepEqual("added" in running && [running.added, running.known, running.rejectedTotal], [1, 1, 1]);
  const waiting = await b.jobs.addUrls(1, [`${site.url}more`, `${site.url}deeper`]);
  assert.deepEqual("added" in waiting && [waiting.added, waiting.known], [1, 1]);
  await b.reopen();
  const first = await until(b.jobs, 0);
  assert.equal(first.counts.pages, 83);
  assert.equal(first.seedsTotal, 3);
  assert.equal((await until(b.jobs, 1)).counts.pages, 2);
  assert.ok("kind" in (await b.jobs.addUrls(0, [site.url])));
});

test("a job does not end while URLs are added to it", async () => {
  await using site = await fakeSite({ "/": "x", "/page": "x" });
  await using b = await bench();
  for (let n = 0; n < 8; n++) {
    await created(b.jobs, job([site.url]));
    const answer = await b.jobs.addUrls(
      n,
      Array.from({ length: 50 }, (_, k) => `${site.url}page?n=${k}`),
    );
    const view = await until(b.jobs, n);
    if ("added" in answer) assert.equal(view.counts.pages, 51);
    else assert.equal(view.counts.pages, 1);
  }
});

test("records are read on from a cursor while the job runs, each once; a cursor of another job or table is none", async () => {
  await using site = await fakeSite(ENDLESS);
  await using b = await bench();
  await created(b.jobs, job([site.url], { perHost: { concurrency: 4 } }));
  await created(b.jobs, job([site.url], { limits: { pages: 1 } }));
  const read: string[] = [];
  let cursor: string | null = null;
  for (let ended = false; ; ) {
    const lines = await b.jobs.lines(0, "pages", cursor);
    assert.ok(lines !== null);
    for await (const line of lines) {
      read.push(line.text);
      cursor = line.cursor;
    }
    if (ended) break;
    ended = ENDED_STATES.has((await b.jobs.get(0))?.state ?? "queued");
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  assert.equal(read.length, 81);
  assert.equal(new Set(read).size, 81);
  await b.reopen();
  assert.deepEqual(await textsOf(b.jobs, 0, "pages", cursor), []);
  await until(b.jobs, 1);
  assert.equal(await b.jobs.lines(1, "pages", cursor), null);
  assert.equal(await b.jobs.lines(0, "skipped", cursor), null);
  assert.equal(await b.jobs.lines(0, "pages", "rubbish"), null);
  assert.equal(await b.jobs.lines(7, "pages", null), null);
});

test("fields and list patterns decide what is handed out", async () => {
  await using site = await fakeSite(SMALL);
  await using b = await bench();
  await created(b.jobs, job([site.url], { fields: ["url", "status"], list: ["re:/a$"] }));
  await until(b.jobs, 0);
  assert.deepEqual(await textsOf(b.jobs, 0, "pages"), [JSON.stringify({ url: `${site.url}a`, status: 200 })]);
});

test("items are handed out with their page", async () => {
  await using site = await fakeSite(SMALL);
  await using b = await bench();
  await created(b.jobs, job([site.url], { extract: { title: "title" } }));
  const view = await until(b.jobs, 0);
  const items = (await textsOf(b.jobs, 0, "items")).map((text) => JSON.parse(text) as { title: string; _meta: { url: string } });
  assert.equal(view.counts.items, items.length);
  assert.ok(items.some(({ title, _meta }) => title === "A" && _meta.url === `${site.url}a`));
});

test("events tell how a job stands, then what happens, with numbers that rise over restarts", async () => {
  await using site = await fakeSite(ENDLESS);
  await using b = await bench();
  await created(b.jobs, job([site.url], { perHost: { concurrency: 8 } }));
  const events = await b.jobs.events(0, null, AbortSignal.timeout(20_000));
  const seen: { id: number; kind: string; state?: string }[] = [];
  let middle = "";
  for await (const event of events ?? []) {
    seen.push({ id: Number(event.id), kind: event.kind, ...(event.kind === "state" ? { state: event.state } : {}) });
    if (seen.length === 5) middle = event.id;
    if (event.kind === "page") assert.ok(!("links" in event.page));
  }
  assert.deepEqual(
    seen.slice(0, 2).map(({ kind }) => kind),
    ["state", "counts"],
  );
  assert.equal(seen.at(-1)?.state, "completed");
  assert.equal(seen.at(-2)?.kind, "counts");
  assert.ok(seen.some(({ kind }) => kind === "page"));
  assert.ok(seen.every(({ id }, n) => n === 0 || id > (seen[n - 1]?.id ?? 0)));
  assert.notEqual(middle, "");
  await b.reopen();
  const after = [];
  for await (const event of (await b.jobs.events(0, middle, AbortSignal.timeout(5_000))) ?? []) after.push(event);
  assert.deepEqual(
    after.map(({ kind }) => kind),
    ["state", "counts"],
  );
  assert.ok(after.every(({ id }) => Number(id) > (seen.at(-1)?.id ?? 0)));
});

test("watching goes on after the last event that was seen, and ends with the signal", async () => {
  await using site = await fakeSite({ "/": "x", "/hang": () => new Promise<string>(() => undefined) });
  await using b = await bench();
  await created(b.jobs, job([site.url, `${site.url}hang`]));
  await until(b.jobs, 0, new Set(["running"]));
  const first = new AbortController();
  let last = "";
  for await (const event of (await b.jobs.events(0, null, first.signal)) ?? []) {
    last = event.id;
    if (event.kind === "page") first.abort();
  }
  await b.jobs.pause(0);
  const second = new AbortController();
  const kinds: string[] = [];
  for await (const event of (await b.jobs.events(0, last, second.signal)) ?? []) {
    kinds.push(event.kind === "state" ? event.state : event.kind);
    if (event.kind === "state") second.abort();
  }
  assert.equal(kinds.at(-1), "paused");
  assert.ok(!kinds.includes("running"));
});

test("a host is paused, slowed down and let go while the job runs; after a restart its rules still hold", async () => {
  await using site = await fakeSite(ENDLESS);
  await using b = await bench();
  const host = new URL(site.url).host;
  await created(b.jobs, job([site.url], { perHost: { concurrency: 2 } }));
  await someRequests(site, 10);
  assert.equal((await b.jobs.patchHost(0, host, { paused: true })).kind, "done");
  await new Promise((resolve) => setTimeout(resolve, 150));
  const before = site.requests.length;
  const [shown] = (await b.jobs.hosts(0, 10)) ?? [];
  assert.deepEqual([shown?.host, shown?.paused], [host, true]);
  await new Promise((resolve) => setTimeout(resolve, 200));
  assert.equal(site.requests.length, before);
  await b.reopen();
  await new Promise((resolve) => setTimeout(resolve, 300));
  assert.equal(site.requests.length, before);
  await b.jobs.patchHost(0, host, { paused: false, delayMs: 100, concurrency: 1 });
  await someRequests(site, before + 4);
  const times = site.requests.slice(before).map(({ at }) => at);
  for (const [n, at] of times.slice(1).entries()) assert.ok(at - (times[n] ?? 0) > 80, `a gap of ${at - (times[n] ?? 0)} ms`);
  await b.jobs.patchHost(0, host, { delayMs: null, concurrency: 8 });
  assert.equal((await until(b.jobs, 0)).counts.pages, 81);
  assert.equal((await b.jobs.patchHost(0, host, { paused: true })).kind, "conflict");
});

test("explain says why, of a job that waits, runs and has ended", async () => {
  await using site = await fakeSite({ "/": `<a href=http://other.example/>o</a>`, "/hang": () => new Promise<string>(() => undefined) });
  await using b = await bench({ maxRunning: 1 });
  await created(b.jobs, job([site.url, `${site.url}hang`]));
  await created(b.jobs, job([site.url]));
  await someRequests(site, 3);
  assert.match((await b.jobs.explain(1, site.url))?.lines.join("\n") ?? "", /not begun/);
  for (let n = 0; (await textsOf(b.jobs, 0, "pages")).length === 0 && n < 200; n++) await new Promise((resolve) => setTimeout(resolve, 10));
  assert.match((await b.jobs.explain(0, "http://other.example/"))?.lines.join("\n") ?? "", /scope/);
  await b.jobs.stop(0, "now", null);
  await until(b.jobs, 0);
  assert.ok(((await b.jobs.explain(0, site.url))?.lines.length ?? 0) > 0);
  assert.equal(await b.jobs.explain(9, site.url), null);
});

test("one process has the directory; another one is told so", async () => {
  await using b = await bench();
  await assert.rejects(openJobs({ dir: b.dir }), { code: "state-held" });
  assert.deepEqual(await b.jobs.health().then(({ ready, why }) => ({ ready, why })), { ready: true, why: null });
});

test("jobs that have ended are deleted after the time they are kept for", async () => {
  await using site = await fakeSite(SMALL);
  await using b = await bench({ keepFor: 200 });
  await created(b.jobs, job([site.url]));
  await until(b.jobs, 0);
  for (let n = 0; (await b.jobs.get(0)) !== null && n < 300; n++) await new Promise((resolve) => setTimeout(resolve, 10));
  assert.equal(await b.jobs.get(0), null);
});

test("a job whose files cannot be used fails with a word that says nothing of the machine, and the others go on", async () => {
  await using site = await fakeSite(SMALL);
  await using b = await bench({ maxRunning: 1 });
  await created(b.jobs, job([site.url]));
  await until(b.jobs, 0);
  await b.jobs.pause((await created(b.jobs, job([site.url]))).id);
  rmSync(join(b.dir, "jobs", "1"), { recursive: true, force: true });
  writeFileSync(join(b.dir, "jobs", "1"), "a file");
  await b.jobs.resume(1);
  const view = await until(b.jobs, 1);
  assert.equal(view.state, "failed");
  assert.ok(view.detail !== null && !view.detail.includes("/") && !view.detail.includes("127."), view.detail ?? "");
  await created(b.jobs, job([site.url]));
  assert.equal((await until(b.jobs, 2)).state, "completed");
});

test("jobs of one service share the clocks of a host", async () => {
  await using site = await fakeSite({ "/": "x" });
  await using b = await bench();
  const spec = { perHost: { delay: "60ms" }, robots: false };
  for (let n = 0; n < 4; n++) await created(b.jobs, job([`${site.url}?job=${n}`, `${site.url}?job=${n}&more`], spec));
  for (let n = 0; n < 4; n++) await until(b.jobs, n);
  const times = site.requests.map(({ at }) => at);
  assert.equal(times.length, 8);
  for (const [n, at] of times.slice(1).entries()) assert.ok(at - (times[n] ?? 0) > 50, `a gap of ${at - (times[n] ?? 0)} ms`);
});

test("a stop that does what is queued goes on after a restart", async () => {
  await using site = await fakeSite(ENDLESS);
  await using b = await bench();
  await created(b.jobs, job([site.url], { perHost: { concurrency: 2 } }));
  await someRequests(site, 10);
  await b.jobs.stop(0, "queue", "enough");
  await b.reopen();
  const view = await until(b.jobs, 0);
  assert.deepEqual([view.state, view.detail, view.counts.pages], ["stopped", "enough", 81]);
});

test("many jobs side by side share one host fairly, and a long one does not hold up short ones", async () => {
  await using site = await fakeSite({ ...ENDLESS, "/short": "x" });
  await using b = await bench({ maxRunning: 30 });
  await created(b.jobs, job(Array.from({ length: 2_000 }, (_, n) => `${site.url}page?long=${n}`)));
  await someRequests(site, 10);
  for (let n = 1; n <= 20; n++) await created(b.jobs, job([1, 2, 3].map((k) => `${site.url}short?job=${n}&k=${k}`)));
  for (let n = 1; n <= 20; n++) assert.equal((await until(b.jobs, n)).counts.pages, 3);
  const long = await b.jobs.get(0);
  assert.ok(long !== null && long.state === "running" && long.counts.pages < 1_500, `the long one has ${long?.counts.pages} pages`);
  await b.jobs.cancel(0);
  await until(b.jobs, 0);
});

test("a full disk does not fail a job: it goes on when there is room again", async () => {
  await using site = await fakeSite(ENDLESS);
  let full = 0;
  const passing = (point: string): void => {
    if (point !== "inside-commit" || site.requests.length < 20 || full++ > 0) return;
    throw Object.assign(new Error("no space left on device"), { code: "ENOSPC" });
  };
  await using b = await bench({ world: { passing } });
  await created(b.jobs, job([site.url]));
  const view = await until(b.jobs, 0);
  assert.ok(full > 0);
  assert.deepEqual([view.state, view.counts.pages], ["completed", 81]);
  assert.equal(new Set(urlsOf(await textsOf(b.jobs, 0, "pages"))).size, 81);
});

test("a job whose state is damaged does not keep the others from being listed", async () => {
  await using site = await fakeSite(ENDLESS);
  await using b = await bench();
  await created(b.jobs, job([site.url]));
  await someRequests(site, 10);
  await b.jobs.pause(0);
  await b.jobs.close();
  for (const suffix of ["", "-wal", "-shm"]) writeFileSync(join(b.dir, "jobs", "0", `state.db${suffix}`), "rubbish rubbish rubbish");
  await b.reopen();
  assert.equal((await b.jobs.list({ states: null, before: null, limit: 10 })).length, 1);
  await b.jobs.resume(0);
  assert.equal((await until(b.jobs, 0)).state, "failed");
});
