/** How jobs come to be, and what of a body is taken: on a small site over loopback. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { judgeLines } from "../../src/service/faults.ts";
import { fakeSite } from "../../src/testing/site.ts";
import { bench, created, job, SMALL, textsOf, until, urlsOf } from "./bench.ts";

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

test("a URL that is given in several spellings counts once, from the first answer to the end", async () => {
  await using site = await fakeSite(SMALL);
  await using b = await bench();
  const lines = [`${site.url}a`, `${site.url}a#x`, `${site.url}a`];
  const made = await created(b.jobs, job(lines, { maxDepth: 0 }));
  assert.deepEqual([made.counts.total, made.counts.queued, made.seedsTotal], [1, 1, 3]);
  assert.deepEqual(made.seeds, lines);
  const { counts } = await until(b.jobs, 0);
  assert.deepEqual([counts.total, counts.completed], [1, 1]);
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
  await b.reopen();
  const { rejected, rejectedTotal } = (await b.jobs.get(0)) ?? assert.fail("it is gone");
  assert.deepEqual([rejected, rejectedTotal], [answer.rejected, 4]);
  assert.equal((await until(b.jobs, 0)).counts.pages, 3);
});

test("F121 a page that times out and one whose connection breaks count as failed, and the job ends", async () => {
  await using site = await fakeSite({
    ...SMALL,
    "/": `<a href=/a>a</a><a href=/hang>h</a><a href=/reset>r</a>`,
    "/hang": () => new Promise<string>(() => undefined),
  });
  await using b = await bench();
  await created(b.jobs, job([site.url], { timeout: "2s", retry: { max: 0 } }));
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

test("lines of a request that is refused anyhow are judged as those that are kept", async () => {
  await using b = await bench();
  const lines = [
    "a.example",
    "http://[bad",
    "",
    " # x",
    "ftp://u:p@x/",
    "http://x.example:{99998..99999}/",
    "//b.example",
    "mailto:a@b",
    "http://",
    "x".repeat(500),
  ];
  for (const emptyLines of ["skip", "reject"] as const) {
    const kept = await b.jobs.create(job(lines, {}, { emptyLines }));
    assert.ok(kept.kind === "no-seeds");
    const { good, rejected, rejectedTotal } = await judgeLines(lines, { bareScheme: "refuse", emptyLines });
    assert.deepEqual([good, rejected, rejectedTotal], [false, kept.rejected, kept.rejectedTotal]);
  }
});

test("jobs that have ended are deleted after the time they are kept for", async () => {
  await using site = await fakeSite(SMALL);
  await using b = await bench({ keepFor: 200 });
  await created(b.jobs, job([site.url]));
  await until(b.jobs, 0);
  for (let n = 0; (await b.jobs.get(0)) !== null && n < 6_000; n++) await new Promise((resolve) => setTimeout(resolve, 10));
  assert.equal(await b.jobs.get(0), null);
});
