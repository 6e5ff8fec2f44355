/** A service on a real Redis and its workers as processes, asked over HTTP; and a site whose jobs must come out the same wherever they run; for tests only. */
import assert from "node:assert/strict";
import { ENDED_STATES, type JobState } from "../../src/core/jobs.ts";
import { type Running, startCommand } from "../cluster/processes.ts";
import { type Answer, html } from "../crawl/served.ts";

type Json = ReturnType<typeof JSON.parse>;

export interface Service {
  readonly process: Running;
  readonly url: string;
  get(path: string): Promise<Json>;
  post(path: string, body?: object): Promise<Json>;
  patch(path: string, body: object): Promise<Json>;
  /** The answer as it is. */
  ask(path: string, init?: RequestInit): Promise<Response>;
  until(job: number, states?: ReadonlySet<string>): Promise<Json>;
}

/** Polls: what is waited for is told to other processes. */
export async function soon<T>(look: () => Promise<T | null> | T | null, what: string, withinMs = 60_000): Promise<T> {
  const end = performance.now() + withinMs;
  for (;;) {
    const found = await look();
    if (found !== null) return found;
    assert.ok(performance.now() < end, `${what} has not come within ${withinMs} ms`);
    await new Promise<void>((resolve) => setTimeout(resolve, 20));
  }
}

const sending = (method: string, body: object): RequestInit => ({ method, body: JSON.stringify(body), headers: { "content-type": "application/json" } });

export async function startService(args: readonly string[], cwd: string): Promise<Service> {
  const process = startCommand(["serve", "--port", "0", "--allow-address", "127.0.0.0/8", ...args], cwd);
  const url = await soon(() => {
    assert.ok(!process.over, process.stderr());
    return /serves on (http:\/\/[\d.:]+)/.exec(process.stderr())?.[1] ?? null;
  }, "the service");
  const ask = (path: string, init?: RequestInit) => fetch(url + path, { signal: AbortSignal.timeout(60_000), ...init });
  async function json(path: string, init?: RequestInit): Promise<Json> {
    const response = await ask(path, init);
    const text = await response.text();
    assert.ok(response.ok, `${path}: ${response.status} ${text}`);
    return text === "" ? null : JSON.parse(text);
  }
  return {
    process,
    url,
    ask,
    get: (path) => json(path),
    post: (path, body = {}) => json(path, sending("POST", body)),
    patch: (path, body) => json(path, sending("PATCH", body)),
    until: (job, states = ENDED_STATES) =>
      soon(async () => {
        const view = await json(`/v1/jobs/${job}`);
        return states.has(view.state as JobState) ? view : null; // one of the names
      }, `the end of job ${job}`),
  };
}

export const startWorker = (store: string, cwd: string, ...more: readonly string[]): Running =>
  startCommand(["work", "--store", store, "--allow-address", "127.0.0.0/8", "-c", "6", ...more], cwd);

/** A tree of pages with images, redirects, pages that fail at first and missing ones. */
export function jobSite(pages: number, delayMs = 10): Answer {
  const asked = new Map<string, number>();
  return async (request, response) => {
    const target = request.url ?? "/";
    if (target === "/robots.txt") return html(response, "<p>none", 404);
    const i = target === "/" ? 0 : Number(/^\/(?:r\/)?p(\d+)$/.exec(target)?.[1] ?? Number.NaN);
    await new Promise((done) => setTimeout(done, delayMs + ((i * 7) % 10 || 1)));
    if (!(i >= 0 && i < pages)) return html(response, "<p>none", 404);
    if (target.startsWith("/r/")) {
      response.writeHead(302, { location: `/p${i}` }).end();
      return;
    }
    const before = asked.get(target) ?? 0;
    asked.set(target, before + 1);
    if (i % 41 === 3 && before === 0) {
      response.writeHead(503, { "retry-after": "0" }).end();
      return;
    }
    const links = [1, 2, 3].map((k) => i * 3 + k).map((k) => `<a href="/${k % 5 === 0 ? "r/" : ""}p${k}">${k}</a>`);
    html(response, `<title>${i}</title>${links.join(" ")}<img src="/i${i % 17}.png"><img src="/own${i}.png"><a href="http://elsewhere.invalid/${i}">e</a>`);
  };
}

export const SPEC = { images: true, extract: { title: "title" }, perHost: { concurrency: 12 }, retry: { max: 4 } };

/** Without times, and without what depends on which of two ways was the first. */
const COMPARED: Readonly<Record<string, (record: Json) => unknown>> = {
  pages: ({ fetchedAt: _f, durationMs: _d, attempts: _a, referrer: _r, depth: _p, redirects: _c, ...rest }) => rest,
  items: ({ _meta: _m, ...fields }) => fields,
  skipped: ({ url }) => url,
  images: (url) => url,
};

/** Every record that the service hands out, in an order of its own, each once. */
export async function resultsOf(service: Service, job: number): Promise<Readonly<Record<string, readonly string[]>>> {
  const tables: Record<string, readonly string[]> = {};
  for (const [table, compared] of Object.entries(COMPARED)) {
    const response = await service.ask(`/v1/jobs/${job}/${table}?limit=100000`, { headers: { accept: "application/x-ndjson" } });
    const text = await response.text();
    assert.equal(response.status, 200, text);
    const lines = text.split("\n").filter((line) => line !== "");
    const records = lines.map((line) => JSON.stringify(compared(JSON.parse(line)))).sort();
    assert.equal(new Set(records).size, records.length, `${table} has a record twice`);
    tables[table] = records;
  }
  return tables;
}
