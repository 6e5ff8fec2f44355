/** State and watermarks of one page: read from what was settled, changed only with the page (rules/values.ts names them). */
import type { ValueChange } from "../../core/frontier.ts";
import type { ScrapeTask } from "../../core/scraping.ts";
import { compareValues, MARK, RUN_MARK, STATE } from "../../rules/values.ts";
import { type Parsed, type Watermark, whatIs } from "./define.ts";
import { detached } from "./detach.ts";
import { jsonOf } from "./json.ts";

/** Settled values by key, JSON text. */
export type Values = ReadonlyMap<string, string>;

export interface PageValues {
  get(key: string): Parsed;
  set(key: string, value: unknown): void;
  watermark(key: string, olderInARow: number): Watermark;
  /** At the end: what changed, and how many values in a row were old. */
  changes(): readonly ValueChange[];
  oldRuns(): Readonly<Record<string, number>> | null;
}

interface Counted {
  /** JSON text. */
  readonly mark: string | null;
  oldInARow: number;
  greatest: string | null;
}

export function createPageValues(task: ScrapeTask, values: Values): PageValues {
  const own = new Map<string, string | null>();
  const marks = new Map<string, Counted>();

  function counted(key: string): Counted {
    let found = marks.get(key);
    if (found === undefined) {
      found = { mark: values.get(MARK + key) ?? null, oldInARow: task.oldRuns?.[key] ?? 0, greatest: null };
      marks.set(detached(key), found);
    }
    return found;
  }

  return {
    get(key) {
      checkKey("state.get", key);
      const mine = own.get(key);
      const json = mine === undefined ? values.get(STATE + key) : mine;
      return json === undefined || json === null ? undefined : JSON.parse(json);
    },
    set(key, value) {
      checkKey("state.set", key);
      own.set(detached(key), value === undefined ? null : jsonOf(`state.set: the value of ${JSON.stringify(key)}`, value));
    },
    watermark(key, olderInARow) {
      checkKey("watermark", key);
      if (!Number.isSafeInteger(olderInARow) || olderInARow < 1) {
        throw new RangeError(`watermark: olderInARow must be an integer, 1 or more, not ${whatIs(olderInARow)}`);
      }
      const counter = counted(key);
      return {
        value: counter.mark === null ? undefined : JSON.parse(counter.mark),
        old: (value) => isOld(key, counter, value) && counter.oldInARow >= olderInARow,
      };
    },
    changes() {
      const sets = [...own].map(([key, value]): ValueChange => ({ op: "set", key: STATE + key, value }));
      const met = [...marks].filter(([, { greatest }]) => greatest !== null);
      return [...sets, ...met.map(([key, { greatest }]): ValueChange => ({ op: "max", key: RUN_MARK + key, value: greatest }))];
    },
    oldRuns() {
      const runs: Record<string, number> = { ...task.oldRuns };
      for (const [key, { oldInARow }] of marks) runs[key] = oldInARow;
      for (const [key, count] of Object.entries(runs)) if (count === 0) delete runs[key];
      return Object.keys(runs).length === 0 ? null : runs;
    },
  };
}

/** Counts the value, and keeps the greatest. False where there is no mark. */
function isOld(key: string, counter: Counted, given: unknown): boolean {
  const value = markJson(key, given);
  for (const other of [counter.mark, counter.greatest]) {
    if (other !== null && kindOf(other) !== kindOf(value)) {
      throw new TypeError(`watermark ${JSON.stringify(key)}: ${value} is a ${kindOf(value)}, but ${other} is a ${kindOf(other)}; they cannot be compared`);
    }
  }
  if (counter.greatest === null || compareValues(value, counter.greatest) > 0) counter.greatest = value;
  if (counter.mark === null) return false;
  const old = compareValues(value, counter.mark) <= 0;
  counter.oldInARow = old ? counter.oldInARow + 1 : 0;
  return old;
}

const kindOf = (json: string) => (json.startsWith('"') ? "string" : "number");

function markJson(key: string, value: unknown): string {
  if (value instanceof Date && !Number.isNaN(value.getTime())) return JSON.stringify(value.toISOString());
  if (typeof value === "string" || (typeof value === "number" && Number.isFinite(value))) return JSON.stringify(value);
  const what = value instanceof Date ? "an invalid date" : whatIs(value);
  throw new TypeError(`watermark ${JSON.stringify(key)}: expected a number, a string or a date, not ${what}`);
}

function checkKey(what: string, key: unknown): void {
  if (typeof key !== "string" || key === "") throw new TypeError(`${what}: the key must be a text, not ${whatIs(key)}`);
}
