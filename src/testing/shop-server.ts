/** The generated shop as a server on loopback; its latency is a timer of the server, half of it before a request counts as arrived. */
import { createServer } from "node:http";
import { seededRandom } from "./clock.ts";
import { listenOnLoopback } from "./loopback.ts";
import type { Shop } from "./shop.ts";
import { type Latency, latencyOf } from "./shop-pages.ts";

export interface ServedShop extends AsyncDisposable {
  /** `http://127.0.0.1:PORT`. */
  readonly origin: string;
  /** Most requests that were under way at one moment. */
  readonly mostAtOnce: number;
  close(): Promise<void>;
}

export interface ServeOptions {
  readonly latency: Latency;
  readonly seed: number;
  /** 0: any that is free. */
  readonly port: number;
}

export async function serveShop(shop: Shop, { latency, seed, port }: ServeOptions): Promise<ServedShop> {
  const random = seededRandom(seed * 7_907 + 1);
  let open = 0;
  let mostAtOnce = 0;
  const server = createServer((request, response) => {
    const startedAt = performance.now();
    const latencyMs = latencyOf(latency, random());
    mostAtOnce = Math.max(mostAtOnce, ++open);
    response.on("close", () => open--);
    setTimeout(() => {
      const { visit, status, body } = shop.arrive(request.url ?? "/", startedAt, performance.now());
      setTimeout(() => {
        visit.endedAt = performance.now();
        if (status === null) response.destroy();
        else response.writeHead(status, { "content-type": "text/html; charset=utf-8" }).end(body);
      }, latencyMs / 2);
    }, latencyMs / 2);
  });
  const { port: at, close } = await listenOnLoopback(server, port);
  return {
    origin: `http://127.0.0.1:${at}`,
    get mostAtOnce() {
      return mostAtOnce;
    },
    close,
    [Symbol.asyncDispose]: close,
  };
}
