/** What changed between two visits of a page: its record's fields, and its items, told apart by their keys. */
import type { ItemRecord, PageRecord } from "../core/records.ts";
import type { ChangeRecord } from "../core/visits.ts";

/** What a page says; the rest of its record tells how it was fetched. */
const PAGE_FIELDS = ["status", "contentType", "digest", "title", "canonical", "robots", "links", "images"] as const satisfies readonly (keyof PageRecord)[];

/** All that tells of a body that was not fetched or not kept. */
const BODY_FIELDS = ["etag", "lastModified"] as const satisfies readonly (keyof PageRecord)[];

function differing(before: object, after: object, names: Iterable<string>): string[] {
  return [...names].filter((name) => JSON.stringify(Reflect.get(before, name)) !== JSON.stringify(Reflect.get(after, name)));
}

/** Null stands for what was not there. */
export function pageChange(before: PageRecord | null, after: PageRecord | null): ChangeRecord {
  const url = (after ?? before)?.url ?? "";
  if (before === null) return { kind: "page", url, change: "added" };
  if (after === null) return { kind: "page", url, change: "gone" };
  const names = PAGE_FIELDS.filter((name) => name !== "images" || (before.images !== undefined && after.images !== undefined));
  const fields = differing(before, after, before.digest === undefined || after.digest === undefined ? [...names, ...BODY_FIELDS] : names);
  return fields.length === 0 ? { kind: "page", url, change: "unchanged" } : { kind: "page", url, change: "changed", fields };
}

/** Items without a key are told apart by what they say, and then by their place among the others of their type. */
export function itemChanges(url: string, before: readonly ItemRecord[], after: readonly ItemRecord[]): ChangeRecord[] {
  const out: ChangeRecord[] = [];
  const old = new Map<string, ItemRecord[]>();
  for (const item of before) {
    const name = nameOf(item);
    const same = old.get(name);
    if (same === undefined) old.set(name, [item]);
    else same.push(item);
  }
  for (const item of after) {
    const was = old.get(nameOf(item))?.shift();
    const about = { kind: "item" as const, url, type: item.type, ...(item.key === null ? {} : { key: item.key }) };
    if (was === undefined) {
      out.push({ ...about, change: "added" });
      continue;
    }
    if (was.json === item.json) {
      out.push({ ...about, change: "unchanged" });
      continue;
    }
    const [a, b] = [was.json, item.json].map((json) => JSON.parse(json) as object); // texts of objects (core/records.ts)
    const fields = differing(a ?? {}, b ?? {}, new Set([...Object.keys(a ?? {}), ...Object.keys(b ?? {})]));
    out.push(fields.length === 0 ? { ...about, change: "unchanged" } : { ...about, change: "changed", fields });
  }
  for (const left of old.values()) {
    for (const { type, key } of left) out.push({ kind: "item", url, change: "gone", type, ...(key === null ? {} : { key }) });
  }
  return out;
}

const nameOf = ({ type, key, json }: ItemRecord): string => (key === null ? `${type}\0\0${json}` : `${type}\0${key}`);
