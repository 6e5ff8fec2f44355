/** How many requests a host may have in flight and when it must be left alone: adaptive pacing and back-off. Fixed delays are the store's (store/memory/hosts.ts). */
import type { HostAnswer } from "../core/frontier.ts";
import type { HostKey } from "../core/request.ts";

/** What a host's answers have taught. Plain data, changed in place by the functions below. */
export interface Pace {
  /** Requests in flight that `auto` pacing allows. */
  window: number;
  /** Good answers since the window last changed. */
  goods: number;
  /** Smoothed latency when the host was well, and now, in ms; 0 before the first answer. */
  baselineMs: number;
  recentMs: number;
  /** Raised at every step back. A request claimed under an older epoch belongs to a burst that was answered for already. */
  epoch: number;
  /** Back-off steps since the last good answer. */
  steps: number;
  /** Clock time until which the back-off holds. */
  heldUntil: number;
}

/** How the answers are to be taken. */
export interface PaceRules {
  /** Most requests in flight, whatever the answers say. */
  readonly limit: number;
  /** Adapt the window; without it only the back-off works. */
  readonly auto: boolean;
  /** Longest back-off. */
  readonly maxWaitMs: number;
}

const PUBLIC_START = 2;
const GOODS_PER_STEP = 20;
const FIRST_BACKOFF_MS = 1_000;
/** A latency that doubles from 3 ms to 6 ms says nothing. */
const LEAST_RISE_MS = 100;

export function newPace(local: boolean, limit: number): Pace {
  return { window: local ? limit : Math.min(PUBLIC_START, limit), goods: 0, baselineMs: 0, recentMs: 0, epoch: 0, steps: 0, heldUntil: 0 };
}

/** The connected address turned out to be local: start at the limit, unless the host has already asked for less. */
export function noteLocal(pace: Pace, limit: number): void {
  if (pace.epoch === 0 && pace.window < limit) pace.window = limit;
}

/** Requests allowed in flight now. While a back-off is unanswered a single request tries whether the host is well again. */
export function slotsOf(pace: Pace, rules: PaceRules): number {
  if (pace.steps > 0) return 1;
  return rules.auto ? Math.max(1, Math.min(pace.window, rules.limit)) : rules.limit;
}

/**
 * Takes one answer into account. `epoch` is the pace's epoch when the request was claimed: only requests of the present epoch can
 * step back or clear a back-off, so a burst is one step and its late good answers do not undo it.
 * `asked`: the host said itself how long to wait (Retry-After), so no back-off is added.
 */
export function takeAnswer(pace: Pace, answer: HostAnswer, at: { epoch: number; now: number; asked: boolean; random: number }, rules: PaceRules): void {
  if (answer.kind === "none") return;
  const current = at.epoch === pace.epoch;
  if (answer.kind === "pushback") {
    if (!current) return;
    stepBack(pace);
    if (at.asked) return;
    pace.steps = Math.min(pace.steps + 1, 30);
    const waitMs = Math.min(rules.maxWaitMs, FIRST_BACKOFF_MS * 2 ** (pace.steps - 1));
    pace.heldUntil = at.now + waitMs * (0.5 + at.random / 2);
    return;
  }
  if (current) {
    pace.steps = 0;
    pace.heldUntil = 0;
  }
  takeLatency(pace, answer.latencyMs, current);
  if (++pace.goods >= GOODS_PER_STEP) {
    pace.goods = 0;
    if (pace.window < rules.limit) pace.window++;
  }
}

function stepBack(pace: Pace): void {
  pace.epoch++;
  pace.goods = 0;
  pace.window = Math.max(1, pace.window >> 1);
}

/** The baseline follows falling latencies at once and rising ones slowly; after a step for latency it moves half way, so that a host that stays slow is not halved for ever. */
function takeLatency(pace: Pace, latencyMs: number, current: boolean): void {
  pace.recentMs = pace.recentMs === 0 ? latencyMs : pace.recentMs + (latencyMs - pace.recentMs) / 8;
  if (pace.baselineMs === 0 || pace.recentMs < pace.baselineMs) pace.baselineMs = pace.recentMs;
  else if (current && pace.recentMs > pace.baselineMs * 2 && pace.recentMs - pace.baselineMs > LEAST_RISE_MS) {
    stepBack(pace);
    pace.baselineMs = (pace.baselineMs + pace.recentMs) / 2;
  } else pace.baselineMs += (pace.recentMs - pace.baselineMs) / 256;
}

const LOCAL_V4 = /^(?:127|10|0)\.|^192\.168\.|^169\.254\.|^172\.(?:1[6-9]|2\d|3[01])\./;
const IS_V4 = /^\d+\.\d+\.\d+\.\d+$/;
/** ::1, ::, fc00::/7, fe80::/10, and IPv4-mapped forms as the URL Standard writes them (two hexadecimal groups). */
const LOCAL_V6 = /^(?:::1?$|f[cd][0-9a-f]{2}:|fe[89ab][0-9a-f]:|::ffff:(?:7f[0-9a-f]{2}|a[0-9a-f]{2}|c0a8|a9fe|ac1[0-9a-f]):)/;

/** Whether the name alone says that the host is on this machine or network: localhost, *.localhost, or an address in a private range. */
export function isLocalHost(host: HostKey): boolean {
  if (host.startsWith("[")) return LOCAL_V6.test(host.slice(1, host.indexOf("]")));
  const colon = host.indexOf(":");
  const name = colon < 0 ? host : host.slice(0, colon);
  return name === "localhost" || name.endsWith(".localhost") || (IS_V4.test(name) && LOCAL_V4.test(name));
}
