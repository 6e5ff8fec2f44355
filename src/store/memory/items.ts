/** The limit of items: what fits is written, and a page of which something does not fit is queued again, so that a run that goes on under a larger limit fetches it for the rest. */
import type { Settled } from "../../core/frontier.ts";
import type { ItemRecord, Output } from "../../core/records.ts";
import { RUN_CUT } from "../../rules/values.ts";
import { carriedKey, type Desk, isRelink } from "./desk.ts";
import type { LeaseEntry } from "./leases.ts";
import type { Place } from "./place.ts";

export interface Fit {
  /** As they are to be settled: whole, with a part of their items, or handed back where no item finds room. */
  readonly pages: readonly Settled[];
  /** By place among the pages: how many of its items are written by now, where that is not all. */
  readonly cut: ReadonlyMap<number, number>;
}

const NO_ITEMS: readonly ItemRecord[] = [];
/** A page that is fetched for the rest of its items has been told of already. */
const TOLD: Output = { page: null, listed: false, skipped: [], found: [], edges: [] };

/** Null: nothing is limited, and nothing was cut earlier. */
export function fitItems(desk: Desk, pages: readonly Settled[], entries: readonly (LeaseEntry | undefined)[]): Fit | null {
  if (desk.itemLimit === null && desk.cuts.size === 0) return null;
  let room = itemRoom(desk);
  const cut = new Map<number, number>();
  function fitted(page: Settled, i: number): Settled {
    const entry = entries[i];
    const { settlement } = page;
    if (entry === undefined || settlement.kind !== "done" || isRelink(desk, entry.place)) return page;
    const before = desk.cuts.get(carriedKey(entry.place.request));
    const all = settlement.output.items ?? NO_ITEMS;
    const items = before === undefined ? all : all.slice(before);
    if (items.length > 0 && room === 0) return { ...page, settlement: { kind: "returned" } };
    const kept = Math.min(room, items.length);
    room -= kept;
    if (before === undefined && kept === items.length) return page;
    if (kept < items.length) cut.set(i, (before ?? 0) + kept);
    const output = { ...(before === undefined ? settlement.output : TOLD), items: items.slice(0, kept) };
    return { ...page, settlement: { ...settlement, output } };
  }
  return { pages: pages.map(fitted), cut };
}

/** How many more items may be written. */
export function itemRoom(desk: Desk): number {
  return desk.itemLimit === null ? Infinity : Math.max(0, desk.itemLimit - (desk.tally.get("items") ?? 0));
}

/** The page has its record, and is fetched again for the rest of its items. */
export const isRest = (desk: Desk, place: Place): boolean => desk.cuts.size > 0 && desk.cuts.has(carriedKey(place.request));

/** Nothing that comes of it is written or counted again, but for the rest of its items. */
export const isTold = (desk: Desk, place: Place): boolean => isRelink(desk, place) || isRest(desk, place);

export function noteCut(desk: Desk, place: Place, written: number): void {
  keep(desk, carriedKey(place.request), written);
}

export function forgetCut(desk: Desk, place: Place): void {
  if (isRest(desk, place)) keep(desk, carriedKey(place.request), null);
}

function keep(desk: Desk, key: string, written: number | null): void {
  const text = written === null ? null : String(written);
  if (written === null) desk.cuts.delete(key);
  else desk.cuts.set(key, written);
  if (text === null) desk.values.delete(RUN_CUT + key);
  else desk.values.set(RUN_CUT + key, text);
  desk.journal?.value(RUN_CUT + key, text);
}

/** From the values that a state has kept. */
export function loadCuts(desk: Desk): void {
  for (const [key, value] of desk.values) if (key.startsWith(RUN_CUT)) desk.cuts.set(key.slice(RUN_CUT.length), Number(value));
}
