/** The application on a socket: requests in, streamed answers out, limits on time and connections, an end in two steps. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import type { Logger } from "../core/log.ts";
import type { App } from "./app.ts";
import type { ServiceLimits } from "./limits.ts";
import { problemResponse } from "./problem.ts";

export interface Listening {
  readonly host: string;
  readonly port: number;
  /** Takes no more requests, ends streams, waits for what is being answered for at most `graceMs`, then cuts. */
  close(graceMs: number): Promise<void>;
}

/** What the web's Request can hold; anything else is answered without the application. */
const METHODS: ReadonlySet<string> = new Set(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]);

function requestOf({ method = "GET", url = "/", headers }: IncomingMessage): Request | Response {
  if (!METHODS.has(method)) return problemResponse({ status: 501, detail: "this method is not known here", close: true });
  // The host plays no part: the guard reads the header itself. "//x" is a path here, no authority.
  const target = url.startsWith("/") ? `http://service${url}` : /^https?:\/\//i.test(url) ? url : null;
  const parsed = target === null ? null : URL.parse(target);
  if (parsed === null) return problemResponse({ status: 400, detail: "the target of the request is no path", close: true });
  const fields = new Headers();
  for (const [name, value] of Object.entries(headers)) if (value !== undefined) fields.set(name, Array.isArray(value) ? value.join(", ") : value);
  return new Request(parsed, { method, headers: fields });
}

/** Resolves when more may be written, or nothing more can be. */
function writable(outgoing: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      outgoing.off("drain", done).off("close", done);
      resolve();
    };
    outgoing.on("drain", done).on("close", done);
  });
}

/** Reads and drops what a client still sends, so that it gets to see the answer: a reset would take the answer with it. Bounded in time. */
function linger(incoming: IncomingMessage, ms: number): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    const done = () => {
      clearTimeout(timer);
      resolve();
    };
    incoming.on("end", done).on("close", done).on("error", done).resume();
  });
}

const hasBody = ({ headers }: IncomingMessage) => headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > 0;

async function send(response: Response, incoming: IncomingMessage, outgoing: ServerResponse, lingerMs: number): Promise<void> {
  const unread = hasBody(incoming) && !incoming.complete;
  for (const [name, value] of response.headers) outgoing.setHeader(name, value);
  if (unread) outgoing.setHeader("connection", "close");
  outgoing.statusCode = response.status;
  const reader = response.body?.getReader();
  if (reader === undefined || incoming.method === "HEAD") {
    if (reader) await reader.cancel();
    if (response.status !== 204 && response.status !== 304 && incoming.method !== "HEAD") outgoing.setHeader("content-length", 0);
    if (unread) {
      outgoing.flushHeaders();
      await linger(incoming, lingerMs);
    }
    outgoing.end();
    return;
  }
  const leave = () => void reader.cancel().catch(() => undefined);
  outgoing.once("close", leave);
  // Node buffers the head until the first piece; a stream of events may not have one for long.
  outgoing.flushHeaders();
  for (let next = await reader.read(); !next.done; next = await reader.read()) {
    if (outgoing.destroyed) return;
    if (!outgoing.write(next.value)) await writable(outgoing);
  }
  if (unread) await linger(incoming, lingerMs);
  outgoing.end();
}

function listener(app: App, { lingerMs }: ServiceLimits, log: Logger): (incoming: IncomingMessage, outgoing: ServerResponse) => void {
  return (incoming, outgoing) => {
    // The socket's errors: whoever reads or writes sees them as a close.
    incoming.on("error", () => undefined);
    outgoing.on("error", () => undefined);
    const request = requestOf(incoming);
    const answer = request instanceof Response ? Promise.resolve(request) : app.fetch(request, { incoming, outgoing });
    answer
      .then((response) => send(response, incoming, outgoing, lingerMs))
      .catch((error: unknown) => {
        // The head is out: a cut connection is the only way left to say that the answer is not whole.
        if (!outgoing.destroyed) log("error", "an answer broke off", { error: error instanceof Error ? error.message : String(error) });
        outgoing.destroy();
      });
  };
}

/** Expectations other than 100-continue (RFC 9110 §10.1.1). */
function refuseExpectation(incoming: IncomingMessage, outgoing: ServerResponse): void {
  const refused = problemResponse({ status: 417, detail: "no expectation but 100-continue is known here", close: true });
  send(refused, incoming, outgoing, 0).catch(() => outgoing.destroy());
}

/** Requests that are none (RFC 9112): answered without the application, and the connection ends. */
function refuseBroken(error: Error, socket: Duplex): void {
  const code = "code" in error ? error.code : "";
  if (code === "ECONNRESET" || !socket.writable) return void socket.destroy();
  const status = code === "HPE_HEADER_OVERFLOW" ? 431 : code === "ERR_HTTP_REQUEST_TIMEOUT" ? 408 : 400;
  const [title, detail] = {
    431: ["Request Header Fields Too Large", "the head of the request is too large"],
    408: ["Request Timeout", "the request did not come in time"],
    400: ["Bad Request", "this is no HTTP request"],
  }[status];
  const body = JSON.stringify({ type: "about:blank", title, status, detail });
  const head = `HTTP/1.1 ${status} ${title}\r\nContent-Type: application/problem+json\r\nContent-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n`;
  socket.end(`${head}X-Content-Type-Options: nosniff\r\n\r\n${body}`);
}

/** A client that asks first learns at once that its body is too large, before it sends it. */
function onExpect(limits: ServiceLimits, answer: ReturnType<typeof listener>) {
  return (incoming: IncomingMessage, outgoing: ServerResponse): void => {
    if (Number(incoming.headers["content-length"] ?? 0) <= limits.uploadBytes) outgoing.writeContinue();
    answer(incoming, outgoing);
  };
}

/** Rejects with the system's error, EADDRINUSE among them. `stop`: aborts what streams. */
export async function listen(
  app: App,
  at: { readonly host: string; readonly port: number },
  limits: ServiceLimits,
  log: Logger,
  stop: () => void,
): Promise<Listening> {
  const answer = listener(app, limits, log);
  const server: Server = createServer({
    ...{
      headersTimeout: limits.headersMs,
      requestTimeout: limits.requestMs,
      connectionsCheckingInterval: 2_000,
      keepAliveTimeout: 30_000,
      maxHeaderSize: 16_384,
    },
    requireHostHeader: true,
    noDelay: true,
  });
  server.on("request", answer).on("checkContinue", onExpect(limits, answer)).on("checkExpectation", refuseExpectation).on("clientError", refuseBroken);
  server.maxConnections = limits.connections;
  server.timeout = limits.idleMs;
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(at.port, at.host, () => {
      server.off("error", reject);
      resolve();
    });
  });
  const bound = server.address();
  // Only a server on a pipe has a text for an address.
  if (bound === null || typeof bound === "string") throw new Error("the server has no address");
  return {
    host: bound.address,
    port: bound.port,
    async close(graceMs) {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      stop();
      // What is being answered now is idle afterwards: a client keeps it open for what comes next.
      const idle = setInterval(() => server.closeIdleConnections(), 20);
      const timer = setTimeout(() => server.closeAllConnections(), graceMs);
      await closed;
      clearInterval(idle);
      clearTimeout(timer);
    },
  };
}
