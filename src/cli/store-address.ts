/** Which store a command works with and who said so: the flag, SKEIN_STORE or the config file, else the variables of linked containers. Connects to nothing. */
import { parseSpec } from "../core/spec.ts";
import type { Io } from "./io.ts";
import { ADDRESS, isStoreFlagged } from "./store-label.ts";
import { type Reading, usageError } from "./verb.ts";

export interface StoreAddress {
  readonly url: string;
  /** As a user knows it: `--store`, `REDIS_URL`, … */
  readonly from: string;
  /** Host and port, for messages: never the password. */
  readonly shown: string;
}

const DEFAULT_PORT = "6379";
const PORT = "REDIS_PORT_6379_TCP_PORT";

/** Whatever stands before the last `@` may be a password, however it is written. What comes behind host and port is shown where it is not the usual store. */
function shownOf(url: string): string {
  const rest = url.slice(url.indexOf("://") + 3);
  const [, host = "", behind = ""] = /^([^/?#]*)(.*)$/s.exec(rest.slice(rest.lastIndexOf("@") + 1)) ?? [];
  return (
    host +
    behind
      .replace(/^\/(?=\?|$)/, "")
      .replace(/^\/0+(?=\?|$)/, "")
      .replace(/\?prefix=skein$/, "")
  );
}

function isStoreUrl(url: string): boolean {
  try {
    parseSpec({ store: url });
    return true;
  } catch {
    return false;
  }
}

/** What a linked Redis is called in the environment; null: there is none. An empty variable counts as not set. Throws CrawlError `invalid-options`. */
export function storeOfContainers(env: Io["env"]): StoreAddress | null {
  const url = env["REDIS_URL"] || null;
  if (url !== null) {
    if (!isStoreUrl(url)) throw usageError("REDIS_URL", "expected a URL such as redis://host:6379 (not shown: it may hold a password)");
    return { url, from: "REDIS_URL", shown: shownOf(url) };
  }
  const address = env[ADDRESS] || null;
  if (address === null) return null;
  const port = env[PORT] || DEFAULT_PORT;
  const linked = `redis://${address.includes(":") ? `[${address}]` : address}:${port}`;
  if (!/^\d{1,5}$/.test(port) || Number(port) > 65_535 || !isStoreUrl(linked))
    throw usageError(ADDRESS, `expected an address, and a port in ${PORT}; got ${JSON.stringify(address)} and ${JSON.stringify(port)}`);
  return { url: linked, from: ADDRESS, shown: shownOf(linked) };
}

/** The store that was asked for in the words of skein itself; null: none was. */
export function storeNamed(reading: Reading, argv: readonly string[], env: Io["env"]): StoreAddress | null {
  const url = reading.spec.store;
  if (url === null) return null;
  return { url, from: isStoreFlagged(argv) ? "--store" : env["SKEIN_STORE"] ? "SKEIN_STORE" : "the config file", shown: shownOf(url) };
}

/** Null: none was named. What names skein's own store wins over what only tells of a Redis that is there. Throws CrawlError `invalid-options`. */
export function storeAddress(reading: Reading, argv: readonly string[], env: Io["env"]): StoreAddress | null {
  return storeNamed(reading, argv, env) ?? storeOfContainers(env);
}

/** Of URLs in arguments (--store, --proxy, a seed) their passwords are kept back. */
export const withoutPassword = (text: string): string => text.replace(/(:\/\/[^/?#@:]*:)[^/?#]*@/, "$1***@");
