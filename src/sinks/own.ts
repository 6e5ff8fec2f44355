/** The sinks that a program brings along: its synchronous ones as they are, those that take their time wrapped and opened. */
import type { Clock } from "../core/clock.ts";
import { CrawlError } from "../core/errors.ts";
import type { BatchSink, Gate, Sink } from "../core/sink.ts";
import { type BatchingSink, batchSink, isBatchSink } from "./batch.ts";
import type { SinkStates } from "./open.ts";

export interface OwnSinks {
  readonly sinks: readonly Sink[];
  /** Closed while one of them has too much to do. */
  readonly gates: readonly Gate[];
}

export interface OwnSinksRun {
  /** The same over all resumes of a run, and of no other run. */
  readonly id: string;
  readonly clock: Clock;
  /** Null: a crawl in memory. */
  readonly durable: {
    /** Of the last commit; null: a fresh run. */
    readonly states: SinkStates;
    /** The committed lines of a journal, as it was left. */
    lines(kind: BatchSink["takes"]): AsyncIterable<readonly string[]>;
  } | null;
  /** A sink refused a batch: the crawl is to end. */
  onFailure?(error: CrawlError): void;
}

/** JavaScript gives anything for a sink; a part that lacks would only be missed in the middle of the crawl. */
function checkParts(sink: Sink | BatchSink, index: number): void {
  const methods = isBatchSink(sink) ? ["write"] : ["write", "flush", "close"];
  const lacks = methods.filter((name) => typeof Reflect.get(sink, name) !== "function");
  const wrong = [
    ...(typeof sink.name === "string" ? [] : ["a name"]),
    ...(isBatchSink(sink) && sink.takes !== "items" && sink.takes !== "pages" ? ['takes: "items" or "pages"'] : []),
    ...lacks.map((name) => `${name}()`),
  ];
  if (wrong.length === 0) return;
  const message = `sink ${index + 1} lacks ${wrong.join(", ")}${isBatchSink(sink) ? "" : '; a sink with takes: "items" or "pages" needs only name and write()'}`;
  throw new CrawlError("invalid-options", `sinks: ${message}`, { problems: [{ option: "sinks", message }] });
}

/** Rejects with CrawlError `invalid-options` for what is no sink, with `output-unwritable` when one cannot be opened; those before it are closed again. */
export async function openOwnSinks(own: readonly (Sink | BatchSink)[], run: OwnSinksRun): Promise<OwnSinks> {
  const { id, clock, durable } = run;
  const wrapped: BatchingSink[] = [];
  const sinks: Sink[] = [];
  const failed = run.onFailure === undefined ? {} : { onFailure: (error: CrawlError) => run.onFailure?.(error) };
  function wrap(user: BatchSink): BatchingSink {
    if (durable === null) return batchSink(user, { id, clock, ...failed, durable });
    const { states } = durable;
    const records = states?.get(`journal:${user.takes}`)?.records;
    const of = { records: typeof records === "number" ? records : 0, state: states?.get(user.name) ?? null, lines: () => durable.lines(user.takes) };
    return batchSink(user, { id, clock, ...failed, durable: of });
  }
  for (const [index, sink] of own.entries()) checkParts(sink, index);
  try {
    for (const sink of own) {
      if (!isBatchSink(sink)) {
        sinks.push(sink);
        continue;
      }
      const one = wrap(sink);
      wrapped.push(one);
      sinks.push(one);
      await one.start();
    }
  } catch (error) {
    // Their own failures are worth less than this one, and the last of them is this one.
    await Promise.allSettled(wrapped.map((one) => one.close()));
    throw error;
  }
  return { sinks, gates: wrapped.map(({ gate }) => gate) };
}
