/** Jobs are steered while they wait, run and are paused, over restarts too: on a small site over loopback. */
import assert from "node:assert/strict";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { openJobs } from "../../src/jobs/jobs.ts";
import { fakeSite } from "../../src/testing/site.ts";
import { lateness } from "../lateness.ts";
import { bench, created, ENDLESS, job, nothingInFlight, SMALL, SOON_MS, someRequests, textsOf, until, urlsOf } from "./bench.ts";

test("jobs beyond the number that may run wait, oldest first; a paused one takes no place", async () => {
  const held = Promise.withResolvers<string>();
  await using site = await fakeSite({ "/": `<a href=/held>h</a>`, "/held": () => held.promise });
  await using b = await bench({ maxRunning: 1 });
  for (let n = 0; n < 3; n++) await created(b.jobs, job([site.url]));
  await until(b.jobs, 0, new Set(["running"]));
  assert.equal((await b.jobs.get(1))?.state, "queued");
  assert.equal((await b.jobs.get(1))?.counts.total, 1);
  assert.equal((await b.jobs.pause(1)).kind, "done");
  held.resolve("x");
  await until(b.jobs, 2);
  assert.equal((await b.jobs.get(0))?.state, "completed");
  assert.equal((await b.jobs.get(1))?.state, "paused");
  await b.jobs.resume(1);
  assert.equal((await until(b.jobs, 1)).state, "completed");
});

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

test("pause stops the requests within a second, resume goes on; a job that was paused stays so over a restart", async () => {
  await using site = await fakeSite(ENDLESS);
  await using b = await bench();
  await created(b.jobs, job([site.url], { perHost: { concurrency: 2 } }));
  await someRequests(site, 10);
  await b.jobs.pause(0);
  const paused = await b.jobs.get(0);
  assert.equal(paused?.state, "paused");
  await nothingInFlight(b.jobs, 0);
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

test("a host is paused, slowed down and let go while the job runs; after a restart its rules still hold", async () => {
  await using site = await fakeSite(ENDLESS);
  await using b = await bench();
  const host = new URL(site.url).host;
  await created(b.jobs, job([site.url], { perHost: { concurrency: 2 } }));
  await someRequests(site, 10);
  assert.equal((await b.jobs.patchHost(0, host, { paused: true })).kind, "done");
  await nothingInFlight(b.jobs, 0);
  const before = site.requests.length;
  const [shown] = (await b.jobs.hosts(0, 10)) ?? [];
  assert.deepEqual([shown?.host, shown?.paused], [host, true]);
  await new Promise((resolve) => setTimeout(resolve, 200));
  assert.equal(site.requests.length, before);
  await b.reopen();
  await new Promise((resolve) => setTimeout(resolve, 300));
  assert.equal(site.requests.length, before);
  using late = lateness();
  await b.jobs.patchHost(0, host, { paused: false, delayMs: 300, concurrency: 1 });
  await someRequests(site, before + 4);
  const times = site.requests.slice(before).map(({ at }) => at);
  for (const [n, at] of times.slice(1).entries()) assert.ok(at - (times[n] ?? 0) >= 300 - late.slackMs(), `a gap of ${at - (times[n] ?? 0)} ms`);
  await b.jobs.patchHost(0, host, { delayMs: null, concurrency: 8 });
  assert.equal((await until(b.jobs, 0)).counts.pages, 81);
  assert.equal((await b.jobs.patchHost(0, host, { paused: true })).kind, "conflict");
});

test("one process has the directory; another one is told so", async () => {
  await using b = await bench();
  await assert.rejects(openJobs({ dir: b.dir }), { code: "state-held" });
  assert.deepEqual(await b.jobs.health().then(({ ready, why }) => ({ ready, why })), { ready: true, why: null });
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
  const spec = { perHost: { delay: "200ms" }, robots: false };
  // The server is in this thread, which looks up when it has the time.
  using late = lateness();
  for (let n = 0; n < 4; n++) await created(b.jobs, job([`${site.url}?job=${n}`, `${site.url}?job=${n}&more`], spec));
  for (let n = 0; n < 4; n++) await until(b.jobs, n);
  const times = site.requests.map(({ at }) => at);
  assert.equal(times.length, 8);
  for (const [n, at] of times.slice(1).entries()) assert.ok(at - (times[n] ?? 0) >= 200 - late.slackMs(), `a gap of ${at - (times[n] ?? 0)} ms`);
});

test("a job goes on when the operator's options are others after a restart", async () => {
  await using site = await fakeSite(ENDLESS);
  await using b = await bench();
  await created(b.jobs, job([site.url], { perHost: { concurrency: 2 } }));
  await someRequests(site, 10);
  await b.reopen({ addresses: { refusePrivate: true, allow: ["127.0.0.1", "10.0.0.0/8"] }, concurrency: 3, parseWorkers: 0 });
  assert.deepEqual(await until(b.jobs, 0).then(({ state, counts }) => [state, counts.pages]), ["completed", 81]);
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
