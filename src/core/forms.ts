/** The forms that values of options have, as zod schemas with the words that messages repeat. The options themselves are core/spec.ts. */
import * as z from "zod/mini";
import { PAGE_FIELDS } from "./records.ts";
import type { OptionMeta } from "./schema.ts";
import { parseDuration, parseRate, parseSize } from "./units.ts";

type Schema = z.ZodMiniType;

export const metas = new WeakMap<object, OptionMeta>();
export const allowedForms = new WeakMap<object, string>();

/** Gives an option its default and what help and docs need. */
export function option<T extends Schema>(schema: T, fallback: z.core.util.NoUndefined<z.output<T>>, meta: OptionMeta) {
  const made = z._default(schema, fallback);
  metas.set(made, meta);
  return made;
}

/** Notes the allowed form, which every message about the value repeats. */
export function form<T extends Schema>(schema: T, allowed: string): T {
  allowedForms.set(schema, allowed);
  return schema;
}

export function converted(parse: (text: string | number) => number | null, least: number, allowed: string) {
  const convert = z.transform((value: string | number, context): number => {
    const result = parse(value);
    if (result !== null && result >= least) return result;
    context.issues.push({ code: "custom", input: value, message: "" });
    return z.NEVER;
  });
  return form(z.pipe(z.union([z.string(), z.number()]), convert), allowed);
}

export const duration = (leastMs = 0) =>
  converted(parseDuration, leastMs, `a duration ${leastMs > 0 ? `from ${leastMs}ms ` : ""}such as 250ms, 1s, 2m, 1h, 30d, or a number of milliseconds`);
export const size = (least = 0) =>
  converted(parseSize, least, `a size ${least > 0 ? `from ${least} byte ` : ""}such as 500KB, 10MB, 1GiB, or a number of bytes`);
export const rate = () => converted(parseRate, 0, "a rate such as 120/min, 2/s, or a number of requests a minute");
export const count = (least: number, most: number | null = null) =>
  form(
    z.int().check(z.gte(least), z.lte(most ?? Number.MAX_SAFE_INTEGER)),
    most === null ? `a whole number from ${least}` : `a whole number from ${least} to ${most}`,
  );
export const choice = <const T extends readonly string[]>(...names: T) => form(z.enum(names), `one of ${names.join(", ")}`);
export const text = (allowed: string) => form(z.string().check(z.minLength(1)), allowed);
export const texts = (allowed: string) => form(z.array(z.string().check(z.minLength(1))), allowed);
export const patterns = () => texts("a pattern such as *.html, /docs/**, or re: and a regular expression");
export const fileForms = "a file name that ends in .jsonl, .json, .csv (each also with .gz) or .sqlite";
export const isDatabase = (name: string) => /\.sqlite$/i.test(name);
export const isOutputFile = (name: string) => /[^/\\]\.(?:(?:jsonl|json|csv)(?:\.gz)?|sqlite)$/i.test(name);
export const outputFile = () => form(z.string().check(z.refine(isOutputFile)), fileForms);
export const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
export const headerFields = () => z.record(z.string().check(z.regex(HEADER_NAME)), z.string().check(z.regex(/^[^\r\n\0]*$/)));
export const isProxy = (value: string) => /^https?:$/.test(URL.parse(value)?.protocol ?? "");
export const isPageField = (name: string) => PAGE_FIELDS.some((field) => field === name);

/** A figure for a rule, or null, which lifts it. */
export function trapLimit() {
  const convert = z.transform((value: string | number | null, context): number | null => {
    if (value === null || value === "off") return null;
    const figure = typeof value === "number" ? value : /^\d+$/.test(value) ? Number(value) : -1;
    if (Number.isInteger(figure) && figure >= 0) return figure;
    context.issues.push({ code: "custom", input: value, message: "" });
    return z.NEVER;
  });
  return form(z.pipe(z.union([z.string(), z.number(), z.null()]), convert), "a whole number from 0, or off");
}
