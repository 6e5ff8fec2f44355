/** Jobs whose process is killed at random and started again until all have ended, against the same jobs undisturbed; for tests only. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { JobTable } from "../../src/core/jobs.ts";
import { openJobs } from "../../src/jobs/jobs.ts";
import { seededRandom } from "../../src/testing/clock.ts";
import { runChild } from "../../src/testing/faults.ts";
import { type Answer, html, serve } from "../crawl/served.ts";

export const PROGRAM = join(import.meta.dirname, "program.ts");

/** A tree of pages for each job, with images, pages that fail at first, missing ones and redirects. */
export function jobsSite(pages: number): Answer {
  const asked = new Map<string, number>();
  return async (request, response) => {
    const target = request.url ?? "/";
    const match = /^\/(job-\d+)\/(?:r\/)?(?:p(\d+))?$/.exec(target);
    const i = match === null ? -1 : Number(match[2] ?? 0);
    await new Promise((done) => setTimeout(done, 1 + ((Math.max(0, i) * 7) % 12)));
    if (match === null || i >= pages) return html(response, "<p>none", 404);
    const base = `/${match[1]}`;
    if (target.includes("/r/")) {
      response.writeHead(302, { location: `${base}/p${i}` }).end();
      return;
    }
    const before = asked.get(target) ?? 0;
    asked.set(target, before + 1);
    if (i % 97 === 3 && before === 0) {
      response.writeHead(503, { "retry-after": "0" }).end();
      return;
    }
    const links = [1, 2, 3].map((k) => i * 3 + k).map((k) => `<a href="${base}/${k % 5 === 0 ? "r/" : ""}p${k}">${k}</a>`);
    html(
      response,
      `<title>${i}</title>${links.join(" ")}<img src="${base}/i${i % 17}.png"><img src="${base}/own${i}.png"><a href="http://elsewhere.invalid/${i}">e</a>`,
    );
  };
}

/** What must be the same whatever happened on the way. */
const COMPARED: Readonly<Record<JobTable, (text: string) => string>> = {
  pages: (text) => {
    const { url, status, outcome, links, images } = JSON.parse(text) as Record<string, unknown>;
    return JSON.stringify({ url, status, outcome, links, images });
  },
  items: (text) => text.replace(/,"_meta".*/, ""),
  skipped: (text) => (JSON.parse(text) as { url: string }).url,
  images: (text) => text,
};

type Results = readonly { readonly state: string; readonly counts: readonly number[]; readonly tables: Readonly<Record<string, readonly string[]>> }[];

async function resultsIn(dir: string, count: number): Promise<Results> {
  const jobs = await openJobs({ dir });
  const results = [];
  for (let id = 0; id < count; id++) {
    const view = await jobs.get(id);
    assert.ok(view !== null);
    const tables: Record<string, string[]> = {};
    for (const [table, compared] of Object.entries(COMPARED)) {
      const lines: string[] = [];
      for await (const { text } of (await jobs.lines(id, table as JobTable, null)) ?? []) lines.push(compared(text)); // the keys are tables
      assert.equal(table === "items" ? lines.length : new Set(lines).size, lines.length, `job ${id}: ${table} has a line twice`);
      tables[table] = lines.sort();
    }
    const { total, completed, inProgress, queued, pages, images, items } = view.counts;
    results.push({ state: view.state, counts: [total, completed, inProgress, queued, pages, images, items], tables });
  }
  await jobs.close();
  return results;
}

export async function checkJobKills(plan: { pages: number; jobs: number; seed: number; withinMs: number; kills: number }): Promise<{ kills: number }> {
  const folder = mkdtempSync(join(tmpdir(), "skein-job-kills-"));
  const random = seededRandom(plan.seed);
  const run = async (name: string, kills: number): Promise<number> => {
    await using site = await serve(jobsSite(plan.pages), ["127.0.0.1", "127.0.0.2", "127.0.0.3"]);
    // Results name the port: it is the same for both runs of one site.
    const origins = [1, 2, 3].map((n) => `http://127.0.0.${n}:${site.port}`);
    const dir = join(folder, name);
    let killed = 0;
    for (;;) {
      const last = killed >= kills;
      const args = [PROGRAM, dir, String(plan.jobs), ...origins];
      // From its start, so that it may die while it makes its jobs too.
      const end = await runChild({ args, ...(last ? {} : { killAfterMs: random() * plan.withinMs, ...(random() < 0.7 ? { killFrom: "ready" } : {}) }) });
      if (end.code === 0) break;
      assert.equal(end.signal, "SIGKILL", `seed ${plan.seed}, after ${killed} kills: ${end.stderr}`);
      killed++;
    }
    return killed;
  };
  try {
    await run("calm", 0);
    const kills = await run("wild", plan.kills);
    const plain = (results: Results) => JSON.parse(JSON.stringify(results).replace(/127\.0\.0\.(\d):\d+/g, "127.0.0.$1")) as Results; // the same shape
    const sorted = (results: Results) =>
      plain(results).map((job) => ({ ...job, tables: Object.fromEntries(Object.entries(job.tables).map(([name, lines]) => [name, [...lines].sort()])) }));
    const [calm, wild] = [await resultsIn(join(folder, "calm"), plan.jobs), await resultsIn(join(folder, "wild"), plan.jobs)];
    for (const [id, job] of sorted(calm).entries()) {
      assert.equal(job.state, "completed");
      assert.deepEqual(sorted(wild)[id], job, `seed ${plan.seed}: job ${id} after ${kills} kills`);
    }
    return { kills };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
