/** The crawls of a store: their numbers, specs and states, which of them are live, and how the ended ones go. What a crawl still has to do is frontier.ts. */
import type { EpochMs } from "../../core/clock.ts";
import type { Link } from "./connect.ts";

export interface StoredCrawl {
  /** Counts up from 1. */
  readonly id: number;
  readonly createdAt: EpochMs;
  readonly endedAt: EpochMs | null;
  /** Nothing is left to do. A larger page limit may change that. */
  readonly completed: boolean;
  /** Everything that the crawl is made of, as its creator stored it. */
  readonly info: ReadonlyMap<string, string>;
}

export interface CrawlEnd {
  readonly id: number;
  readonly cursor: string;
}

/** An unfinished crawl that writes to a file. */
export interface FileOwner {
  readonly id: number;
  /** Which of the files that were asked about. */
  readonly file: number;
  /** A process is writing there now. */
  readonly held: boolean;
}

/** A crawl that alone writes to files of its creator, by names that say where they lie; two that are begun at once cannot both have one. */
export interface CreatedWithFiles {
  readonly info: Readonly<Record<string, string>>;
  readonly files: readonly string[];
  /** Unfinished crawls that own one of the files are dropped for it: they are stopped, and what nobody wrote yet stays with them. Not one that is being written. */
  readonly drops: boolean;
}

export interface Crawls {
  /** `info`: the spec and what else belongs to the crawl, as text by name (not `created`). */
  create(info: Readonly<Record<string, string>>): Promise<number>;
  /** Nothing is created when another crawl owns one of the files. */
  createWithFiles(crawl: CreatedWithFiles): Promise<{ readonly id: number; readonly dropped: readonly number[] } | { readonly owner: FileOwner }>;
  /** Whose the first file is that an unfinished crawl owns; null: none is. */
  ownerOf(files: readonly string[]): Promise<FileOwner | null>;
  /** By who holds its outbox: it goes on (it is not `finished`) and owns the files. Else whose a file is, or `gone`: it was dropped or deleted. */
  hold(id: number, files: readonly string[]): Promise<FileOwner | "held" | "gone">;
  /** Null: there is none (any more). */
  get(id: number): Promise<StoredCrawl | null>;
  /** Changes texts of the crawl; null takes one away. Of one that is gone nothing is kept. */
  note(id: number, changes: Readonly<Record<string, string | null>>): Promise<void>;
  /** One text of it; null: there is none. */
  read(id: number, name: string): Promise<string | null>;
  /** Says a word to the crawl without opening its frontier (control.lua): a control state; `reopen`; whether its seeds are complete ("1", "0"). */
  tell(id: number, what: "control" | "reopen" | "seeds", to: string): Promise<void>;
  /** Crawls that have work, oldest first: those that workers look at. */
  live(): Promise<readonly number[]>;
  /** All, newest first, from below `before`. */
  list(most: number, before?: number): Promise<readonly number[]>;
  /** Completions from after the cursor ("0-0": all that are remembered), each once. */
  ends(after: string): Promise<readonly CrawlEnd[]>;
  /** Everything of the crawl, whatever its state; leases of it are lost. Idempotent. */
  delete(id: number): Promise<void>;
  /** Deletes crawls that ended before so many days, whose outputs have been taken and which nothing goes on with (they are finished or dropped, not interrupted); answers them. */
  retire(days: number): Promise<readonly number[]>;
}

/** How long a finished crawl is kept. */
export const KEPT_DAYS = 7;
const AT_ONCE = 500;
const DAY_MS = 86_400_000;
/** Keys of a crawl that are not numbered. */
const SINGLE = ["h", "hc", "w", "pl", "lv", "cy", "L", "x", "rt", "ro", "rx", "ck", "t", "val", "ns", "rv", "out", "own", "sink", "again", "files"] as const;

const text = (value: unknown): string => (Buffer.isBuffer(value) ? value.toString("utf8") : String(value));

function pairs(flat: unknown): Map<string, string> {
  const list = flat as readonly Buffer[]; // HGETALL
  return new Map(Array.from({ length: list.length / 2 }, (_, n) => [text(list[2 * n]), text(list[2 * n + 1])]));
}

export function createCrawls(link: Link): Crawls {
  const { tag } = link;
  const keyOf = (id: number, name: string): string => `${tag}:${id}:${name}`;

  async function unlink(keys: readonly string[]): Promise<void> {
    for (let from = 0; from < keys.length; from += AT_ONCE) await link.command("UNLINK", ...keys.slice(from, from + AT_ONCE));
  }

  /** Queues lie in keys named by level, priority and host: the hosts' records say which. */
  async function unlinkQueues(id: number): Promise<void> {
    let cursor = "0";
    do {
      const [next, flat] = (await link.command("HSCAN", keyOf(id, "h"), cursor, "COUNT", AT_ONCE)) as [Buffer, Buffer[]]; // HSCAN
      const names: string[] = [];
      for (let i = 0; i < flat.length; i += 2) names.push(text(flat[i]));
      if (names.length > 0) await link.script("retire", [tag, `${tag}:${id}`], names);
      cursor = text(next);
    } while (cursor !== "0");
  }

  async function remove(id: number): Promise<void> {
    // Nobody takes it up any more; then what is large; its numbers, which say how large, last.
    await link.command("ZREM", `${tag}:jobs`, id);
    const numbers = pairs(await link.command("HGETALL", keyOf(id, "m")));
    await unlinkQueues(id);
    for (const map of ["v", "o"]) {
      const buckets = 2 ** Number(numbers.get(`${map}b`) ?? 0) + Number(numbers.get(`${map}p`) ?? 0);
      for (let from = 0; from < buckets; from += AT_ONCE) {
        await unlink(Array.from({ length: Math.min(AT_ONCE, buckets - from) }, (_, n) => keyOf(id, `${map}${from + n}`)));
      }
    }
    const levels = (await link.command("ZRANGE", keyOf(id, "pl"), 0, -1)) as Buffer[]; // ZRANGE
    await unlink(levels.map((level) => keyOf(id, `pk:${text(level)}`)));
    await link.script("files", [tag], ["release", String(id)]);
    await unlink(SINGLE.map((name) => keyOf(id, name)));
    await link.command("HDEL", `${tag}:alive`, id);
    await link.command("ZREM", `${tag}:all`, id);
    await unlink([keyOf(id, "info"), keyOf(id, "m")]);
  }

  async function get(id: number): Promise<StoredCrawl | null> {
    const [info, numbers] = await Promise.all([link.command("HGETALL", keyOf(id, "info")), link.command("HGETALL", keyOf(id, "m"))]);
    const fields = pairs(info);
    const state = pairs(numbers);
    if (fields.size === 0) return null;
    const createdAt = Number(fields.get("created"));
    fields.delete("created");
    const completed = state.get("over") === "1";
    return { id, createdAt, endedAt: completed ? Number(state.get("endedAt")) : null, completed, info: fields };
  }

  /** Something of it is left, and it was stopped so as to go on, or nobody said how it ended. */
  async function goesOn(id: number, numbers: ReadonlyMap<string, string>): Promise<boolean> {
    if (Number(numbers.get("queued") ?? 0) + Number(numbers.get("delayed") ?? 0) === 0) return false;
    const finished = await link.command("HGET", keyOf(id, "info"), "finished");
    return finished === null || ["interrupted", "cancelled"].includes(text(finished));
  }

  async function nowMs(): Promise<number> {
    const [seconds, micros] = (await link.command("TIME")) as [Buffer, Buffer]; // TIME
    return Number(text(seconds)) * 1_000 + Number(text(micros)) / 1_000;
  }

  const owned = (file: number | undefined, id: number | undefined, held: number | undefined): FileOwner => ({
    id: Number(id),
    file: Number(file) - 1, // Lua counts from 1
    held: held === 1,
  });
  const files = async (what: "owner" | "hold", id: number, names: readonly string[]): Promise<readonly number[]> =>
    (await link.script("files", [tag], [what, String(id), ...names])) as number[]; // files.lua

  /** Its workers stop. What they held is handed back, so that it is over. */
  const stop = (id: number): Promise<unknown> => link.script("control", [tag, `${tag}:${id}`], ["", "0", "control", "now"]);

  return {
    async create(info) {
      const [id] = (await link.script("create", [tag], ["", "", "0", ...Object.entries(info).flat()])) as number[]; // create.lua
      return Number(id);
    },
    async createWithFiles({ info, files: names, drops }) {
      const args = ["", drops ? "1" : "", String(names.length), ...names, ...Object.entries(info).flat()];
      const [id = 0, ...more] = (await link.script("create", [tag], args)) as number[]; // create.lua
      if (id === 0) return { owner: owned(more[0], more[1], more[2]) };
      for (const dropped of more) await stop(dropped);
      return { id, dropped: more };
    },
    async ownerOf(names) {
      const [file = 0, id, held] = await files("owner", 0, names);
      return file === 0 ? null : owned(file, id, held);
    },
    async hold(id, names) {
      const [file = 0, owner, held] = await files("hold", id, names);
      return file === 0 ? "held" : file < 0 ? "gone" : owned(file, owner, held);
    },
    get,
    async note(id, changes) {
      if ((await link.command("EXISTS", keyOf(id, "info"))) !== 1) return;
      const kept = Object.entries(changes).flatMap(([name, value]) => (value === null ? [] : [name, value]));
      const gone = Object.entries(changes).flatMap(([name, value]) => (value === null ? [name] : []));
      if (kept.length > 0) await link.command("HSET", keyOf(id, "info"), ...kept);
      if (gone.length > 0) await link.command("HDEL", keyOf(id, "info"), ...gone);
    },
    async read(id, name) {
      const value = await link.command("HGET", keyOf(id, "info"), name);
      return value === null ? null : text(value);
    },
    async tell(id, what, to) {
      await link.script("control", [tag, `${tag}:${id}`], ["", "0", what, to]);
    },
    async live() {
      return ((await link.command("ZRANGE", `${tag}:jobs`, 0, -1)) as Buffer[]).map((id) => Number(text(id))); // ZRANGE
    },
    async list(most, before) {
      const bound = before === undefined ? "+inf" : `(${before}`;
      const ids = (await link.command("ZRANGE", `${tag}:all`, bound, "-inf", "BYSCORE", "REV", "LIMIT", 0, most)) as Buffer[]; // ZRANGE
      return ids.map((id) => Number(text(id)));
    },
    async ends(after) {
      const entries = (await link.command("XRANGE", `${tag}:ev`, `(${after}`, "+")) as readonly [Buffer, Buffer[]][]; // XRANGE
      return entries.map(([cursor, fields]) => ({ id: Number(text(fields[1])), cursor: text(cursor) }));
    },
    delete: remove,
    async retire(days) {
      const before = (await nowMs()) - days * DAY_MS;
      const gone: number[] = [];
      const forget = async (id: number): Promise<void> => {
        await remove(id);
        gone.push(id);
      };
      for (let upTo: number | undefined; ; ) {
        const ids = await this.list(AT_ONCE, upTo);
        for (const id of ids) {
          const numbers = pairs(await link.command("HGETALL", keyOf(id, "m")));
          const drained = (numbers.get("oin") ?? "0") === (numbers.get("oout") ?? "0");
          const over = numbers.get("over") === "1";
          if (over && Number(numbers.get("endedAt")) > before) continue;
          if ((await link.command("HEXISTS", keyOf(id, "info"), "dropped")) === 1) {
            // Who dropped it may have been killed before it stopped it.
            if (!over) await stop(id);
            else await forget(id);
            continue;
          }
          if (!over || !drained || (await goesOn(id, numbers))) continue;
          await forget(id);
        }
        if (ids.length < AT_ONCE) return gone;
        upTo = ids.at(-1);
      }
    },
  };
}
