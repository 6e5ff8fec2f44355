/** What answers look like, as JSON Schema: for the OpenAPI document, and for the tests that hold the answers to it. */
import { jobJsonSchema } from "../core/job-spec.ts";
import { JOB_STATES } from "../core/jobs.ts";
import { PAGE_FIELDS } from "../core/records.ts";
import { SIMPLE_STATES } from "./views.ts";

export type Schema = Readonly<Record<string, unknown>>;

export const ref = (name: string): Schema => ({ $ref: `#/components/schemas/${name}` });
export const text: Schema = { type: "string" };
const whole: Schema = { type: "integer", minimum: 0 };
const figure: Schema = { type: "number", minimum: 0 };
const time: Schema = { type: "string", format: "date-time" };
export const listOf = (items: Schema): Schema => ({ type: "array", items });
const orNull = (schema: Schema): Schema => ({ anyOf: [schema, { type: "null" }] });
const tally: Schema = { type: "object", additionalProperties: whole };

/** Every property is there unless it stands in `optional`. */
function object(properties: Readonly<Record<string, Schema>>, optional: readonly string[] = [], more = false): Schema {
  const required = Object.keys(properties).filter((name) => !optional.includes(name));
  return { type: "object", properties, required, additionalProperties: more };
}

const FINISH_REASONS = [
  ...["finished", "limit-pages", "limit-items", "limit-time", "limit-bytes", "limit-errors", "stop-condition"],
  ...["cancelled", "interrupted", "failed"],
];
const finishReason = orNull({ enum: FINISH_REASONS });

export const STOP_MODES = ["queue", "flight", "now"] as const;

function schemas(): Readonly<Record<string, Schema>> {
  return {
    JobSpec: {
      ...jobJsonSchema(),
      description: "The options of a crawl that a job may state. Unknown ones and those of whoever runs the service are refused.",
    },
    SimpleJob: object(
      {
        job_id: whole,
        urls: { ...listOf(text), description: "As they were given, the first 1,000." },
        completed: { ...whole, description: "URLs settled, failures and found ones included." },
        inprogress: { ...whole, description: "URLs in work." },
        status: { enum: SIMPLE_STATES },
        total: { ...whole, description: "URLs known so far." },
        urlsTotal: { ...whole, description: "How many URLs were given, if more than are repeated." },
        rejected: listOf(ref("RejectedLine")),
        rejectedTotal: { ...whole, description: "How many lines were rejected, if more than are named." },
      },
      ["urlsTotal", "rejected", "rejectedTotal"],
    ),
    RejectedLine: object({ line: { type: "integer", minimum: 1 }, text, reason: text }),
    Job: object(
      {
        id: whole,
        state: { enum: JOB_STATES },
        spec: { type: "object", description: "The options in full; the values of headers are hidden." },
        counts: ref("Counts"),
        finishReason,
        detail: { ...orNull(text), description: "The reason of a stop as it was given, or what failed." },
        seeds: { ...listOf(text), description: "The first 1,000; in lists of jobs the first 10." },
        seedsTotal: whole,
        createdAt: time,
        startedAt: orNull(time),
        endedAt: orNull(time),
        rejected: listOf(ref("RejectedLine")),
        rejectedTotal: whole,
      },
      ["rejected", "rejectedTotal"],
    ),
    Counts: object({
      ...{ total: whole, completed: whole, inProgress: whole, queued: whole, pages: whole, failed: whole, items: whole, images: whole, skipped: whole },
      ...{ bytes: whole, byStatus: tally, byOutcome: tally, byError: tally, bySkipReason: tally, pagesPerSecond: figure, elapsedMs: figure },
      bottleneck: { ...orNull(text), description: "What limits the speed now; null when the job does not run." },
    }),
    Added: object({ added: whole, known: whole, rejected: listOf(ref("RejectedLine")), rejectedTotal: whole }, ["rejected", "rejectedTotal"]),
    Page: {
      type: "object",
      properties: Object.fromEntries(PAGE_FIELDS.map((name) => [name, {}])),
      additionalProperties: false,
      description: "A page record (records.md).",
    },
    Skipped: { type: "object", required: ["url", "reason"], description: "A skipped URL with its reason (records.md)." },
    Item: { type: "object", description: "What a scraper or `extract` gave, with `_meta`." },
    Explanation: object({ url: text, lines: listOf(text) }),
    Host: object(
      {
        ...{ host: text, queued: whole, inFlight: whole, concurrency: whole, delayMs: figure, dueInMs: figure, settled: whole, meanLatencyMs: figure },
        paused: { type: "boolean" },
      },
      [],
      true,
    ),
    HostPatches: {
      type: "object",
      minProperties: 1,
      maxProperties: 100,
      additionalProperties: {
        type: "object",
        minProperties: 1,
        properties: {
          paused: { type: "boolean", description: "Nothing starts there until it is false again." },
          delay: { type: ["string", "number", "null"], description: "Least gap between request starts, a duration or ms; null lifts what was set." },
          concurrency: { type: ["integer", "null"], minimum: 1, maximum: 1000, description: "Most requests in flight there; null lifts what was set." },
        },
        additionalProperties: false,
      },
      description: "Changes by host, as the records spell it: name, and port unless it is the scheme's.",
    },
    StopRequest: object({ mode: { enum: STOP_MODES, default: "flight" }, reason: { type: "string", maxLength: 500 } }, ["mode", "reason"]),
    Health: object({ status: { enum: ["ok", "unavailable"] }, detail: orNull(text) }, ["detail"]),
    Problem: object(
      {
        type: text,
        title: text,
        status: { type: "integer", minimum: 400, maximum: 599 },
        detail: text,
        errors: listOf(object({ option: text, pointer: text, line: whole, text, message: text }, ["option", "pointer", "line", "text"])),
        rejected: listOf(ref("RejectedLine")),
        rejectedTotal: whole,
        job: ref("Job"),
      },
      ["errors", "rejected", "rejectedTotal", "job"],
    ),
  };
}

let made: Readonly<Record<string, Schema>> | null = null;
/** All of them by name. Made once: they never change. */
export function componentSchemas(): Readonly<Record<string, Schema>> {
  made ??= schemas();
  return made;
}
