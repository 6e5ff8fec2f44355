/** The values that user code keeps in the store, as this loop knows them: read when the run opens, and changed with every settle. */
import type { ValueChange } from "../core/frontier.ts";
import type { Scraping } from "../core/scraping.ts";
import { changedValue, MARK, NO_HANDLER, RUN_BROKEN, RUN_FAILED, RUN_MARK, RUN_MARKING, RUN_SERIES, RUN_STOP, type StopAsked } from "../rules/values.ts";

/** A page that was asked for and not read. */
export interface LeftPage {
  readonly handler: string;
  readonly series: string | null;
  readonly index: number;
}

export interface Values {
  /** JSON text. */
  get(key: string): string | null;
  /** As the store has them now, where other processes change them too. */
  refresh(now: ReadonlyMap<string, string>): void;
  /** After they were settled. */
  apply(changes: readonly ValueChange[]): void;
  /** Index at which a series was stopped; Infinity: it was not. */
  stopOf(series: string): number;
  /** The changes that make this run's watermarks those of the last good run, or why they stay as they are. */
  marks(left: readonly LeftPage[]): { readonly changes: readonly ValueChange[]; readonly held: string | null };
}

export function createValues(before: ReadonlyMap<string, string>, scraping: Scraping | null): Values {
  const values = new Map(before);
  scraping?.learn(values);
  const number = (key: string): number | null => {
    const text = values.get(key);
    return text === undefined ? null : Number(text);
  };
  const stopOf = (series: string): number => number(RUN_SERIES + series) ?? Infinity;

  function under(prefix: string): string[] {
    return [...values.keys()].filter((key) => key.startsWith(prefix)).map((key) => key.slice(prefix.length));
  }

  /** A listing of which a page is missing may have held newer values than any that was met. */
  function gap(left: readonly LeftPage[]): string | null {
    const text = values.get(RUN_STOP);
    const stop = text === undefined ? null : (JSON.parse(text) as StopAsked); // written by engine/scrape.ts
    if (stop?.mode === "now") return "the run was stopped at once";
    const series = under(RUN_FAILED).find((name) => (number(RUN_FAILED + name) ?? 0) < stopOf(name));
    if (series !== undefined) return `a page of the series ${series} failed`;
    const marking = new Set(under(RUN_MARKING));
    const broken = under(RUN_BROKEN).find((handler) => marking.has(handler));
    if (broken !== undefined) return broken === NO_HANDLER ? "a page failed" : `a page of the handler ${broken} failed`;
    const waiting = left.find((page) => !marking.has(page.handler) || liesBefore(page, stop?.at ?? null));
    return waiting === undefined ? null : `pages of the handler ${waiting.handler} were left`;
  }

  return {
    get: (key) => values.get(key) ?? null,
    stopOf,
    refresh(now) {
      const learnt = new Map<string, string | null>();
      for (const [key, value] of now) if (values.get(key) !== value) learnt.set(key, value);
      for (const key of values.keys()) if (!now.has(key)) learnt.set(key, null);
      for (const [key, value] of learnt) {
        if (value === null) values.delete(key);
        else values.set(key, value);
      }
      if (learnt.size > 0) scraping?.learn(learnt);
    },
    apply(changes) {
      const learnt = new Map<string, string | null>();
      for (const change of changes) {
        const after = changedValue(values.get(change.key) ?? null, change);
        if (after === null) values.delete(change.key);
        else values.set(change.key, after);
        learnt.set(change.key, after);
      }
      scraping?.learn(learnt);
    },
    marks(left) {
      const met = under(RUN_MARK);
      if (met.length === 0) return { changes: [], held: null };
      const held = gap(left);
      if (held !== null) return { changes: [], held };
      return { changes: met.map((key) => ({ op: "max", key: MARK + key, value: values.get(RUN_MARK + key) ?? null })), held: null };
    },
  };
}

/** Whether a page was to be read before the one that stopped the run, or belongs to another listing. */
function liesBefore({ series, index }: LeftPage, at: StopAsked["at"]): boolean {
  return at !== null && series !== null && (series !== at.series || index <= at.index);
}
