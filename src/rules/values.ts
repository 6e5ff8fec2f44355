/** Values that scrapers keep from page to page and from run to run: their order, their names, and how one changes. JSON text throughout. */
import type { StopMode } from "../core/events.ts";
import type { ValueChange } from "../core/frontier.ts";

/** Kept over runs. `state:` is the user's, `mark:` the watermark of the last good run. */
export const STATE = "state:";
export const MARK = "mark:";
/** Of one run; a new run drops everything under it. */
export const RUN = "run:";
/** The greatest value a watermark met in this run. */
export const RUN_MARK = "run:mark:";
/** The smallest index at which a series was stopped. */
export const RUN_SERIES = "run:series:";
/** The smallest index of a series at which a page failed. */
export const RUN_FAILED = "run:failed:";
/** Handlers that met a watermark, and those of which a page outside of any series failed. */
export const RUN_MARKING = "run:marking:";
export const RUN_BROKEN = "run:broken:";
/** That pages told of a series that ended, or met a watermark that was there: the run did not look at everything. */
export const RUN_PARTIAL = "run:partial";
/** Stands for the handler where there are none, but items and their stop rules. */
export const NO_HANDLER = "";
/** Of a page that the item limit cut in two: how many of its items are written. */
export const RUN_CUT = "run:cut:";
/** That a scraper stopped the run. */
export const RUN_STOP = "run:stop";

/** The value of RUN_STOP. `at`: the place of the page that asked for it in its series; null: it is in none. */
export interface StopAsked {
  readonly mode: StopMode;
  readonly reason: string | null;
  readonly at: { readonly series: string; readonly index: number } | null;
}

/** Numbers by size, strings by code units, and a number before any string. Negative: `a` comes first. */
export function compareValues(a: string, b: string): number {
  const x: unknown = JSON.parse(a);
  const y: unknown = JSON.parse(b);
  if (typeof x === "number" && typeof y === "number") return x - y;
  if (typeof x === "string" && typeof y === "string") return x < y ? -1 : x > y ? 1 : 0;
  return (typeof x === "number" ? 0 : 1) - (typeof y === "number" ? 0 : 1);
}

/** The value after a change; null: there is none. `before` null: there was none. */
export function changedValue(before: string | null, { op, value }: ValueChange): string | null {
  if (op === "set" || before === null) return value;
  if (value === null) return before;
  const order = compareValues(value, before);
  return (op === "max" ? order > 0 : order < 0) ? value : before;
}
