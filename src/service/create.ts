/** A job from the body of a request: options checked, URLs streamed to whoever keeps jobs, a repetition told by its Idempotency-Key. */
import { createHash, type Hash } from "node:crypto";
import { CrawlError, type OptionProblem } from "../core/errors.ts";
import { parseJobSpec } from "../core/job-spec.ts";
import type { Created, JobView, RejectedLine } from "../core/jobs.ts";
import { type CrawlSpec, parseSpec } from "../core/spec.ts";
import { compilePattern } from "../rules/patterns.ts";
import { type Bytes, linesOf } from "./bytes.ts";
import { type Ask, incomingOf, type Service } from "./context.ts";
import { riskyExpression } from "./expressions.ts";
import { HttpProblem, type ProblemEntry, pointerOf } from "./problem.ts";
import { readUpload, type Upload, urlList } from "./upload.ts";
import { fullJob, withoutUser } from "./views.ts";

/** Of the three-call API: the URLs and what they link to, on any host, images collected. */
export function threeCallSpec(): CrawlSpec {
  return parseSpec({ maxDepth: 1, scope: { preset: "any" }, images: true });
}

const PATTERN_OPTIONS = ["scope.include", "scope.exclude", "follow", "list"] as const;

function patternProblems(spec: CrawlSpec): OptionProblem[] {
  const lists: Readonly<Record<(typeof PATTERN_OPTIONS)[number], readonly string[]>> = {
    "scope.include": spec.scope.include,
    "scope.exclude": spec.scope.exclude,
    follow: spec.follow,
    list: spec.list,
  };
  return PATTERN_OPTIONS.flatMap((option) =>
    lists[option].flatMap((text): readonly OptionProblem[] => {
      try {
        compilePattern(text, option);
      } catch (error) {
        if (error instanceof CrawlError && error.problems.length > 0) return error.problems;
        throw error;
      }
      const risk = text.startsWith("re:") ? riskyExpression(text.slice(3)) : null;
      return risk === null ? [] : [{ option, message: `this regular expression ${risk}` }];
    }),
  );
}

const MOST_ERRORS = 100;

function wrongOptions(problems: readonly OptionProblem[]): HttpProblem {
  const errors = problems.slice(0, MOST_ERRORS).map(({ option, message }): ProblemEntry => ({ option, pointer: pointerOf(option), message }));
  const detail = problems.length === 1 ? "an option is wrong" : `${problems.length} options are wrong`;
  return new HttpProblem({ status: 400, detail, errors });
}

/** Throws HttpProblem 400 with every problem at once. */
export function jobSpecOf(value: unknown, { scrapers }: Service): CrawlSpec {
  try {
    const spec = parseJobSpec(value, { scrapers });
    const problems = patternProblems(spec);
    if (problems.length > 0) throw wrongOptions(problems);
    return spec;
  } catch (error) {
    if (error instanceof CrawlError && error.code === "invalid-options") throw wrongOptions(error.problems);
    throw error;
  }
}

function keyOf(ask: Ask): string | null {
  const key = ask.req.header("idempotency-key");
  if (key === undefined) return null;
  if (/^[\x21-\x7e]{1,255}$/.test(key)) return key;
  throw new HttpProblem({
    ...{ status: 400, detail: "Idempotency-Key: expected 1 to 255 printable characters without blanks", close: true },
    errors: [{ option: "Idempotency-Key", message: "expected 1 to 255 printable characters without blanks" }],
  });
}

/** Runs what pulls the lines of a body; rejects with the body's own fault where that is why it failed, whatever became of it on its way through the store. */
export async function pulling<T>(bytes: Bytes, work: (lines: AsyncIterable<string>) => Promise<T>): Promise<T> {
  let failure: unknown = null;
  try {
    return await work(linesOf(bytes, (error) => (failure = error)));
  } catch (error) {
    throw failure ?? error;
  }
}

export interface Wanted {
  readonly spec: CrawlSpec;
  readonly upload: Upload;
  /** With `json`: the URLs in it. */
  readonly urls: readonly string[];
}

/** What the caller wants, as far as can be said before the lines are read. */
export async function wantedOf(ask: Ask, service: Service, api: "simple" | "full"): Promise<Wanted> {
  const upload = await readUpload(incomingOf(ask), service.limits, api === "full");
  if (upload.kind === "lines") {
    const spec = api === "simple" ? threeCallSpec() : jobSpecOf(upload.spec ?? {}, service);
    if (Array.isArray(spec.seeds) && spec.seeds.length > 0) throw wrongOptions([{ option: "seeds", message: "the URLs are uploaded already; leave this out" }]);
    return { spec: { ...spec, seeds: [] }, upload, urls: [] };
  }
  if (api === "simple") return { spec: threeCallSpec(), upload, urls: simpleUrls(upload.value) };
  const spec = jobSpecOf(upload.value, service);
  return { spec: { ...spec, seeds: [] }, upload, urls: Array.isArray(spec.seeds) ? spec.seeds : [] };
}

/** `{"urls": […]}`, or the list alone. */
export function simpleUrls(value: unknown): readonly string[] {
  if (Array.isArray(value)) return urlList(value, "#");
  const object: Readonly<Record<string, unknown>> = typeof value === "object" && value !== null ? { ...value } : {};
  const unknown = Object.keys(object).filter((name) => name !== "urls");
  if (unknown.length > 0)
    throw new HttpProblem({
      status: 400,
      detail: 'expected {"urls": […]}',
      errors: unknown.slice(0, MOST_ERRORS).map((name) => ({ option: name, pointer: pointerOf(name), message: "no such option" })),
    });
  return urlList(object["urls"], "#/urls");
}

/** Hands bytes on and into the hash. */
async function* hashed(bytes: Bytes, hash: Hash): AsyncGenerator<Uint8Array> {
  for await (const chunk of bytes) {
    hash.update(chunk);
    yield chunk;
  }
}

/** Makes the job. Throws HttpProblem for everything but a job that is there now. */
export async function createJob(
  ask: Ask,
  { jobs, ...service }: Service,
  api: "simple" | "full",
): Promise<Extract<Created, { job: JobView; rejectedTotal: number }>> {
  const key = keyOf(ask);
  const { spec, upload, urls } = await wantedOf(ask, { jobs, ...service }, api);
  const hash = createHash("sha256").update(`${api}\n${JSON.stringify(spec)}\n`);
  let digest: string | null = null;
  const idempotency =
    key === null
      ? null
      : {
          key,
          // Of an upload it is known once the lines were read.
          get fingerprint() {
            digest ??= hash.digest("hex");
            return digest;
          },
        };
  if (upload.kind === "lines") return answerOf(await pulling(hashed(upload.bytes, hash), (lines) => jobs.create({ spec, lines, idempotency })));
  hash.update(JSON.stringify(urls));
  return answerOf(await jobs.create({ spec, lines: urls, emptyLines: "reject", idempotency }));
}

/** Seconds after which a job may have ended. */
const JOBS_RETRY_AFTER = "30";

function answerOf(created: Created) {
  switch (created.kind) {
    case "created":
    case "repeated":
      return created;
    case "conflict":
      throw new HttpProblem({ status: 422, detail: "this Idempotency-Key was used with another body", more: { job: fullJob(created.job) } });
    case "no-seeds":
      throw noSeeds(created.rejected, created.rejectedTotal);
    case "too-many":
      if (created.what === "urls") throw new HttpProblem({ status: 413, detail: `a job takes at most ${created.limit} URLs`, close: true });
      throw new HttpProblem({
        status: 429,
        detail: `as many jobs as this service takes (${created.limit}) have not ended: try again once one has, or cancel one`,
        headers: { "retry-after": JOBS_RETRY_AFTER },
        close: true,
      });
  }
}

export function noSeeds(rejected: readonly RejectedLine[], rejectedTotal: number): HttpProblem {
  const shown = rejected.map(({ line, text, reason }) => ({ line, text: withoutUser(text), reason }));
  const errors = shown.map(({ line, text, reason }): ProblemEntry => ({ line, text, message: reason }));
  const detail = rejectedTotal === 0 ? "there is no URL in the body" : `none of the ${rejectedTotal} lines is a URL`;
  const entries = errors.length === 0 ? [{ option: "urls", message: detail }] : errors;
  return new HttpProblem({ status: 400, detail, errors: entries, more: { rejected: shown, ...(rejectedTotal > shown.length ? { rejectedTotal } : {}) } });
}
