/** The drain of a crawl's outbox: outputs in settle order, from after the last checkpoint, for one owner at a time. Writing them to sinks is its caller's affair. */
import { randomBytes } from "node:crypto";
import { hostname } from "node:os";
import { CrawlError } from "../../core/errors.ts";
import type { FrontierHooks } from "../../core/frontier.ts";
import type { Output } from "../../core/records.ts";
import type { SinkState } from "../../core/sink.ts";
import type { Link } from "./connect.ts";
import { readEntry } from "./pack.ts";
import { type CrashPacket, readOutputs } from "./packet.ts";
import { createRepeats, isBefore } from "./repeats.ts";

export interface OutboxBatch {
  /** What comes after this batch. */
  readonly cursor: string;
  /** As FrontierHooks.write takes them; owed ones lie flat, before the output that carried them. */
  readonly outputs: readonly Output[];
}

export interface Outbox {
  /** Where the sinks stood at the last checkpoint, by name. A drain begins by cutting its files back to it. */
  readonly states: ReadonlyMap<string, SinkState>;
  /** The next outputs, or null when there are none now. Reading takes nothing away. */
  read(most?: number): Promise<OutboxBatch | null>;
  /** Everything up to the cursor is written: one step with the states of the sinks. Rejects with `state-held` once another owner has taken over. */
  checkpoint(cursor: string, states: ReadonlyMap<string, SinkState>): Promise<void>;
  /** The states of sinks alone: it tells which files are this owner's before anything is written to them. */
  note(states: ReadonlyMap<string, SinkState>): Promise<void>;
  /** Holds the outbox for another `leaseMs`; as a checkpoint does. */
  keep(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

export interface OutboxOptions {
  readonly crashed: FrontierHooks["crashed"];
  /** An owner that has died is followed by another after so long; 15,000. */
  readonly leaseMs?: number;
  /** Which command it is, for those who ask who writes; `crawl`. */
  readonly kind?: string;
  /** Whoever held it under this name is known to be dead, and is followed at once: what it still says is refused from then on. */
  readonly heirOf?: string;
}

/** Who writes what comes out of a crawl. */
export interface OutboxOwner {
  readonly kind: string;
  readonly host: string;
  readonly pid: number;
  /** Ms until its hold ends, unless it is renewed. */
  readonly leftMs: number;
}

/** Null: nobody writes now. */
export async function outboxOwner(link: Link, id: number): Promise<OutboxOwner | null> {
  const key = `${link.tag}:${id}:own`;
  const [token, left] = await Promise.all([link.command("GET", key), link.command("PTTL", key)]);
  if (token === null) return null;
  const [kind = "", host = "", pid = ""] = String(token).split("|");
  return { kind, host, pid: Number(pid), leftMs: Math.max(0, Number(left)) };
}

/** `state-held`: somebody else writes what comes out of a crawl. */
export async function heldError(link: Link, id: number): Promise<CrawlError> {
  const [owner, by] = await Promise.all([outboxOwner(link, id), link.command("HGET", `${link.tag}:${id}:info`, "dropped")]);
  if (by !== null) return new CrawlError("state-held", `crawl ${id} was dropped: another command (crawl ${by}) took its files with --fresh`);
  const who = owner === null ? "another process" : `skein ${owner.kind} (process ${owner.pid} on ${owner.host})`;
  const until = owner === null ? "" : `; if it has died its hold ends within ${Math.ceil(owner.leftMs / 1_000)} s`;
  return new CrawlError("state-held", `the outputs of crawl ${id} are being written by ${who}${until}`);
}

/** Rejects with `state-held` while another drain holds the crawl's outbox. */
export async function openOutbox(link: Link, id: number, options: OutboxOptions): Promise<Outbox> {
  const keys = [link.tag, `${link.tag}:${id}`] as const;
  const token = [options.kind ?? "crawl", hostname(), process.pid, randomBytes(12).toString("base64url"), options.heirOf ?? ""].join("|");
  const leaseMs = String(options.leaseMs ?? 15_000);
  const run = async (what: string, ...more: readonly string[]): Promise<readonly unknown[]> =>
    (await link.script("checkpoint", keys, ["", "0", what, token, leaseMs, ...more])) as unknown[]; // checkpoint.lua
  let connection = link.connections;
  const [owned, at, saved, again, predecessor] = await run("own", options.heirOf ?? "");
  if (owned !== 1) throw await heldError(link, id);
  let cursor = String(at);
  const from = cursor;
  /** Of the last checkpoint, and of the one before: that is what a server had for sure before its connection broke. */
  let stored = cursor;
  let before = cursor;
  /** What the server may have lost and will have done again: kept there with the next checkpoint. */
  let suspects: readonly string[] = [];
  const repeats = createRepeats();
  repeats.know((again as readonly Buffer[]).map(String)); // SMEMBERS
  const states = new Map(Object.entries(JSON.parse(String(saved)) as Record<string, SinkState>)); // written by checkpoint

  const crashed = ({ entry, host, priority, depth, crashes }: CrashPacket): Output => options.crashed(readEntry(entry, host, priority, depth).request, crashes);

  const undone = (): CrawlError =>
    new CrawlError(
      "store-unreachable",
      `the store at ${link.address.shown} lost its last moments and is where it was before this process began: the same command again goes on from there`,
    );

  /** Somebody else owns it: who came later, or, on a server that lost its last moments, who was there before. */
  async function notOwner(where: string, by: string): Promise<CrawlError> {
    return by === String(predecessor) || isBefore(where, from) ? undone() : heldError(link, id);
  }

  /** Answers where the server's last checkpoint is. */
  async function keep(): Promise<string> {
    const [kept, where, by] = await run("keep");
    if (kept !== 1) throw await notOwner(String(where), String(by));
    return String(where);
  }

  /** What was taken since the server was last known to have everything may be done again. */
  function suspectSince(cursorThere: string): void {
    // What an owner before this one took is not known here; its files are taken back by whoever opens them anew.
    if (isBefore(cursorThere, from)) throw undone();
    stored = cursorThere;
    const lost = new Set([...suspects, ...repeats.after(isBefore(stored, before) ? stored : before)]);
    suspects = [...lost];
    repeats.hold(performance.now());
  }

  /** Behind a new connection there may be a server that lost its last moments. */
  async function heedConnection(): Promise<void> {
    while (connection !== link.connections) {
      connection = link.connections;
      suspectSince(await keep());
    }
    repeats.age(performance.now());
  }

  async function save(to: string, now: ReadonlyMap<string, SinkState>): Promise<void> {
    const args = (): readonly string[] => {
      // Sent on a new connection, it takes along what may be done again: this process may not live to tell of it later.
      if (connection !== link.connections) suspectSince(stored);
      return ["", "0", "save", token, leaseMs, to, JSON.stringify(Object.fromEntries(now)), stored, ...suspects];
    };
    for (;;) {
      const [kept, where, by] = (await link.script("checkpoint", keys, args)) as unknown[]; // checkpoint.lua
      if (kept === 0) throw await notOwner(String(where), String(by));
      if (kept === 1) break;
      // It is not where it was left: it lost a checkpoint, and what that covered.
      suspectSince(String(where));
    }
    before = stored;
    stored = to;
    repeats.know(suspects);
    suspects = [];
  }

  return {
    states,
    async read(most = 64) {
      for (;;) {
        await heedConnection();
        const entries = (await link.command("XRANGE", `${keys[1]}:out`, `(${cursor}`, "+", "COUNT", most)) as readonly [Buffer, Buffer[]][]; // XRANGE
        if (connection !== link.connections) continue;
        const last = entries.at(-1);
        if (last === undefined) return null;
        cursor = last[0].toString("latin1");
        const outputs = entries.flatMap(([, fields]) => readOutputs(fields[1] ?? Buffer.alloc(0), crashed));
        return { cursor, outputs: repeats.pass(cursor, outputs) };
      }
    },
    checkpoint: save,
    note: (now) => save(stored, now),
    keep: async () => void (await keep()),
    async [Symbol.asyncDispose]() {
      // Untold, its lease runs out.
      await link.parting("checkpoint", keys, ["", "0", "leave", token, leaseMs]);
    },
  };
}
