/** What the cache layer reads of requests and answers: the fields a request will have, and header fields as pairs and back. */
import type { Clock } from "../core/clock.ts";
import type { Exchange, ResponseHeaders } from "../core/outcome.ts";
import type { AskedRequest } from "../rules/caching.ts";
import type { Fields } from "../rules/caching-fields.ts";
import { createHost } from "./connections.ts";
import type { HeaderList, RawHeaders } from "./headers.ts";
import type { FetcherOptions } from "./options.ts";
import { createRequests } from "./request.ts";
import { originOf } from "./target.ts";

/** Hosts whose fixed header fields are kept. */
const MAX_HOSTS = 1_000;

/** The very fields that the fetcher will send, from the same options. */
export function createHeaderReader(options: FetcherOptions, clock: Clock): (exchange: Exchange) => HeaderList {
  const requests = createRequests(options, clock);
  const hosts = new Map<string, ReturnType<typeof createHost>>();
  return (exchange) => {
    const origin = originOf(exchange.request.url);
    let host = hosts.get(origin);
    if (host === undefined) {
      if (hosts.size >= MAX_HOSTS) hosts.clear();
      host = createHost(origin, 1);
      hosts.set(origin, host);
    }
    return requests.headersOf({ host, exchange });
  };
}

export function askedOf({ request }: Exchange, sent: HeaderList): AskedRequest {
  return {
    method: request.rest?.method ?? "GET",
    field(name) {
      let value: string | null = null;
      for (let i = 0; i < sent.length; i += 2) {
        if (sent[i]?.toLowerCase() === name) value = value === null ? (sent[i + 1] ?? "") : `${value}, ${sent[i + 1] ?? ""}`;
      }
      return value;
    },
  };
}

export function fieldsOf(headers: ResponseHeaders): Fields {
  return headers.names().flatMap((name) => headers.all(name).map((value) => [name, value] as const));
}

export function rawOf(fields: Fields): RawHeaders {
  const raw: Record<string, string | string[]> = Object.create(null) as Record<string, string | string[]>; // a map without inherited names
  for (const [name, value] of fields) {
    const known = raw[name];
    if (known === undefined) raw[name] = value;
    else if (typeof known === "string") raw[name] = [known, value];
    else known.push(value);
  }
  return raw;
}
