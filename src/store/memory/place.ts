/** One place of the frontier's balance: a request with its history, and the flat strings it is kept as. */
import type { CrawlRequest } from "../../core/request.ts";

/** A request that is queued, delayed or leased. */
export interface Place {
  readonly request: CrawlRequest;
  /** Tries settled as `retry`. */
  readonly attempt: number;
  readonly crashes: number;
  /** Its number in the journal; 0 without one. */
  readonly seq: number;
}

/** The seen table's values: three bits of state above thirteen bits of depth. */
export const QUEUED = 0;
/** Leased, or waiting for its retry. */
export const HELD = 1;
export const DONE = 2;
/** Given up: nothing can come of fetching it again. */
export const DROPPED = 3;
/** Queued and held again for its links only (docs/decisions/0004). */
export const RELINK_QUEUED = 4;
export const RELINK_HELD = 5;

/** Depths from here on are told apart no more by the seen table. */
export const DEEPEST = 0x1fff;

export const pack = (state: number, depth: number): number => (state << 13) | Math.min(depth, DEEPEST);
export const stateOf = (value: number): number => value >> 13;
export const depthOf = (value: number): number => value & DEEPEST;
export const levelOf = (depth: number): number => Math.min(depth, DEEPEST);

/**
 * A copy that holds no other string alive: links are often slices of a whole page, and V8 keeps the page for the slice.
 */
export function flat(text: string): string {
  return Buffer.from(text, "utf8").toString("utf8");
}

/** `scheme://host[:port]` of a canonical URL. */
export function originOf(url: string): string {
  const slash = url.indexOf("/", url.indexOf("://") + 3);
  return slash < 0 ? url : url.slice(0, slash);
}
