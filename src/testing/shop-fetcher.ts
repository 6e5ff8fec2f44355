/** The generated shop as a pure Fetcher in the time of a clock: half of a request's latency before it arrives, half after. */
import type { Clock, Timer } from "../core/clock.ts";
import type { HostAnswer } from "../core/frontier.ts";
import type { Exchange, ExchangeFacts, FetchedResponse, Fetcher, FetchOutcome, ResponseHeaders } from "../core/outcome.ts";
import { seededRandom } from "./clock.ts";
import type { Shop, ShopAnswer, ShopVisit } from "./shop.ts";
import { bytesOf, type Latency, latencyOf } from "./shop-pages.ts";

const TYPE = "text/html; charset=utf-8";
const HEADERS: ResponseHeaders = {
  get: (name) => (name === "content-type" ? TYPE : null),
  all: (name) => (name === "content-type" ? [TYPE] : []),
  names: () => ["content-type"],
};

export interface ShopFetcherOptions {
  readonly latency: Latency;
  readonly seed: number;
  readonly onArrival: ((visit: ShopVisit) => void) | null;
}

export function shopFetcher(shop: Shop, clock: Clock, { latency, seed, onArrival }: ShopFetcherOptions): Fetcher {
  const random = seededRandom(seed * 7_907 + 1);
  const running = new Map<Exchange, () => void>();

  function fetch(exchange: Exchange): Promise<FetchOutcome> {
    const startedAt = clock.now();
    const epoch = clock.epoch();
    const latencyMs = latencyOf(latency, random());
    const upMs = latencyMs * (0.2 + 0.6 * random());
    const facts = (answer: HostAnswer | null): ExchangeFacts => ({
      startedAt: epoch,
      durationMs: clock.now() - startedAt,
      sinceStartMs: clock.now() - startedAt,
      answer,
      host: { local: true },
      setCookies: null,
    });
    return new Promise((resolve) => {
      let timer: Timer | null = null;
      const end = (outcome: FetchOutcome): void => {
        if (!running.delete(exchange)) return;
        timer?.cancel();
        exchange.onEnd();
        resolve(outcome);
      };
      running.set(exchange, () => end({ ...facts(null), kind: "aborted" }));
      exchange.onStart();
      timer = clock.after(upMs, () => {
        const url = exchange.request.rest?.sentAs ?? exchange.request.url;
        const answer = shop.arrive(url.slice(url.indexOf("/", 8)), startedAt, clock.now());
        onArrival?.(answer.visit);
        timer = clock.after(latencyMs - upMs, () => {
          answer.visit.endedAt = clock.now();
          end(outcomeOf(answer, facts, latencyMs));
        });
      });
    });
  }

  const abortAll = (): void => {
    for (const abort of [...running.values()]) abort();
  };

  return {
    fetch,
    abort: (exchange) => running.get(exchange)?.(),
    abortAll,
    [Symbol.asyncDispose]: async () => abortAll(),
  };
}

function outcomeOf({ status, body }: ShopAnswer, facts: (answer: HostAnswer) => ExchangeFacts, latencyMs: number): FetchOutcome {
  const failed = { kind: "failed", response: null, retryable: true, retryAfterMs: null } as const;
  if (status === null) return { ...facts({ kind: "none", latencyMs }), ...failed, code: "reset", message: "the connection was lost", status };
  if (status === 429 || status >= 500)
    return { ...facts({ kind: "pushback", latencyMs }), ...failed, code: status === 429 ? "rate-limited" : "http", message: `answered ${status}`, status };
  const bytes = bytesOf(body);
  const response: FetchedResponse = {
    status,
    headers: HEADERS,
    contentType: TYPE,
    body: bytes,
    wireBytes: bytes.length,
    truncated: false,
    bodySkipped: false,
  };
  return { ...facts({ kind: "good", latencyMs }), kind: "fetched", response };
}
