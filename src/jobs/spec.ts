/** The spec of a job: what of it a job may decide, what the operator decides, and what of it is shown. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { CrawlError } from "../core/errors.ts";
import { type CrawlSpec, options, parseSpec } from "../core/spec.ts";

export interface JobPolicy {
  readonly addresses: CrawlSpec["addresses"];
  readonly scrapersDir: string | null;
  /** Most requests in flight of one job; null: as the job says. */
  readonly concurrency: number | null;
  /** Threads in which a job's scraper runs. */
  readonly parseWorkers: number;
}

function put(target: Record<string, unknown>, path: string, value: unknown): void {
  const [head = "", ...rest] = path.split(".");
  if (rest.length === 0) target[head] = value;
  else {
    const inner = { ...(target[head] as Record<string, unknown>) }; // a group of options
    put(inner, rest.join("."), value);
    target[head] = inner;
  }
}

const valueAt = (spec: CrawlSpec, path: string): unknown => path.split(".").reduce<unknown>((value, key) => Reflect.get(Object(value), key), spec);

/** Only what may stand in a job body, everything else at its default; `scraper` is a bare name. */
export function jobOptions(spec: CrawlSpec): CrawlSpec {
  const own: Record<string, unknown> = { ...parseSpec({}) };
  for (const { path, meta } of options()) if (meta.job === true || path === "scraper") put(own, path, valueAt(spec, path));
  return { ...(own as CrawlSpec), seeds: [] }; // every value is one of a spec
}

const SCRAPER_NAME = /^[A-Za-z0-9_-]+(?:\.[A-Za-z0-9]+)?$/;
const SUFFIXES = ["", ".ts", ".js", ".mjs", ".mts"];

function scraperProblem(message: string): CrawlError {
  return new CrawlError("invalid-options", `scraper: ${message}`, { problems: [{ option: "scraper", message }] });
}

/** The file of a scraper by its bare name. Throws CrawlError `invalid-options`, with no word of where it was looked for. */
export function scraperFile(name: string, { scrapersDir }: Pick<JobPolicy, "scrapersDir">): string {
  if (!SCRAPER_NAME.test(name)) throw scraperProblem("expected the bare name of a scraper of this service");
  if (scrapersDir === null) throw scraperProblem("this service has no scrapers");
  const file = SUFFIXES.map((suffix) => join(scrapersDir, `${name}${suffix}`)).find((path) => existsSync(path));
  if (file === undefined) throw scraperProblem(`there is no scraper ${name} here`);
  return file;
}

/** The spec as the crawl gets it, wherever it lives. Throws CrawlError `invalid-options`. */
export function crawlSpecOf(job: CrawlSpec, policy: JobPolicy): CrawlSpec {
  const { addresses, concurrency, parseWorkers } = policy;
  return {
    ...job,
    addresses,
    concurrency: Math.min(job.concurrency, concurrency ?? Infinity),
    ...(job.scraper === null ? {} : { scraper: scraperFile(job.scraper, policy), parseWorkers }),
  };
}

const HIDDEN = "(not shown)";
const hide = (fields: Readonly<Record<string, string>>): Record<string, string> => Object.fromEntries(Object.keys(fields).map((name) => [name, HIDDEN]));

/** Without the values of headers, which may hold credentials. */
export function shownSpec(spec: CrawlSpec): CrawlSpec {
  const hosts = Object.entries(spec.hosts).map(([host, rules]) => [host, rules.headers === undefined ? rules : { ...rules, headers: hide(rules.headers) }]);
  return { ...spec, headers: hide(spec.headers), hosts: Object.fromEntries(hosts) };
}
