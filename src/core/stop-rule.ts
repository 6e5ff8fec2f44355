/** Stop rules as text (`stopWhen`): when a field of an item says that the crawl has seen enough. Deciding is rules/stop.ts. */

export const STOP_OPERATORS = ["<=", ">=", "!=", "<", ">", "="] as const;

export interface StopRule {
  /** Path in the item: `date`, `offer.price`. */
  readonly field: string;
  readonly op: (typeof STOP_OPERATORS)[number];
  /** `last`: the greatest value of the field in the last good run. */
  readonly value: { readonly kind: "last" } | { readonly kind: "is"; readonly value: string | number };
  /** So many items of a page in a row, 1 or more. */
  readonly inARow: number;
}

export const STOP_RULE_FORM = "FIELD OP VALUE with <, <=, >, >=, = or !=, where VALUE is a number, a text, or last; then perhaps xN for N items in a row";

const RULE = /^\s*([^\s<>=!]+)\s*(<=|>=|!=|<|>|=)\s*(.+?)(?:\s+x([1-9]\d{0,3}))?\s*$/;

/** Null: not of that form. A value in quotes is a text, whatever it looks like. */
export function parseStopRule(text: string): StopRule | null {
  const match = RULE.exec(text);
  if (match === null) return null;
  const [, field = "", op = "", raw = "", times = "1"] = match;
  const known = STOP_OPERATORS.find((one) => one === op);
  if (known === undefined) return null;
  const quoted = /^(["'])(.*)\1$/.exec(raw)?.[2];
  const number = raw.trim() === "" ? Number.NaN : Number(raw);
  const value =
    raw === "last" && quoted === undefined ? ({ kind: "last" } as const) : ({ kind: "is", value: quoted ?? (Number.isFinite(number) ? number : raw) } as const);
  return { field, op: known, value, inARow: Number(times) };
}
