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

/** Items without a key are told apart by what they say. Where one of a type is left on each side, as where a page has one item, it is that item changed. */
export function itemChanges(url: string, before: readonly ItemRecord[], after: readonly ItemRecord[]): ChangeRecord[] {
  const old = new Map<string, ItemRecord[]>();
  for (const item of before) listUnder(old, nameOf(item), item);
  const was = after.map((item) => old.get(nameOf(item))?.shift() ?? null);
  const alone = onlyOnes([...old.values()].flat().filter(keyless));
  const news = onlyOnes(after.filter((item, i) => was[i] === null && keyless(item)));
  const taken = new Set<ItemRecord>();
  const out = after.map((item, i): ChangeRecord => {
    const earlier = was[i] ?? (news.get(item.type) === item ? (alone.get(item.type) ?? null) : null);
    if (earlier === null) return changeOf(url, item, "added");
    taken.add(earlier);
    const fields = earlier.json === item.json ? [] : fieldsThatDiffer(earlier.json, item.json);
    return fields.length === 0 ? changeOf(url, item, "unchanged") : { ...changeOf(url, item, "changed"), fields };
  });
  for (const left of [...old.values()].flat()) if (!taken.has(left)) out.push(changeOf(url, left, "gone"));
  return out;
}

const keyless = ({ key }: ItemRecord): boolean => key === null;
const nameOf = ({ type, key, json }: ItemRecord): string => (key === null ? `${type}\0\0${json}` : `${type}\0${key}`);

function changeOf(url: string, { type, key }: ItemRecord, change: ChangeRecord["change"]): ChangeRecord {
  return { kind: "item", url, change, type, ...(key === null ? {} : { key }) };
}

function fieldsThatDiffer(before: string, after: string): string[] {
  const [a, b] = [before, after].map((json) => JSON.parse(json) as object); // texts of objects (core/records.ts)
  return differing(a ?? {}, b ?? {}, new Set([...Object.keys(a ?? {}), ...Object.keys(b ?? {})]));
}

function listUnder(lists: Map<string, ItemRecord[]>, name: string, item: ItemRecord): void {
  const list = lists.get(name);
  if (list === undefined) lists.set(name, [item]);
  else list.push(item);
}

/** By type, those that are the only one of it. */
function onlyOnes(items: readonly ItemRecord[]): Map<string, ItemRecord> {
  const counts = new Map<string, ItemRecord[]>();
  for (const item of items) listUnder(counts, item.type, item);
  return new Map([...counts].flatMap(([type, [one, another]]) => (one === undefined || another !== undefined ? [] : [[type, one] as const])));
}
