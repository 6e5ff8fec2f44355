/** What a durable store is told of the memory frontier's changes, as they happen inside a step. Writing them down is its affair (store/sqlite/). */
import type { Fingerprint } from "../../core/request.ts";
import type { Host } from "./hosts.ts";
import type { Place } from "./place.ts";
import type { OriginEntry } from "./robots.ts";

export interface Journal {
  /**
   * A place is queued, or waits for its retry until `dueAt` (clock ms); answers the number under which it is kept. Places that only return to the
   * front of their queue keep theirs. Robots requests are never journalled: an origin whose answer is not known is asked again.
   */
  queued(place: Place, relink: boolean, dueAt: number | null): number;
  /** The entry of that number is settled, or stands for nothing any more. */
  gone(seq: number): void;
  /** A fingerprint is known from now on, or its value changed in what the queue does not tell (depth, dropped). */
  seen(id: Fingerprint, value: number): void;
  /** These have passed the once filter. */
  skipped(id: Fingerprint): void;
  found(id: Fingerprint): void;
  host(host: Host): void;
  origin(origin: OriginEntry): void;
  cookies(site: string): void;
  seeds(urls: readonly string[]): void;
  /** A value of the user's code; null: it is gone. */
  value(key: string, value: string | null): void;
}

/** The number of places that no journal knows. */
export const UNNUMBERED = 0;
