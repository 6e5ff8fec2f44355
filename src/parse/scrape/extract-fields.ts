/** Items without code (`-e name=css@attr`): fields read by CSS selectors, one item a page. */
import type { CheerioAPI } from "cheerio";
import { CrawlError, type OptionProblem } from "../../core/errors.ts";
import type { ItemRecord } from "../../core/records.ts";
import type { ScrapeTask } from "../../core/scraping.ts";
import { createDocument, loadCheerio } from "./document.ts";

export interface FieldRule {
  readonly name: string;
  readonly css: string;
  /** Null: its text. `html`: what is inside. */
  readonly attribute: string | null;
  /** Every match, not only the first. */
  readonly all: boolean;
}

/** Attributes that hold a URL: given as absolute. */
const REFERENCES = new Set(["href", "src"]);
const ATTRIBUTE = /^[A-Za-z_:][-A-Za-z0-9_:.]*$/;

/** `fields`: name → selector, as the option `extract` has them. Throws CrawlError `invalid-options` with every field that is wrong. */
export async function readFieldRules(fields: Readonly<Record<string, string>>): Promise<readonly FieldRule[]> {
  await loadCheerio();
  const { $ } = createDocument(taskWith("<a></a>"));
  const problems: OptionProblem[] = [];
  const rules = Object.entries(fields).map(([name, selector]) => readRule(name, selector));
  const taken = new Set<string>();
  for (const [i, [name, selector]] of Object.entries(fields).entries()) {
    const rule = rules[i]!;
    const fault = faultOf(rule, $) ?? (taken.has(rule.name) ? "the field is given twice" : null);
    taken.add(rule.name);
    if (fault !== null) problems.push({ option: "extract", message: `${name}=${selector}: ${fault}` });
  }
  if (problems.length > 0) throw new CrawlError("invalid-options", problems.map(({ option, message }) => `${option}: ${message}`).join("; "), { problems });
  return rules;
}

function readRule(name: string, selector: string): FieldRule {
  const at = lastAt(selector);
  const all = name.endsWith("[]");
  return {
    name: all ? name.slice(0, -2) : name,
    css: (at < 0 ? selector : selector.slice(0, at)).trim(),
    attribute: at < 0 ? null : selector.slice(at + 1).trim(),
    all,
  };
}

/** The last `@` outside of brackets, quotes and escapes; −1: none. */
function lastAt(selector: string): number {
  let found = -1;
  let depth = 0;
  let quote = "";
  for (let i = 0; i < selector.length; i++) {
    const c = selector.charAt(i);
    if (c === "\\") i++;
    else if (quote !== "") quote = c === quote ? "" : quote;
    else if (c === '"' || c === "'") quote = c;
    else if (c === "[" || c === "(") depth++;
    else if (c === "]" || c === ")") depth--;
    else if (c === "@" && depth === 0) found = i;
  }
  return found;
}

function faultOf({ name, css, attribute }: FieldRule, $: CheerioAPI): string | null {
  if (name === "") return "the field has no name";
  if (attribute !== null && !ATTRIBUTE.test(attribute)) return `${JSON.stringify(attribute)} is not the name of an attribute`;
  if (css === "") return "there is no selector";
  try {
    $(css);
    return null;
  } catch (error) {
    return `${JSON.stringify(css)} is not a CSS selector: ${error instanceof Error ? error.message : String(error)}`;
  }
}

/** Null: no selector matches. */
export function extractFields(rules: readonly FieldRule[], task: ScrapeTask): ItemRecord | null {
  const document = createDocument(task);
  const { $ } = document;
  const fields: Record<string, string | null | readonly string[]> = {};
  let matched = false;
  for (const rule of rules) {
    const values = valuesOf(rule, $, () => document.base);
    matched ||= values.length > 0;
    fields[rule.name] = rule.all ? values : (values[0] ?? null);
  }
  return matched ? { type: "items", key: null, json: JSON.stringify(fields) } : null;
}

/** Of the first match or of all of them; matches without the attribute have none. */
function valuesOf({ css, attribute, all }: FieldRule, $: CheerioAPI, base: () => string): string[] {
  const matches = $(css);
  const values: string[] = [];
  for (const element of all ? matches : matches.first()) {
    const value = attribute === null ? $(element).text().replace(/\s+/g, " ").trim() : attribute === "html" ? $(element).html() : $(element).attr(attribute);
    if (value === undefined || value === null) continue;
    values.push(attribute !== null && REFERENCES.has(attribute) ? (URL.parse(value, base())?.href ?? value) : value);
  }
  return values;
}

function taskWith(html: string): ScrapeTask {
  return {
    ...{ url: "about:blank", sentAs: "about:blank", status: 200, headers: [], contentType: "text/html", body: Buffer.from(html), depth: 0, referrer: null },
    ...{ method: "GET", priority: 0, attempt: 0, handler: null, data: null, series: null, index: null, oldRuns: null },
  };
}
