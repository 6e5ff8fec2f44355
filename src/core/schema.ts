/** Reads a schema back: the options in it by path, and what to say of a value that does not fit. The schema itself is core/spec.ts. */
import type { OptionProblem } from "./errors.ts";
import { nearest } from "./nearest.ts";

export const OPTION_GROUPS = ["what to crawl", "scraping", "limits", "politeness", "requests", "output"] as const;

/** What the command line, the docs and a job service need to know of an option beyond its type. */
export interface OptionMeta {
  readonly group: (typeof OPTION_GROUPS)[number];
  /** One sentence. */
  readonly description: string;
  /** Long flag without dashes; one that turns a default off is written `no-X`. Absent: library and config file only. */
  readonly flag?: string;
  /** One letter. */
  readonly short?: string;
  /** What the value is called in `--help`, e.g. `N`, `D`. */
  readonly value?: string;
  /** Ms, bytes, requests …; every number has one. */
  readonly unit?: string;
  /** May stand in the body of a job; the others are the operator's. */
  readonly job?: true;
  /** The value a flag has when it is given without one. */
  readonly bare?: string;
  /** Values in one flag are separated by commas. */
  readonly commas?: true;
  /** What separates key and value in a flag's text. */
  readonly pair?: ":" | "=";
  /** The value may hold credentials: messages never repeat it. */
  readonly secret?: true;
}

/** What the schema says of one option. */
export interface OptionNode {
  /** Name in the spec, e.g. `limits.pages`. */
  readonly path: string;
  readonly meta: OptionMeta;
  /** The allowed form in words. */
  readonly allowed: string;
  readonly fallback: unknown;
  readonly nullable: boolean;
  readonly kind: "boolean" | "number" | "list" | "record" | "text";
}

/** A schema as far as it is read here. */
interface Schema {
  readonly _zod: { readonly def: { readonly type: string } };
}

/** A schema and the notes made on its parts. */
export interface DescribedSchema {
  readonly root: Schema;
  readonly metas: WeakMap<object, OptionMeta>;
  readonly allowedForms: WeakMap<object, string>;
}

/** What one kind of schema or another has. */
interface Definition {
  readonly type: string;
  readonly innerType?: Schema;
  readonly defaultValue?: unknown;
  readonly shape?: Readonly<Record<string, Schema>>;
  readonly valueType?: Schema;
  readonly element?: Schema;
}

function definition(schema: Schema): Definition {
  // `as`: definitions are a union by `type`; every field named above is optional here.
  return schema._zod.def as Definition;
}

/** Takes away default, nullable and optional. */
function bare(schema: Schema): Schema {
  const { innerType } = definition(schema);
  return innerType ? bare(innerType) : schema;
}

function kindOf(schema: Schema): OptionNode["kind"] {
  const { type } = definition(schema);
  if (type === "boolean" || type === "record" || type === "number") return type;
  return type === "array" || type === "custom" ? "list" : "text";
}

/** Every option with its dot path, in the order of the schema. */
export function optionNodes(described: DescribedSchema, schema: Schema = described.root, above = ""): OptionNode[] {
  return Object.entries(definition(bare(schema)).shape ?? {}).flatMap(([key, inner]) => {
    const meta = described.metas.get(inner);
    if (meta === undefined) return optionNodes(described, inner, `${above}${key}.`);
    const core = bare(inner);
    const { defaultValue: fallback, innerType } = definition(inner);
    const nullable = innerType !== undefined && definition(innerType).type === "nullable";
    return [{ path: above + key, meta, allowed: described.allowedForms.get(core) ?? "", fallback, nullable, kind: kindOf(core) }];
  });
}

interface Place {
  readonly option: string;
  readonly allowed: string;
  readonly secret: boolean;
  /** Keys known there, if an object is. */
  readonly names: readonly string[];
}

/** The option that a path into the input belongs to, and the form allowed at its deepest part. */
function locate({ root, metas, allowedForms }: DescribedSchema, path: readonly PropertyKey[]): Place {
  let schema = root;
  let secret = false;
  let allowed = "";
  const named: string[] = [];
  for (let step = 0; ; step++) {
    const { shape } = definition(bare(schema));
    allowed = allowedForms.get(bare(schema)) ?? (shape ? `an object with ${Object.keys(shape).join(", ")}` : allowed);
    secret ||= metas.get(schema)?.secret === true;
    const key = path[step];
    const { valueType, element } = definition(bare(schema));
    const next = key === undefined ? undefined : (shape?.[String(key)] ?? valueType ?? element);
    if (next === undefined) return { option: named.join("."), allowed, secret, names: Object.keys(shape ?? {}) };
    if (element === undefined) named.push(String(key));
    schema = next;
  }
}

function show(value: unknown, secret: boolean): string {
  if (value === undefined) return "nothing";
  if (secret && value !== null && value !== "") return "something else (not shown: it may hold a password)";
  const spelt = typeof value === "function" ? "a function" : typeof value === "number" ? String(value) : (JSON.stringify(value) ?? typeof value);
  return spelt.length > 80 ? `${spelt.slice(0, 79)}…` : spelt;
}

function valueAt(input: unknown, path: readonly PropertyKey[]): unknown {
  // `as`: only read; a missing property gives undefined.
  return path.reduce<unknown>((value, key) => (typeof value === "object" && value !== null ? (value as Record<PropertyKey, unknown>)[key] : undefined), input);
}

/** One thing the schema found wrong. */
interface Issue {
  readonly code: string;
  readonly path: readonly PropertyKey[];
  /** For unrecognized_keys. */
  readonly keys?: readonly string[];
}

function unknownKey(described: DescribedSchema, place: Place, key: string): OptionProblem {
  const nodes = place.option === "" ? optionNodes(described) : [];
  const byFlag = new Map(nodes.flatMap(({ path, meta }) => (meta.flag ? [[meta.flag, path] as const] : [])));
  const near = nearest(key, [...place.names, ...nodes.map(({ path }) => path), ...byFlag.keys()]);
  const meant = near === null ? "" : `; did you mean ${byFlag.get(near) ?? near}?`;
  return { option: place.option === "" ? key : `${place.option}.${key}`, message: `no such option${meant}` };
}

/** An issue as a person reads it: which option, what is allowed, what was given. */
export function problemsOf(described: DescribedSchema, issue: Issue, input: unknown): OptionProblem[] {
  const place = locate(described, issue.path);
  if (issue.keys !== undefined && issue.code === "unrecognized_keys") return issue.keys.map((key) => unknownKey(described, place, key));
  const value = issue.code === "invalid_key" ? issue.path.at(-1) : valueAt(input, issue.path);
  return [{ option: place.option || "spec", message: `expected ${place.allowed}, got ${show(value, place.secret)}` }];
}
