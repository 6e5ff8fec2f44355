/** A job from the body of a request: options checked, URLs streamed to whoever keeps jobs, a repetition told by its Idempotency-Key. */
import { createHash, type Hash } from "node:crypto";
import { CrawlError, type OptionProblem } from "../core/errors.ts";
import { HIDDEN, isScraperName, parseJobSpec } from "../core/job-spec.ts";
import type { Created, JobView } from "../core/jobs.ts";
import { type CrawlSpec, parseSpec } from "../core/spec.ts";
import { compilePattern } from "../rules/patterns.ts";
import type { Bytes } from "./bytes.ts";
import { type Ask, incomingOf, queryFaults, type Service } from "./context.ts";
import { riskyExpression } from "./expressions.ts";
import { besides, entriesOf, type Lines, MOST_ERRORS, noSeeds, pulling, refusal, type SeedPlace } from "./faults.ts";
import { HttpProblem, type ProblemEntry, pointerOf } from "./problem.ts";
import { readUpload, type Upload } from "./upload.ts";
import { fullJob } from "./views.ts";

/** Of the three-call API: the URLs and what they link to, on any host, images collected. */
export function threeCallSpec(): CrawlSpec {
  return parseSpec({ maxDepth: 1, scope: { preset: "any" }, images: true });
}

const PATTERN_OPTIONS = ["scope.include", "scope.exclude", "follow", "list"] as const;

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> => typeof value === "object" && value !== null && !Array.isArray(value);

function patternProblem(text: string, option: string): readonly OptionProblem[] {
  try {
    compilePattern(text, option);
  } catch (error) {
    if (error instanceof CrawlError && error.problems.length > 0) return error.problems;
    throw error;
  }
  const risk = text.startsWith("re:") ? riskyExpression(text.slice(3)) : null;
  return risk === null ? [] : [{ option, message: `this regular expression ${risk}` }];
}

/** Of options as they were given, whatever else is wrong with them. */
function patternProblems(given: Readonly<Record<string, unknown>>): readonly OptionProblem[] {
  return PATTERN_OPTIONS.flatMap((option) => {
    const value = option.split(".").reduce<unknown>((inner, key) => (isObject(inner) ? inner[key] : undefined), given);
    const texts: readonly unknown[] = Array.isArray(value) ? value : [];
    return texts.flatMap((text) => (typeof text === "string" ? patternProblem(text, option) : []));
  });
}

/** A spec as it is shown has no credentials: made into a job again they would be lost without a word. */
function hiddenProblems(given: Readonly<Record<string, unknown>>): readonly OptionProblem[] {
  const inside = (fields: unknown, option: string): OptionProblem[] =>
    Object.entries(isObject(fields) ? fields : {})
      .filter(([, value]) => value === HIDDEN)
      .map(([name]) => ({ option: `${option}.${name}`, message: "the value is not shown again; give it anew, or leave the header out" }));
  const hosts = Object.entries(isObject(given["hosts"]) ? given["hosts"] : {});
  return [
    ...inside(given["headers"], "headers"),
    ...hosts.flatMap(([host, rules]) => inside(isObject(rules) ? rules["headers"] : undefined, `hosts.${host}.headers`)),
  ];
}

interface Options {
  /** Null: something is wrong with them. */
  readonly spec: CrawlSpec | null;
  readonly problems: readonly OptionProblem[];
}

/** Options without seeds, with every problem at once. */
async function optionsOf(value: unknown, { scrapers, jobs }: Service): Promise<Options> {
  const problems: OptionProblem[] = [];
  let spec: CrawlSpec | null = null;
  try {
    spec = parseJobSpec(value, { scrapers });
  } catch (error) {
    if (!(error instanceof CrawlError) || error.code !== "invalid-options") throw error;
    problems.push(...error.problems);
  }
  if (!isObject(value)) return { spec: null, problems };
  problems.push(...patternProblems(value), ...hiddenProblems(value));
  const { scraper } = value;
  if (scrapers && isScraperName(scraper)) problems.push(...(await jobs.problemsOf({ scraper })));
  return { spec: problems.length === 0 ? spec : null, problems };
}

const entriesFor = (problems: readonly OptionProblem[]): readonly ProblemEntry[] =>
  problems.slice(0, MOST_ERRORS).map(({ option, message }) => ({ option, pointer: pointerOf(option), message }));

const BAD_KEY = "expected 1 to 255 printable characters without blanks";

/** Null: there is none, or none that can be used, which is noted. */
function keyOf(ask: Ask, faults: ProblemEntry[]): string | null {
  const key = ask.req.header("idempotency-key");
  if (key === undefined || /^[\x21-\x7e]{1,255}$/.test(key)) return key ?? null;
  faults.push({ option: "Idempotency-Key", message: BAD_KEY });
  return null;
}

interface Wanted {
  /** Null: there are faults. */
  readonly spec: CrawlSpec | null;
  readonly upload: Upload;
  readonly lines: Lines;
  readonly options: readonly ProblemEntry[];
}

const FIELD: SeedPlace = { option: "urls", pointer: null };

/** `{"urls": […]}`, or the list alone. */
export function simpleLines(value: unknown): { readonly lines: Lines; readonly faults: readonly ProblemEntry[] } {
  const alone = Array.isArray(value);
  const place: SeedPlace = { option: "urls", pointer: alone ? "#" : "#/urls" };
  const object = isObject(value) ? value : {};
  const unknown = (alone ? [] : Object.keys(object)).filter((name) => name !== "urls").slice(0, MOST_ERRORS);
  const { list, faults } = entriesOf(alone ? value : object["urls"], place);
  return {
    lines: { place, list, bytes: null, bareScheme: "refuse", needed: list !== null },
    faults: [...unknown.map((name) => ({ option: name, pointer: pointerOf(name), message: "no such option" })), ...faults],
  };
}

/** How bare hosts are read, where the options may be wrong. */
function bareSchemeOf(scheme: unknown): Lines["bareScheme"] {
  if (scheme === undefined || scheme === null) return "refuse";
  return scheme === "http" ? "http" : "https";
}

/** There may be no seeds where sitemaps have them (jobs/intake.ts). */
const needsSeeds = ({ sitemaps }: Readonly<Record<string, unknown>>): boolean =>
  typeof sitemaps === "string" ? sitemaps === "auto" : !(Array.isArray(sitemaps) && sitemaps.some((url) => url !== "auto"));

/** What the caller wants, as far as can be said before the lines are read. */
async function wantedOf(upload: Upload, service: Service, api: "simple" | "full"): Promise<Wanted> {
  const bytes = upload.kind === "lines" ? upload.bytes : null;
  if (api === "simple") {
    const { lines, faults } =
      upload.kind === "json"
        ? simpleLines(upload.value)
        : { lines: { place: FIELD, list: null, bytes, bareScheme: "refuse", needed: true } as const, faults: [] };
    return { spec: threeCallSpec(), upload, lines, options: faults };
  }
  const given = upload.kind === "json" ? upload.value : upload.spec === undefined ? {} : upload.spec;
  // No JSON, which is told already.
  const unread = given === null && upload.faults.length > 0;
  const { seeds, ...rest } = isObject(given) ? given : { seeds: undefined };
  const { spec, problems } = unread ? { spec: null, problems: [] } : await optionsOf(isObject(given) ? rest : given, service);
  const pointed: SeedPlace = { option: "seeds", pointer: "#/seeds" };
  const entered = isObject(given) && seeds !== undefined ? entriesOf(seeds, pointed) : { list: isObject(given) ? [] : null, faults: [] };
  const twice = bytes !== null && (entered.list?.length ?? 0) > 0 ? [{ option: "seeds", message: "the URLs are uploaded already; leave this out" }] : [];
  const options = [...entriesFor([...problems, ...twice]), ...entered.faults];
  const bareScheme = unread ? "https" : bareSchemeOf(isObject(rest) ? rest["defaultScheme"] : null);
  const needed = needsSeeds(rest) && (bytes !== null || entered.list !== null);
  return { spec, upload, options, lines: { place: bytes === null ? pointed : FIELD, list: bytes === null ? entered.list : null, bytes, bareScheme, needed } };
}

/** Hands bytes on and into the hash. */
async function* hashed(bytes: Bytes, hash: Hash): AsyncGenerator<Uint8Array> {
  for await (const chunk of bytes) {
    hash.update(chunk);
    yield chunk;
  }
}

/** Makes the job. Throws HttpProblem for everything but a job that is there now, with all that is wrong with the request. */
export async function createJob(ask: Ask, service: Service, api: "simple" | "full"): Promise<JobView> {
  const { jobs } = service;
  const head = [...queryFaults(ask)];
  const key = keyOf(ask, head);
  const upload = await readUpload(incomingOf(ask), service.limits, api === "full").catch((error: unknown) => Promise.reject(besides(head, error)));
  const { spec: checked, lines, options } = await wantedOf(upload, service, api);
  const faults = { head: [...head, ...upload.faults], options };
  if (checked === null || faults.head.length + options.length > 0) throw await refusal(faults, lines);
  const spec = { ...checked, seeds: [] };
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
  const { place, bytes } = lines;
  if (bytes !== null) return answerOf(await pulling(hashed(bytes, hash), (texts) => jobs.create({ spec, lines: texts, idempotency })), place);
  const urls = (lines.list ?? []).filter((text) => text !== null);
  hash.update(JSON.stringify(urls));
  return answerOf(await jobs.create({ spec, lines: urls, emptyLines: "reject", idempotency }), place);
}

/** Seconds after which a job may have ended. */
const JOBS_RETRY_AFTER = "30";

function answerOf(created: Created, place: SeedPlace): JobView {
  switch (created.kind) {
    case "created":
    case "repeated":
      return created.job;
    case "conflict":
      throw new HttpProblem({ status: 422, detail: "this Idempotency-Key was used with another body", more: { job: fullJob(created.job) } });
    case "no-seeds":
      throw noSeeds(created, place);
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
