/** The record of one exchange under way. Plain state: connections.ts gives it a connection, http.ts fills it, outcome.ts reads it. */
import type { EpochMs } from "../core/clock.ts";
import type { Exchange, FetchOutcome } from "../core/outcome.ts";
import type { Codings } from "./body.ts";
import type { Host, Slot } from "./connections.ts";
import type { RawHeaders } from "./headers.ts";
import type { Watched } from "./timers.ts";

export interface Job extends Watched {
  readonly exchange: Exchange;
  readonly host: Host;
  readonly resolve: (outcome: FetchOutcome | Promise<FetchOutcome>) => void;
  readonly reject: (error: Error) => void;
  readonly startedAt: EpochMs;
  /** Monotonic ms, like every time below; −1: has not happened. */
  readonly beganAt: number;
  /** It has a connection or waits for one (before, it waits for undici to be loaded). */
  placed: boolean;
  /** Null while it waits for a connection, and when it is over. */
  slot: Slot | null;
  over: boolean;
  connectBy: number;
  deadline: number;
  /** Sweeps since the last byte. */
  quiet: number;
  /** When the request head last went out: the second time, when a dead pooled connection made it go out twice. */
  startAt: number;
  headAt: number;
  /** onStart was called. */
  started: boolean;
  /** Sent again on a fresh connection: once at most. */
  resent: boolean;
  local: boolean;
  status: number;
  raw: RawHeaders | null;
  codings: Codings;
  /** What becomes of the body: kept, or dropped because it is a redirect's or of an unwanted type. */
  use: "keep" | "redirect" | "skip";
  first: Uint8Array | null;
  more: Uint8Array[] | null;
  /** Bytes in `first` and `more`. */
  kept: number;
  /** Body bytes that came. */
  wire: number;
  /** Most bytes to keep, before decoding. */
  limit: number;
  /** The body went on beyond `limit`. */
  cut: boolean;
}

const NO_CODINGS: Codings = { kind: "none" };

export function createJob(fixed: Pick<Job, "exchange" | "host" | "resolve" | "reject" | "startedAt" | "beganAt">, limit: number): Job {
  return {
    exchange: fixed.exchange,
    host: fixed.host,
    resolve: fixed.resolve,
    reject: fixed.reject,
    startedAt: fixed.startedAt,
    beganAt: fixed.beganAt,
    place: -1,
    placed: false,
    slot: null,
    over: false,
    connectBy: 0,
    deadline: 0,
    quiet: 0,
    startAt: -1,
    headAt: -1,
    started: false,
    resent: false,
    local: false,
    status: 0,
    raw: null,
    codings: NO_CODINGS,
    use: "keep",
    first: null,
    more: null,
    kept: 0,
    wire: 0,
    limit,
    cut: false,
  };
}

/** Keeps a piece of the body. The pieces are views of what the socket read, which nobody writes to again: they need no copy. */
export function keepPiece(job: Job, piece: Uint8Array): void {
  if (job.first === null) job.first = piece;
  else if (job.more === null) job.more = [job.first, piece];
  else job.more.push(piece);
  job.kept += piece.byteLength;
}

const EMPTY = new Uint8Array(0);

/** The body as it came: the piece itself when there is only one, else one copy of exact size. */
export function keptBytes(job: Job): Uint8Array {
  return job.more ? Buffer.concat(job.more, job.kept) : (job.first ?? EMPTY);
}
