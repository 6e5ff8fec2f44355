/** Fields of the new-job form from the schema of a job (GET /openapi.json), and what was typed as a job's options. Draws nothing. */
import { capital } from "./format.ts";
import type { ProblemEntry } from "./types.ts";

interface Schema {
  readonly type?: string | readonly string[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: Schema | boolean;
  readonly anyOf?: readonly Schema[];
  readonly enum?: readonly unknown[];
  readonly default?: unknown;
  readonly description?: string;
  readonly "x-group"?: string;
  readonly "x-unit"?: string;
  readonly "x-form"?: string;
}

export type Control =
  | { readonly kind: "flag" }
  | { readonly kind: "choice"; readonly choices: readonly string[] }
  | { readonly kind: "text"; readonly numeric: boolean }
  /** One entry a line. */
  | { readonly kind: "list" }
  /** NAME and VALUE a line. */
  | { readonly kind: "pairs"; readonly separator: ":" | "=" }
  | { readonly kind: "json" };

export interface Field {
  /** `limits.pages`. */
  readonly path: string;
  readonly label: string;
  readonly group: string;
  readonly description: string;
  readonly unit: string | null;
  /** Which values are allowed, in words. */
  readonly form: string | null;
  readonly control: Control;
  readonly fallback: unknown;
}

const words = (name: string) => name.replace(/([a-z])([A-Z])/g, (_, before: string, after: string) => `${before} ${after.toLowerCase()}`);

function labelOf(path: string, group: string): string {
  const [outer = "", inner] = path.split(".");
  if (inner === undefined) return capital(words(outer));
  if (inner === "preset") return capital(words(outer));
  return outer === group ? capital(words(inner)) : capital(`${words(outer)}: ${words(inner)}`);
}

function controlOf(schema: Schema, form: string): Control {
  const choices = schema.enum?.filter((value) => typeof value === "string");
  if (choices !== undefined && choices.length > 0) return { kind: "choice", choices };
  switch (schema.type) {
    case "boolean":
      return { kind: "flag" };
    case "integer":
    case "number":
      return { kind: "text", numeric: true };
    case "array":
      return { kind: "list" };
    case "object": {
      const values = schema.additionalProperties;
      const scalar = typeof values === "object" && values.properties === undefined;
      return scalar ? { kind: "pairs", separator: /name: value/i.test(form) ? ":" : "=" } : { kind: "json" };
    }
    default:
      return { kind: "text", numeric: false };
  }
}

/** Descriptions are those of the command line as well; here there are no flags. */
const plainly = (description: string) => description.replace(/ \(repeatable\)/g, ", one a line").replace(/--([a-z][a-z-]*)/g, "$1");

function fieldOf(path: string, given: Schema): Field {
  const inner =
    given.anyOf?.find((schema) => schema.type !== "null" && schema.enum !== undefined) ?? given.anyOf?.find((schema) => schema.type !== "null") ?? {};
  // The one value beside which anything else may stand, `auto`, does not make it a choice.
  const schema: Schema = {
    ...(given.anyOf !== undefined && given.anyOf.length > 1 && given.anyOf.every(({ type }) => type !== "null") ? {} : inner),
    ...given,
  };
  const form = given["x-form"] ?? inner["x-form"] ?? null;
  const group = given["x-group"] ?? "other";
  const control = controlOf(schema, form ?? "");
  const unit = given["x-unit"] ?? null;
  return { path, label: labelOf(path, group), group, description: plainly(given.description ?? ""), unit, form, control, fallback: given.default ?? null };
}

/** In the order of the schema. `seeds` have a place of their own. */
export function fieldsOf(document: Readonly<Record<string, unknown>>): readonly Field[] {
  // `as`: an OpenAPI document of this service; what is missing makes an empty form.
  const { components } = document as { components?: { schemas?: { JobSpec?: Schema } } };
  const fields: Field[] = [];
  for (const [name, schema] of Object.entries(components?.schemas?.JobSpec?.properties ?? {})) {
    if (name === "seeds") continue;
    if (schema.properties !== undefined && schema["x-group"] === undefined)
      for (const [key, inner] of Object.entries(schema.properties)) fields.push(fieldOf(`${name}.${key}`, inner));
    else fields.push(fieldOf(name, schema));
  }
  return fields;
}

export const linesOf = (text: string): readonly string[] =>
  text
    .split(/\r\n|\n|\r/)
    .map((line) => line.trim())
    .filter((line) => line !== "");

const scalar = (text: string): string | number => (/^-?\d+(\.\d+)?$/.test(text) ? Number(text) : text);

/** What was typed as the option's value. What cannot be right is sent as it is, and the service says what is wrong; throws only for JSON that is none. */
function optionOf({ control, path }: Field, text: string): unknown {
  switch (control.kind) {
    case "flag":
      return text === "true";
    case "choice":
      return text;
    case "text":
      return path === "userAgent" ? text : scalar(text);
    case "list":
      return linesOf(text);
    case "pairs":
      return Object.fromEntries(
        linesOf(text).map((line) => {
          const at = line.indexOf(control.separator);
          const name = at < 0 ? line : line.slice(0, at).trim();
          const value = at < 0 ? "" : line.slice(at + 1).trim();
          return [name, path === "traps" ? scalar(value) : value];
        }),
      );
    case "json":
      return JSON.parse(text);
  }
}

export const textOf = ({ control }: Field, value: unknown): string => {
  if (value === null || value === undefined) return "";
  if (control.kind === "list" && Array.isArray(value)) return value.join("\n");
  if (control.kind === "pairs" && typeof value === "object")
    return Object.entries(value)
      .map(([name, each]) => `${name}${control.separator === ":" ? ": " : "="}${each}`)
      .join("\n");
  return control.kind === "json" ? JSON.stringify(value) : String(value);
};

export const isPreset = (value: unknown): boolean => value === null || value === undefined || (typeof value === "object" && Object.keys(value).length === 0);

/** Options as nested objects, of the fields in which something other than the default was typed. */
export function specOf(
  fields: readonly Field[],
  typed: (field: Field) => string,
): { readonly spec: Record<string, unknown>; readonly problems: readonly ProblemEntry[] } {
  const spec: Record<string, unknown> = {};
  const problems: ProblemEntry[] = [];
  for (const field of fields) {
    const text = typed(field).trim();
    if (text === "" || (field.control.kind === "flag" && text === String(field.fallback))) continue;
    try {
      const value = optionOf(field, text);
      const [outer = "", inner] = field.path.split(".");
      if (inner === undefined) spec[outer] = value;
      // `as`: only objects are put at the name of a group.
      else spec[outer] = { ...((spec[outer] as object | undefined) ?? {}), [inner]: value };
    } catch (error) {
      problems.push({ option: field.path, message: `expected JSON: ${error instanceof Error ? error.message : String(error)}` });
    }
  }
  return { spec, problems };
}

/** Options of another job that are not the defaults, as texts by path. Values that the service hides are left out. */
export function textsOf(fields: readonly Field[], spec: Readonly<Record<string, unknown>>): ReadonlyMap<string, string> {
  const texts = new Map<string, string>();
  for (const field of fields) {
    const [outer = "", inner] = field.path.split(".");
    const group = spec[outer];
    // `as`: a group of options is an object.
    const value = inner === undefined ? group : typeof group === "object" && group !== null ? (group as Record<string, unknown>)[inner] : undefined;
    const text = JSON.stringify(value);
    if (value === undefined || text === JSON.stringify(field.fallback) || (isPreset(value) && isPreset(field.fallback)) || text.includes("(hidden)")) continue;
    texts.set(field.path, textOf(field, value));
  }
  return texts;
}

/** Path of the field that a problem is about; null: of none that is shown. */
export function fieldFor(entry: ProblemEntry, fields: readonly Field[]): string | null {
  const option = entry.option ?? "";
  if (entry.line !== undefined || /^(seeds|urls)\b/.test(option)) return "seeds";
  const found = fields.find(({ path }) => option === path || option.startsWith(`${path}.`) || option.startsWith(`${path}[`));
  return found?.path ?? null;
}
