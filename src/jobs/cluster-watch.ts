/** Whether the store of a service answers, and takes writes: asked all the time, so that nobody who asks for something of it has to wait for an outage to end. */
import type { Clock, Timer } from "../core/clock.ts";
import { CrawlError } from "../core/errors.ts";
import { STORE_AWAY, STORE_FULL } from "../core/jobs.ts";
import type { Link } from "../store/redis/connect.ts";
import { STORE_VERSION } from "../store/redis/server.ts";

export interface StoreWatch {
  /** Null: it answers and takes writes. Says nothing of where it is. */
  readonly trouble: string | null;
  /** Does what the call does; rejects with `store-unreachable` at once where the store is away, and as soon as it is found to be. */
  ask<T>(call: () => Promise<T>): Promise<T>;
  /** The same for what is to be written there: the store is asked first whether it takes it now, and nothing is called where it does not. */
  tell<T>(call: () => Promise<T>): Promise<T>;
  close(): void;
}

const EVERY_MS = 1_000;
/** Without an answer for so long it is away; a write that is not taken for so long while it answers finds no room. */
const PATIENCE_MS = 2_000;

interface Asking {
  readonly writes: boolean;
  readonly reject: (error: CrawlError) => void;
}

/** Resolves once it takes a write, which changes nothing: a server without room refuses it all the same. */
const takesWrites = (link: Link): Promise<unknown> => link.command("SET", `${link.tag}:version`, STORE_VERSION, "NX");

const unreachable = (why: string): CrawlError => new CrawlError("store-unreachable", why);

/** `back`: told each time when it answers and takes writes after it did not, or may have been another server for a moment. */
export function watchStore(link: Link, clock: Clock, back: () => void): StoreWatch {
  let away = false;
  let full = false;
  /** It may lack what it was told. */
  let doubtful = false;
  let connections = link.connections;
  /** Since when a write waits; null: none does. */
  let writingSince: number | null = null;
  let timer: Timer | null = null;
  let late: Timer | null = null;
  let closed = false;
  const asking = new Set<Asking>();
  const trouble = (): string | null => (away ? STORE_AWAY : full ? STORE_FULL : null);

  function refuse(why: string, which: (one: Asking) => boolean): void {
    doubtful = true;
    for (const one of [...asking]) if (which(one)) one.reject(unreachable(why));
  }

  function lost(): void {
    away = true;
    refuse(STORE_AWAY, () => true);
  }

  /** It answers. */
  function heard(): void {
    // A write that waited out an outage has not been refused yet.
    if (away && writingSince !== null) writingSince = clock.now();
    away = false;
    doubtful ||= connections !== link.connections;
    connections = link.connections;
    if (writingSince === null) void write();
    else if (clock.now() - writingSince >= PATIENCE_MS) {
      full = true;
      refuse(STORE_FULL, ({ writes }) => writes);
    }
  }

  async function write(): Promise<void> {
    writingSince = clock.now();
    try {
      // Repeated for as long as there is no room.
      await takesWrites(link);
      full = false;
      if (doubtful && !away && !closed) {
        doubtful = false;
        back();
      }
    } catch {
      // Closed, or refused for good, which whoever works with it is told.
    }
    writingSince = null;
  }

  async function look(): Promise<void> {
    late = clock.after(PATIENCE_MS, lost);
    try {
      // Repeated over a whole outage. Not PING, which a server refuses that cannot save.
      await link.command("EXISTS", `${link.tag}:version`);
      heard();
    } catch {
      lost();
    }
    late.cancel();
    if (!closed) timer = clock.after(EVERY_MS, () => void look());
  }
  void look();

  async function racing<T>(writes: boolean, call: () => Promise<T>): Promise<T> {
    const { promise, reject } = Promise.withResolvers<never>();
    const one: Asking = { writes, reject };
    asking.add(one);
    try {
      return await Promise.race([call(), promise]);
    } finally {
      asking.delete(one);
    }
  }

  return {
    get trouble() {
      return trouble();
    },
    async ask(call) {
      if (away) throw unreachable(STORE_AWAY);
      return racing(false, call);
    },
    async tell(call) {
      const why = trouble();
      if (why !== null) throw unreachable(why);
      await racing(true, () => takesWrites(link));
      return racing(true, call);
    },
    close() {
      closed = true;
      timer?.cancel();
      late?.cancel();
    },
  };
}
