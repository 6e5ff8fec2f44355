/** Hands settled outputs to the sinks, the listeners and the reader of the run, in settle order, inside the settle step. */
import type { Output, PageRecord } from "../core/records.ts";
import type { Gate, Sink } from "../core/sink.ts";
import type { Parts } from "./parts.ts";

/** Records kept for a reader before the crawl waits for it. */
const READER_BACKLOG = 128;

/** The pages or the items of a run as their reader pulls them; what is not read holds the crawl back. */
export interface Reader<T> extends AsyncIterator<T> {
  readonly gate: Gate;
  push(record: T): void;
  end(failure: { readonly error: unknown } | null): void;
}

/** Who reads a run. Null: nobody does. */
export interface Readers {
  readonly pages: () => Reader<PageRecord> | null;
  readonly items: () => Reader<Item> | null;
}

/** An item as a program gets it: the scraper's fields, and `_meta` unless that is off. */
export type Item = Readonly<Record<string, unknown>>;

/** What somebody reads is read fast enough. */
export function gateOf({ pages, items }: Readers, sinks: readonly Gate[]): Gate {
  const gates = (): Gate[] => [pages()?.gate, items()?.gate, ...sinks].filter((gate) => gate !== undefined);
  return {
    open: () => gates().every((gate) => gate.open()),
    onOpen(callback) {
      for (const gate of gates()) if (!gate.open()) return gate.onOpen(callback);
      callback();
    },
  };
}

export function createReader<T>(onReturn: () => void): Reader<T> {
  let backlog: T[] = [];
  let at = 0;
  let waiting: { resolve: (result: IteratorResult<T>) => void; reject: (error: unknown) => void } | null = null;
  let over: { readonly failure: { readonly error: unknown } | null } | null = null;
  let opened: (() => void) | null = null;
  const DONE: IteratorResult<T> = { done: true, value: undefined };

  return {
    gate: {
      open: () => backlog.length - at < READER_BACKLOG,
      onOpen(callback) {
        opened = callback;
      },
    },
    push(record) {
      if (over !== null) return;
      if (waiting !== null) {
        const { resolve } = waiting;
        waiting = null;
        resolve({ done: false, value: record });
      } else backlog.push(record);
    },
    end(failure) {
      if (over !== null) return;
      over = { failure };
      if (waiting === null) return;
      if (failure === null) waiting.resolve(DONE);
      else waiting.reject(failure.error);
      waiting = null;
    },
    async next() {
      const page = backlog[at];
      if (page !== undefined) {
        at++;
        if (at === backlog.length) {
          backlog = [];
          at = 0;
          const callback = opened;
          opened = null;
          callback?.();
        }
        return { done: false, value: page };
      }
      if (over !== null) {
        if (over.failure !== null) throw over.failure.error;
        return DONE;
      }
      return new Promise((resolve, reject) => {
        waiting = { resolve, reject };
      });
    },
    async return() {
      over ??= { failure: null };
      backlog = [];
      at = 0;
      const callback = opened;
      opened = null;
      callback?.();
      onReturn();
      return DONE;
    },
  };
}

/** Owed outputs of redirect chains first, then the page's own. */
export function flattened(outputs: readonly Output[]): readonly Output[] {
  if (!outputs.some((output) => output.owed !== undefined)) return outputs;
  const flat: Output[] = [];
  for (const output of outputs) {
    if (output.owed !== undefined) flat.push(...output.owed);
    flat.push(output);
  }
  return flat;
}

/** What the frontier calls inside its settle step. */
export function createWriter(
  parts: Parts,
  sinks: () => readonly Sink[],
  readers: Readers,
  seen: (output: Output) => void,
): (outputs: readonly Output[]) => void {
  const { hooks, onEvent } = parts;
  return (outputs) => {
    const flat = flattened(outputs);
    for (const sink of sinks()) sink.write(flat);
    const pages = readers.pages();
    const items = readers.items();
    for (const output of flat) {
      seen(output);
      if (output.page !== null && output.listed) pages?.push(output.page);
      if (output.items !== undefined && (items !== null || hooks.onItem !== undefined)) {
        for (const { type, key, json } of output.items) {
          const item = itemOf(json, output, parts.spec.meta);
          items?.push(item);
          hooks.onItem?.(item, { type, key });
        }
      }
      if (hooks.onSkip !== undefined) for (const { value } of output.skipped) hooks.onSkip(value);
      onEvent({ kind: "settled", output });
    }
  };
}

function itemOf(json: string, { page }: Output, meta: boolean): Item {
  const fields = JSON.parse(json) as Item; // the text of one object (core/records.ts)
  return page === null || !meta ? fields : { ...fields, _meta: { url: page.url, depth: page.depth, fetchedAt: page.fetchedAt } };
}
