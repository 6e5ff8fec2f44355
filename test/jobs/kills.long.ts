/** Kill -9 of a process that runs jobs, at random, for as long as the share of test:long allows. */
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { openJobs } from "../../src/jobs/jobs.ts";
import { html, serve } from "../crawl/served.ts";
import { checkJobKills, PROGRAM } from "./kills.ts";
import { openArena } from "./kills-service.ts";

const minutes = Number(process.env.SKEIN_LONG_MINUTES ?? "1");

test("jobs whose process is killed at random end as undisturbed ones do", { timeout: (minutes + 5) * 60_000 }, async () => {
  const until = performance.now() + minutes * 60_000;
  const first = Math.floor(Date.now() / 86_400_000);
  let rounds = 0;
  let kills = 0;
  for (; performance.now() < until; rounds++) kills += (await checkJobKills({ pages: 120, jobs: 6, seed: first + rounds, withinMs: 900, kills: 8 })).kills;
  console.log(`job kills from seed ${first}: ${kills} kills, rounds: ${rounds}`);
  assert.ok(kills > 0);
});

test("the service is killed below clients that post, upload, steer and read: jobs end as undisturbed ones do", {
  timeout: (minutes + 5) * 60_000,
}, async () => {
  const until = performance.now() + minutes * 60_000;
  const first = Math.floor(Date.now() / 86_400_000);
  let rounds = 0;
  let kills = 0;
  await using arena = await openArena();
  for (; performance.now() < until; rounds++) kills += (await arena.round({ seed: first + rounds, kills: 4, withinAnswers: 80 })).kills;
  console.log(`service kills from seed ${first}: ${kills} kills, rounds: ${rounds}`);
  assert.ok(kills > 0);
});

test("a page that kills every process that asks for it is given up, and all jobs end", { timeout: 300_000 }, async () => {
  const dir = mkdtempSync(join(tmpdir(), "skein-poison-"));
  let child: ChildProcess | null = null;
  let deaths = 0;
  await using site = await serve((request, response) => {
    if (request.url === "/job-0/poison") child?.kill("SIGKILL");
    else html(response, request.url === "/job-0/" ? "<a href=/job-0/poison>x</a><a href=/job-0/a>a</a>" : "<p>x");
  });
  for (let code: number | null = null; code !== 0; deaths++) {
    assert.ok(deaths < 40, "it dies again and again");
    child = spawn(process.execPath, [PROGRAM, dir, "3", site.origin], { stdio: "ignore" });
    const running = child;
    code = await new Promise((resolve) => running.once("exit", resolve));
  }
  const jobs = await openJobs({ dir });
  const counts = await Promise.all([0, 1, 2].map(async (id) => (await jobs.get(id))?.counts));
  await jobs.close();
  rmSync(dir, { recursive: true });
  console.log(`poison: given up after ${deaths} processes, rounds: 1`);
  assert.equal(counts[0]?.byError["crashed"], 1);
  assert.deepEqual(
    counts.map((of) => of?.pages),
    [3, 2, 2],
  );
});
