/** How long a crawl of a store has been worked on: noted there by who created it, and, while nobody is there who does, by its workers. */
import type { Clock } from "../core/clock.ts";
import type { Link } from "../store/redis/connect.ts";
import { type Crawls, createCrawls } from "../store/redis/crawls.ts";
import { outboxOwner } from "../store/redis/outbox.ts";

const EVERY_MS = 5_000;

export interface CrawlTime {
  elapsedMs(): number;
  close(): void;
}

/** Of the process that writes the outputs: what it notes is what the same command goes on from, should it be killed. */
export function noteTime(crawls: Crawls, id: number, clock: Clock, beforeMs: number): CrawlTime {
  const began = clock.now();
  const elapsedMs = (): number => beforeMs + clock.now() - began;
  let timer: { cancel(): void } | null = null;
  let over = false;
  function arm(): void {
    if (over) return;
    timer = clock.after(
      EVERY_MS,
      () =>
        void crawls
          .note(id, { elapsed: String(Math.round(elapsedMs())) })
          // A connection that was closed meanwhile: the end is noted by `finish`.
          .catch(() => undefined)
          .then(arm),
    );
  }
  arm();
  return {
    elapsedMs,
    close() {
      over = true;
      timer?.cancel();
    },
  };
}

/** Of a worker, asked now and then. Null: the crawl has somebody who looks after its time and its other limits. */
export function followTime(link: Link, id: number, clock: Clock): () => Promise<number | null> {
  const crawls = createCrawls(link);
  let known = 0;
  /** What is told, at which moment of this process. */
  let elapsed = 0;
  let at = clock.now();
  return async () => {
    const [text, owner] = await Promise.all([crawls.read(id, "elapsed"), outboxOwner(link, id)]);
    const now = clock.now();
    const noted = Number(text ?? 0);
    // Whoever exports the outputs does nothing else.
    const watched = owner !== null && owner.kind !== "export";
    const mine = elapsed + now - at;
    // Of workers the one that knows of most time is right: each knows of what it has seen itself.
    if (watched ? noted !== known : noted > mine) {
      elapsed = noted;
      at = now;
    }
    known = noted;
    if (watched) return null;
    const total = Math.ceil(Math.max(mine, noted));
    await crawls.note(id, { elapsed: String(total) });
    return total;
  };
}
