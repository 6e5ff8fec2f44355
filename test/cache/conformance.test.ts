/** The cache against published cases (conformance topic http-cache): the real layer and the real file, a server that answers as each case says, a clock moved by hand. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import type { PageCache } from "../../src/core/cache.ts";
import type { Exchange, FetchedResponse, Fetcher, FetchOutcome, ResponseHeaders } from "../../src/core/outcome.ts";
import { withCache } from "../../src/fetch/cache-layer.ts";
import { isPassingStatus } from "../../src/rules/retry.ts";
import { conformanceCases } from "../../src/rules/url-conformance.ts";
import { openCache } from "../../src/store/cache/open.ts";
import { createTestClock, type TestClock } from "../../src/testing/clock.ts";
import { OPTIONS } from "./layer-for-tests.ts";

type HeaderCase = readonly [name: string, value: string | number, ...rest: unknown[]];

/** One request of a case, as the source's schema has it. */
interface Step {
  readonly request_method?: string;
  readonly request_headers?: readonly (readonly [string, string])[];
  readonly query_arg?: string;
  readonly response_status?: readonly [number, string];
  readonly response_headers?: readonly HeaderCase[];
  readonly response_body?: string | null;
  readonly disconnect?: boolean;
  readonly pause_after?: boolean;
  readonly check_body?: boolean;
  readonly expected_type?: "cached" | "not_cached" | "etag_validated" | "lm_validated";
  readonly expected_status?: number | null;
  readonly expected_method?: string;
  readonly expected_request_headers?: readonly (string | readonly [string, string])[];
  readonly expected_response_headers?: readonly (string | HeaderCase)[];
  readonly expected_response_headers_missing?: readonly (string | readonly string[])[];
}

const DATES = new Set(["date", "expires", "last-modified", "if-modified-since", "if-unmodified-since"]);
const PAUSE_MS = 3_000;
const root = mkdtempSync(join(tmpdir(), "skein-cache-cases-"));
after(() => rmSync(root, { recursive: true, force: true }));

/** Numbers in date fields are seconds from now. */
function spell(name: string, value: unknown, now: number): string {
  return typeof value === "number" && DATES.has(name.toLowerCase()) ? new Date(now + value * 1_000).toUTCString() : String(value);
}

function headersFrom(lines: readonly (readonly [string, string])[]): ResponseHeaders {
  const all = (name: string) => lines.filter(([own]) => own === name).map(([, value]) => value);
  return { all, get: (name) => (all(name).length === 0 ? null : all(name).join(", ")), names: () => [...new Set(lines.map(([name]) => name))] };
}

interface Seen {
  readonly step: number;
  readonly method: string;
  readonly headers: ReadonlyMap<string, string>;
}

/** Answers step by step; `current` is the step the client is at. */
function originOf(steps: readonly Step[], clock: TestClock, current: () => number) {
  const seen: Seen[] = [];
  const answer = ({ request }: Exchange): FetchOutcome => {
    const at = current();
    const step = steps[at] ?? {};
    const headers = new Map(Object.entries(request.rest?.headers ?? {}).map(([name, value]) => [name.toLowerCase(), value]));
    seen.push({ step: at, method: request.rest?.method ?? "GET", headers });
    const now = clock.epoch();
    const facts = { startedAt: now, durationMs: 0, sinceStartMs: 0, answer: null, host: null, setCookies: null };
    if (step.disconnect === true)
      return { ...facts, kind: "failed", code: "reset", message: "cut", status: null, response: null, retryable: true, retryAfterMs: null };
    let status = step.response_status?.[0] ?? 200;
    if (step.expected_type?.endsWith("validated")) {
      const before = (name: string) => steps[at - 1]?.response_headers?.find(([own]) => own.toLowerCase() === name)?.[1];
      const modified = before("last-modified");
      const held = before("etag") !== undefined && headers.get("if-none-match") === before("etag");
      const since = modified !== undefined && headers.get("if-modified-since") === spell("last-modified", modified, spelled.get(at - 1) ?? now);
      status = held || since ? 304 : 999;
    }
    spelled.set(at, now);
    const lines = (step.response_headers ?? []).map(([name, value]) => [name.toLowerCase(), spell(name, value, now)] as const);
    const type = lines.some(([name]) => name === "content-type") ? [] : [["content-type", "text/plain"] as const];
    const body = Buffer.from(status === 304 || status === 204 ? "" : (step.response_body ?? "the body"));
    const fields = headersFrom([...lines, ...type, ["server-request-count", String(at + 1)]]);
    const response: FetchedResponse = { status, headers: fields, contentType: null, body, wireBytes: body.length, truncated: false, bodySkipped: false };
    if (isPassingStatus(status)) return { ...facts, kind: "failed", code: "http", message: "", status, response, retryable: true, retryAfterMs: null };
    const location = fields.get("location");
    return status > 300 && status < 309 && status !== 304 && location !== null
      ? { ...facts, kind: "redirect", response, location }
      : { ...facts, kind: "fetched", response };
  };
  const spelled = new Map<number, number>();
  const fetcher: Fetcher = { fetch: async (exchange) => answer(exchange), abort() {}, abortAll() {}, [Symbol.asyncDispose]: async () => undefined };
  return { fetcher, seen };
}

/** What is wrong with one answer; null: nothing. */
function faultOf(step: Step, at: number, { outcome, seen, now }: { outcome: FetchOutcome; seen: Seen | undefined; now: number }): string | null {
  const response = outcome.kind === "aborted" ? null : outcome.response;
  const type = step.expected_type;
  if (type === "cached" && seen !== undefined) return "it was asked for again";
  if (type !== undefined && type !== "cached" && seen === undefined) return "it came from the cache";
  if (type === "not_cached" && response?.headers.get("server-request-count") !== String(at + 1)) return "an old answer was served";
  if (type === "etag_validated" && !seen?.headers.has("if-none-match")) return "no If-None-Match";
  if (type === "lm_validated" && !seen?.headers.has("if-modified-since")) return "no If-Modified-Since";
  if (step.expected_status === null) return response === null ? null : `status ${response.status} instead of none`;
  const status = step.expected_status ?? step.response_status?.[0] ?? 200;
  if (response?.status !== status) return `status ${response?.status}, not ${status}`;
  for (const expected of step.expected_response_headers ?? []) {
    const [name, relation, bound] = typeof expected === "string" ? [expected, null, null] : expected;
    const value = response.headers.get(name.toLowerCase());
    if (value === null) return `no ${name}`;
    if (typeof expected === "string") continue;
    if (expected.length > 2 ? relation === ">" && !(Number.parseInt(value, 10) > Number(bound)) : value !== spell(name, relation, now))
      return `${name} is ${value}`;
  }
  for (const missing of step.expected_response_headers_missing ?? []) {
    if (typeof missing === "string" && response.headers.get(missing.toLowerCase()) !== null) return `it has ${missing}`;
  }
  for (const expected of step.expected_request_headers ?? []) {
    const [name, value] = typeof expected === "string" ? [expected, undefined] : expected;
    const sent = seen?.headers.get(name.toLowerCase());
    if (sent === undefined || (value !== undefined && sent !== value)) return `the request's ${name} was ${sent}`;
  }
  if (step.expected_method !== undefined && seen?.method !== step.expected_method) return `the method was ${seen?.method}`;
  const body = step.check_body === false || status === 204 ? null : (step.response_body ?? "the body");
  return body === null || Buffer.from(response.body).toString() === body ? null : "another body";
}

async function faultOfCase(id: string, steps: readonly Step[], cache: PageCache, clock: TestClock): Promise<string | null> {
  let at = 0;
  const origin = originOf(steps, clock, () => at);
  const fetcher = withCache(origin.fetcher, cache, { ...OPTIONS, mode: "auto", offline: false }, clock);
  let startedAt = clock.epoch();
  for (; at < steps.length; at++) {
    const step = steps[at] ?? {};
    const before = origin.seen.length;
    const url = `http://origin.test/${id}${step.query_arg === undefined ? "" : `?${step.query_arg}`}`;
    const rest = { method: step.request_method ?? "GET", headers: Object.fromEntries(step.request_headers ?? []) };
    const request = { url, host: "origin.test", hop: "link", depth: 0, priority: 0, referrer: null, rest, idHi: 0, idLo: 0 } as const;
    const outcome = await fetcher.fetch({ request, cookies: null, maxBytes: null, onStart() {}, onEnd() {} });
    const seen = origin.seen[before];
    if (seen !== undefined && at === 0) startedAt = clock.epoch();
    const fault = faultOf(step, at, { outcome, seen, now: startedAt });
    if (fault !== null) return `request ${at + 1}: ${fault}`;
    if (step.pause_after === true) await clock.advance(PAUSE_MS);
  }
  return null;
}

test("http-cache: every case that binds a cache holds; optimal ones and choices are counted", async (t) => {
  const cases = conformanceCases("http-cache") ?? [];
  const clock = createTestClock();
  await using cache = openCache(root, { maxBytes: 10_000_000, clock });
  const faults: string[] = [];
  const counts = new Map<string, [held: number, all: number]>();
  for (const given of cases) {
    const { id, requests } = given.input as { id: string; requests: readonly Step[] }; // the topic's shape, ../README there
    const kind = given.taste === true ? "choice" : String(given.expected.kind);
    const fault = await faultOfCase(id, requests, cache, clock);
    const count = counts.get(kind) ?? [0, 0];
    counts.set(kind, [count[0] + (fault === null ? 1 : 0), count[1] + 1]);
    if (fault !== null && kind === "required") faults.push(`${given.id} ${id}: ${fault}`);
    else if (fault !== null) t.diagnostic(`${kind}: ${id}: ${fault}`);
  }
  for (const [kind, [held, all]] of counts) t.diagnostic(`${kind}: ${held} of ${all}`);
  assert.deepEqual(faults, []);
});
