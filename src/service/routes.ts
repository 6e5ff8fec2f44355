/** Every route, once: the router, the OpenAPI document, docs/api.md and the contract tests come from here. What a route does stands in the files that serve it. */
import { ENDED_STATES, JOB_STATES } from "../core/jobs.ts";
import { MOST_JSON_RECORDS, MOST_STREAMED_RECORDS, USUAL_RECORDS } from "./limits.ts";
import { PROBLEM_TYPE } from "./problem.ts";
import { listOf, ref, type Schema, text } from "./schemas.ts";

export interface Parameter {
  readonly name: string;
  readonly in: "query" | "header";
  readonly required?: true;
  readonly description: string;
  readonly schema: Schema;
}

export interface Answer {
  readonly description: string;
  /** By media type; absent: no body. */
  readonly content?: Readonly<Record<string, Schema>>;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface Route {
  readonly method: "GET" | "POST" | "PATCH" | "DELETE";
  /** `{id}` is a job's number. */
  readonly path: string;
  readonly operation: string;
  readonly group: "three calls" | "jobs" | "records" | "service";
  /** One sentence. */
  readonly summary: string;
  readonly description?: string;
  /** Answered without the token too. */
  readonly open?: true;
  /** Parameters of the query that it does not know are ignored: of pages for people, whose links get marks of other sites. */
  readonly anyQuery?: true;
  readonly parameters?: readonly Parameter[];
  readonly body?: { readonly required: boolean; readonly content: Readonly<Record<string, Schema>> };
  readonly answers: Readonly<Record<number, Answer>>;
}

const problem = (description: string, headers?: Readonly<Record<string, string>>): Answer => ({
  ...{ description, content: { [PROBLEM_TYPE]: ref("Problem") } },
  ...(headers === undefined ? {} : { headers }),
});
const json = (schema: Schema) => ({ "application/json": schema });
const unknownJob = { 404: problem("There is no such job.") };
const RETRY = { "Retry-After": "Seconds." };
/** Of a route that may have to ask the crawl of a job, which may live in a store. */
const storeAway = { 503: problem("The crawl of the job lies in a store that cannot be reached now; or as of every route.", RETRY) };
const notAcceptable = { 406: problem("None of the media types of `Accept` can be given.") };
const NEXT = { Link: "`rel=next`: the next page, if there is one now." };

const idempotency: Parameter = {
  ...{ name: "Idempotency-Key", in: "header" as const, schema: { type: "string", minLength: 1, maxLength: 255 } },
  description: "A name for this request: a repetition with the same body gives the same job, one with another body is refused.",
};
const cursor: Parameter = { name: "cursor", in: "query", schema: text, description: "Where to go on, from the `Link` of the page before." };
const limitOf = (most: number, usual: number, description: string): Parameter => ({
  ...{ name: "limit", in: "query" as const, description },
  schema: { type: "integer", minimum: 1, maximum: most, default: usual },
});

const form = { type: "object", properties: { urls: { type: "string", format: "binary", description: "One URL a line." } }, required: ["urls"] };
const lines: Schema = { type: "string", description: "One URL a line." };
const urlsObject: Schema = {
  type: "object",
  properties: { urls: { ...listOf(text), description: "The URLs." } },
  required: ["urls"],
  additionalProperties: false,
};
const upload = { "multipart/form-data": form, "text/plain": lines, "application/json": urlsObject, "application/x-www-form-urlencoded": lines };

const uploadProblems = {
  400: problem("The body cannot be read, or no line is a URL (`rejected` names them); or a parameter is wrong."),
  413: problem("The body, as it comes or unpacked, or the list of URLs, is larger than is taken."),
  415: problem("The body is of another media type, or coded otherwise than with gzip."),
  422: problem("The Idempotency-Key was used with another body."),
};

const THREE_CALLS: readonly Route[] = [
  {
    ...{ method: "POST", path: "/", operation: "submit", group: "three calls" },
    summary: "Starts a job that crawls the URLs and the pages they link to (one link, on any host), and collects images.",
    parameters: [idempotency],
    body: { required: true, content: upload },
    answers: { 200: { description: "The job.", content: json(ref("SimpleJob")) }, ...uploadProblems },
  },
  {
    ...{ method: "GET", path: "/status/{id}", operation: "status", group: "three calls" },
    summary: "How a job stands, now.",
    answers: { 200: { description: "The job.", content: json(ref("SimpleJob")) }, ...unknownJob },
  },
  {
    ...{ method: "GET", path: "/result/{id}", operation: "result", group: "three calls" },
    summary: "The image URLs found so far, distinct, in order of discovery: one a line, or a JSON array.",
    answers: {
      200: { description: "The URLs.", content: { "text/plain": text, "application/json": listOf(text) } },
      ...unknownJob,
      ...notAcceptable,
      ...storeAway,
    },
  },
];

const smallBody = {
  400: problem("The body, or a parameter, is wrong; `errors` names everything that is."),
  413: problem("The body is larger than is taken."),
  415: uploadProblems[415],
};

const control = (verb: string, summary: string, more: Partial<Route> = {}): Route => ({
  ...{ method: "POST", path: `/v1/jobs/{id}/${verb}`, operation: verb, group: "jobs", summary },
  answers: {
    200: { description: "The job.", content: json(ref("Job")) },
    ...smallBody,
    ...unknownJob,
    409: problem("The job is in a state in which this cannot be done."),
    ...storeAway,
  },
  ...more,
});

const JOBS: readonly Route[] = [
  {
    ...{ method: "POST", path: "/v1/jobs", operation: "createJob", group: "jobs" },
    summary: "Starts a job.",
    description:
      "JSON with options, `seeds` among them; or an upload of URLs, one a line: as text, or as the multipart field `urls` with the options before it in a field `spec`.",
    parameters: [idempotency],
    body: {
      required: true,
      content: {
        "application/json": ref("JobSpec"),
        "multipart/form-data": {
          type: "object",
          properties: { spec: { ...ref("JobSpec"), description: "The options as JSON, before the URLs." }, ...form.properties },
        },
        "text/plain": lines,
        "application/x-www-form-urlencoded": lines,
      },
    },
    answers: { 202: { description: "The job.", content: json(ref("Job")), headers: { Location: "The job." } }, ...uploadProblems },
  },
  {
    ...{ method: "GET", path: "/v1/jobs", operation: "listJobs", group: "jobs" },
    summary: "Jobs, newest first.",
    parameters: [
      { name: "state", in: "query", schema: { type: "string" }, description: `Only jobs in these states, separated by commas: ${JOB_STATES.join(", ")}.` },
      cursor,
      limitOf(MOST_JSON_RECORDS, USUAL_RECORDS, "Jobs in one answer."),
      { name: "If-None-Match", in: "header", schema: text, description: "The `ETag` of the last answer: if nothing has changed, 304 comes instead." },
    ],
    answers: {
      200: { description: "The jobs.", content: json(listOf(ref("Job"))), headers: { ...NEXT, ETag: "Of these jobs as they stand." } },
      304: { description: "Nothing has changed.", headers: { ...NEXT, ETag: "As it was given." } },
    },
  },
  {
    ...{ method: "GET", path: "/v1/jobs/{id}", operation: "getJob", group: "jobs" },
    summary: "A job as it is now.",
    answers: { 200: { description: "The job.", content: json(ref("Job")) }, ...unknownJob },
  },
  {
    ...{ method: "DELETE", path: "/v1/jobs/{id}", operation: "deleteJob", group: "jobs" },
    summary: "Cancels a job that has not ended; deletes one that has, with all its records.",
    description: `Ended are jobs in the states ${[...ENDED_STATES].join(", ")}. What a cancelled job found stays until it is deleted in turn.`,
    answers: {
      200: { description: "The job, cancelled.", content: json(ref("Job")) },
      204: { description: "The job is deleted." },
      ...unknownJob,
      409: problem("The job is in a state in which this cannot be done."),
      ...storeAway,
    },
  },
  control("stop", "Ends a job early; what was found stays.", {
    description: "`queue`: no new links, what is queued is done; `flight`: what is in flight is finished; `now`: it is aborted.",
    body: { required: false, content: json(ref("StopRequest")) },
  }),
  control("pause", "Holds a job: nothing new starts until it is resumed."),
  control("resume", "Goes on with a paused job."),
  {
    ...{ method: "POST", path: "/v1/jobs/{id}/urls", operation: "addUrls", group: "jobs" },
    summary: "Adds seeds to a job that has not ended.",
    body: { required: true, content: upload },
    answers: {
      200: { description: "How many were new.", content: json(ref("Added")) },
      400: uploadProblems[400],
      ...unknownJob,
      409: problem("The job has ended."),
      413: uploadProblems[413],
      415: uploadProblems[415],
      ...storeAway,
    },
  },
  {
    ...{ method: "GET", path: "/v1/jobs/{id}/events", operation: "events", group: "jobs" },
    summary: "What happens, as server-sent events `state`, `counts` and `page`, until the job ends.",
    description: "The `id` of the last event seen goes into `Last-Event-ID` to go on after it. 204 says that there is nothing left to tell.",
    parameters: [{ name: "Last-Event-ID", in: "header", schema: text, description: "The last event that was seen." }],
    answers: {
      200: { description: "The stream.", content: { "text/event-stream": text } },
      204: { description: "The job has ended, and everything was told." },
      ...unknownJob,
      ...notAcceptable,
      503: problem("Too many event streams are open; or as of every route.", RETRY),
    },
  },
  {
    ...{ method: "GET", path: "/v1/jobs/{id}/explain", operation: "explain", group: "jobs" },
    summary: "Why the job did or did not fetch a URL.",
    parameters: [{ name: "url", in: "query", required: true, schema: text, description: "In any spelling." }],
    answers: {
      200: { description: "The explanation.", content: { "application/json": ref("Explanation"), "text/plain": text } },
      ...unknownJob,
      ...notAcceptable,
      ...storeAway,
    },
  },
  {
    ...{ method: "GET", path: "/v1/jobs/{id}/hosts", operation: "hosts", group: "jobs" },
    summary: "The hosts of a job: what waits, rate, delay, whether paused.",
    parameters: [limitOf(MOST_JSON_RECORDS, USUAL_RECORDS, "Hosts in one answer.")],
    answers: { 200: { description: "The hosts.", content: json(listOf(ref("Host"))) }, ...unknownJob, ...storeAway },
  },
  {
    ...{ method: "PATCH", path: "/v1/jobs/{id}/hosts", operation: "patchHosts", group: "jobs" },
    summary: "Pauses hosts of a running job, or changes their delay and concurrency.",
    body: { required: true, content: json(ref("HostPatches")) },
    answers: {
      200: { description: "The job.", content: json(ref("Job")) },
      ...smallBody,
      ...unknownJob,
      409: problem("The job has ended."),
      ...storeAway,
    },
  },
];

const TABLES = [
  ["pages", "Page records in the order in which they were settled.", ref("Page")],
  ["items", "Items that a scraper or `extract` gave.", ref("Item")],
  ["skipped", "URLs that were passed over, with the reason.", ref("Skipped")],
  ["images", "Image URLs, distinct, in order of discovery.", text],
] as const;

const RECORDS: readonly Route[] = TABLES.map(
  ([table, summary, schema]): Route => ({
    ...{ method: "GET", path: `/v1/jobs/{id}/${table}`, operation: table, group: "records", summary },
    description: `At most ${MOST_JSON_RECORDS.toLocaleString("en")} as JSON, ${MOST_STREAMED_RECORDS.toLocaleString("en")} as NDJSON or CSV by \`Accept\`. Pages are stable while the job runs.`,
    parameters: [cursor, limitOf(MOST_STREAMED_RECORDS, USUAL_RECORDS, "Records in one answer.")],
    answers: {
      200: {
        description: "The records.",
        content: { "application/json": listOf(schema), "application/x-ndjson": text, "text/csv": text },
        headers: { ...NEXT, "Skein-Cursor": "Of the last record: where to look for more later." },
      },
      ...unknownJob,
      ...notAcceptable,
      ...storeAway,
    },
  }),
);

const SERVICE: readonly Route[] = [
  {
    ...{ method: "GET", path: "/", operation: "dashboard", group: "service", open: true, anyQuery: true },
    summary: "The dashboard.",
    description: "Parameters that the page does not know are ignored here.",
    parameters: [{ name: "thumbnails", in: "query", schema: text, description: "The page may load the images that a crawl found, from where they lie." }],
    answers: { 200: { description: "A page for a browser.", content: { "text/html": text } } },
  },
  {
    ...{ method: "GET", path: "/dashboard", operation: "dashboardPlace", group: "service", open: true, anyQuery: true },
    summary: "Where the dashboard is.",
    description: "What stands in the query is kept.",
    answers: { 308: { description: "It is at `/`.", headers: { Location: "`/`." } } },
  },
  {
    ...{ method: "GET", path: "/healthz", operation: "healthz", group: "service", open: true },
    summary: "Whether the process answers.",
    answers: { 200: { description: "It does.", content: json(ref("Health")) } },
  },
  {
    ...{ method: "GET", path: "/readyz", operation: "readyz", group: "service", open: true },
    summary: "Whether jobs can be taken and worked on.",
    answers: {
      200: { description: "They can.", content: json(ref("Health")) },
      503: {
        description: "They cannot now; a problem while the service is starting.",
        content: { ...json(ref("Health")), [PROBLEM_TYPE]: ref("Problem") },
        headers: RETRY,
      },
    },
  },
  {
    ...{ method: "GET", path: "/metrics", operation: "metrics", group: "service" },
    summary: "Figures for Prometheus; no figure has a host label.",
    answers: { 200: { description: "Text format 0.0.4.", content: { "text/plain": text } } },
  },
  {
    ...{ method: "GET", path: "/openapi.json", operation: "openapi", group: "service" },
    summary: "This interface as OpenAPI 3.1.",
    answers: { 200: { description: "The document.", content: json({ type: "object" }) } },
  },
];

export const ROUTES: readonly Route[] = [...THREE_CALLS, ...JOBS, ...RECORDS, ...SERVICE];

/** Answers that every route may give. */
export const COMMON_ANSWERS: Readonly<Record<number, Answer>> = {
  400: problem("A parameter is wrong, or none of this route; `errors` names each."),
  401: problem("A token is set, and the request does not bring it.", { "WWW-Authenticate": "Bearer" }),
  403: problem("The Host or the Origin of the request is none that is allowed."),
  429: problem("Too many requests, or too many jobs.", RETRY),
  500: problem("A fault of the service."),
  503: problem("The service is starting, or cannot read or write its data now.", RETRY),
};

/** Answers to what is no request for a route. */
export const STRAY_ANSWERS: Readonly<Record<number, Answer & { readonly name: string }>> = {
  404: { name: "NotFound", ...problem("There is nothing at this path.") },
  405: { name: "MethodNotAllowed", ...problem("The path does not take this method.", { Allow: "The methods that it takes." }) },
  408: { name: "RequestTimeout", ...problem("The request did not come in time.") },
  417: { name: "ExpectationFailed", ...problem("`Expect` asks for something else than `100-continue`.") },
  431: { name: "HeadTooLarge", ...problem("The head of the request is larger than 16 KiB.") },
  501: { name: "NotImplemented", ...problem("The method is none that is known here.") },
};
