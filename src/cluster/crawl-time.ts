/** How long a crawl of a store has been worked on: noted there by who created it, and, while nobody is there who does, by its workers. */
import type { Clock } from "../core/clock.ts";
import type { Frontier } from "../core/frontier.ts";
import { createStopwatch } from "../core/stopwatch.ts";
import type { Link } from "../store/redis/connect.ts";
import { type Crawls, createCrawls } from "../store/redis/crawls.ts";
import { controlOf } from "../store/redis/look.ts";
import { outboxOwner } from "../store/redis/outbox.ts";

export const NOTED_EVERY_MS = 5_000;

export interface CrawlTime {
  /** Without what it was paused for. */
  elapsedMs(): number;
  /** The frontier, of whose pauses it knows from now on. */
  heeding<F extends Pick<Frontier, "control">>(frontier: F): F;
  close(): void;
}

/** Of the process that writes the outputs: what it notes is what the same command goes on from, should it be killed. */
export function noteTime(crawls: Crawls, id: number, clock: Clock, beforeMs: number): CrawlTime {
  const worked = createStopwatch(clock, beforeMs);
  const elapsedMs = worked.ms;
  let timer: { cancel(): void } | null = null;
  let over = false;
  function arm(): void {
    if (over) return;
    timer = clock.after(
      NOTED_EVERY_MS,
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
    heeding: (frontier) => ({
      ...frontier,
      control(to) {
        // Before it takes hold: the store may be slow to answer, and whoever asked counts from now on too.
        if (to === "pause") worked.hold();
        else worked.go();
        return frontier.control(to);
      },
    }),
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
  let asked = at;
  return async () => {
    const [text, owner, control] = await Promise.all([crawls.read(id, "elapsed"), outboxOwner(link, id), controlOf(link, id)]);
    const now = clock.now();
    const noted = Number(text ?? 0);
    // What passed since it was asked last does not count.
    if (control === "pause") at += now - asked;
    asked = now;
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
