/** Names to addresses, remembered for a while. The only caller of the resolver; which address may be used is rules/address.ts. */
import { lookup as systemLookup } from "node:dns";
import { isIP } from "node:net";
import type { Clock } from "../core/clock.ts";

export interface ResolvedAddress {
  readonly address: string;
  readonly family: number;
}

/** All addresses of a name, in the order to try them; or an error with a Node `code` (ENOTFOUND, EAI_AGAIN …). */
export type Lookup = (hostname: string, callback: (error: NodeJS.ErrnoException | null, addresses: readonly ResolvedAddress[]) => void) => void;

/** Either the addresses (at least one) or why there are none. */
export type Resolution =
  | { readonly kind: "addresses"; readonly addresses: readonly ResolvedAddress[] }
  | { readonly kind: "error"; readonly error: NodeJS.ErrnoException };

export interface Resolver {
  /** May call back before it returns. */
  resolve(hostname: string, callback: (resolution: Resolution) => void): void;
}

const GOOD_MS = 60_000;
const BAD_MS = 5_000;
const MAX_NAMES = 10_000;

/** The system's resolver (hosts file, search order and all), as getaddrinfo gives it. */
export const defaultLookup: Lookup = (hostname, callback) => systemLookup(hostname, { all: true, order: "verbatim" }, callback);

interface Entry {
  resolution: Resolution | null;
  until: number;
  waiting: ((resolution: Resolution) => void)[];
}

/** A cache in front of `lookup`: good answers for 60 s, bad ones for 5 s, at most 10,000 names, oldest out first; a name is asked for once at a time. */
export function createResolver(clock: Clock, lookup: Lookup = defaultLookup): Resolver {
  const names = new Map<string, Entry>();

  function settle(name: string, entry: Entry, resolution: Resolution): void {
    entry.resolution = resolution;
    entry.until = clock.now() + (resolution.kind === "addresses" ? GOOD_MS : BAD_MS);
    const waiting = entry.waiting;
    entry.waiting = [];
    names.delete(name);
    names.set(name, entry);
    for (const oldest of names.keys()) {
      if (names.size <= MAX_NAMES) break;
      if (names.get(oldest)?.resolution) names.delete(oldest);
      else break;
    }
    for (const callback of waiting) callback(resolution);
  }

  return {
    resolve(hostname, callback) {
      const family = isIP(hostname);
      if (family !== 0) return callback({ kind: "addresses", addresses: [{ address: hostname, family }] });
      const known = names.get(hostname);
      if (known) {
        if (known.resolution === null) return void known.waiting.push(callback);
        if (clock.now() < known.until) return callback(known.resolution);
      }
      const entry: Entry = { resolution: null, until: 0, waiting: [callback] };
      names.set(hostname, entry);
      lookup(hostname, (error, addresses) => settle(hostname, entry, toResolution(hostname, error, addresses)));
    },
  };
}

function toResolution(hostname: string, error: NodeJS.ErrnoException | null, addresses: readonly ResolvedAddress[]): Resolution {
  if (error) return { kind: "error", error };
  if (addresses.length > 0) return { kind: "addresses", addresses };
  return { kind: "error", error: Object.assign(new Error(`${hostname} has no address`), { code: "ENOTFOUND" }) };
}
