/** One exchange → FetchOutcome, over HTTP/1.1. The only room that opens sockets to the crawled web; it does not wait for hosts, follow redirects or try again. */
import type { Clock } from "../core/clock.ts";
import { CrawlError } from "../core/errors.ts";
import type { Fetcher } from "../core/outcome.ts";
import type { CrawlRequest } from "../core/request.ts";
import { compileAddressGuard } from "../rules/address.ts";
import { parseCodings } from "./body.ts";
import { createConnections, createHost, type Host, type Slot } from "./connections.ts";
import { createDialler } from "./dial.ts";
import { createResolver } from "./dns.ts";
import { errorCode, FAILURES, type Failure, isParserError, toFailure } from "./errors.ts";
import { checkHeaders, type RawHeaders, rawField } from "./headers.ts";
import { createJob, type Job, keepPiece } from "./job.ts";
import type { FetcherOptions } from "./options.ts";
import { aborted, answered, contentTypeOf, failed, isRedirect, locationOf, type OutcomeRules } from "./outcome.ts";
import { compileProxies, proxyOptions } from "./proxy.ts";
import { createRequests } from "./request.ts";
import { originOf } from "./target.ts";
import { createSweep } from "./timers.ts";
import { type ClientConstructor, type Dispatcher, loadClient } from "./undici.ts";

const CONNECT_MS = 10_000;
const IDLE_MS = 15_000;
/** What is left of an unwanted body is read when it is no more than this, so that the connection can be kept; else the connection is closed. */
const DRAIN_BYTES = 64 * 1024;
/** And when it is there within this, found by the sweep: a body that hangs must not hold the slot of its host. */
const DRAIN_MS = 500;
/** Coded bytes beyond the limit on decoded ones that are still read: a body that does not compress grows a little. */
const CODING_MARGIN = 64 * 1024;

/**
 * Opens no connection; undici is loaded from now on, beside whatever the caller does next. Throws `invalid-options` for headers, proxies and addresses that cannot be.
 *
 * Timeouts are found by one sweep every 10 to 250 ms. A pooled connection that turns out dead before a byte of the answer came is replaced once, silently: onStart
 * is not called again, but `sinceStartMs` counts from the second start, so that a host with a fixed delay gets its rest after the request it saw last.
 */
export function createFetcher(options: FetcherOptions, clock: Clock): Fetcher {
  checkHeaders(options);
  const guard = compileAddressGuard(options.addresses);
  const proxies = proxyOptions(options.proxy, options.environment ?? {});
  const connectMs = Math.min(CONNECT_MS, options.timeoutMs);
  const tickMs = Math.min(250, Math.max(10, Math.floor(options.timeoutMs / 20)));
  const quietSweeps = Math.ceil(Math.min(IDLE_MS, options.timeoutMs) / tickMs) + 1;
  const requests = createRequests(options, clock);
  let Client: ClientConstructor | null = null;
  let loadError: CrawlError | null = null;
  /** Jobs that wait for undici. */
  const early: Job[] = [];
  let disposed = false;

  const sweep = createSweep<Job>(clock, tickMs, checkDeadlines);
  const dialler = createDialler({
    clock,
    resolver: createResolver(clock, options.lookup),
    guard,
    guarded: options.addresses.refusePrivate,
    insecure: options.insecure,
  });
  const proxyCount = Math.max(proxies.http.length, proxies.https.length);
  const connections = createConnections({
    client: () => {
      if (Client) return Client;
      throw new CrawlError("internal", "a connection was opened before undici was loaded");
    },
    dialler,
    selectProxy: compileProxies(proxies),
    proxies: proxyCount,
    start,
    handler: createHandler,
    failed: fail,
  });
  const rules: OutcomeRules = {
    now: clock.now,
    epoch: clock.epoch,
    limit: limitOf,
    setCookies: requests.readCookies,
  };

  loadClient().then(begin, cannotLoad);

  return {
    fetch: (exchange) =>
      new Promise((resolve, reject) => {
        const host = hostOf(exchange.request);
        const job = createJob({ exchange, host, resolve, reject, startedAt: clock.epoch(), beganAt: clock.now() }, exchange.maxBytes ?? options.maxBodySize);
        if (disposed) return resolve(aborted(job, rules));
        sweep.watch(job);
        if (Client) return connections.place(job);
        early.push(job);
        if (loadError) rejectEarly(loadError);
      }),
    abort(exchange) {
      const job = sweep.items().find((watched) => watched.exchange === exchange);
      if (job) abort(job);
    },
    abortAll,
    async [Symbol.asyncDispose]() {
      disposed = true;
      abortAll();
      await connections.close();
    },
  };

  function begin(loaded: ClientConstructor): void {
    Client = loaded;
    for (const job of early.splice(0)) if (!job.over) connections.place(job);
  }

  function cannotLoad(cause: unknown): void {
    loadError = new CrawlError("internal", "undici cannot be loaded", { cause });
    rejectEarly(loadError);
  }

  function rejectEarly(error: CrawlError): void {
    for (const job of early.splice(0)) {
      job.over = true;
      sweep.unwatch(job);
      job.reject(error);
    }
  }

  function abortAll(): void {
    for (const job of [...sweep.items()]) abort(job);
  }

  function hostOf(request: CrawlRequest): Host {
    const origin = originOf(request.url);
    const known = connections.host(origin);
    if (known) return known;
    const host = createHost(origin, Math.max(options.hosts[request.host]?.concurrency ?? options.perHostConcurrency, proxyCount));
    connections.addHost(host);
    return host;
  }

  function limitOf(job: Job): number {
    return job.exchange.maxBytes ?? options.maxBodySize;
  }

  function start(slot: Slot): void {
    const { job } = slot;
    if (!job) return;
    const now = clock.now();
    if (!job.resent) job.deadline = now + options.timeoutMs;
    job.connectBy = now + connectMs;
    job.quiet = 0;
    slot.client.dispatch(requests.write(job, slot.proxy), slot.handler);
  }

  /** The callbacks of a slot, made once per connection slot; `slot.job` is null once the exchange is over, whatever undici still says. */
  function createHandler(slotOf: () => Slot): Dispatcher.DispatchHandler {
    return {
      onRequestStart() {
        const { job, local, head } = slotOf();
        if (!job) return;
        head?.expect();
        job.local = local;
        job.startAt = clock.now();
        if (job.started) return;
        job.started = true;
        job.exchange.onStart();
      },
      onResponseStart(_, status, headers) {
        const { job } = slotOf();
        // 1xx are not the answer (RFC 9110 §15.2).
        if (job && status >= 200) onHead(job, status, headers);
      },
      onResponseData(_, piece) {
        const { job } = slotOf();
        if (job) onBody(job, piece);
      },
      onResponseEnd() {
        const slot = slotOf();
        const { job } = slot;
        if (!job) return;
        slot.served++;
        complete(job, true);
      },
      onResponseError(_, error) {
        const { job } = slotOf();
        if (job) onError(job, error);
      },
    };
  }

  function onHead(job: Job, status: number, raw: RawHeaders): void {
    job.headAt = clock.now();
    job.quiet = 0;
    job.status = status;
    job.raw = raw;
    const transfer = rawField(raw, "transfer-encoding");
    if (transfer !== undefined && !/^(chunked|identity)$/i.test(String(transfer).trim())) {
      fail(job, FAILURES.transferCoding);
      return;
    }
    if (status === 407 && job.slot?.proxy && !job.host.secure) {
      fail(job, FAILURES.proxyCredentials);
      return;
    }
    if (isRedirect(status) && locationOf(raw) !== null) job.use = "redirect";
    else if (job.exchange.maxBytes === null && !options.wantsBody(contentTypeOf(raw), options.types)) job.use = "skip";
    if (job.use === "keep") {
      const coding = rawField(raw, "content-encoding");
      if (coding === undefined) return;
      job.codings = parseCodings(coding);
      if (job.codings.kind === "list") job.limit += CODING_MARGIN;
      return;
    }
    const length = rawField(raw, "content-length");
    const known = transfer === undefined && typeof length === "string" ? Number(length) : null;
    const empty = status === 204 || status === 304 || job.exchange.request.rest?.method === "HEAD";
    // A body that only the end of the connection ends saves no connection; that of a redirect in chunks is short as a rule.
    const unending = known === null && (transfer === undefined || job.use === "skip");
    if (!empty && (unending || (known ?? 0) > DRAIN_BYTES)) complete(job, false);
  }

  function onBody(job: Job, piece: Uint8Array): void {
    job.quiet = 0;
    job.wire += piece.byteLength;
    if (job.use !== "keep") {
      if (job.wire > DRAIN_BYTES) complete(job, false);
      return;
    }
    if (job.kept + piece.byteLength <= job.limit) {
      keepPiece(job, piece);
      return;
    }
    if (job.limit > job.kept) keepPiece(job, piece.subarray(0, job.limit - job.kept));
    job.cut = true;
    complete(job, false);
  }

  function onError(job: Job, error: unknown): void {
    const code = errorCode(error);
    if (code === "" && !isParserError(error)) {
      end(job, false);
      job.reject(new CrawlError("internal", `the exchange broke: ${job.exchange.request.url}`, { cause: error }));
      return;
    }
    const failure = toFailure(error, job.headAt >= 0);
    const idempotent = (job.exchange.request.rest?.method ?? "GET") === "GET" || job.exchange.request.rest?.method === "HEAD";
    if (failure.code === "reset" && job.headAt < 0 && !job.slot?.head?.heard() && !job.resent && idempotent && (job.slot?.served ?? 0) > 0) resend(job);
    else fail(job, failure);
  }

  /** On a connection that has served nobody yet: idle ones may be as dead as this one was. */
  function resend(job: Job): void {
    job.resent = true;
    connections.replace(job);
  }

  function complete(job: Job, reusable: boolean): void {
    end(job, reusable);
    job.resolve(answered(job, rules));
  }

  function fail(job: Job, failure: Failure): void {
    end(job, false);
    // The body of a redirect or of an unwanted type is not used: its end cannot fail the page (but a timeout before the head can).
    job.resolve(job.use !== "keep" && job.headAt >= 0 ? answered(job, rules) : failed(job, rules, failure));
  }

  function abort(job: Job): void {
    end(job, false);
    job.resolve(aborted(job, rules));
  }

  function end(job: Job, reusable: boolean): void {
    job.over = true;
    sweep.unwatch(job);
    connections.release(job, reusable);
    if (job.started) job.exchange.onEnd();
  }

  function checkDeadlines(job: Job, now: number): void {
    const { slot } = job;
    if (!slot) return;
    job.quiet++;
    const dialling = slot.dialling !== null;
    if (job.use !== "keep" && job.headAt >= 0 && now - job.headAt >= DRAIN_MS) complete(job, false);
    else if (now >= job.deadline) fail(job, dialling ? FAILURES.connectTimeout : job.headAt < 0 ? FAILURES.headTimeout : FAILURES.totalTimeout);
    else if (dialling && now >= job.connectBy) fail(job, FAILURES.connectTimeout);
    else if (job.headAt >= 0 && job.quiet > quietSweeps) fail(job, FAILURES.idleTimeout);
  }
}
