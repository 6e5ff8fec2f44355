/** The items of one page: taken as they are when they are given, checked by the schema of their type, in the order in which they were given. */
import type { BadItem, ItemRecord } from "../../core/records.ts";
import { type ItemTypeOptions, isRecord, type Scraper, whatIs } from "./define.ts";
import { detached } from "./detach.ts";
import { asGiven, jsonOf } from "./json.ts";
import { columnsOf, isSchema, type SchemaResult, type StandardSchemaV1, spellPath } from "./standard-schema.ts";

/** A kind of item, as outputs that have columns need to know it. */
export interface ItemType {
  readonly name: string;
  /** The field that tells items of this type apart; null: none. */
  readonly key: string | null;
  /** In the schema's order; null: not known. */
  readonly columns: readonly string[] | null;
}

export type ItemRules = ReadonlyMap<string, { readonly schema: StandardSchemaV1 | null; readonly key: string | null }>;

export function itemRules(items: Scraper["items"]): ItemRules {
  const ruleOf = (type: ItemTypeOptions | StandardSchemaV1) =>
    isSchema(type) ? { schema: type, key: null } : { schema: type.schema ?? null, key: type.key ?? null };
  return new Map(Object.entries(items ?? {}).map(([name, type]) => [name, ruleOf(type)]));
}

export function itemTypes(rules: ItemRules): readonly ItemType[] {
  return [...rules].map(([name, { schema, key }]) => ({ name, key, columns: schema === null ? null : columnsOf(schema) }));
}

type Kept = { readonly item: ItemRecord } | { readonly bad: readonly BadItem[] };

export interface ItemTaker {
  take(fields: unknown, type: string | undefined): void;
  /** Waits for schemas that take their time. Rejects with what one of them throws. */
  finish(): Promise<{ readonly items: readonly ItemRecord[]; readonly badItems: readonly BadItem[] }>;
}

const MAX_SHOWN = 1000;

export function createItemTaker(rules: ItemRules): ItemTaker {
  const kept: (Kept | Promise<Kept>)[] = [];
  let waits = false;
  return {
    take(fields, type) {
      const name = typeFor(rules, type);
      const rule = rules.get(name);
      if (rule === undefined || rule.schema === null) {
        kept.push(withKey(name, rule?.key ?? null, fields, toWrite(fields)));
        return;
      }
      const given = asJson(fields, asGiven);
      const result = rule.schema["~standard"].validate(fields);
      if ("then" in result) {
        waits = true;
        const later = Promise.resolve(result).then((settled) => judged(name, rule.key, settled, given));
        // Whoever finishes hears of it; until then it must not count as nobody's.
        later.catch(() => undefined);
        kept.push(later);
      } else kept.push(judged(name, rule.key, result, given));
    },
    async finish() {
      const items: ItemRecord[] = [];
      const badItems: BadItem[] = [];
      // Nothing is awaited for the many pages without such a schema.
      for (const entry of waits ? await Promise.all(kept) : kept) {
        if ("item" in entry) items.push(entry.item);
        else if ("bad" in entry) badItems.push(...entry.bad);
      }
      return { items, badItems };
    },
  };
}

function typeFor(rules: ItemRules, type: string | undefined): string {
  const known = () => `the item types are ${[...rules.keys()].join(", ")}`;
  if (type === undefined) {
    if (rules.size === 0 || rules.has("items")) return "items";
    const [only = ""] = rules.keys();
    if (rules.size === 1) return only;
    throw new TypeError(`item: say of which type it is; ${known()}`);
  }
  if (typeof type !== "string" || type === "") throw new TypeError(`item: its type must be a name, not ${whatIs(type)}`);
  if (rules.size > 0 && !rules.has(type)) throw new TypeError(`item: no item type ${JSON.stringify(type)} is declared; ${known()}`);
  return detached(type);
}

function asJson(fields: unknown, write = jsonOf): string {
  if (!isRecord(fields)) throw new TypeError(`item: expected an object of fields, not ${whatIs(fields)}`);
  const json = write("item: it", fields);
  if (!json.startsWith("{")) throw new TypeError(`item: it is written as ${json} in JSON; expected an object of fields`);
  return json;
}

/** What the item says of its page is put beside the fields under this name, which none of them may have: with --no-meta neither, so that a scraper works with both. */
const META = "_meta";

function toWrite(fields: unknown): string {
  const json = asJson(fields);
  // Parsed only where the name stands somewhere in it: a field of a field may have it.
  if (json.includes(`"${META}":`) && Object.hasOwn(JSON.parse(json), META))
    throw new TypeError(`item: a field cannot be called ${META}, which is where an item says of what page it is; give it another name`);
  return json;
}

function judged(type: string, key: string | null, result: SchemaResult, given: string): Kept {
  if (result.issues === undefined) return withKey(type, key, result.value, toWrite(result.value));
  const shown = shownOf(given);
  if (result.issues.length === 0) return { bad: [{ type, field: "", message: "refused by its schema", item: shown }] };
  return { bad: result.issues.map(({ path, message }) => ({ type, field: detached(spellPath(path)), message: detached(message), item: shown })) };
}

function withKey(type: string, key: string | null, fields: unknown, json: string): Kept {
  if (key === null) return { item: { type, key: null, json } };
  const value = isRecord(fields) ? fields[key] : undefined;
  if ((typeof value === "string" && value !== "") || (typeof value === "number" && Number.isFinite(value)) || typeof value === "boolean") {
    return { item: { type, key: detached(String(value)), json } };
  }
  const message = value === undefined || value === null || value === "" ? "the key is missing" : `the key must be a string or a number, not ${whatIs(value)}`;
  return { bad: [{ type, field: key, message, item: shownOf(json) }] };
}

function shownOf(json: string): string {
  return json.length <= MAX_SHOWN ? json : detached(json.slice(0, MAX_SHOWN));
}
