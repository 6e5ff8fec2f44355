/** A scripted server on a raw socket, for tests: it says exactly the bytes it is told, right or wrong. Not for serving anything else. */
import { createServer, type Socket } from "node:net";

export interface RawRequest {
  readonly method: string;
  readonly target: string;
  /** Field values by lower-case name; several lines joined with ", ". */
  readonly headers: ReadonlyMap<string, string>;
  /** The head as it came, Latin-1. */
  readonly head: string;
  readonly body: Buffer;
  /** Which connection of the server, and which request on it; both from 0. */
  readonly connection: number;
  readonly turn: number;
}

export interface RawServer extends AsyncDisposable {
  readonly port: number;
  /** `http://127.0.0.1:port`. */
  readonly origin: string;
  readonly requests: readonly RawRequest[];
  /** Connections accepted so far. */
  accepted(): number;
  /** Sockets open now. */
  open(): number;
  /** Resolves once no socket is open. */
  idle(): Promise<void>;
}

/** Answers one request: bytes to write, or whatever it does with the socket itself. */
export type Script = (request: RawRequest, socket: Socket) => string | Uint8Array | null | undefined;

/** Listens on a free port of 127.0.0.1. A script's bytes are written as Latin-1; `null` or nothing: the script has done it. */
export async function startRawServer(script: Script): Promise<RawServer> {
  const requests: RawRequest[] = [];
  const sockets = new Set<Socket>();
  let waiting: (() => void)[] = [];
  let accepted = 0;

  const server = createServer((socket) => {
    const connection = accepted++;
    let turn = 0;
    let pending: Buffer = Buffer.alloc(0);
    sockets.add(socket);
    socket.on("error", () => socket.destroy());
    socket.on("close", () => {
      sockets.delete(socket);
      if (sockets.size > 0) return;
      for (const resolve of waiting) resolve();
      waiting = [];
    });
    socket.on("data", (chunk) => {
      pending = Buffer.concat([pending, chunk]);
      for (;;) {
        const read = readRequest(pending, connection, turn);
        if (!read) return;
        pending = read.rest;
        turn++;
        requests.push(read.request);
        const answer = script(read.request, socket);
        if (answer !== null && answer !== undefined) socket.write(typeof answer === "string" ? Buffer.from(answer, "latin1") : answer);
      }
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  const port = typeof address === "object" && address ? address.port : 0;
  return {
    port,
    origin: `http://127.0.0.1:${port}`,
    requests,
    accepted: () => accepted,
    open: () => sockets.size,
    idle: () => (sockets.size === 0 ? Promise.resolve() : new Promise((resolve) => waiting.push(resolve))),
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function readRequest(bytes: Buffer, connection: number, turn: number): { readonly request: RawRequest; readonly rest: Buffer } | null {
  const end = bytes.indexOf("\r\n\r\n");
  if (end < 0) return null;
  const head = bytes.toString("latin1", 0, end);
  const [first = "", ...lines] = head.split("\r\n");
  const [method = "", target = ""] = first.split(" ");
  const headers = new Map<string, string>();
  for (const line of lines) {
    const colon = line.indexOf(":");
    const name = line.slice(0, colon).toLowerCase();
    const value = line.slice(colon + 1).trim();
    const before = headers.get(name);
    headers.set(name, before === undefined ? value : `${before}, ${value}`);
  }
  const length = Number(headers.get("content-length") ?? 0);
  if (bytes.byteLength < end + 4 + length) return null;
  const body = bytes.subarray(end + 4, end + 4 + length);
  return { request: { method, target, headers, head, body, connection, turn }, rest: bytes.subarray(end + 4 + length) };
}

/** A whole answer with Content-Length. `headers`: lines without line ends. */
export function page(body: string | Uint8Array, headers: readonly string[] = [], status = "200 OK"): Buffer {
  const bytes = typeof body === "string" ? Buffer.from(body) : body;
  const type = headers.some((line) => /^content-type:/i.test(line)) ? [] : ["Content-Type: text/html"];
  const lines = [`HTTP/1.1 ${status}`, ...type, ...headers, `Content-Length: ${bytes.byteLength}`, "", ""];
  return Buffer.concat([Buffer.from(lines.join("\r\n"), "latin1"), bytes]);
}
