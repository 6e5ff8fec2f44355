/** What is handed out of a job: records, events, reasons: on a small site over loopback. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { ENDED_STATES } from "../../src/core/jobs.ts";
import { fakeSite } from "../../src/testing/site.ts";
import { bench, created, ENDLESS, job, SMALL, someRequests, textsOf, until } from "./bench.ts";

test("a limit ends a job as completed, with what it left out as skipped", async () => {
  await using site = await fakeSite(ENDLESS);
  await using b = await bench();
  await created(b.jobs, job([site.url], { limits: { pages: 20 } }));
  const view = await until(b.jobs, 0);
  assert.deepEqual([view.state, view.finishReason, view.counts.pages], ["completed", "limit-pages", 20]);
  assert.equal(view.counts.total, view.counts.completed);
  assert.equal((await textsOf(b.jobs, 0, "skipped")).length, 61);
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
  const events = await b.jobs.events(0, null, AbortSignal.timeout(60_000));
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
  for await (const event of (await b.jobs.events(0, middle, AbortSignal.timeout(60_000))) ?? []) after.push(event);
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

test("explain says why, of a job that waits, runs and has ended", async () => {
  await using site = await fakeSite({ "/": `<a href=http://other.example/>o</a>`, "/hang": () => new Promise<string>(() => undefined) });
  await using b = await bench({ maxRunning: 1 });
  await created(b.jobs, job([site.url, `${site.url}hang`]));
  await created(b.jobs, job([site.url]));
  await someRequests(site, 3);
  assert.match((await b.jobs.explain(1, site.url))?.lines.join("\n") ?? "", /not begun/);
  for (let n = 0; (await textsOf(b.jobs, 0, "pages")).length === 0 && n < 6_000; n++) await new Promise((resolve) => setTimeout(resolve, 10));
  assert.match((await b.jobs.explain(0, "http://other.example/"))?.lines.join("\n") ?? "", /scope/);
  await b.jobs.stop(0, "now", null);
  await until(b.jobs, 0);
  assert.ok(((await b.jobs.explain(0, site.url))?.lines.length ?? 0) > 0);
  assert.equal(await b.jobs.explain(9, site.url), null);
});
