/** What is said where a crawl is no longer in its store, in the place of the server's word for it: to who writes its outputs. Judges nothing else. */
import { LostCrawl } from "../core/errors.ts";
import type { SinkState } from "../core/sink.ts";
import type { Link } from "../store/redis/connect.ts";

/** The link with the words in every call that finds the crawl gone. */
export function tellingLost(link: Link, words: () => string): Link {
  return {
    ...link,
    get server() {
      return link.server;
    },
    get connections() {
      return link.connections;
    },
    async script(name, keys, args) {
      try {
        return await link.script(name, keys, args);
      } catch (error) {
        throw error instanceof LostCrawl ? new LostCrawl(words(), "store-unreachable") : error;
      }
    },
  };
}

/** "pages.jsonl (12 records), skipped.csv (3 records)"; empty: there are none. */
function filesWords(files: ReadonlyMap<string, SinkState>): string {
  return [...files].map(([file, { records }]) => (typeof records === "number" ? `${file} (${records} record${records === 1 ? "" : "s"})` : file)).join(", ");
}

/** `files`: where those stand that this process writes. `anew`: what becomes of them when the same command is given again. */
export function lostWords(link: Link, id: number, files: ReadonlyMap<string, SinkState>, anew: { readonly files: string; readonly none: string }): string {
  const gone = `crawl ${id} is no longer in the store at ${link.address.shown}: somebody deleted it, or the store was emptied, was taken back to before the crawl, or was restarted and keeps nothing on disk`;
  const written = filesWords(files);
  return written === "" ? `${gone}. ${anew.none}` : `${gone}. What was written so far is in ${written}. ${anew.files}`;
}
