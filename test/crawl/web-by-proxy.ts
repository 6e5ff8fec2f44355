/** A generated web (src/testing/web.ts) behind an HTTP proxy on loopback, for crawls whose fetchers cannot be replaced. Its time runs ten times as fast. */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { type Clock, realClock } from "../../src/core/clock.ts";
import type { Exchange } from "../../src/core/outcome.ts";
import { hostKeyOf } from "../../src/rules/url.ts";
import { createTestWeb, type GraphOptions, type TestWeb } from "../../src/testing/web.ts";

const FASTER = 10;

const quickClock: Clock = {
  now: () => realClock.now() * FASTER,
  epoch: () => realClock.epoch(),
  after: (ms, callback) => realClock.after(ms / FASTER, callback),
  soon: realClock.soon,
};

export interface WebByProxy extends AsyncDisposable {
  readonly web: TestWeb;
  readonly proxy: string;
}

export async function serveWeb(graph: GraphOptions): Promise<WebByProxy> {
  const web = createTestWeb(graph, quickClock);
  const server = createServer((request, response) => void answer(web, request, response));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo; // a listening TCP server has one
  return {
    web,
    proxy: `http://127.0.0.1:${port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

async function answer(web: TestWeb, { url = "", headers }: IncomingMessage, response: ServerResponse): Promise<void> {
  const names = (headers.cookie ?? "").split("; ").map((pair) => pair.split("=")[0] ?? "");
  const exchange: Exchange = {
    request: {
      url,
      idHi: 0,
      idLo: 0,
      host: hostKeyOf(url),
      hop: url.endsWith("/robots.txt") ? "robots" : "link",
      depth: 0,
      priority: 0,
      referrer: null,
      rest: null,
    },
    cookies: names.map((name) => ({ name, value: "1", domain: "", hostOnly: true, path: "/", secure: false, expiresAt: null })),
    maxBytes: null,
    onStart: () => undefined,
    onEnd: () => undefined,
  };
  const outcome = await web.fetcher.fetch(exchange);
  const cookies = outcome.setCookies?.map(({ name, value }) => `${name}=${value}; Path=/`) ?? [];
  const set = cookies.length > 0 ? { "set-cookie": cookies } : {};
  switch (outcome.kind) {
    case "fetched": {
      const { status, contentType, body } = outcome.response;
      response.writeHead(status, { ...set, ...(contentType === null ? {} : { "content-type": contentType }) }).end(body);
      break;
    }
    case "redirect":
      response.writeHead(outcome.response.status, { ...set, location: outcome.location }).end();
      break;
    case "failed":
      if (outcome.status === null) response.destroy();
      else
        response
          .writeHead(outcome.status, outcome.retryAfterMs === null ? {} : { "retry-after": String(Math.ceil(outcome.retryAfterMs / 1_000 / FASTER)) })
          .end();
      break;
    case "aborted":
      response.destroy();
      break;
  }
}
