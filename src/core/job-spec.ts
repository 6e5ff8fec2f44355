/** The options that may stand in the body of a job: the one schema (core/spec.ts) without what is the operator's, its check and its JSON Schema. */
import * as z from "zod/mini";
import { CrawlError, type OptionProblem } from "./errors.ts";
import { allowedForms, metas } from "./forms.ts";
import type { OptionNode } from "./schema.ts";
import { type CrawlSpec, crawlSpec, options, parseSpec } from "./spec.ts";

/** A scraper in a job is a bare name under the operator's folder of scrapers: no path, no code. */
const SCRAPER_NAME = /^[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}$/;
export const isScraperName = (name: unknown): name is string => typeof name === "string" && SCRAPER_NAME.test(name) && !name.includes("..");

const OPERATORS = "is set by whoever runs the service; it cannot stand in a job";

/** What may stand in a job, with its dot path, in the order of the schema. */
export function jobOptions(): readonly OptionNode[] {
  return options().filter((node) => node.meta.job === true);
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Takes the operator's options out of what was given, and says so of each. */
function withoutOperators(input: Readonly<Record<string, unknown>>): { rest: Record<string, unknown>; problems: OptionProblem[] } {
  const problems: OptionProblem[] = [];
  const rest: Record<string, unknown> = Object.assign(Object.create(null), input);
  for (const { path, meta } of options()) {
    if (meta.job === true || path === "scraper") continue;
    const [group = "", key] = path.split(".");
    if (!Object.hasOwn(rest, group)) continue;
    if (key === undefined) {
      delete rest[group];
      problems.push({ option: path, message: OPERATORS });
      continue;
    }
    const inner = rest[group];
    if (!isObject(inner) || !Object.hasOwn(inner, key)) continue;
    const { [key]: _taken, ...others } = inner;
    rest[group] = others;
    problems.push({ option: path, message: OPERATORS });
  }
  return { rest, problems };
}

function problemsIn(work: () => unknown): readonly OptionProblem[] {
  try {
    work();
    return [];
  } catch (error) {
    if (error instanceof CrawlError && error.problems.length > 0) return error.problems;
    throw error;
  }
}

/**
 * Checks and completes the options of a job. `scrapers`: whether the service has a folder of scrapers. Throws CrawlError `invalid-options` with every problem at once:
 * unknown options, the operator's, and values of the wrong form.
 */
export function parseJobSpec(input: unknown, { scrapers }: { readonly scrapers: boolean }): CrawlSpec {
  if (!isObject(input)) throw new CrawlError("invalid-options", "not an object", { problems: [{ option: "", message: "expected an object with options" }] });
  const { rest, problems } = withoutOperators(input);
  const scraper = rest["scraper"] ?? null;
  if (scraper !== null && !(scrapers && isScraperName(scraper))) {
    const message = scrapers ? "expected the bare name of a scraper of this service" : `${OPERATORS}: this service has no scrapers`;
    problems.push({ option: "scraper", message });
    delete rest["scraper"];
  }
  problems.push(...problemsIn(() => parseSpec({ ...rest })));
  if (problems.length === 0) return parseSpec({ ...rest });
  throw new CrawlError("invalid-options", problems.map(({ option, message }) => `${option}: ${message}`).join("\n"), { problems });
}

/** The options of a spec that may stand in a job, as nested objects; of those that may hold credentials only which there are. */
export function shownSpec(spec: CrawlSpec): Readonly<Record<string, unknown>> {
  const shown: Record<string, unknown> = {};
  for (const { path } of [...jobOptions(), { path: "scraper" }]) {
    if (path === "seeds") continue;
    const [group = "", key] = path.split(".");
    // `as`: only read, by names that the schema has.
    const value = (spec as unknown as Record<string, unknown>)[group];
    if (key === undefined) shown[group] = path === "headers" ? hidden(value) : path === "hosts" ? hiddenHosts(value) : value;
    else if (isObject(value)) shown[group] = { ...(isObject(shown[group]) ? shown[group] : {}), [key]: value[key] };
  }
  return shown;
}

/** In the place of what may hold credentials. */
export const HIDDEN = "(hidden)";

function hidden(fields: unknown): unknown {
  return isObject(fields) ? Object.fromEntries(Object.keys(fields).map((name) => [name, HIDDEN])) : fields;
}

function hiddenHosts(hosts: unknown): unknown {
  if (!isObject(hosts)) return hosts;
  return Object.fromEntries(
    Object.entries(hosts).map(([host, rules]) => [host, isObject(rules) && "headers" in rules ? { ...rules, headers: hidden(rules["headers"]) } : rules]),
  );
}

interface JsonSchema {
  [key: string]: unknown;
  properties?: Record<string, JsonSchema> | undefined;
}

/** What has no description of its own in the schema of options: groups, and the rules of one host. */
const GROUPS = {
  scope: "What belongs to the crawl.",
  limits: "What ends the crawl.",
  perHost: "How each host is treated.",
  retry: "Further tries of requests that failed.",
};
const OF_HOST = {
  delay: "Least gap between request starts there.",
  concurrency: "Most requests in flight there.",
  headers: "Headers sent with every request there.",
};

/** JSON Schema (2020-12) of what a job may say, from the one schema; `x-group`, `x-unit`, `x-form` are for forms made from it. */
export function jobJsonSchema(): Readonly<Record<string, unknown>> {
  // `as`: a schema in JSON, of which only the properties are read here.
  const whole = z.toJSONSchema(crawlSpec, {
    io: "input",
    unrepresentable: "any",
    override({ zodSchema, jsonSchema }) {
      const allowed = allowedForms.get(zodSchema);
      const meta = metas.get(zodSchema);
      if (allowed !== undefined) jsonSchema["x-form"] = allowed;
      if (meta === undefined) return;
      jsonSchema.description = meta.description;
      jsonSchema["x-group"] = meta.group;
      if (meta.unit !== undefined) jsonSchema["x-unit"] = meta.unit;
      if (meta.secret) jsonSchema["x-secret"] = true;
    },
  }) as JsonSchema;
  delete whole["$schema"];
  const known = new Map([...jobOptions()].map((node) => [node.path, node]));
  for (const [name, schema] of Object.entries(whole.properties ?? {})) {
    const { properties } = schema;
    for (const inner of Object.keys(properties ?? {})) if (!known.has(`${name}.${inner}`)) delete properties?.[inner];
    const node = known.get(name);
    const isGroup = properties !== undefined && Object.keys(properties).length > 0 && node === undefined;
    if (node === undefined && !isGroup && name !== "scraper") delete whole.properties?.[name];
    if (node !== undefined) schema["default"] ??= node.fallback;
    for (const [key, property] of Object.entries(isGroup ? (properties ?? {}) : {})) property["default"] ??= known.get(`${name}.${key}`)?.fallback;
  }
  for (const [name, description] of Object.entries(GROUPS)) Object.assign(whole.properties?.[name] ?? {}, { description });
  // `as`: the rules of one host.
  const { properties: ofHost = {} } = (whole.properties?.["hosts"]?.["additionalProperties"] ?? {}) as JsonSchema;
  for (const [name, description] of Object.entries(OF_HOST)) Object.assign(ofHost[name] ?? {}, { description });
  const { seeds, scraper } = whole.properties ?? {};
  if (seeds) Object.assign(seeds, { type: "array", items: { type: "string" }, "x-form": "a list of URLs" });
  if (scraper) Object.assign(scraper, { description: "Name of a scraper in the service's folder of scrapers.", "x-form": "a bare name" });
  return whole;
}
