/** The one row of counters that every commit replaces. */
import type { Control } from "../../core/frontier.ts";
import type { Desk } from "../memory/desk.ts";

/** `queued`, `delayed` and `leased` are for readers; a restart counts the queue itself. */
export interface Counters {
  readonly queued: number;
  readonly delayed: number;
  readonly leased: number;
  readonly done: number;
  readonly dropped: number;
  readonly counted: number;
  /** Whether the run goes by levels: the log then tells what is done. */
  readonly levels: boolean;
  readonly level: number;
  readonly control: Control;
  readonly seedsComplete: boolean;
  readonly completed: boolean;
  readonly limit: number | null;
  /** Ms of work over all resumes of the run. */
  readonly elapsedMs: number;
  /** The process that wrote this has settled something. */
  readonly settled: boolean;
  readonly tally: readonly (readonly [name: string, count: number])[];
}

export function countersText(desk: Desk, elapsedMs: number, settled: boolean): string {
  const counters: Counters = {
    queued: desk.queued,
    delayed: desk.waitingRetries,
    leased: desk.leased,
    done: desk.done,
    dropped: desk.dropped,
    counted: desk.counted,
    levels: desk.levels.on,
    level: desk.levels.base,
    control: desk.control,
    seedsComplete: desk.seedsComplete,
    completed: desk.completed,
    limit: desk.limit,
    elapsedMs: Math.round(elapsedMs),
    settled,
    tally: [...desk.tally],
  };
  return JSON.stringify(counters);
}

export const readCounters = (text: string): Counters => JSON.parse(text) as Counters; // written by countersText

/** Numbers of the leased places, 8 bytes each. */
export function leasedBlob(desk: Desk): Uint8Array {
  const seqs: number[] = [];
  for (const entry of desk.leases.all()) if (entry.place.seq > 0) seqs.push(entry.place.seq);
  return new Uint8Array(Float64Array.from(seqs).buffer);
}

/** Throws when the blob is no whole number of entries. */
export function readLeased(blob: Uint8Array): number[] {
  return [...new Float64Array(blob.slice().buffer)];
}
