/** Evenly spaced starts for the whole crawl (maxRequestsPerMinute). */

/** A timer that rings a little late must not lower the rate: this share of the interval is made up for. */
const FORGIVEN = 0.1;

/** When the next request may start, after one that was allowed from `allowedAt` starts `now`. */
export function delayOfRate(allowedAt: number, now: number, perMinute: number): number {
  const interval = 60_000 / perMinute;
  return (now - allowedAt <= interval * FORGIVEN ? allowedAt : now) + interval;
}
