/** What the tests of this room share: a fetcher with short options, an exchange that notes what was called. Not for production. */
import { realClock } from "../core/clock.ts";
import type { Cookie } from "../core/frontier.ts";
import type { Exchange, Fetcher, FetchOutcome } from "../core/outcome.ts";
import type { RequestRest } from "../core/request.ts";
import { wantsBody } from "../rules/media-type.ts";
import { createFetcher } from "./http.ts";
import type { FetcherOptions } from "./options.ts";
import { originOf } from "./target.ts";

const DEFAULTS: FetcherOptions = {
  timeoutMs: 5_000,
  maxBodySize: 10_000_000,
  types: "text",
  wantsBody,
  userAgent: "skein-test/1",
  headers: {},
  hosts: {},
  auth: new Map(),
  seedHosts: new Set(),
  proxy: [],
  insecure: false,
  addresses: { refusePrivate: false, allow: [] },
  perHostConcurrency: 8,
};

export function openFetcher(options: Partial<FetcherOptions> = {}): Fetcher {
  return createFetcher({ ...DEFAULTS, ...options }, realClock);
}

export interface NotedExchange extends Exchange {
  /** "start" and "end", as they were called. */
  readonly calls: string[];
}

export function exchangeFor(
  url: string,
  more: { readonly rest?: RequestRest; readonly cookies?: readonly Cookie[]; readonly maxBytes?: number; readonly onStart?: () => void } = {},
): NotedExchange {
  const calls: string[] = [];
  return {
    request: { url, host: hostKeyOf(url), hop: "link", depth: 0, priority: 0, referrer: null, rest: more.rest ?? null, idHi: 0, idLo: 0 },
    cookies: more.cookies ?? null,
    maxBytes: more.maxBytes ?? null,
    calls,
    onStart() {
      calls.push("start");
      more.onStart?.();
    },
    onEnd: () => void calls.push("end"),
  };
}

/** Hostname, and port unless it is 80 or 443: the frontier's host key. */
export function hostKeyOf(url: string): string {
  const origin = originOf(url);
  return origin.slice(origin.indexOf("://") + 3).replace(/:(80|443)$/, "");
}

/** One page fetched by a fetcher of its own. */
export async function fetchOnce(url: string, options: Partial<FetcherOptions> = {}, more: Parameters<typeof exchangeFor>[1] = {}): Promise<FetchOutcome> {
  const fetcher = openFetcher(options);
  try {
    return await fetcher.fetch(exchangeFor(url, more));
  } finally {
    await fetcher[Symbol.asyncDispose]();
  }
}

/** The decoded body of a page that was fetched, as UTF-8; for anything else a line that says what it was. */
export function bodyOf(outcome: FetchOutcome): string {
  if (outcome.kind === "fetched") return Buffer.from(outcome.response.body).toString();
  return outcome.kind === "failed" ? `failed: ${outcome.code} (${outcome.message})` : outcome.kind;
}
