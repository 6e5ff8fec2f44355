/** Whether the store of a service answers: asked all the time, so that nobody who asks for something of it has to wait for an outage to end. */
import type { Clock, Timer } from "../core/clock.ts";
import { CrawlError } from "../core/errors.ts";
import type { Link } from "../store/redis/connect.ts";

export interface StoreWatch {
  /** Null: it answers. Says nothing of where it is. */
  readonly trouble: string | null;
  /** Does what the call does; rejects with `store-unreachable` at once where the store is away, and as soon as it is found to be. */
  ask<T>(call: () => Promise<T>): Promise<T>;
  close(): void;
}

const EVERY_MS = 1_000;
/** Without an answer for so long it is away. */
const PATIENCE_MS = 2_000;
const AWAY = "the store does not answer";

export function watchStore(link: Link, clock: Clock): StoreWatch {
  let trouble: string | null = null;
  let timer: Timer | null = null;
  let late: Timer | null = null;
  let closed = false;
  const asking = new Set<(error: CrawlError) => void>();

  const unreachable = (why: string): CrawlError => new CrawlError("store-unreachable", why);

  function away(): void {
    trouble = AWAY;
    for (const reject of [...asking]) reject(unreachable(AWAY));
  }

  async function look(): Promise<void> {
    late = clock.after(PATIENCE_MS, away);
    try {
      // Repeated over a whole outage.
      await link.command("PING");
      trouble = null;
    } catch {
      away();
    }
    late.cancel();
    if (!closed) timer = clock.after(EVERY_MS, () => void look());
  }
  void look();

  return {
    get trouble() {
      return trouble;
    },
    async ask(call) {
      if (trouble !== null) throw unreachable(trouble);
      const { promise, reject } = Promise.withResolvers<never>();
      asking.add(reject);
      try {
        return await Promise.race([call(), promise]);
      } finally {
        asking.delete(reject);
      }
    },
    close() {
      closed = true;
      timer?.cancel();
      late?.cancel();
    },
  };
}
