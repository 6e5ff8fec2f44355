/** A Fetcher that answers from the response cache where it may (rules/caching.ts), asks whether a stored answer still holds where it must, and stores what comes. */
import { hash } from "node:crypto";
import type { PageCache, StoredResponse } from "../core/cache.ts";
import type { Clock } from "../core/clock.ts";
import type { Exchange, ExchangeFacts, FetchedResponse, Fetcher, FetchOutcome } from "../core/outcome.ts";
import {
  type AskedRequest,
  asksFor,
  type CacheMode,
  confirms,
  isCacheable,
  isConditional,
  isStorable,
  isUnsafe,
  keptHeaders,
  mergedHeaders,
  servedHeaders,
  useOf,
  variedFields,
} from "../rules/caching.ts";
import { resolveLocation } from "../rules/url.ts";
import { askedOf, createHeaderReader, fieldsOf, rawOf } from "./cache-request.ts";
import { responseHeaders } from "./headers.ts";
import type { FetcherOptions } from "./options.ts";
import { contentTypeOf, isRedirect, locationOf } from "./outcome.ts";
import { originOf } from "./target.ts";

/** The fetcher's own options tell what requests will say and which bodies are wanted. */
export interface CacheLayerOptions extends FetcherOptions {
  /** How long answers serve: ms, as long as they say (`auto`, RFC 9111), or never without asking (null). */
  readonly mode: CacheMode;
  /** Whatever is stored serves, and no request is made. */
  readonly offline: boolean;
}

type Answer = FetchOutcome & { readonly kind: "fetched" | "redirect" };

/** An exchange under way; `inner` once it has been handed on. */
interface Running {
  readonly exchange: Exchange;
  inner: Exchange | null;
  aborted: boolean;
}

const NOT_ASKED = { sinceStartMs: null, answer: null, host: null, setCookies: null } as const;
const EMPTY = new Uint8Array(0);
const NO_HEADERS = responseHeaders({});
const digestOf = (text: string) => `sha256:${hash("sha256", text, "hex")}`;

/** Disposes of both. What the cache throws rejects the exchange: a page is never lost for it unnoticed. */
export function withCache(fetcher: Fetcher, cache: PageCache, options: CacheLayerOptions, clock: Clock): Fetcher {
  const headersOf = createHeaderReader(options, clock);
  const running = new Map<Exchange, Running>();
  const { mode, offline } = options;

  function notAsked(beganAt: number): ExchangeFacts {
    const durationMs = clock.now() - beganAt;
    return { startedAt: clock.epoch() - durationMs, durationMs, ...NOT_ASKED };
  }

  /** The stored answer as an outcome; limits on bodies are those of now, not of the run that stored it. */
  function answerOf(stored: StoredResponse, exchange: Exchange, facts: ExchangeFacts): Answer {
    const raw = rawOf(servedHeaders(stored, clock.epoch()));
    const contentType = contentTypeOf(raw);
    const location = isRedirect(stored.status) ? locationOf(raw) : null;
    const limit = exchange.maxBytes ?? options.maxBodySize;
    const skipped = location === null && exchange.maxBytes === null && !options.wantsBody(contentType, options.types);
    const response: FetchedResponse = {
      status: stored.status,
      headers: responseHeaders(raw),
      contentType,
      body: skipped ? EMPTY : stored.body.subarray(0, limit),
      wireBytes: skipped ? 0 : stored.wireBytes,
      truncated: !skipped && (stored.truncated || stored.body.byteLength > limit),
      bodySkipped: skipped,
      fromCache: true,
    };
    return location === null ? { ...facts, kind: "fetched", response } : { ...facts, kind: "redirect", response, location };
  }

  function unreachable(exchange: Exchange, beganAt: number): FetchOutcome {
    const facts = notAsked(beganAt);
    if (exchange.request.hop === "robots") {
      // No request will be made by what this allows.
      const response = { status: 404, headers: NO_HEADERS, contentType: null, body: EMPTY, wireBytes: 0, truncated: false, bodySkipped: false };
      return { ...facts, kind: "fetched", response };
    }
    const failure = { code: "connect", message: "offline: not in the cache", status: null, response: null, retryable: false, retryAfterMs: null } as const;
    return { ...facts, kind: "failed", ...failure };
  }

  async function put(key: string, answer: Answer, asked: AskedRequest, url: string): Promise<void> {
    const { response, sinceStartMs } = answer;
    if (response.truncated || response.bodySkipped) return;
    const headers = keptHeaders(fieldsOf(response.headers));
    if (!isStorable({ status: response.status, headers }, asked, mode)) return;
    const { status, body, wireBytes, truncated } = response;
    const varied = variedFields(headers, asked, mode, digestOf);
    await cache.put(key, { url, status, headers, body, wireBytes, truncated, ...timesOf(sinceStartMs, answer), varied });
  }

  function timesOf(sinceStartMs: number | null, { answer }: ExchangeFacts): Pick<StoredResponse, "requestedAt" | "respondedAt"> {
    const requestedAt = clock.epoch() - (sinceStartMs ?? 0);
    return { requestedAt, respondedAt: requestedAt + (answer?.latencyMs ?? sinceStartMs ?? 0) };
  }

  /** What a 304 says is kept; null: it speaks of another answer than ours, against the protocol. */
  async function renew(key: string, stored: StoredResponse, outcome: Answer): Promise<StoredResponse | null> {
    const news = fieldsOf(outcome.response.headers);
    if (!confirms(stored.headers, news)) return null;
    const head = { headers: mergedHeaders(stored.headers, news), ...timesOf(outcome.sinceStartMs, outcome) };
    await cache.refresh(key, head);
    return { ...stored, ...head };
  }

  /** A 304 to the conditions that were added here: what was asked about is unchanged. */
  async function confirmed(key: string, stored: StoredResponse, exchange: Exchange, outcome: Answer): Promise<FetchOutcome> {
    const { startedAt, durationMs, sinceStartMs, answer, host, setCookies } = outcome;
    return answerOf((await renew(key, stored, outcome)) ?? stored, exchange, { startedAt, durationMs, sinceStartMs, answer, host, setCookies });
  }

  /** RFC 9111 §4.4: a request that changed something makes what is stored of its URL, and of those it names on that origin, out of date. */
  async function invalidate(exchange: Exchange, outcome: FetchOutcome): Promise<void> {
    if (outcome.kind !== "fetched" && outcome.kind !== "redirect") return;
    const { status, headers } = outcome.response;
    if (status >= 400) return;
    const { url } = exchange.request;
    const named = ["location", "content-location"].flatMap((name) => headers.all(name)).map((text) => resolveLocation(text, url)?.url);
    for (const target of new Set([url, ...named])) {
      if (target === undefined || originOf(target) !== originOf(url)) continue;
      for (const method of ["GET", "HEAD"]) await cache.delete(`${method} ${target}`);
    }
  }

  async function asIs(run: Running, method: string): Promise<FetchOutcome> {
    run.inner = run.exchange;
    const outcome = await fetcher.fetch(run.exchange);
    if (isUnsafe(method)) await invalidate(run.exchange, outcome);
    return outcome;
  }

  async function lookUp(run: Running, asked: AskedRequest, beganAt: number): Promise<FetchOutcome> {
    const { exchange } = run;
    const { url, hop, rest } = plainOf(exchange).request;
    const key = `${asked.method} ${url}`;
    const stored = await cache.get(key);
    if (run.aborted) return { ...notAsked(beganAt), kind: "aborted" };
    const use = stored === null ? null : useOf(stored, asked, { mode, offline, now: clock.epoch(), digest: digestOf });
    // robots.txt has a lifetime of its own (RFC 9309 §2.4), which the frontier keeps.
    if (stored !== null && use?.kind === "serve" && (offline || hop !== "robots")) return answerOf(stored, exchange, notAsked(beganAt));
    if (offline) return unreachable(exchange, beganAt);
    const conditions = stored !== null && use?.kind === "validate" && !isConditional(asked) ? use.headers : null;
    const inner: Exchange = conditions === null ? exchange : conditional(exchange, { ...rest?.headers, ...conditions });
    run.inner = inner;
    const outcome = await fetcher.fetch(inner);
    if (outcome.kind !== "fetched" && outcome.kind !== "redirect") return outcome;
    if (stored !== null && conditions !== null && outcome.response.status === 304) return confirmed(key, stored, exchange, outcome);
    if (stored !== null && outcome.response.status === 304 && asksFor(stored, asked)) await renew(key, stored, outcome);
    else await put(key, outcome, asked, url);
    return outcome;
  }

  return {
    async fetch(exchange) {
      const run: Running = { exchange, inner: null, aborted: false };
      running.set(exchange, run);
      const beganAt = clock.now();
      try {
        const plain = plainOf(exchange);
        const asked = askedOf(plain, headersOf(plain));
        if (exchange.request.rest?.body === undefined && isCacheable(asked)) return await lookUp(run, asked, beganAt);
        return offline ? unreachable(exchange, beganAt) : await asIs(run, asked.method);
      } finally {
        running.delete(exchange);
      }
    },
    abort(exchange) {
      const run = running.get(exchange);
      if (run === undefined) return;
      run.aborted = true;
      if (run.inner !== null) fetcher.abort(run.inner);
    },
    abortAll() {
      for (const run of running.values()) run.aborted = true;
      fetcher.abortAll();
    },
    async [Symbol.asyncDispose]() {
      try {
        await fetcher[Symbol.asyncDispose]();
      } finally {
        await cache[Symbol.asyncDispose]();
      }
    },
  };
}

/** Without the conditions of a crawl that asks only for what changed: what is stored answers them, or takes their place. */
function plainOf(exchange: Exchange): Exchange {
  return exchange.unconditional === undefined ? exchange : { ...exchange, request: exchange.unconditional };
}

function conditional(exchange: Exchange, headers: Readonly<Record<string, string>>): Exchange {
  const { request, cookies, maxBytes } = exchange;
  return {
    request: { ...request, rest: { ...request.rest, headers } },
    cookies,
    maxBytes,
    onStart: () => exchange.onStart(),
    onEnd: () => exchange.onEnd(),
  };
}
