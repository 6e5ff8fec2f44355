/** What answers look like, as JSON Schema: for the OpenAPI document, and for the tests that hold the answers to it. */
import { jobJsonSchema } from "../core/job-spec.ts";
import { JOB_STATES } from "../core/jobs.ts";
import { PAGE_FIELDS, type PageRecord } from "../core/records.ts";
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
const the = (description: string, schema: Schema): Schema => ({ ...schema, description });
const rejected = the("Lines that are no URLs, the first 100.", listOf(ref("RejectedLine")));
const rejectedTotal = the("How many lines were rejected, if more than are named.", whole);

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

const ELAPSED = "Time for which the job has run, over restarts of the service; time in which it was paused or waited does not count.";
const SETTLED = "Requests that came to an end there; of a job that is not in a store, since the service went on with it.";

/** Of each field of a page record; docs/records.md says more. */
const PAGE_NOTES: Readonly<Record<keyof PageRecord, string>> = {
  url: "Canonical form, without fragment and credentials.",
  status: "HTTP status; null when no answer came.",
  outcome: "`fetched`, `redirected`, `unchanged`, `disallowed`, `failed` or `gone`.",
  depth: "Links from a seed; 0 for a page that a sitemap lists.",
  referrer: "The page or sitemap in which the URL was found; null for seeds.",
  location: "If redirected: where to, absolute.",
  redirects: "The redirects that led to it: their `url` and `status`, oldest first; empty if there were none.",
  contentType: "As the server wrote it; null when it did not say.",
  charset: "If the body is text: its encoding, in lower case.",
  charsetSource: "Where the charset came from: `bom`, `header`, `meta`, `utf-8-valid` or `default`.",
  bytes: "Body bytes on the wire.",
  bytesDecoded: "Body bytes after decompression, as kept.",
  truncated: "True if the body was cut at `maxBodySize`.",
  bodySkipped: "True if `types` did not want this body.",
  digest: "If there is a body: `sha256:` and the hex digest of the decoded body.",
  etag: "If the server sent one.",
  lastModified: "If the server sent one.",
  title: "If the page has one.",
  canonical: "If the page names its canonical URL.",
  robots: "Directives of `meta robots` and `X-Robots-Tag` that applied.",
  links: "Absolute, canonical, distinct, in page order, whether followed or not.",
  images: "With `images`: absolute image URLs.",
  attempts: "Requests that were made for it.",
  fromCache: "True if the body came from the response cache.",
  change: "Against the last run: `new`, `changed`, `unchanged` or `gone`.",
  error: "If failed: `code` and `message`.",
  fetchedAt: "When the request was sent or the verdict fell.",
  durationMs: "From the start of the request to the end of the body.",
  itemErrors: "Items that their schema refused: `type`, `field`, `message`, `item`.",
};

const problemEntry = object(
  {
    option: the("The option or parameter; empty: the body as a whole.", text),
    pointer: the("Its place in a JSON body (RFC 6901), with `#` before it.", text),
    line: the("The line of an upload, from 1.", whole),
    text: the("What stands in that line.", text),
    message: the("What is wrong with it.", text),
  },
  ["option", "pointer", "line", "text"],
);

export const STOP_MODES = ["queue", "flight", "now"] as const;

function schemas(): Readonly<Record<string, Schema>> {
  return {
    JobSpec: {
      ...jobJsonSchema(),
      description: "The options of a crawl that a job may state. Unknown ones and those of whoever runs the service are refused.",
    },
    SimpleJob: object(
      {
        job_id: the("The job's number.", whole),
        urls: the("As they were given, the first 1,000.", listOf(text)),
        completed: the("URLs settled, failures and found ones included.", whole),
        inprogress: the("URLs in work.", whole),
        status: the("`done`: all URLs are settled.", { enum: SIMPLE_STATES }),
        total: the("URLs known so far; until a list of more than 1,000 is read, its lines.", whole),
        urlsTotal: the("How many URLs were given, if more than are repeated.", whole),
        ...{ rejected, rejectedTotal },
      },
      ["urlsTotal", "rejected", "rejectedTotal"],
    ),
    RejectedLine: object({
      line: the("Its number, from 1; of a JSON list the place in it, from 1.", { type: "integer", minimum: 1 }),
      text: the("What stands there, without credentials, cut to 200 characters.", text),
      reason: the("Why it is no URL.", text),
    }),
    Job: object(
      {
        id: the("Its number.", whole),
        state: the("Where it stands; the last four are ends.", { enum: JOB_STATES }),
        spec: the("The options in full, `seeds` as below; a spec for the same job, but for the values of headers, which are hidden.", { type: "object" }),
        counts: the("Its figures, now or at its end.", ref("Counts")),
        finishReason: the("How it ended; null until then.", finishReason),
        detail: the("The reason of a stop as it was given, or what failed.", orNull(text)),
        seeds: the("The first 1,000; in lists of jobs the first 10.", listOf(text)),
        seedsTotal: the("How many seeds there are.", whole),
        createdAt: the("When it was made.", time),
        startedAt: the("When it began to run; null before.", orNull(time)),
        endedAt: the("When it ended; null before.", orNull(time)),
        ...{ rejected, rejectedTotal },
      },
      ["rejected", "rejectedTotal"],
    ),
    Counts: object({
      total: the("URLs known so far; until a list of more than 1,000 is read, its lines.", whole),
      completed: the("URLs settled, whatever became of them.", whole),
      inProgress: the("URLs in work.", whole),
      queued: the("URLs that wait.", whole),
      pages: the("Page records with the outcome `fetched` or `unchanged`.", whole),
      failed: the("Page records with the outcome `failed`.", whole),
      items: the("Items given.", whole),
      images: the("Distinct image URLs found, if the job collects them.", whole),
      skipped: the("URLs that were passed over.", whole),
      bytes: the("Bytes of bodies on the wire.", whole),
      byStatus: the("Page records by HTTP status.", tally),
      byOutcome: the("Page records by outcome.", tally),
      byError: the("Failed pages by error code.", tally),
      bySkipReason: the("Skipped URLs by reason.", tally),
      pagesPerSecond: the("Over the last seconds; of a job that has ended over all its time.", figure),
      elapsedMs: the(ELAPSED, figure),
      bottleneck: the("What limits the speed now; null when the job does not run.", orNull(text)),
    }),
    Added: object({ added: the("URLs that were new.", whole), known: the("URLs that the job knew already.", whole), rejected, rejectedTotal }, [
      "rejected",
      "rejectedTotal",
    ]),
    Page: {
      type: "object",
      properties: Object.fromEntries(PAGE_FIELDS.map((name) => [name, { description: PAGE_NOTES[name] }])),
      additionalProperties: false,
      description: "A page record (records.md).",
    },
    Skipped: object(
      {
        url: the("The URL that was passed over.", text),
        referrer: the("The page or sitemap in which it was found; null for seeds.", orNull(text)),
        depth: the("Links from a seed.", whole),
        reason: the("Why (records.md).", text),
        rule: the("The pattern, the line of robots.txt or the limit that decided.", text),
      },
      ["referrer", "depth", "rule"],
      true,
    ),
    Item: { type: "object", description: "What a scraper or `extract` gave, with `_meta`." },
    Explanation: object({
      url: the("The URL as the job knows it.", text),
      lines: the("The words of `skein explain`, line by line.", listOf(text)),
    }),
    Host: object(
      {
        host: the("Name, and port unless it is the scheme's.", text),
        queued: the("URLs that wait for it.", whole),
        inFlight: the("Requests in flight there.", whole),
        concurrency: the("Most requests in flight there now.", whole),
        delayMs: the("Least gap between request starts there.", figure),
        dueInMs: the("How long until the next request may start; 0: at once.", figure),
        settled: the(SETTLED, whole),
        meanLatencyMs: the("Mean time to the end of an answer; 0: none yet.", figure),
        paused: the("Whether it was paused by a call.", { type: "boolean" }),
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
          paused: the("Nothing starts there until it is false again.", { type: "boolean" }),
          delay: the("Least gap between request starts, a duration or ms; null lifts what was set.", { type: ["string", "number", "null"] }),
          concurrency: the("Most requests in flight there; null lifts what was set.", { type: ["integer", "null"], minimum: 1, maximum: 1000 }),
        },
        additionalProperties: false,
      },
      description: "Changes by host, as the records spell it: name, and port unless it is the scheme's.",
    },
    StopRequest: object(
      {
        mode: the("What becomes of what is queued and in flight; by default `flight`.", { enum: STOP_MODES, default: "flight" }),
        reason: the("Kept as the job's `detail`.", { type: "string", maxLength: 500 }),
      },
      ["mode", "reason"],
    ),
    Health: object({ status: the("Whether it is fit.", { enum: ["ok", "unavailable"] }), detail: the("Why it is not.", orNull(text)) }, ["detail"]),
    Problem: object(
      {
        type: the("Always `about:blank`: the status says what it is.", text),
        title: the("The status in words.", text),
        status: the("The HTTP status.", { type: "integer", minimum: 400, maximum: 599 }),
        detail: the("What is wrong here, for people.", text),
        errors: the("Everything that is wrong, each with its place.", listOf(problemEntry)),
        ...{ rejected, rejectedTotal },
        job: the("The job as it is, where its state is the reason.", ref("Job")),
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
