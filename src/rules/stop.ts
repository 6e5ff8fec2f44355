/** Stop rules (core/stop-rule.ts) decided: does a page's run of items end the crawl? */
import type { ValueChange } from "../core/frontier.ts";
import type { ItemRecord } from "../core/records.ts";
import { parseStopRule, type StopRule } from "../core/stop-rule.ts";
import { MARK, RUN_MARK } from "./values.ts";

/** Watermark of a rule that compares with `last`. */
const markOf = (field: string): string => `stop-when:${field}`;

export interface StopRules {
  /** The rule that is met, as the user wrote it, or null; and the values met, for `last` of the next run. `known` reads settled values. */
  judge(items: readonly ItemRecord[], known: (key: string) => string | null): { readonly met: string | null; readonly values: readonly ValueChange[] };
}

/** `offers[0].price` is read as `offers.0.price`. */
function fieldOf(item: unknown, path: string): unknown {
  let value: unknown = item;
  for (const key of path.replaceAll(/\[(\d+)\]/g, ".$1").split(".")) value = typeof value === "object" && value !== null ? Reflect.get(value, key) : undefined;
  return value;
}

/** A text that is a number counts as one: items without a schema hold texts. */
function comparable(value: unknown): string | number | null {
  if (typeof value === "number") return Number.isFinite(value) ? value : null;
  if (typeof value !== "string" || value === "") return null;
  const number = value.trim() === "" ? Number.NaN : Number(value);
  return Number.isFinite(number) ? number : value;
}

/** Null: not to be compared, a text with a number. */
function order(a: string | number, b: string | number): number | null {
  if (typeof a !== typeof b) return null;
  return a < b ? -1 : a > b ? 1 : 0;
}

function holds(op: StopRule["op"], by: number): boolean {
  switch (op) {
    case "<":
      return by < 0;
    case "<=":
      return by <= 0;
    case ">":
      return by > 0;
    case ">=":
      return by >= 0;
    case "=":
      return by === 0;
    case "!=":
      return by !== 0;
  }
}

/** `texts` have been checked by the schema. Null: there are no rules. */
export function compileStopRules(texts: readonly string[]): StopRules | null {
  const rules = texts.flatMap((text) => {
    const rule = parseStopRule(text);
    return rule === null ? [] : [{ text, rule }];
  });
  if (rules.length === 0) return null;
  return {
    judge(items, known) {
      const values: ValueChange[] = [];
      let met: string | null = null;
      if (items.length === 0) return { met, values };
      const parsed = items.map(({ json }): unknown => JSON.parse(json));
      for (const { text, rule } of rules) {
        const last = rule.value.kind === "last" ? known(MARK + markOf(rule.field)) : null;
        const bound = rule.value.kind === "is" ? comparable(rule.value.value) : last === null ? null : comparable(JSON.parse(last));
        let inARow = 0;
        for (const item of parsed) {
          const value = comparable(fieldOf(item, rule.field));
          if (value === null) continue;
          if (rule.value.kind === "last") values.push({ op: "max", key: RUN_MARK + markOf(rule.field), value: JSON.stringify(value) });
          const by = bound === null ? null : order(value, bound);
          inARow = by !== null && holds(rule.op, by) ? inARow + 1 : 0;
          if (inARow >= rule.inARow) met ??= text;
        }
      }
      return { met, values };
    },
  };
}
