/** Where options come from: flags, then SKEIN_… variables, then skein.config.{ts,js,json}, then the defaults. Merges them; the schema judges the result. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { CrawlError, type OptionProblem } from "../core/errors.ts";
import { nearest } from "../core/nearest.ts";
import type { OptionNode } from "../core/schema.ts";
import { type CrawlSpec, parseSpec } from "../core/spec.ts";
import { compilePattern } from "../rules/patterns.ts";
import { type Flag, type Given, parseSwitch } from "./flags.ts";

export const CONFIG_FILES = ["skein.config.ts", "skein.config.js", "skein.config.json"];

/** The variable of a flag: `--max-body-size` is SKEIN_MAX_BODY_SIZE, `--no-robots` SKEIN_NO_ROBOTS (SKEIN_ROBOTS is understood too). */
export function envName(flagName: string): string {
  return `SKEIN_${flagName.toUpperCase().replaceAll("-", "_")}`;
}

/** Variables of the same prefix that are no option of a crawl: one is the service's, the others are for the tests and benchmarks of a checkout (docs of the repository). */
const NO_OPTIONS = new Set(["SKEIN_TOKEN", "SKEIN_CONFORMANCE_DIR", "SKEIN_REQUIRE", "SKEIN_LONG_MINUTES", "SKEIN_BENCH_DIR", "SKEIN_UPDATE", "SKEIN_FAULT"]);

/** What the environment sets. An empty variable counts as not set; repeatable options take one value a line. */
export function envSettings(
  env: Readonly<Record<string, string | undefined>>,
  table: readonly Flag[],
): { given: Given[]; problems: OptionProblem[]; strange: string[] } {
  const given: Given[] = [];
  const problems: OptionProblem[] = [];
  const known = new Map<string, { flag: Flag; on: boolean }>();
  for (const flag of table) {
    if (flag.name === "help") continue;
    known.set(envName(flag.name), { flag, on: true });
    if (flag.value === null) known.set(envName(`no-${flag.name}`), { flag, on: false });
  }
  for (const [label, { flag, on }] of known) {
    const text = env[label];
    if (text === undefined || text === "") continue;
    if (flag.value !== null) {
      const repeatable = flag.node === null || flag.node.kind === "list" || flag.node.kind === "record";
      given.push({ flag, label, value: repeatable ? text.split(/\r?\n/).filter((line) => line !== "") : [text] });
      continue;
    }
    const value = parseSwitch(text);
    if (value === null) problems.push({ option: label, message: `expected true or false, got ${JSON.stringify(text)}` });
    else given.push({ flag, label, value: value === on });
  }
  const strange = Object.keys(env).flatMap((name) => {
    if (!name.startsWith("SKEIN_") || known.has(name) || NO_OPTIONS.has(name) || env[name] === "") return [];
    const near = nearest(
      name.slice("SKEIN_".length),
      [...known.keys()].map((other) => other.slice("SKEIN_".length)),
    );
    return [`the variable ${name} is no option and does nothing${near === null ? "" : `; did you mean SKEIN_${near}?`}`];
  });
  return { given, problems, strange };
}

export interface ConfigFile {
  readonly name: string;
  readonly values: Readonly<Record<string, unknown>>;
}

function isPlainObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function configProblem(option: string, message: string): CrawlError {
  return new CrawlError("invalid-options", `${option}: ${message}`, { problems: [{ option, message }] });
}

/** The config file of a folder; null when there is none. Throws CrawlError `invalid-options` when it cannot be read, or when there are several. */
export async function readConfig(folder: string): Promise<ConfigFile | null> {
  const found = CONFIG_FILES.filter((name) => existsSync(join(folder, name)));
  const [name] = found;
  if (name === undefined) return null;
  if (found.length > 1) throw configProblem(found.join(", "), "there may be only one of these in a folder");
  const path = join(folder, name);
  let values: unknown;
  try {
    // `as`: the namespace of a module has a default export or has not.
    values = name.endsWith(".json") ? JSON.parse(readFileSync(path, "utf8")) : ((await import(pathToFileURL(path).href)) as { default?: unknown }).default;
  } catch (error) {
    throw configProblem(name, `cannot be read: ${error instanceof Error ? error.message : String(error)}`);
  }
  if (!isPlainObject(values))
    throw configProblem(name, name.endsWith(".json") ? "expected an object with options" : "expected a default export that is an object with options");
  return { name, values };
}

/** The text of a flag or variable as the value that the schema expects. */
function inputOf(node: OptionNode, given: Given, problems: OptionProblem[]): unknown {
  const { value, label } = given;
  if (!Array.isArray(value)) return value;
  const texts: readonly string[] = value;
  const last = texts.at(-1) ?? "";
  switch (node.kind) {
    case "list":
      return node.meta.commas ? texts.flatMap((text) => text.split(",").map((part) => part.trim())) : texts;
    case "record":
      return Object.fromEntries(texts.flatMap((text) => pairOf(node, text, label, problems)));
    case "number":
    case "text":
    case "boolean":
      if (node.nullable && node.meta.unit !== undefined && last === "none") return null;
      return node.kind === "number" && /^-?\d+(?:\.\d+)?$/.test(last.trim()) ? Number(last) : last;
  }
}

function pairOf(node: OptionNode, text: string, label: string, problems: OptionProblem[]): [string, string][] {
  const separator = node.meta.pair ?? "=";
  const at = text.indexOf(separator);
  if (at > 0) return [[text.slice(0, at).trim(), text.slice(at + 1).trim()]];
  problems.push({
    option: label,
    message: `expected ${node.allowed}${node.meta.secret ? `; there is no "${separator}" in it` : `, got ${JSON.stringify(text)}`}`,
  });
  return [];
}

/** Sets a value at a dot path in a copy; what is not an object on the way is left for the schema to refuse. */
function withValue(input: Readonly<Record<string, unknown>>, path: readonly string[], value: unknown): Record<string, unknown> {
  const [key, ...rest] = path;
  if (key === undefined) return { ...input };
  if (rest.length === 0) return { ...input, [key]: value };
  const inner = input[key] ?? {};
  return { ...input, [key]: isPlainObject(inner) ? withValue(inner, rest, value) : inner };
}

export interface Merged {
  readonly input: Readonly<Record<string, unknown>>;
  /** Option path → where its value came from. */
  readonly labels: ReadonlyMap<string, string>;
  readonly problems: readonly OptionProblem[];
}

/** `given`: weakest first. */
export function mergeSettings(file: ConfigFile | null, given: readonly Given[]): Merged {
  const problems: OptionProblem[] = [];
  const labels = new Map<string, string>();
  let input: Record<string, unknown> = { ...file?.values };
  for (const setting of given) {
    const { node } = setting.flag;
    if (node === null) continue;
    labels.set(node.path, setting.label);
    input = withValue(input, node.path.split("."), inputOf(node, setting, problems));
  }
  return { input, labels, problems };
}

const PATTERN_OPTIONS = ["scope.include", "scope.exclude", "follow", "list"];

/** The patterns of one option, as far as they are texts. */
function patternsOf(input: unknown, option: string): string[] {
  const value = option.split(".").reduce<unknown>((inner, key) => (isPlainObject(inner) ? inner[key] : undefined), input);
  return Array.isArray(value) ? value.filter((text) => typeof text === "string" && text !== "") : [];
}

/** Option and reading of every pattern, for `-v`. */
export function describePatterns(spec: CrawlSpec): { option: string; pattern: string; reading: string }[] {
  return PATTERN_OPTIONS.flatMap((option) =>
    patternsOf(spec, option).map((pattern) => ({ option, pattern, reading: compilePattern(pattern, option).describe })),
  );
}

/** The finished spec. Throws CrawlError `invalid-options` with every problem of every source, named as the user knows it. */
export function finishSpec(merged: Merged, file: ConfigFile | null, earlier: readonly OptionProblem[]): CrawlSpec {
  const problems = [...earlier, ...merged.problems];
  const collect = <T>(work: () => T): T | null => {
    try {
      return work();
    } catch (error) {
      if (!(error instanceof CrawlError) || error.problems.length === 0) throw error;
      for (const { option, message } of error.problems) problems.push({ option: labelOf(option, merged.labels, file), message });
      return null;
    }
  };
  const spec = collect(() => parseSpec(merged.input));
  for (const option of PATTERN_OPTIONS) for (const pattern of patternsOf(merged.input, option)) collect(() => compilePattern(pattern, option));
  if (spec !== null && problems.length === 0) return spec;
  throw new CrawlError("invalid-options", problems.map(({ option, message }) => `${option}: ${message}`).join("\n"), { problems });
}

/** How messages name an option: by the flag or variable that set it, else by its place in the config file. */
function labelOf(option: string, labels: ReadonlyMap<string, string>, file: ConfigFile | null): string {
  for (let path = option; path !== ""; path = path.slice(0, Math.max(0, path.lastIndexOf(".")))) {
    const label = labels.get(path);
    if (label !== undefined) return label;
  }
  return file === null ? option : `${file.name}: ${option}`;
}
