/** Keeps the cache's file within its size: the oldest responses go, their pages are used again, and what is free beyond that goes back to the disk. */
import type { DatabaseSync } from "node:sqlite";
import { number } from "./schema.ts";

/** Responses dropped at once before the size is looked at again. */
const STEP = 32;
/** Of the limit: dropping goes on to here, so that not every batch has to drop some. */
const LOW_SHARE = 0.9;

export interface Eviction {
  /** Within the transaction that will add about `bytes`. */
  makeRoom(bytes: number): void;
  /** After it. */
  shrink(): void;
}

export function createEviction(db: DatabaseSync, maxBytes: number): Eviction {
  const pageBytes = number(db, "page_size");
  const oldest = db.prepare("DELETE FROM response WHERE id IN (SELECT id FROM response ORDER BY id LIMIT ?) RETURNING body");
  const release = db.prepare("UPDATE body SET responses = responses - 1 WHERE id = ? RETURNING responses");
  const dropBody = db.prepare("DELETE FROM body WHERE id = ?");
  const used = () => (number(db, "page_count") - number(db, "freelist_count")) * pageBytes;

  return {
    makeRoom(bytes) {
      if (used() + bytes <= maxBytes) return;
      while (used() + bytes > maxBytes * LOW_SHARE) {
        const dropped = oldest.all(STEP);
        if (dropped.length === 0) return;
        for (const { body } of dropped) if (release.get(body ?? null)?.responses === 0) dropBody.run(body ?? null);
      }
    },
    shrink() {
      const over = Math.ceil(number(db, "page_count") - maxBytes / pageBytes);
      if (over > 0 && number(db, "freelist_count") > 0) db.exec(`PRAGMA incremental_vacuum(${over})`);
    },
  };
}
