/** What is written for a request, in undici's terms, and the cookies on both ways. */
import type { Clock } from "../core/clock.ts";
import type { Cookie } from "../core/frontier.ts";
import { type CookiePlace, cookieHeader, createCookieReader } from "../rules/cookies.ts";
import { type HeaderList, hostCredentials, originHeaders, requestHeaders } from "./headers.ts";
import type { Job } from "./job.ts";
import type { FetcherOptions } from "./options.ts";
import type { ProxyServer } from "./proxy.ts";
import { pathOf, targetOf } from "./target.ts";
import type { Dispatcher } from "./undici.ts";

export interface Requests {
  write(job: Job, proxy: ProxyServer | null): Dispatcher.DispatchOptions;
  /** Names and values in turn, as they are sent. */
  headersOf(job: Pick<Job, "host" | "exchange">): HeaderList;
  /** Set-Cookie lines → cookies; null when none of them is one. */
  readCookies(lines: readonly string[], job: Job): readonly Cookie[] | null;
}

export function createRequests(options: FetcherOptions, clock: Clock): Requests {
  const cookieReader = createCookieReader();

  function headersOf(job: Pick<Job, "host" | "exchange">): HeaderList {
    const { host, exchange } = job;
    const { request, cookies } = exchange;
    // A page over https may link the same host over http: what was meant for the encrypted site is not sent in the clear.
    const exposed = !host.secure && options.secureHosts?.has(request.host) === true;
    const seed = !exposed && options.seedHosts.has(request.host);
    const credentials = exposed ? undefined : hostCredentials(options, request.host, host.hostname);
    if (host.headers === null || host.seed !== seed || host.credentials !== credentials) {
      host.seed = seed;
      host.credentials = credentials;
      host.headers = originHeaders(options, request.host, { seed, credentials });
    }
    if (request.rest === null && cookies === null) return host.headers;
    const jar = cookies ? cookieHeader(cookies, placeOf(job), clock.epoch()) : null;
    return requestHeaders(host.headers, request, jar ?? "");
  }

  return {
    headersOf,
    write(job, proxy) {
      const { request } = job.exchange;
      const target = targetOf(request);
      const headers = headersOf(job);
      // An http page is asked of the proxy itself, by its whole URL (RFC 9112 §3.2.2); an https one through a tunnel.
      const absolute = proxy !== null && !job.host.secure;
      return {
        path: absolute ? job.host.origin + target : target,
        // undici checks the method's form itself.
        method: (request.rest?.method ?? "GET") as Dispatcher.HttpMethod,
        headers: absolute && proxy.authorization !== null ? [...headers, "Proxy-Authorization", proxy.authorization] : headers,
        body: request.rest?.body ?? null,
        blocking: false,
      };
    },
    readCookies(lines, job) {
      const place = placeOf(job);
      const cookies = lines.map((line) => cookieReader.parse(line, place, clock.epoch())).filter((cookie) => cookie !== null);
      return cookies.length > 0 ? cookies : null;
    },
  };
}

function placeOf(job: Pick<Job, "host" | "exchange">): CookiePlace {
  return { host: job.host.hostname, path: pathOf(job.exchange.request.url), secure: job.host.secure };
}
