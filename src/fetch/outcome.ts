/** What an exchange that is over means: the job's state → FetchOutcome. */
import type { Cookie, HostAnswer, HostTuning } from "../core/frontier.ts";
import type { ExchangeFacts, FetchedResponse, FetchOutcome } from "../core/outcome.ts";
import type { ErrorCode } from "../core/records.ts";
import { trimBlanks } from "../rules/field-value.ts";
import { isPassingStatus, parseRetryAfter } from "../rules/retry.ts";
import { type Decoded, decodeBody } from "./body.ts";
import { FAILURES, type Failure } from "./errors.ts";
import { type RawHeaders, rawField, responseHeaders } from "./headers.ts";
import { type Job, keptBytes } from "./job.ts";

/** What is read from the answer's headers besides the page. */
export interface OutcomeRules {
  now(): number;
  epoch(): number;
  /** Most decoded bytes. */
  limit(job: Job): number;
  setCookies(lines: readonly string[], job: Job): readonly Cookie[] | null;
}

const LOCAL: HostTuning = Object.freeze({ local: true });
const NO_HEADERS: RawHeaders = Object.freeze({});

/** A status whose Location is followed (RFC 9110 §15.4; 300 and 304 are answers). */
export function isRedirect(status: number): boolean {
  return status === 301 || status === 302 || status === 303 || status === 307 || status === 308;
}

/** The Location to follow; of several lines the first. Null: none, or blank. */
export function locationOf(raw: RawHeaders): string | null {
  const value = rawField(raw, "location");
  const first = trimBlanks((typeof value === "string" ? value : value?.[0]) ?? "");
  return first === "" ? null : first;
}

/** As the server wrote it; several lines joined as one list, of which rules/media-type.ts picks. */
export function contentTypeOf(raw: RawHeaders): string | null {
  const value = rawField(raw, "content-type");
  return (typeof value === "string" ? value : value?.join(", ")) ?? null;
}

/** The answer has come, whole or cut at the limit. */
export function answered(job: Job, rules: OutcomeRules): FetchOutcome | Promise<FetchOutcome> {
  const { codings } = job;
  if (job.kept === 0 || codings.kind !== "list" || job.use !== "keep") return conclude(job, rules, plain(job), null);
  const decoded = decodeBody(keptBytes(job), codings.codings, rules.limit(job));
  return decoded instanceof Promise ? decoded.then((late) => conclude(job, rules, late, null)) : conclude(job, rules, decoded, null);
}

/** The exchange failed, before or during the answer; what came of the body is kept with it. */
export function failed(job: Job, rules: OutcomeRules, failure: Failure): FetchOutcome | Promise<FetchOutcome> {
  const { codings } = job;
  if (job.kept === 0 || codings.kind !== "list") return conclude(job, rules, plain(job), failure);
  const decoded = decodeBody(keptBytes(job), codings.codings, rules.limit(job));
  return decoded instanceof Promise ? decoded.then((late) => conclude(job, rules, late, failure)) : conclude(job, rules, decoded, failure);
}

/** Ended by us. */
export function aborted(job: Job, rules: OutcomeRules): FetchOutcome {
  const now = rules.now();
  return {
    kind: "aborted",
    startedAt: job.startedAt,
    durationMs: now - job.beganAt,
    sinceStartMs: job.startAt < 0 ? null : now - job.startAt,
    answer: null,
    host: job.local ? LOCAL : null,
    setCookies: null,
  };
}

function plain(job: Job): Decoded {
  return { body: keptBytes(job), truncated: false, problem: null };
}

function conclude(job: Job, rules: OutcomeRules, decoded: Decoded, failure: Failure | null): FetchOutcome {
  const { status } = job;
  const response = job.raw === null ? null : responseOf(job, job.raw, decoded);
  const trouble = failure ?? (response ? troubleOf(job, decoded) : FAILURES.cut);
  const facts = factsOf(job, rules, trouble);
  if (response && isPassingStatus(status)) {
    const after = retryAfterField(response);
    const limited = status === 429 || (status === 503 && after !== undefined);
    const retryAfterMs = after === undefined ? null : parseRetryAfter(after, rules.epoch());
    return failedOutcome(facts, limited ? "rate-limited" : "http", `HTTP status ${status}`, status, response, true, retryAfterMs);
  }
  if (trouble || !response) {
    const { code, message, retryable } = trouble ?? FAILURES.cut;
    return failedOutcome(facts, code, message, response ? status : null, response, retryable, null);
  }
  const location = job.use === "redirect" ? locationOf(job.raw ?? NO_HEADERS) : null;
  return location === null ? { ...facts, kind: "fetched", response } : { ...facts, kind: "redirect", response, location };
}

/** All lines of it as one. */
function retryAfterField({ headers }: FetchedResponse): string | undefined {
  const lines = headers.all("retry-after");
  return lines.length > 1 ? lines.join(", ") : lines[0];
}

/** A whole answer with a body that cannot be read. */
function troubleOf(job: Job, decoded: Decoded): Failure | null {
  if (job.use !== "keep" || job.kept === 0) return null;
  if (job.codings.kind === "unsupported") return { code: "decode", retryable: false, message: job.codings.message };
  if (decoded.problem === null || job.cut) return null;
  return decoded.problem === "cut" ? FAILURES.codingCut : FAILURES.codingDamaged;
}

function failedOutcome(
  facts: ExchangeFacts,
  code: ErrorCode,
  message: string,
  status: number | null,
  response: FetchedResponse | null,
  retryable: boolean,
  retryAfterMs: number | null,
): FetchOutcome {
  return { ...facts, kind: "failed", code, message, status, response, retryable, retryAfterMs };
}

function responseOf(job: Job, raw: RawHeaders, decoded: Decoded): FetchedResponse {
  return {
    status: job.status,
    headers: responseHeaders(raw),
    contentType: contentTypeOf(raw),
    body: decoded.body,
    wireBytes: job.wire,
    truncated: job.cut || decoded.truncated,
    bodySkipped: job.use === "skip",
  };
}

function factsOf(job: Job, rules: OutcomeRules, trouble: Failure | null): ExchangeFacts {
  const now = rules.now();
  const cookies = job.raw === null ? undefined : rawField(job.raw, "set-cookie");
  return {
    startedAt: job.startedAt,
    durationMs: now - job.beganAt,
    sinceStartMs: job.startAt < 0 ? null : now - job.startAt,
    answer: answerOf(job, now, trouble),
    host: job.local ? LOCAL : null,
    setCookies: cookies === undefined ? null : rules.setCookies(typeof cookies === "string" ? [cookies] : cookies, job),
  };
}

/** How the answer speaks of the host's health. Null when the host was not even looked for: no address, or one that is refused. */
function answerOf(job: Job, now: number, trouble: Failure | null): HostAnswer | null {
  const { status, startAt, headAt } = job;
  const latencyMs = startAt < 0 ? now - job.beganAt : (headAt < 0 ? now : headAt) - startAt;
  if (trouble?.code === "timeout") return { kind: "pushback", latencyMs };
  if (trouble?.code === "dns" || trouble?.code === "blocked-address") return null;
  if (status === 429 || status === 503) return { kind: "pushback", latencyMs };
  const good = status > 0 && status < 500 && (trouble === null || trouble.code === "decode");
  return { kind: good ? "good" : "none", latencyMs };
}
