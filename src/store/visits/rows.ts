/** Visits as JSON text, and back; bodies of requests in base64. */
import type { Follow } from "../../core/scraping.ts";
import type { Visit } from "../../core/visits.ts";

type StoredFollow = Omit<Follow, "body"> & { readonly body: string | null };
type StoredVisit = Omit<Visit, "reading"> & { readonly reading: Omit<Visit["reading"], "follows"> & { readonly follows: readonly StoredFollow[] } };

export function visitText(visit: Visit): string {
  const follows = visit.reading.follows.map(
    (follow): StoredFollow => ({ ...follow, body: follow.body === null ? null : Buffer.from(follow.body).toString("base64") }),
  );
  const stored: StoredVisit = { ...visit, reading: { ...visit.reading, follows } };
  return JSON.stringify(stored);
}

export function readVisit(text: string): Visit {
  const stored = JSON.parse(text) as StoredVisit; // written by visitText
  const follows = stored.reading.follows.map(
    (follow): Follow => ({ ...follow, body: follow.body === null ? null : new Uint8Array(Buffer.from(follow.body, "base64")) }),
  );
  return { ...stored, reading: { ...stored.reading, follows } };
}
