/**
 * A sink of the user's own, written to in batches beside the crawl, which waits when several are due.
 *
 * Exactly once: a checkpoint is `RUN:N`, the N-th record of the run, and the sink stores it with the records. In a durable crawl it is given a record only once
 * the crawl's state has it (a process that dies before the commit requests the page again, and its records may then be others, in another order); so the sink
 * is never ahead of the state. What it lacks after a kill is read from the journal, which has the records in the same order.
 */
import type { Clock, Timer } from "../core/clock.ts";
import { CrawlError } from "../core/errors.ts";
import type { Output } from "../core/records.ts";
import type { BatchItem, BatchSink, Gate, Sink, SinkState } from "../core/sink.ts";
import type { JournalItem } from "./item-lines.ts";

const BATCH_RECORDS = 500;
/** Batches that may wait before the crawl does. */
const MOST_BATCHES = 4;
/** A batch that does not fill is written after so long. */
const QUIET_MS = 1_000;

export interface BatchRun {
  readonly id: string;
  readonly clock: Clock;
  /** Null: a crawl in memory, which commits nothing. */
  readonly durable: {
    /** Records of the kind it takes that were committed before this start. */
    readonly records: number;
    /** Lines of their journal, in order. */
    lines(): AsyncIterable<readonly string[]>;
    /** What the last commit says of this sink. */
    readonly state: SinkState | null;
  } | null;
  /** A batch was refused: the crawl is to end; `write` and `close` will say the same. */
  onFailure?(error: CrawlError): void;
}

export interface BatchingSink extends Sink {
  readonly gate: Gate;
  /** Opens the user's sink and begins to hand over what it lacks. Rejects with CrawlError `output-unwritable`. */
  start(): Promise<void>;
  committed(): void;
}

export function isBatchSink(sink: Sink | BatchSink): sink is BatchSink {
  return "takes" in sink;
}

function ofLine(takes: BatchSink["takes"], line: string): object {
  if (takes === "pages") return JSON.parse(line);
  const { type, key, item, url, depth, fetchedAt } = JSON.parse(line) as JournalItem; // `as`: a line of that journal
  return { type, key, item, url, depth, fetchedAt } satisfies BatchItem;
}

function recordsOf(takes: BatchSink["takes"], outputs: readonly Output[]): readonly object[] {
  if (takes === "pages") return outputs.flatMap(({ page }) => (page === null ? [] : [page]));
  return outputs.flatMap(({ items = [], page }) =>
    items.map(({ type, key, json }): BatchItem => {
      const { url = null, depth = null, fetchedAt = null } = page ?? {};
      return { type, key, item: JSON.parse(json), url, depth, fetchedAt };
    }),
  );
}

/** `RUN:N` of this run, else 0. */
function placeIn(checkpoint: string | null, id: string): number {
  const [, run, records] = checkpoint === null ? [] : (/^(.*):(\d+)$/.exec(checkpoint) ?? []);
  return run === id ? Number(records) : 0;
}

export function batchSink(user: BatchSink, run: BatchRun): BatchingSink {
  const { name, takes } = user;
  const { id, clock, durable } = run;
  const size = Math.max(1, user.batchSize ?? BATCH_RECORDS);
  /** Records that are not committed yet, and how many of them the last checkpoint covers. */
  let held: object[] = [];
  let covered = 0;
  /** To be handed over, from `at` on. */
  let due: object[] = [];
  let at = 0;
  /** Records of the run that the user's sink has. */
  let has = 0;
  let work: Promise<void> | null = null;
  let replaying = false;
  /** What waits is written although it fills no batch. */
  let pressing = false;
  let timer: Timer | null = null;
  let failure: CrawlError | null = null;
  let opened: (() => void) | null = null;
  let closing: Promise<void> | null = null;

  const waiting = (): number => due.length - at;
  const isOpen = (): boolean => failure !== null || (!replaying && waiting() < size * MOST_BATCHES);

  function failed(what: string, cause: unknown): CrawlError {
    const why = cause instanceof Error ? cause.message : String(cause);
    failure ??= new CrawlError("output-unwritable", `sink ${name}: ${what}: ${why}`, { cause });
    return failure;
  }

  function tellOpen(): void {
    if (opened === null || !isOpen()) return;
    const callback = opened;
    opened = null;
    callback();
  }

  async function hand(records: readonly object[]): Promise<void> {
    // `as`: records of the kind that it takes (recordsOf, ofLine).
    const write = user.write as (records: readonly object[], checkpoint: string) => Promise<void>;
    await write.call(user, records, `${id}:${has + records.length}`);
    has += records.length;
  }

  function next(): readonly object[] | null {
    const count = Math.min(size, waiting());
    if (count === 0 || (count < size && !pressing)) return null;
    const batch = due.slice(at, at + count);
    at += count;
    if (at === due.length || at > size * MOST_BATCHES) {
      due = due.slice(at);
      at = 0;
    }
    return batch;
  }

  /** What was committed and the sink lacks. */
  async function replay(from: number): Promise<void> {
    let seen = 0;
    let batch: object[] = [];
    for await (const lines of durable?.lines() ?? []) {
      for (const line of lines) {
        if (seen++ < from) continue;
        batch.push(ofLine(takes, line));
        if (batch.length < size) continue;
        await hand(batch);
        batch = [];
      }
    }
    if (batch.length > 0) await hand(batch);
  }

  async function working(lacks: boolean): Promise<void> {
    try {
      if (lacks) await replay(has);
      replaying = false;
      tellOpen();
      for (let batch = next(); batch !== null; batch = next()) {
        tellOpen();
        await hand(batch);
      }
    } catch (error) {
      // Noted whether or not anybody listens: an argument of an absent `onFailure?.(…)` would not even be evaluated.
      const refused = failed("a batch was refused", error);
      run.onFailure?.(refused);
      tellOpen();
    } finally {
      work = null;
      pressing = false;
    }
  }

  function proceed(): void {
    if (work !== null || failure !== null) return;
    if (waiting() >= size || (pressing && waiting() > 0)) {
      timer?.cancel();
      timer = null;
      work = working(false).then(proceed);
    } else if (waiting() > 0) timer ??= clock.after(QUIET_MS, press);
  }

  function press(): void {
    timer = null;
    pressing = true;
    proceed();
  }

  /** Only a commit that succeeded is followed by another call. */
  function confirm(): void {
    for (let index = 0; index < covered; index++) due.push(held[index]!);
    held = held.slice(covered);
    covered = 0;
    proceed();
  }

  async function finish(): Promise<void> {
    try {
      for (;;) {
        pressing = true;
        proceed();
        if (work === null) break;
        await work;
      }
    } finally {
      timer?.cancel();
      try {
        await user.close?.();
      } catch (error) {
        failed("cannot be closed", error);
      }
    }
    if (failure !== null) throw failure;
  }

  async function start(): Promise<void> {
    let last: string | null;
    try {
      last = user.open === undefined ? `${durable?.state?.run}:${durable?.state?.delivered}` : await user.open({ id });
    } catch (error) {
      throw failed("cannot be opened", error);
    }
    has = placeIn(last, id);
    const records = durable?.records ?? 0;
    if (has > records) {
      throw failed(
        "cannot go on",
        `it has ${has} records of this run and the crawl's state ${records}, as after a power cut; take back what it has beyond ${id}:${records}, or begin again with --fresh`,
      );
    }
    if (has === records) return;
    replaying = true;
    work = working(true).then(proceed);
  }

  return {
    name,
    gate: {
      open: isOpen,
      onOpen(callback) {
        opened = callback;
      },
    },
    start,
    write(outputs) {
      if (failure !== null) throw failure;
      confirm();
      const records = recordsOf(takes, outputs);
      const to = durable === null ? due : held;
      for (const record of records) to.push(record);
      proceed();
    },
    flush: press,
    checkpoint() {
      if (failure !== null) throw failure;
      confirm();
      covered = held.length;
      return { form: `batch ${takes}`, run: id, delivered: has };
    },
    committed: confirm,
    close: () => (closing ??= finish()),
  };
}
