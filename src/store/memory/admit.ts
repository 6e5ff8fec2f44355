/** Adding requests: new ones are queued, known ones lowered, and redirect chains that end at a known URL hand over what they owe. */
import type { Once, Output, SkippedRecord } from "../../core/records.ts";
import type { CrawlRequest } from "../../core/request.ts";
import { carriedKey, carry, type Desk } from "./desk.ts";
import { UNNUMBERED } from "./journal.ts";
import { DONE, DROPPED, depthOf, levelOf, type Place, pack, QUEUED, RELINK_QUEUED, stateOf } from "./place.ts";

export interface Admission {
  added: number;
  known: number;
  lowered: number;
  /** Outputs to be written in the same step, or null. */
  owed: Output[] | null;
  /** Links that were known, where the config asks for them. */
  duplicates: Once<SkippedRecord>[] | null;
}

/** Queues behind everything of its host, level and priority. The seen table has been told. */
function enqueue(desk: Desk, place: Place, level: number, relink: boolean): void {
  const { request } = place;
  const seq = desk.journal?.queued(place, relink, null) ?? UNNUMBERED;
  const host = desk.hosts.of(request.host);
  if (desk.config.order === "dfs") host.blocked = false;
  desk.arena.push(desk.hosts.laneOf(host, level, request.priority), request, seq);
  host.entries++;
  desk.hosts.place(host);
}

const NO_HISTORY: { readonly attempt: number; readonly crashes: number } = { attempt: 0, crashes: 0 };

const withoutOwed = (request: CrawlRequest): CrawlRequest => (request.rest?.owed === undefined ? request : { ...request, rest: { ...request.rest, owed: [] } });

/** One pass over the requests. Never fails half-way: what it writes is the caller's to hand over. */
export function admit(desk: Desk, requests: readonly CrawlRequest[], only: (request: CrawlRequest) => boolean): Admission {
  const result: Admission = { added: 0, known: 0, lowered: 0, owed: null, duplicates: desk.config.listDuplicates === true ? [] : null };
  for (let i = 0; i < requests.length; i++) {
    const request = requests[i]!;
    if (!only(request)) {
      result.known++;
      endChain(result, request);
      continue;
    }
    if (request.rest?.reopen === true) {
      reopen(desk, request);
      result.added++;
      continue;
    }
    const before = desk.seen.putIfAbsent(request.idHi, request.idLo, pack(QUEUED, request.depth));
    if (before < 0) {
      result.added++;
      queueNew(desk, request);
      continue;
    }
    result.known++;
    endChain(result, request);
    if (result.duplicates !== null && request.hop === "link") result.duplicates.push(duplicateOf(request));
    if (request.depth < depthOf(before)) {
      result.lowered++;
      lower(desk, request, before, result);
    }
  }
  return result;
}

function duplicateOf({ url, idHi, idLo, referrer, depth }: CrawlRequest): Once<SkippedRecord> {
  return { idHi, idLo, value: { url, referrer, depth, reason: "duplicate" } };
}

function queueNew(desk: Desk, request: CrawlRequest): void {
  const level = desk.levels.on ? levelOf(request.depth) : 0;
  desk.queued++;
  desk.places++;
  desk.levels.add(level);
  const place: Place = { request, attempt: 0, crashes: 0, seq: UNNUMBERED };
  if (request.rest?.owed !== undefined) carry(desk, place);
  desk.journal?.seen(request, pack(QUEUED, request.depth));
  enqueue(desk, place, level, false);
}

/** A URL that its own redirect chain leads back to: a place of its own. */
function reopen(desk: Desk, request: CrawlRequest): void {
  if (desk.seen.putIfAbsent(request.idHi, request.idLo, pack(DONE, request.depth)) < 0) desk.journal?.seen(request, pack(DONE, request.depth));
  const level = desk.levels.on ? levelOf(request.depth) : 0;
  desk.queued++;
  desk.places++;
  desk.levels.add(level);
  enqueue(desk, { request, attempt: 0, crashes: 0, seq: UNNUMBERED }, level, false);
}

/** The chain of redirects ends at a known URL: its outputs are due now. */
function endChain(result: Admission, request: CrawlRequest): void {
  const owed = request.rest?.owed;
  if (owed === undefined || owed.length === 0) return;
  result.owed ??= [];
  result.owed.push(...owed);
}

/**
 * A shorter way to a known URL. Queued: it gets an entry at its true level, the old one is skipped when met. Leased or delayed: the depth
 * is read again when it returns or settles. Done: its links must be admitted one level lower, so it is fetched once more for them.
 */
function lower(desk: Desk, request: CrawlRequest, before: number, result: Admission): void {
  const state = stateOf(before);
  const { levels } = desk;
  if (!levels.on) {
    const value = pack(state, request.depth);
    desk.seen.replace(request.idHi, request.idLo, value);
    desk.journal?.seen(request, value);
    return;
  }
  const level = levelOf(request.depth);
  const relink = state === DONE;
  const value = pack(relink ? RELINK_QUEUED : state, request.depth);
  desk.seen.replace(request.idHi, request.idLo, value);
  desk.journal?.seen(request, value);
  if (state === DROPPED) return;
  levels.add(level);
  if (relink) {
    desk.done--;
    desk.queued++;
  } else levels.drop(depthOf(before));
  if (!relink && state !== QUEUED && state !== RELINK_QUEUED) return;
  let history = NO_HISTORY;
  if (desk.carried.size > 0) {
    const key = carriedKey(request);
    const carried = desk.carried.get(key);
    history = carried ?? NO_HISTORY;
    // The target keeps its place at the lower level, but the chain that had queued it ends here.
    if (carried !== undefined && carried.owed.length > 0) {
      desk.carried.set(key, { ...carried, owed: [] });
      result.owed ??= [];
      result.owed.push(...carried.owed);
    }
  }
  const { attempt, crashes } = history;
  enqueue(desk, { request: withoutOwed(request), attempt, crashes, seq: UNNUMBERED }, level, relink || state === RELINK_QUEUED);
}
