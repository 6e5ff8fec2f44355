/** `skein cache`: what the response cache holds, and clearing it. */
import type { CacheView, cacheFolder, dropCache, viewCache } from "../../inspect-cache.ts";
import { harmless } from "../console.ts";
import { EXIT } from "../exit.ts";
import type { Io } from "../io.ts";
import { spellBytes, spellNumber } from "../progress.ts";
import { JSON_FLAG, readVerb, STATE_FLAG, usageError, type Verb } from "../verb.ts";

export interface CacheParts {
  readonly cacheFolder: typeof cacheFolder;
  readonly viewCache: typeof viewCache;
  readonly dropCache: typeof dropCache;
}

export const CACHE: Verb = {
  name: "cache",
  head: `Usage: skein cache stats|clear [--state DIR]

Says what the cache of crawls with --cache holds (stats), or drops all of it (clear): the cache of
--state DIR, or else ./.skein/cache. Crawls may be using it.

Examples:
  skein cache stats
  skein cache clear --state crawl1
`,
  own: [STATE_FLAG, JSON_FLAG],
  shared: [],
  tail: `
Exit status: 0; 2 usage; 3 the cache cannot be read or written.
`,
};

const time = (at: number | null): string => (at === null ? "" : `${new Date(at).toISOString().slice(0, 19).replace("T", " ")} UTC`);
const responses = (count: number): string => `${spellNumber(count)} response${count === 1 ? "" : "s"}`;

/** Lines for people. */
export function cacheLines(view: CacheView, cleared: boolean): string[] {
  if (!view.exists) return [`there is no cache in ${view.dir}`];
  if (cleared) return [`dropped ${responses(view.responses)} from ${view.dir}`];
  const rows: readonly (readonly [string, string])[] = [
    ["cache", view.dir],
    ["holds", responses(view.responses)],
    ["bodies", `${spellBytes(view.bodyBytes)} compressed`],
    ["disk", spellBytes(view.diskBytes)],
    ["oldest", time(view.oldest)],
    ["newest", time(view.newest)],
  ];
  return rows.flatMap(([name, text]) => (text === "" ? [] : [`${name.padEnd(8)} ${text}`]));
}

function jsonOf(view: CacheView): string {
  const iso = (at: number | null) => (at === null ? null : new Date(at).toISOString());
  return JSON.stringify({ ...view, oldest: iso(view.oldest), newest: iso(view.newest) });
}

/** Answers the exit status. Throws CrawlError for what is ours; the caller says it. */
export async function cacheCommand(argv: readonly string[], io: Io, load: () => Promise<CacheParts>): Promise<number> {
  const reading = await readVerb(CACHE, argv, io);
  if (reading === null) return EXIT.ok;
  const [action, extra] = reading.args;
  if (action !== "stats" && action !== "clear") throw usageError(action ?? "skein cache", "say stats or clear");
  if (extra !== undefined) throw usageError(extra, `skein cache ${action} takes no more arguments; name a state directory with --state`);
  const named = reading.text("state") ?? io.env.SKEIN_STATE ?? reading.spec.stateDir ?? "";
  const { cacheFolder, viewCache, dropCache } = await load();
  const dir = cacheFolder(named === "" ? null : named, io.cwd);
  const view = action === "clear" ? dropCache(dir) : viewCache(dir);
  const text = reading.isOn("json")
    ? jsonOf(view)
    : cacheLines(view, action === "clear")
        .map(harmless)
        .join("\n");
  await io.stdout.write(Buffer.from(`${text}\n`));
  return EXIT.ok;
}
