/** What the columns of items are called in CSV and SQLite: the fields' own names, unless one is taken. Knows no file. */
import type { PageRecord } from "../core/records.ts";

/** Where an item is from. Absent with --no-meta. */
export const META_FIELDS = ["url", "depth", "fetchedAt"] as const satisfies readonly (keyof PageRecord)[];
export const META_COLUMNS = META_FIELDS.map((field) => `_${field}`);
/** Fields without a column of their own, as a JSON object. */
export const EXTRA_COLUMN = "_extra";
export const TYPE_COLUMN = "_type";

/** Answers a name of its own for each wanted one: itself, or with `_2`, `_3` … when that is taken; names are equal when `fold` makes them so. */
export function nameGiver(taken: Iterable<string>, fold: (name: string) => string): (wanted: string) => string {
  const used = new Set<string>();
  for (const name of taken) used.add(fold(name));
  const last = new Map<string, number>();
  return (wanted) => {
    let name = wanted;
    let n = last.get(fold(wanted)) ?? 1;
    while (used.has(fold(name))) name = `${wanted}_${++n}`;
    last.set(fold(wanted), n);
    used.add(fold(name));
    return name;
  };
}

/** An item's fields. A field may have any name, also one that every object answers to: ask with Object.hasOwn. */
export function fieldsOf(json: string): Readonly<Record<string, unknown>> {
  return JSON.parse(json);
}
