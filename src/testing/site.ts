/**
 * A site over loopback for the authors of scrapers: pages of their own, and named faults that are asked for by path.
 *
 *     await using site = await fakeSite({ "/": "<h1>Hello</h1><a href=/list>list</a>", "/list": { status: 200, headers: {}, body: "…" } });
 *     for await (const page of crawl({ seeds: [site.url] })) …
 *     site.requests           // what arrived, in order
 *
 * Faults (site-faults.ts): `/slow?ms=2000`, `/cut`, `/lying-length`, `/endless`, `/loop`, `/wrong-charset`, `/status/503?times=2`, `/retry-after?seconds=1&times=1`,
 * `/gzip-broken`, `/reset`. A page of the author's own at such a path comes first. robots.txt is 404 unless it is a page or the `robots` option names another.
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { listenOnLoopback } from "./loopback.ts";
import { answerFault } from "./site-faults.ts";

/** A page: its HTML, an answer, or what a request gets, which may depend on it. */
export type FakePage = string | FakeAnswer | ((request: FakeRequest) => string | FakeAnswer | Promise<string | FakeAnswer>);

export interface FakeAnswer {
  /** Default 200. */
  readonly status?: number;
  /** Default content type: HTML in UTF-8. */
  readonly headers?: Readonly<Record<string, string | readonly string[]>>;
  readonly body?: string | Uint8Array;
  /** Before the head is sent. */
  readonly delayMs?: number;
}

export interface FakeRequest {
  readonly method: string;
  /** With the query, as it was sent. */
  readonly target: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  readonly body: string;
  /** Monotonic ms at its arrival. */
  readonly at: number;
  /** Requests for the same target before this one. */
  readonly before: number;
}

/**
 * `missing`: 404. `allow`, `disallow`: everything, nothing. `private`: nothing below /private/. `delay`: a Crawl-delay of 1 s.
 * `error`: 503. `html`: a web page with status 200. `redirect`: to /robots-elsewhere.txt, which disallows /private/. `hang`: never answered.
 */
export type FakeRobots = "missing" | "allow" | "disallow" | "private" | "delay" | "error" | "html" | "redirect" | "hang";

export interface FakeSiteOptions {
  /** Default `missing`. */
  readonly robots?: FakeRobots;
  /** Default: a port that is free. */
  readonly port?: number;
}

export interface FakeSite extends AsyncDisposable {
  /** `http://127.0.0.1:PORT/`. */
  readonly url: string;
  /** In order of arrival, robots.txt among them. */
  readonly requests: readonly FakeRequest[];
  /** Drops what is under way. */
  close(): Promise<void>;
}

const HTML = "text/html; charset=utf-8";
const PRIVATE = "User-agent: *\nDisallow: /private/\n";

const text = (body: string): FakeAnswer => ({ headers: { "content-type": "text/plain" }, body });

const ROBOTS: Readonly<Record<Exclude<FakeRobots, "hang">, FakeAnswer>> = {
  missing: { status: 404 },
  allow: text("User-agent: *\nAllow: /\n"),
  disallow: text("User-agent: *\nDisallow: /\n"),
  private: text(PRIVATE),
  delay: text("User-agent: *\nCrawl-delay: 1\n"),
  error: { status: 503 },
  html: { body: "<!doctype html><title>Home</title><h1>Not robots rules</h1>" },
  redirect: { status: 302, headers: { location: "/robots-elsewhere.txt" } },
};

export async function fakeSite(pages: Readonly<Record<string, FakePage>> = {}, options: FakeSiteOptions = {}): Promise<FakeSite> {
  const { robots = "missing", port = 0 } = options;
  const requests: FakeRequest[] = [];
  const asked = new Map<string, number>();

  function robotsAnswer(path: string, response: ServerResponse): boolean {
    if (path === "/robots-elsewhere.txt" && robots === "redirect") send(response, text(PRIVATE));
    else if (path !== "/robots.txt") return false;
    else if (robots !== "hang") send(response, ROBOTS[robots]);
    return true;
  }

  async function answer(request: FakeRequest, response: ServerResponse): Promise<void> {
    const page = pages[request.target] ?? pages[request.path];
    if (page !== undefined) {
      const made = typeof page === "function" ? await page(request) : page;
      const given: FakeAnswer = typeof made === "string" ? { body: made } : made;
      if (given.delayMs !== undefined) setTimeout(() => send(response, given), given.delayMs);
      else send(response, given);
    } else if (!robotsAnswer(request.path, response) && !answerFault(request, response))
      send(response, { status: 404, body: "<!doctype html><h1>Not found</h1>" });
  }

  async function listen(message: IncomingMessage, response: ServerResponse): Promise<void> {
    const at = performance.now();
    const target = message.url ?? "/";
    const before = asked.get(target) ?? 0;
    asked.set(target, before + 1);
    const mark = target.indexOf("?");
    const request: FakeRequest & { body: string } = {
      method: message.method ?? "GET",
      target,
      path: mark < 0 ? target : target.slice(0, mark),
      query: new URLSearchParams(mark < 0 ? "" : target.slice(mark + 1)),
      headers: message.headers,
      body: "",
      at,
      before,
    };
    requests.push(request);
    request.body = await bodyOf(message);
    await answer(request, response);
  }

  const server = createServer((message, response) => {
    listen(message, response).catch((error: unknown) => {
      // A page of the author's own threw, or the client left while it sent: the crawl under test is told, as by any server.
      if (!response.headersSent) send(response, { status: 500, headers: { "content-type": "text/plain" }, body: String(error) });
      else response.destroy();
    });
  });
  const { port: listening, close } = await listenOnLoopback(server, port);
  return { url: `http://127.0.0.1:${listening}/`, requests, close, [Symbol.asyncDispose]: close };
}

function send(response: ServerResponse, { status = 200, headers = {}, body = "" }: FakeAnswer): void {
  response.statusCode = status;
  for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
  if (!response.hasHeader("content-type") && body.length > 0) response.setHeader("content-type", HTML);
  response.end(body);
}

async function bodyOf(message: IncomingMessage): Promise<string> {
  const parts: Uint8Array[] = [];
  for await (const part of message) parts.push(part);
  return Buffer.concat(parts).toString("utf8");
}
