/** A test server on one or many loopback addresses that answers from a function and keeps the log by which politeness is judged. */
import { once } from "node:events";
import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export interface Arrival {
  /** Host header. */
  readonly host: string;
  readonly target: string;
  /** Monotonic ms. */
  readonly at: number;
  /** Requests of that host that were under way when it came, itself included. */
  readonly together: number;
  readonly headers: IncomingMessage["headers"];
}

export interface Served extends AsyncDisposable {
  readonly port: number;
  /** `http://127.0.0.1:PORT`. */
  readonly origin: string;
  readonly arrivals: readonly Arrival[];
  /** Targets asked for, robots.txt left out. */
  targets(): string[];
}

export type Answer = (request: IncomingMessage, response: ServerResponse) => void | Promise<void>;

/** One port of all addresses; what is free at the first may be another's at the next. */
export async function listenAll(listenerOf: (address: string) => RequestListener, addresses: readonly string[]): Promise<readonly Server[]> {
  for (let tries = 1; ; tries++) {
    const servers: Server[] = [];
    try {
      for (const address of addresses) {
        const server = createServer(listenerOf(address));
        const port = (servers[0]?.address() as AddressInfo | undefined)?.port ?? 0; // as below
        await once(server.listen(port, address), "listening");
        servers.push(server);
      }
      return servers;
    } catch (error) {
      for (const server of servers) server.close();
      if (tries === 10) throw error;
    }
  }
}

export async function serve(answer: Answer, addresses: readonly string[] = ["127.0.0.1"]): Promise<Served> {
  const arrivals: Arrival[] = [];
  const open = new Map<string, number>();
  const listener = (request: IncomingMessage, response: ServerResponse): void => {
    const host = request.headers.host ?? "";
    const together = (open.get(host) ?? 0) + 1;
    open.set(host, together);
    arrivals.push({ host, target: request.url ?? "", at: performance.now(), together, headers: request.headers });
    response.on("close", () => open.set(host, (open.get(host) ?? 1) - 1));
    void answer(request, response);
  };
  const servers = await listenAll(() => listener, addresses);
  const { port } = servers[0]!.address() as AddressInfo; // of one address at least; a listening TCP server has one
  return {
    port,
    origin: `http://127.0.0.1:${port}`,
    arrivals,
    targets: () => arrivals.map(({ target }) => target).filter((target) => target !== "/robots.txt"),
    async [Symbol.asyncDispose]() {
      for (const server of servers) server.closeAllConnections();
      await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
    },
  };
}

/** Answers HTML. */
export function html(response: ServerResponse, body: string, status = 200): void {
  response.writeHead(status, { "content-type": "text/html; charset=utf-8" }).end(body);
}

/** A site of `pages` pages, `/` and `/1` …, in a tree of four links a page. robots.txt is 404. */
export function tree(pages: number): Answer {
  return (request, response) => {
    const i = request.url === "/" ? 0 : Number(request.url?.slice(1));
    if (!(i >= 0 && i < pages)) return html(response, "<p>none", 404);
    const links = [1, 2, 3, 4].map((k) => i * 4 + k).filter((k) => k < pages);
    html(response, `<title>page ${i}</title>${links.map((k) => `<a href="/${k}">${k}</a>`).join(" ")} <a href="/">home</a>`);
  };
}

export interface Gate {
  readonly answer: Answer;
  /** Requests that have been kept waiting since it was shut, those of dead processes too. */
  waiting(): number;
  shut(): void;
  open(): void;
}

/** A site that keeps some of its targets waiting while it is shut, so that nothing is over before a test has seen what it waits for. It begins open. */
export function gated(answer: Answer, holds: (target: string) => boolean): Gate {
  const waiting: (() => void)[] = [];
  let isShut = false;
  return {
    async answer(request, response) {
      if (isShut && holds(request.url ?? "")) await new Promise<void>((go) => waiting.push(go));
      await answer(request, response);
    },
    waiting: () => waiting.length,
    shut() {
      isShut = true;
    },
    open() {
      isShut = false;
      for (const go of waiting.splice(0)) go();
    },
  };
}

/** For `gated`: pages from this number on, by the last number of their target. */
export const fromPage =
  (least: number) =>
  (target: string): boolean =>
    Number(/(\d+)$/.exec(target)?.[1] ?? "-1") >= least;
