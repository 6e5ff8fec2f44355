/** `skein cache`: what the response cache holds, and clearing it. */
import { spellNumber } from "../../core/units.ts";
import type { CacheView, cacheFolder, cacheInStore, dropCache, viewCache } from "../../inspect/cache.ts";
import { harmless } from "../console.ts";
import { EXIT } from "../exit.ts";
import type { Io } from "../io.ts";
import { spellBytes } from "../progress.ts";
import { JSON_FLAG, logOf, type Reading, readVerb, STATE_FLAG, usageError, type Verb } from "../verb.ts";

export interface CacheParts {
  readonly cacheFolder: typeof cacheFolder;
  readonly viewCache: typeof viewCache;
  readonly dropCache: typeof dropCache;
  readonly cacheInStore: typeof cacheInStore;
}

export const CACHE: Verb = {
  name: "cache",
  head: `Usage: skein cache stats|clear [--state DIR | --store URL]

Says what the cache of crawls with --cache holds (stats), or drops all of it (clear): the cache of
--state DIR or of the store, or else ./.skein/cache. Crawls may be using it.

Examples:
  skein cache stats
  skein cache clear --state crawl1
  skein cache clear --store redis://localhost:6379
`,
  own: [STATE_FLAG, JSON_FLAG],
  shared: ["store"],
  tail: `
Exit status: 0; 2 usage; 3 the cache cannot be read or written; 5 the store does not answer.
`,
};

const time = (at: number | null): string => (at === null ? "" : `${new Date(at).toISOString().slice(0, 19).replace("T", " ")} UTC`);
const responses = (count: number): string => `${spellNumber(count)} response${count === 1 ? "" : "s"}`;

/** Lines for people. */
export function cacheLines(view: CacheView, cleared: boolean): string[] {
  const place = view.dir ?? view.store ?? "";
  if (!view.exists) return [`there is no cache in ${place}`];
  if (cleared) return [`dropped ${responses(view.responses)} from ${place}`];
  const rows: readonly (readonly [string, string])[] = [
    ["cache", place],
    ["holds", responses(view.responses)],
    ["bodies", `${spellBytes(view.bodyBytes)} compressed`],
    [view.store === null ? "disk" : "memory", spellBytes(view.diskBytes)],
    ["oldest", time(view.oldest)],
    ["newest", time(view.newest)],
  ];
  return rows.flatMap(([name, text]) => (text === "" ? [] : [`${name.padEnd(8)} ${text}`]));
}

function jsonOf(view: CacheView): string {
  const iso = (at: number | null) => (at === null ? null : new Date(at).toISOString());
  const { dir, store, ...figures } = view;
  return JSON.stringify({ ...(store === null ? { dir } : { store }), ...figures, oldest: iso(view.oldest), newest: iso(view.newest) });
}

/** A folder that is named by a flag goes before a store that the variables or the config file name. */
async function viewOf(reading: Reading, action: "stats" | "clear", io: Io, parts: CacheParts): Promise<CacheView> {
  const { store, stateDir } = reading.spec;
  const flag = reading.text("state");
  if (store !== null && flag === null) return parts.cacheInStore(store, action, logOf(io));
  const named = flag ?? io.env.SKEIN_STATE ?? stateDir ?? "";
  const dir = parts.cacheFolder(named === "" ? null : named, io.cwd);
  return action === "clear" ? parts.dropCache(dir) : parts.viewCache(dir);
}

/** Answers the exit status. Throws CrawlError for what is ours; the caller says it. */
export async function cacheCommand(argv: readonly string[], io: Io, load: () => Promise<CacheParts>): Promise<number> {
  const reading = await readVerb(CACHE, argv, io);
  if (reading === null) return EXIT.ok;
  const [action, extra] = reading.args;
  if (action !== "stats" && action !== "clear") throw usageError(action ?? "skein cache", "say stats or clear");
  if (extra !== undefined) throw usageError(extra, `skein cache ${action} takes no more arguments; name a state directory with --state`);
  const view = await viewOf(reading, action, io, await load());
  const text = reading.isOn("json")
    ? jsonOf(view)
    : cacheLines(view, action === "clear")
        .map(harmless)
        .join("\n");
  await io.stdout.write(Buffer.from(`${text}\n`));
  return EXIT.ok;
}
