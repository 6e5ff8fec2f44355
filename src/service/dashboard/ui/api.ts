/** Calls of the API: the token, problems, lost connections, pages of lists. Shows nothing. */
import { capital } from "./format.ts";
import { createStore } from "./store.ts";
import type { Host, Job, ProblemEntry, RejectedLine, Table } from "./types.ts";

/** Answered with a problem (RFC 9457); the message is its detail. */
export class ApiProblem extends Error {
  readonly status: number;
  readonly errors: readonly ProblemEntry[];
  readonly rejected: readonly RejectedLine[];
  constructor(status: number, detail: string, errors: readonly ProblemEntry[] = [], rejected: readonly RejectedLine[] = []) {
    super(detail);
    this.name = "ApiProblem";
    this.status = status;
    this.errors = errors;
    this.rejected = rejected;
  }
}

/** No answer came. */
export class Unreachable extends Error {
  constructor(cause: unknown) {
    super("The service does not answer.", { cause });
    this.name = "Unreachable";
  }
}

const MOST_SAID = 5;

/** What went wrong, in a sentence for who pressed a button: every fault that the service names, by the last step of its option. */
export function wordsOf(error: unknown): string {
  const faults = error instanceof ApiProblem ? error.errors : [];
  const entries = faults.slice(0, MOST_SAID).map(({ option, line, message }) => {
    const where = line === undefined ? (option?.split(".").at(-1) ?? "") : `line ${line}`;
    return where === "" ? message : `${where}: ${message}`;
  });
  const message = error instanceof Error ? error.message : String(error);
  return capital(entries.length === 0 ? message : entries.join("; ") + (faults.length > MOST_SAID ? " …" : ""));
}

/** Whether the last call was answered at all. */
export const reachable = createStore(true);

const TOKEN = "skein-token";
/** The prompt is open while this is set; `refused`: the token that was sent is not the service's. */
export const tokenPrompt = createStore<{ readonly refused: boolean; give(token: string): void } | null>(null);
let prompted: Promise<void> | null = null;

/** All calls that wait for a token share one prompt. */
function askToken(refused: boolean): Promise<void> {
  prompted ??= new Promise((resolve) => {
    tokenPrompt.set({
      refused,
      give(token) {
        sessionStorage.setItem(TOKEN, token);
        prompted = null;
        tokenPrompt.set(null);
        resolve();
      },
    });
  });
  return prompted;
}

export interface Ask {
  readonly method?: string;
  readonly body?: BodyInit;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
}

/** The answer, whatever its status but 401: then the token is asked for. Paths are relative, so that the service may lie below a path of a proxy. */
export async function ask(path: string, { method = "GET", body, headers = {}, signal }: Ask = {}): Promise<Response> {
  for (;;) {
    const token = sessionStorage.getItem(TOKEN);
    const sent = token === null ? headers : { ...headers, authorization: `Bearer ${token}` };
    const init: RequestInit = { method, headers: sent, cache: "no-store", credentials: "same-origin", redirect: "error" };
    if (body !== undefined) init.body = body;
    if (signal !== undefined) init.signal = signal;
    let response: Response;
    try {
      response = await fetch(path, init);
    } catch (error) {
      if (signal?.aborted) throw error;
      reachable.set(false);
      throw new Unreachable(error);
    }
    reachable.set(true);
    if (response.status !== 401) return response;
    await response.body?.cancel();
    // Another call may have asked in the meantime: its token is tried first.
    if (token === sessionStorage.getItem(TOKEN)) await askToken(token !== null);
    signal?.throwIfAborted();
  }
}

async function problemOf(response: Response): Promise<ApiProblem> {
  const text = await response.text();
  try {
    // `as`: a problem has these members, if any; each is checked or shown as text.
    const { detail, title, errors, rejected } = JSON.parse(text) as { detail?: string; title?: string; errors?: ProblemEntry[]; rejected?: RejectedLine[] };
    return new ApiProblem(response.status, detail ?? title ?? `Status ${response.status}`, errors ?? [], rejected ?? []);
  } catch {
    // Of a proxy between: its text is of no use, its status is.
    return new ApiProblem(response.status, `The service answered with status ${response.status}.`);
  }
}

/** A good answer. Throws ApiProblem or Unreachable. */
export async function good(path: string, options: Ask = {}): Promise<Response> {
  const response = await ask(path, options);
  if (!response.ok) throw await problemOf(response);
  return response;
}

async function json<T>(path: string, options: Ask = {}): Promise<T> {
  const response = await good(path, { ...options, headers: { accept: "application/json", ...options.headers } });
  // `as`: the forms of answers are the API's contract, which its own tests hold.
  return (await response.json()) as T;
}

const withJson = (method: string, value: unknown): Ask => ({ method, body: JSON.stringify(value), headers: { "content-type": "application/json" } });

export interface Listed<T> {
  readonly entries: readonly T[];
  /** Where the list goes on; null: it does not, now. */
  readonly next: string | null;
}

/** The cursor in `Link: <…?cursor=…>; rel="next"`. */
export function nextOf(response: Response): string | null {
  const target = /<([^>]*)>\s*;[^,]*\brel="?next"?/i.exec(response.headers.get("link") ?? "")?.[1];
  return target === undefined ? null : new URL(target, location.href).searchParams.get("cursor");
}

type Query = Readonly<Record<string, string | number | null>>;

function targetOf(path: string, query: Query): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) if (value !== null && value !== "") search.set(name, String(value));
  return `${path}?${search}`;
}

async function listed<T>(path: string, query: Query, signal: AbortSignal): Promise<Listed<T>> {
  const response = await good(targetOf(path, query), { headers: { accept: "application/json" }, signal });
  // `as`: as above.
  return { entries: (await response.json()) as T[], next: nextOf(response) };
}

let lastList: { readonly target: string; readonly etag: string; readonly value: Listed<Job> } | null = null;

/** The same object as the last time where nothing has changed: the service then sends no list. */
export async function listJobs(query: { state: string | null; cursor: string | null; limit: number }, signal: AbortSignal): Promise<Listed<Job>> {
  const target = targetOf("v1/jobs", query);
  const known = lastList?.target === target ? lastList : null;
  const response = await ask(target, { headers: { accept: "application/json", ...(known === null ? {} : { "if-none-match": known.etag }) }, signal });
  if (known !== null && response.status === 304) return known.value;
  if (!response.ok) throw await problemOf(response);
  // `as`: as above.
  const value: Listed<Job> = { entries: (await response.json()) as Job[], next: nextOf(response) };
  const etag = response.headers.get("etag");
  lastList = etag === null ? null : { target, etag, value };
  return value;
}
export const listRecords = <T>(id: number, table: Table, query: { cursor: string | null; limit: number }, signal: AbortSignal) =>
  listed<T>(`v1/jobs/${id}/${table}`, query, signal);
export const getJob = (id: number, signal: AbortSignal) => json<Job>(`v1/jobs/${id}`, { signal });
export const getHosts = (id: number, limit: number, signal: AbortSignal) => json<Host[]>(`v1/jobs/${id}/hosts?limit=${limit}`, { signal });
export const getDocument = (signal: AbortSignal) => json<Readonly<Record<string, unknown>>>("openapi.json", { signal });
export const explain = (id: number, url: string, signal: AbortSignal) =>
  json<{ url: string; lines: string[] }>(`v1/jobs/${id}/explain?${new URLSearchParams({ url })}`, { signal });

export const pauseJob = (id: number) => json<Job>(`v1/jobs/${id}/pause`, { method: "POST" });
export const resumeJob = (id: number) => json<Job>(`v1/jobs/${id}/resume`, { method: "POST" });
export const stopJob = (id: number, mode: string, reason: string) =>
  json<Job>(`v1/jobs/${id}/stop`, withJson("POST", { mode, ...(reason === "" ? {} : { reason }) }));
/** Cancels what has not ended, deletes what has. */
export const removeJob = async (id: number): Promise<void> => void (await good(`v1/jobs/${id}`, { method: "DELETE" }));
export const patchHost = (id: number, host: string, patch: Readonly<Record<string, unknown>>) =>
  json<Job>(`v1/jobs/${id}/hosts`, withJson("PATCH", { [host]: patch }));
export const addUrls = (id: number, lines: string) =>
  json<{ added: number; known: number; rejected?: RejectedLine[] }>(`v1/jobs/${id}/urls`, {
    method: "POST",
    body: lines,
    headers: { "content-type": "text/plain" },
  });
/** `key`: the same for every try of one wish, so that a try whose answer was lost makes no second job. */
export function createJob(spec: object, urls: Blob | null, key: string): Promise<Job> {
  const options = urls === null ? withJson("POST", spec) : { method: "POST", body: formOf(spec, urls) };
  return json<Job>("v1/jobs", { ...options, headers: { ...options.headers, "idempotency-key": key } });
}

function formOf(spec: object, urls: Blob): FormData {
  const form = new FormData();
  form.set("spec", JSON.stringify(spec));
  form.set("urls", urls, "urls.txt");
  return form;
}
