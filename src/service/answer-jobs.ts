/** /v1/jobs: making, listing, showing and steering jobs. */
import { createHash } from "node:crypto";
import { type ControlAnswer, type HostPatch, JOB_STATES, type JobState } from "../core/jobs.ts";
import { parseDuration } from "../core/units.ts";
import { jsonOf } from "./bytes.ts";
import { plainBody } from "./coded.ts";
import { type Ask, idOf, incomingOf, jobOf, jsonAnswer, linkNext, queryFaults, queryOf, type Service, typeOf } from "./context.ts";
import { createJob, simpleLines } from "./create.ts";
import { besides, noSeeds, pulling, refusal, rejections } from "./faults.ts";
import { MOST_JSON_RECORDS, USUAL_RECORDS } from "./limits.ts";
import { HttpProblem, notFound, type ProblemEntry } from "./problem.ts";
import { STOP_MODES } from "./schemas.ts";
import { mediaTypeOf, readUpload, unsupported } from "./upload.ts";
import { fullJob } from "./views.ts";

export async function create(ask: Ask, service: Service): Promise<Response> {
  const job = await createJob(ask, service, "full");
  return jsonAnswer(fullJob(job), 202, { location: `/v1/jobs/${job.id}` });
}

const isState = (name: string): name is JobState => JOB_STATES.some((state) => state === name);

export async function list(ask: Ask, { jobs }: Service): Promise<Response> {
  const query = queryOf(ask, ["state", "cursor", "limit"]);
  const names =
    query
      .text("state")
      ?.split(",")
      .filter((name) => name !== "") ?? [];
  const states = names.filter(isState);
  if (states.length < names.length) query.wrong("state", `expected some of ${JOB_STATES.join(", ")}, separated by commas`);
  const cursor = query.text("cursor");
  if (cursor !== null && !/^\d{1,15}$/.test(cursor)) query.wrong("cursor", "is none of this list");
  const limit = query.limit(MOST_JSON_RECORDS, USUAL_RECORDS);
  query.check();
  const found = await jobs.list({ states: states.length === 0 ? null : states, before: cursor === null ? null : Number(cursor), limit: limit + 1 });
  const shown = found.slice(0, limit);
  const last = shown.at(-1);
  const link = last !== undefined && found.length > limit ? { link: linkNext(ask, String(last.id)) } : {};
  const entries = shown.map((job) => fullJob(job, true));
  // Asked again and again by whoever shows it: what has not changed is not sent again.
  const etag = `"${createHash("sha1")
    .update(JSON.stringify(entries))
    .update(link.link ?? "")
    .digest("base64url")}"`;
  const headers = { ...link, etag };
  return hasTag(ask.req.header("if-none-match"), etag) ? new Response(null, { status: 304, headers }) : jsonAnswer(entries, 200, headers);
}

/** RFC 9110 §13.1.2: weak comparison. */
const hasTag = (given: string | undefined, etag: string): boolean =>
  (given ?? "").split(",").some((one) => one.trim() === "*" || one.trim().replace(/^W\//, "") === etag);

export async function get(ask: Ask, service: Service): Promise<Response> {
  return jsonAnswer(fullJob(await jobOf(ask, service)));
}

function answered(answer: ControlAnswer): Response {
  switch (answer.kind) {
    case "done":
      return jsonAnswer(fullJob(answer.job));
    case "unknown":
      throw notFound("there is no such job");
    case "conflict":
      throw new HttpProblem({ status: 409, detail: answer.why, more: { job: fullJob(answer.job) } });
  }
}

export async function remove(ask: Ask, { jobs }: Service): Promise<Response> {
  const answer = await jobs.cancel(idOf(ask));
  return answer.kind === "deleted" ? new Response(null, { status: 204 }) : answered(answer);
}

/** Of calls whose body is small: bytes. */
const SMALL_BODY = 65_536;

/** A small JSON object, an empty body being an empty one, and what is wrong with the query. Throws HttpProblem for what is none. */
async function smallObject(ask: Ask): Promise<{ readonly body: Readonly<Record<string, unknown>>; readonly faults: readonly ProblemEntry[] }> {
  const faults = queryFaults(ask);
  const body = await objectOf(ask).catch((error: unknown) => Promise.reject(besides(faults, error)));
  return { body, faults };
}

async function objectOf(ask: Ask): Promise<Readonly<Record<string, unknown>>> {
  const incoming = incomingOf(ask);
  const type = mediaTypeOf(incoming);
  let size = 0;
  const chunks: Uint8Array[] = [];
  for await (const chunk of plainBody(incoming, SMALL_BODY)) {
    size += chunk.length;
    chunks.push(chunk);
  }
  if (size === 0) return {};
  // curl -d without a Content-Type says that JSON is a form.
  if (type !== "application/json" && type !== "" && type !== "application/x-www-form-urlencoded") throw unsupported(["application/json"]);
  async function* again(): AsyncGenerator<Uint8Array> {
    yield* chunks;
  }
  const value = await jsonOf(again());
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return { ...value };
  throw wrongBody([{ option: "", pointer: "#", message: "expected an object" }]);
}

function wrongBody(errors: readonly ProblemEntry[]): HttpProblem {
  return new HttpProblem({ status: 400, detail: errors.length === 1 ? "the request has a fault" : `the request has ${errors.length} faults`, errors });
}

const MOST_REASON = 500;

export async function stop(ask: Ask, { jobs }: Service): Promise<Response> {
  const id = idOf(ask);
  const { body, faults } = await smallObject(ask);
  const { mode = "flight", reason = null, ...others } = body;
  const unknown = Object.keys(others).slice(0, 100);
  const errors: ProblemEntry[] = [
    ...faults,
    ...unknown.map((name) => ({ option: name, pointer: `#/${name}`, message: "no such option; there are mode and reason" })),
  ];
  const known = STOP_MODES.find((name) => name === mode);
  if (known === undefined) errors.push({ option: "mode", pointer: "#/mode", message: `expected one of ${STOP_MODES.join(", ")}` });
  if (reason !== null && (typeof reason !== "string" || reason.length > MOST_REASON))
    errors.push({ option: "reason", pointer: "#/reason", message: `expected a text of at most ${MOST_REASON} characters` });
  if (errors.length > 0 || known === undefined) throw wrongBody(errors);
  return answered(await jobs.stop(id, known, typeof reason === "string" ? reason : null));
}

async function withoutOptions(ask: Ask): Promise<void> {
  const { body, faults } = await smallObject(ask);
  const names = Object.keys(body).slice(0, 100);
  const errors = [...faults, ...names.map((name) => ({ option: name, pointer: `#/${name}`, message: "no such option; there are none here" }))];
  if (errors.length > 0) throw wrongBody(errors);
}

export async function pause(ask: Ask, { jobs }: Service): Promise<Response> {
  const id = idOf(ask);
  await withoutOptions(ask);
  return answered(await jobs.pause(id));
}

export async function resume(ask: Ask, { jobs }: Service): Promise<Response> {
  const id = idOf(ask);
  await withoutOptions(ask);
  return answered(await jobs.resume(id));
}

export async function addUrls(ask: Ask, service: Service): Promise<Response> {
  const { id } = await jobOf(ask, service);
  const head = queryFaults(ask);
  const upload = await readUpload(incomingOf(ask), service.limits, false).catch((error: unknown) => Promise.reject(besides(head, error)));
  const { lines, faults } =
    upload.kind === "json"
      ? simpleLines(upload.value)
      : { lines: { place: { option: "urls", pointer: null }, list: null, bytes: upload.bytes, bareScheme: "https", needed: true } as const, faults: [] };
  const wrong = { head: [...head, ...upload.faults], options: faults };
  // Bare hosts are taken for good here: whether they are depends on the job.
  if (wrong.head.length + faults.length > 0) throw await refusal(wrong, { ...lines, bareScheme: "https" });
  const add = (texts: AsyncIterable<string> | Iterable<string>) => service.jobs.addUrls(id, texts);
  const added = await (lines.bytes === null ? add((lines.list ?? []).filter((text) => text !== null)) : pulling(lines.bytes, add));
  if ("kind" in added) return answered(added);
  if (added.added + added.known === 0) throw noSeeds(added, lines.place);
  return jsonAnswer({ added: added.added, known: added.known, ...rejections(added) });
}

export async function explain(ask: Ask, { jobs }: Service): Promise<Response> {
  const id = idOf(ask);
  const type = typeOf(ask, ["application/json", "text/plain"]);
  const query = queryOf(ask, ["url"]);
  const url = query.text("url") ?? "";
  if (url.trim() === "") query.wrong("url", "expected the URL to be explained");
  if (url.length > 65_536) query.wrong("url", "is too long");
  query.check();
  const found = await jobs.explain(id, url);
  if (found === null) throw notFound("there is no such job");
  if (type === "application/json") return jsonAnswer({ url: found.url, lines: found.lines });
  return new Response(found.lines.map((line) => `${line}\n`).join(""), { headers: { "content-type": "text/plain; charset=utf-8" } });
}

export async function hosts(ask: Ask, { jobs }: Service): Promise<Response> {
  const id = idOf(ask);
  const query = queryOf(ask, ["limit"]);
  const limit = query.limit(MOST_JSON_RECORDS, USUAL_RECORDS);
  query.check();
  const found = await jobs.hosts(id, limit);
  if (found === null) throw notFound("there is no such job");
  return jsonAnswer(found);
}

const MOST_HOSTS = 100;
const MOST_CONCURRENCY = 1_000;

/** One host's changes, and what is wrong with them. */
function patchOf(host: string, value: unknown, wrong: (key: string, message: string) => void): HostPatch {
  if (host.length > 300 || !/^[^\s/@?#\\]+$/.test(host)) wrong("", "expected the name of a host, with its port unless it is the scheme's");
  if (typeof value !== "object" || value === null || Array.isArray(value) || Object.keys(value).length === 0) {
    wrong("", "expected an object with paused, delay or concurrency");
    return {};
  }
  const { paused, delay, concurrency, ...others }: Readonly<Record<string, unknown>> = { ...value };
  for (const name of Object.keys(others).slice(0, 10)) wrong(name, "no such option; there are paused, delay and concurrency");
  if (paused !== undefined && typeof paused !== "boolean") wrong("paused", "expected true or false");
  const delayMs = typeof delay === "string" || typeof delay === "number" ? parseDuration(delay) : null;
  if (delay !== undefined && delay !== null && delayMs === null) wrong("delay", "expected a duration such as 250ms, 1s, 2m, a number of milliseconds, or null");
  const isCount = typeof concurrency === "number" && Number.isInteger(concurrency) && concurrency >= 1 && concurrency <= MOST_CONCURRENCY;
  if (concurrency !== undefined && concurrency !== null && !isCount) wrong("concurrency", `expected a whole number from 1 to ${MOST_CONCURRENCY}, or null`);
  return {
    ...(typeof paused === "boolean" ? { paused } : {}),
    ...(delay === undefined ? {} : { delayMs }),
    ...(isCount ? { concurrency } : concurrency === null ? { concurrency } : {}),
  };
}

export async function patchHosts(ask: Ask, service: Service): Promise<Response> {
  const { id } = await jobOf(ask, service);
  const { body: given, faults } = await smallObject(ask);
  const body = Object.entries(given);
  const errors: ProblemEntry[] = [...faults];
  if (body.length === 0 || body.length > MOST_HOSTS) errors.push({ option: "", pointer: "#", message: `expected 1 to ${MOST_HOSTS} hosts with their changes` });
  const patches = body.slice(0, MOST_HOSTS).map(([host, value]) => {
    const place = `#/${host.slice(0, 300).replaceAll("~", "~0").replaceAll("/", "~1")}`;
    const wrong = (key: string, message: string) =>
      void errors.push({
        option: key === "" ? host.slice(0, 300) : `${host.slice(0, 300)}.${key.slice(0, 40)}`,
        pointer: key === "" ? place : `${place}/${key.slice(0, 40)}`,
        message,
      });
    return { host: host.toLowerCase(), patch: patchOf(host, value, wrong) };
  });
  if (errors.length > 0) throw wrongBody(errors);
  let answer: ControlAnswer = { kind: "unknown" };
  for (const { host, patch } of patches) {
    answer = await service.jobs.patchHost(id, host, patch);
    if (answer.kind !== "done") break;
  }
  return answered(answer);
}
