/** Writes what comes out of a crawl on a shared store: read from its outbox, appended, checkpointed, again and again, each output once. Whose sinks they are is its caller's affair. */
import type { Clock } from "../core/clock.ts";
import type { FrontierHooks } from "../core/frontier.ts";
import type { SinkState } from "../core/sink.ts";
import type { Outbox } from "../store/redis/outbox.ts";

export interface DrainInput {
  readonly outbox: Outbox;
  /** Where files stood that this drain may not write to, with those that it does; by default those of the outbox. */
  readonly states?: ReadonlyMap<string, SinkState>;
  readonly clock: Clock;
  readonly hooks: Pick<FrontierHooks, "write" | "checkpoint" | "committed">;
  /** Every checkpoint is on the disk first; else one a second is. */
  readonly strict: boolean;
}

export interface Drain {
  /** Never resolves; rejects when the drain cannot go on, with what `end` and `leave` reject with then. */
  readonly broken: Promise<never>;
  /** Writes what was settled until now, and ends. */
  end(): Promise<void>;
  /** Ends behind the batch that is being written; what is left stays in the outbox. */
  leave(): Promise<void>;
}

const QUIET_MS = 50;
const KEEP_EVERY_MS = 4_000;
const SYNC_EVERY_MS = 1_000;

/** Rejections: those of the outbox, CrawlError `output-unwritable` of the sinks. */
export function startDrain({ outbox, states = outbox.states, clock, hooks, strict }: DrainInput): Drain {
  let ending = false;
  let leaving = false;
  let syncedAt = clock.now();
  let keptAt = clock.now();
  const { promise: broken, reject } = Promise.withResolvers<never>();
  broken.catch(() => undefined); // whoever races it sees it

  /** Answers whether there was something. */
  async function take(): Promise<boolean> {
    const batch = await outbox.read();
    const now = clock.now();
    if (batch === null) {
      if (now - keptAt > KEEP_EVERY_MS) {
        await outbox.keep();
        keptAt = now;
      }
      return false;
    }
    hooks.write(batch.outputs);
    const sync = strict || now - syncedAt >= SYNC_EVERY_MS;
    if (sync) syncedAt = now;
    // Files of other writers keep their places: whoever goes on with them finds where they end.
    await outbox.checkpoint(batch.cursor, new Map([...states, ...(hooks.checkpoint?.(sync) ?? new Map<string, SinkState>())]));
    keptAt = now;
    hooks.committed?.();
    return true;
  }

  async function run(): Promise<void> {
    try {
      while (!leaving) {
        // Asked before reading: what was settled before the end is read after it.
        const last = ending;
        if (await take()) continue;
        if (last) return;
        await new Promise<void>((resolve) => clock.after(QUIET_MS, resolve));
      }
    } catch (error) {
      reject(error);
      throw error;
    }
  }

  const done = run();
  done.catch(() => undefined); // told by `broken`, `end` and `leave`
  return {
    broken,
    async end() {
      ending = true;
      await done;
    },
    async leave() {
      leaving = true;
      await done;
    },
  };
}
