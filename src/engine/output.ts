/** Hands settled outputs to the sinks, the listeners and the reader of the run, in settle order, inside the settle step. */
import type { Output, PageRecord } from "../core/records.ts";
import type { Sink } from "../core/sink.ts";
import type { Parts } from "./parts.ts";
import type { Gate } from "./run.ts";

/** Records kept for a reader before the crawl waits for it. */
const READER_BACKLOG = 128;

/** The pages of a run as its reader pulls them; what is not read holds the crawl back. */
export interface Reader extends AsyncIterator<PageRecord> {
  readonly gate: Gate;
  push(page: PageRecord): void;
  end(failure: { readonly error: unknown } | null): void;
}

export function createReader(onReturn: () => void): Reader {
  let backlog: PageRecord[] = [];
  let at = 0;
  let waiting: { resolve: (result: IteratorResult<PageRecord>) => void; reject: (error: unknown) => void } | null = null;
  let over: { readonly failure: { readonly error: unknown } | null } | null = null;
  let opened: (() => void) | null = null;
  const DONE: IteratorResult<PageRecord> = { done: true, value: undefined };

  return {
    gate: {
      open: () => backlog.length - at < READER_BACKLOG,
      onOpen(callback) {
        opened = callback;
      },
    },
    push(page) {
      if (over !== null) return;
      if (waiting !== null) {
        const { resolve } = waiting;
        waiting = null;
        resolve({ done: false, value: page });
      } else backlog.push(page);
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
  reader: () => Reader | null,
  seen: (output: Output) => void,
): (outputs: readonly Output[]) => void {
  const { hooks, onEvent } = parts;
  return (outputs) => {
    const flat = flattened(outputs);
    for (const sink of sinks()) sink.write(flat);
    const to = reader();
    for (const output of flat) {
      seen(output);
      if (output.page !== null && output.listed) to?.push(output.page);
      if (hooks.onSkip !== undefined) for (const { value } of output.skipped) hooks.onSkip(value);
      onEvent({ kind: "settled", output });
    }
  };
}
