/** `skein serve` killed at random below clients that post, upload, steer and read, against the same jobs undisturbed; for tests only. */
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { Agent } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ENDED_STATES, type JobState } from "../../src/core/jobs.ts";
import { seededRandom } from "../../src/testing/clock.ts";
import { freePort } from "../../src/testing/free-port.ts";
import { root } from "../command.ts";
import { serve } from "../crawl/served.ts";
import { jobsSite } from "./kills.ts";
import { type Answered, type Asking, type Client, clientOf, PATIENCE_MS, pause } from "./kills-client.ts";

type Json = ReturnType<typeof JSON.parse>;

export interface Plan {
  readonly seed: number;
  readonly kills: number;
  /** A process dies within so many answers of its own, or while it starts. */
  readonly withinAnswers: number;
}

export interface Report {
  readonly kills: number;
  readonly requests: number;
  readonly broken: number;
  readonly steered: number;
}

/** Jobs that must come out the same; the last ones are stopped or cancelled on the way. */
const STEADY = 6;
const PAGES = 60;
/** A page takes so long and a little more: jobs live for some kills. */
const SITE_MS = 60;
/** Jobs are made, and ended early, within so long. */
const SPREAD_MS = 1_500;

const FORM = "multipart/form-data; boundary=SKEIN";
const formPart = (name: string, value: string) => `--SKEIN\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`;

/** The request that makes job `n`: both APIs, every form of body, whole and in pieces. */
function making(n: number, origins: readonly string[]): { readonly path: string; readonly asking: Asking } {
  const origin = origins[n % origins.length] ?? "";
  const simple = n % 2 === 0;
  const spec = { images: true, perHost: { concurrency: 4 }, retry: { max: 5 }, extract: { title: "title" } };
  const seeds = [`${origin}/job-${n}/`, `${origin}/job-${n}/p7`, ...(simple ? Array.from({ length: 12 }, (_, i) => `${origin}/job-${n}/p${20 + i}`) : [])];
  const slow = n % 3 === 0;
  const lines = seeds.map((seed) => `${seed}\n`);
  const key = { "idempotency-key": `job-${n}` };
  const asking = (type: string, body: string | readonly string[]): Asking => ({ method: "POST", body, headers: { ...key, "content-type": type } });
  if (simple) return { path: "/", asking: slow ? asking("text/plain", lines) : asking(FORM, `${formPart("urls", lines.join(""))}--SKEIN--\r\n`) };
  if (!slow) return { path: "/v1/jobs", asking: asking("application/json", JSON.stringify({ ...spec, seeds })) };
  const head = `${formPart("spec", JSON.stringify(spec))}--SKEIN\r\nContent-Disposition: form-data; name="urls"; filename="a"\r\n\r\n`;
  return { path: "/v1/jobs", asking: asking(FORM, [head, ...lines, "\r\n--SKEIN--\r\n"]) };
}

const idOf = (answer: Answered): number => {
  const { id, job_id: simple } = JSON.parse(answer.text);
  return id ?? simple;
};

interface JobResult {
  readonly state: string;
  readonly counts: readonly number[];
  readonly pages: readonly string[];
  readonly skipped: readonly string[];
  readonly images: readonly string[];
  readonly items: readonly string[];
}

const comparedPage = (line: string): string => {
  const { url, status, outcome, links, images } = JSON.parse(line);
  return JSON.stringify({ url, status, outcome, links, images });
};

async function linesOf({ ask }: Client, id: number, table: string): Promise<string[]> {
  const answer = await ask(`/v1/jobs/${id}/${table}?limit=100000`, { headers: { accept: "application/x-ndjson" } });
  assert.equal(answer.status, 200, answer.text);
  return answer.text.split("\n").filter((line) => line !== "");
}

async function resultOf(client: Client, id: number): Promise<JobResult> {
  const { state, counts } = await client.json(`/v1/jobs/${id}`);
  const pages = (await linesOf(client, id, "pages")).map(comparedPage).sort();
  const skipped = (await linesOf(client, id, "skipped")).map((line) => JSON.parse(line).url).sort();
  const images = (await client.ask(`/result/${id}`)).text.split("\n").filter((line) => line !== "");
  const items = (await linesOf(client, id, "items")).map((line) => line.replace(/,"_meta".*/, "")).sort();
  for (const [name, list] of Object.entries({ pages, skipped, images })) assert.equal(new Set(list).size, list.length, `job ${id}: ${name} has a line twice`);
  const status = await client.json(`/status/${id}`);
  assert.deepEqual([status.completed, status.inprogress], [status.total, 0], `job ${id}: ${JSON.stringify(status)}`);
  const { total, completed, inProgress, queued, pages: fetched, images: found, items: given } = counts;
  return { state, counts: [total, completed, inProgress, queued, fetched, found, given], pages, skipped, images: [...images].sort(), items };
}

/** Reads a table by its cursors for as long as the job lives: what it was given must be, in the end, what there is. */
async function follow(client: Client, id: number): Promise<readonly string[]> {
  const got: string[] = [];
  let cursor = "";
  for (;;) {
    const { state } = await client.json(`/v1/jobs/${id}`);
    const answer = await client.ask(`/v1/jobs/${id}/pages?limit=7${cursor === "" ? "" : `&cursor=${cursor}`}`);
    assert.equal(answer.status, 200, `job ${id}, cursor ${cursor}: ${answer.text}`);
    const lines: Json[] = JSON.parse(answer.text);
    got.push(...lines.map((line) => String(line.url)));
    cursor = String(answer.headers["skein-cursor"] ?? cursor);
    const ended = ENDED_STATES.has(state);
    if (ended && lines.length === 0) return got;
    if (!ended) await pause(40);
  }
}

interface Steering {
  readonly random: () => number;
  readonly over: () => boolean;
}

/** Pauses and resumes the jobs, looks at them, changes hosts; in the end all go on. */
async function steer(client: Client, known: ReadonlySet<number>, { random, over }: Steering): Promise<void> {
  const one = () => [...known][Math.floor(random() * known.size)];
  const post = (id: number, verb: string) => client.ask(`/v1/jobs/${id}/${verb}`, { method: "POST" });
  while (!over()) {
    const id = one();
    if (id === undefined) {
      await pause(20);
      continue;
    }
    const answer = await post(id, "pause");
    assert.ok(answer.status === 200 || answer.status === 409, answer.text);
    client.counted.steered++;
    await pause(random() * 150);
    await client.json(`/v1/jobs?limit=5`);
    await client.json(`/status/${one() ?? id}`);
    const resumed = await post(id, "resume");
    assert.ok(resumed.status === 200 || resumed.status === 409, resumed.text);
    await pause(random() * 100);
  }
  for (const id of known) await post(id, "resume");
}

async function untilEnded(client: Client, ids: readonly number[]): Promise<void> {
  const until = performance.now() + PATIENCE_MS;
  for (let left = [...ids]; left.length > 0; ) {
    const states = new Map<number, JobState>(await Promise.all(left.map(async (id) => [id, (await client.json(`/v1/jobs/${id}`)).state] as const)));
    left = left.filter((id) => !ENDED_STATES.has(states.get(id) ?? "queued"));
    assert.ok(performance.now() < until, `jobs that did not end: ${left.map((id) => `${id} ${states.get(id)}`).join(", ")}`);
    if (left.length > 0) await pause(50);
  }
}

interface EarlyEnd {
  readonly afterMs: number;
  /** Null: the job is cancelled. */
  readonly mode: string | null;
}

/** Ends a job early; what is asked of it once holds, whatever dies afterwards. Answers what is to be looked at once it has ended. */
async function endEarly(client: Client, id: number, { afterMs, mode }: EarlyEnd): Promise<() => Promise<void>> {
  await pause(afterMs);
  let taken = false;
  if (mode !== null) {
    const answer = await client.ask(`/v1/jobs/${id}/stop`, { method: "POST", body: JSON.stringify({ mode, reason: "enough" }) });
    assert.ok(answer.status === 200 || answer.status === 409, answer.text);
    taken = answer.status === 200;
  } else
    for (let state: JobState = "queued"; !taken && !ENDED_STATES.has(state); ) {
      // Not repeated blindly: of a job that has ended a second one is its deletion.
      ({ state } = await client.json(`/v1/jobs/${id}`));
      taken ||= state === "stopping" || state === "cancelled";
      if (!taken && !ENDED_STATES.has(state)) taken = (await client.once(`/v1/jobs/${id}`, { method: "DELETE" }))?.status === 200;
    }
  return async () => {
    const found = await client.ask(`/v1/jobs/${id}`);
    // It ended between the look and the call, which then deleted it.
    if (mode === null && found.status === 404) return;
    const { state, finishReason, counts, detail } = JSON.parse(found.text);
    if (state === "stopped") assert.deepEqual([mode !== null, finishReason, detail], [true, "stop-condition", "enough"], `job ${id}`);
    else if (mode === null && taken) assert.ok(state === "cancelled" || state === "completed", `job ${id} is ${state}`);
    else assert.equal(state, "completed", `job ${id}`);
    assert.equal(counts.inProgress, 0);
    if (state !== "cancelled") assert.deepEqual([counts.completed, counts.queued], [counts.total, 0], `job ${id}: ${JSON.stringify(counts)}`);
    const pages = await linesOf(client, id, "pages");
    assert.equal(new Set(pages.map((line) => JSON.parse(line).url)).size, pages.length, `job ${id} has a page twice`);
  };
}

/** Runs the command on the port, again and again. Resolves `done` once it was killed so often; then it runs on. */
function keepKilling(
  args: readonly string[],
  plan: Plan,
  random: () => number,
  answered: () => number,
): { done: Promise<void>; end(): Promise<number | null>; count(): number; fault(): string | null } {
  let child: ChildProcess | null = null;
  let kills = 0;
  let ending = false;
  let fault: string | null = null;
  const begin = (): { child: ChildProcess; ready: Promise<void>; exit: Promise<number | null> } => {
    const started = spawn(process.execPath, args, { stdio: ["ignore", "ignore", "pipe"], env: { ...process.env, NODE_TEST_CONTEXT: undefined } });
    let said = "";
    let greet: () => void = () => undefined;
    const ready = new Promise<void>((resolve) => (greet = resolve));
    started.stderr?.setEncoding("utf8").on("data", (piece: string) => {
      said = (said + piece).slice(-20_000);
      if (said.includes("skein serves on")) greet();
    });
    const exit = new Promise<number | null>((resolve) =>
      started.once("close", (code, signal) => {
        greet();
        if (signal !== "SIGKILL" && !ending) fault ??= `the service ended by itself with ${code}: ${said}`;
        if (/^error: /m.test(said)) fault ??= `the service complained: ${said}`;
        resolve(code);
      }),
    );
    child = started;
    return { child: started, ready, exit };
  };
  let current = begin();
  const done = (async () => {
    while (kills < plan.kills && fault === null) {
      // Mostly by what was answered, so that a busy machine sees it killed at work too.
      const after = answered() + Math.floor(random() * plan.withinAnswers);
      const early = random() < 0.2;
      if (!early) await current.ready;
      for (let waited = 0; !early && answered() < after && waited < 10_000; waited += 5) await pause(5);
      await pause(random() * (early ? 1_000 : 20));
      current.child.kill("SIGKILL");
      await current.exit;
      kills++;
      current = begin();
    }
    await current.ready;
  })();
  return {
    done,
    count: () => kills,
    fault: () => fault,
    async end() {
      ending = true;
      await done;
      child?.kill("SIGTERM");
      return current.exit;
    },
  };
}

export interface Arena extends AsyncDisposable {
  /** Throws what was found. */
  round(plan: Plan): Promise<Report>;
}

/** One site, and the results of the undisturbed jobs on it. `command`: what is run before `serve …`. */
export async function openArena(command: readonly string[] = [join(root, "bin/skein.js")]): Promise<Arena> {
  const quick = jobsSite(PAGES);
  const slow: typeof quick = async (incoming, outgoing) => {
    await pause(SITE_MS);
    await quick(incoming, outgoing);
  };
  const site = await serve(slow, ["127.0.0.1", "127.0.0.2", "127.0.0.3"]);
  const origins = [1, 2, 3].map((n) => `http://127.0.0.${n}:${site.port}`);
  const folder = mkdtempSync(join(tmpdir(), "skein-service-kills-"));
  let calm: readonly JobResult[] | null = null;

  async function run(plan: Plan, name: string): Promise<{ results: readonly JobResult[]; report: Report }> {
    const random = seededRandom(plan.seed);
    const port = await freePort();
    const dir = join(folder, name);
    const args = [...command, "serve", "--port", String(port), "--state", dir, "--allow-address", "127.0.0.0/8", "--max-running", "4", "--max-rate", "0"];
    const agent = new Agent({ keepAlive: true });
    let answered = () => 0;
    const service = keepKilling(args, plan, random, () => answered());
    const client = clientOf(port, agent, () => service.fault() === null);
    answered = () => client.counted.requests;
    try {
      let killing = true;
      void service.done.finally(() => (killing = false));
      /** Those that are steered. */
      const known = new Set<number>();
      const more = plan.kills === 0 ? [] : [steer(client, known, { random, over: () => !killing })];
      const make = async (n: number): Promise<number> => {
        const { path, asking } = making(n, origins);
        if (plan.kills > 0) await pause(random() * SPREAD_MS);
        const answer = await client.ask(path, asking);
        assert.ok(answer.status === 200 || answer.status === 202, `job ${n}: ${answer.status} ${answer.text}`);
        const id = idOf(answer);
        if (n < STEADY) known.add(id);
        return id;
      };
      const early = plan.kills > 0 ? 2 : 0;
      const ids = await Promise.all(Array.from({ length: STEADY + early }, (_, n) => make(n)));
      assert.deepEqual(
        [...ids].sort((a, b) => a - b),
        ids.map((_, at) => at),
        "a number for each job, and none left out",
      );
      const steady = ids.slice(0, STEADY);
      const modes = ["queue", "flight", "now"];
      const checks = ids
        .slice(STEADY)
        .map((id, at) => endEarly(client, id, { afterMs: random() * SPREAD_MS, mode: at === 1 ? null : (modes[Math.floor(random() * 3)] ?? null) }));
      const followed = follow(client, steady[1] ?? 0);
      followed.catch(() => undefined);
      await Promise.all([...more, service.done, ...checks]);
      await untilEnded(client, ids);
      for (const check of checks) await (await check)();
      const results: JobResult[] = [];
      for (const id of steady) results.push(await resultOf(client, id));
      const urls = [...(await followed)];
      assert.deepEqual(urls.sort(), (results[1]?.pages ?? []).map((line) => JSON.parse(line).url).sort(), "what a reader was given on the way");
      const all: Json[] = await client.json("/v1/jobs?limit=1000");
      assert.equal(all.length, ids.length, "jobs that nobody asked for");
      assert.equal(await service.end(), 143);
      return { results, report: { kills: service.count(), ...client.counted } };
    } catch (error) {
      throw new Error(`seed ${plan.seed}, after ${service.count()} kills: ${service.fault() ?? ""}`, { cause: error });
    } finally {
      agent.destroy();
      await service.end().catch(() => null);
      rmSync(dir, { recursive: true, force: true });
    }
  }

  return {
    async round(plan) {
      calm ??= (await run({ ...plan, kills: 0 }, "calm")).results;
      const { results, report } = await run(plan, `wild-${plan.seed}`);
      for (const [n, job] of calm.entries()) {
        assert.equal(job.state, "completed");
        assert.deepEqual(results[n], job, `seed ${plan.seed}: job ${n} after ${report.kills} kills`);
      }
      return report;
    },
    async [Symbol.asyncDispose]() {
      await site[Symbol.asyncDispose]();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
