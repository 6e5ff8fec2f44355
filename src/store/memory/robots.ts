/** What is known of each origin's robots.txt, and whether a request for it is under way. */
import type { RobotsAnswer, RobotsState } from "../../core/frontier.ts";
import type { CrawlRequest, HostKey, Origin } from "../../core/request.ts";
import { flat } from "./place.ts";

export interface OriginEntry {
  readonly origin: Origin;
  /** The host whose queue waits for the answer. */
  readonly host: HostKey;
  state: RobotsState | null;
  /** Clock ms. */
  expiresAt: number;
  /** Its request is leased, delayed or queued, on whichever host the redirects have led to. */
  pending: boolean;
}

export interface Origins {
  of(origin: Origin, host: HostKey): OriginEntry;
  find(origin: Origin): OriginEntry | null;
  /** Stores a final answer under a new version. */
  store(entry: OriginEntry, answer: Exclude<RobotsAnswer, { kind: "redirect" }>, now: number): void;
  all(): IterableIterator<OriginEntry>;
  /** Versions given from now on are larger than this one. */
  versionsFrom(version: number): void;
  clear(): void;
}

export function createOrigins(): Origins {
  const origins = new Map<Origin, OriginEntry>();
  let versions = 0;

  function stateOf(answer: Exclude<RobotsAnswer, { kind: "redirect" }>, before: RobotsState | null): RobotsState {
    if (answer.kind === "rules" && before?.kind === "rules" && before.text === answer.text) return before;
    const version = ++versions;
    if (answer.kind === "rules") return { version, kind: "rules", text: answer.text };
    return answer.kind === "allow-all" ? { version, kind: "allow-all" } : { version, kind: "unavailable", code: answer.code, why: answer.why };
  }

  return {
    of(origin, host) {
      let entry = origins.get(origin);
      if (entry === undefined) {
        entry = { origin: flat(origin), host, state: null, expiresAt: 0, pending: false };
        origins.set(entry.origin, entry);
      }
      return entry;
    },
    find: (origin) => origins.get(origin) ?? null,
    store(entry, answer, now) {
      entry.state = stateOf(answer, entry.state);
      entry.expiresAt = now + answer.ttlMs;
      entry.pending = false;
    },
    all: () => origins.values(),
    versionsFrom(version) {
      versions = Math.max(versions, version);
    },
    clear: () => origins.clear(),
  };
}

/** The request for an origin's robots.txt. Its fingerprint is never looked up. */
export function robotsRequest(entry: OriginEntry): CrawlRequest {
  return {
    idHi: 0,
    idLo: 0,
    url: `${entry.origin}/robots.txt`,
    host: entry.host,
    hop: "robots",
    depth: 0,
    priority: 0,
    referrer: null,
    rest: { robotsFor: entry.origin },
  };
}
