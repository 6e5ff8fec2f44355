/** For tests only: the service on a free port of loopback with jobs in memory, and requests to it. */
import { request } from "node:http";
import { connect } from "node:net";
import { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { pipeline } from "node:stream/promises";
import type { LogFields, LogLevel } from "../../src/core/log.ts";
import { openService, type ServiceOptions } from "../../src/service/open.ts";
import { type FakeJobs, fakeJobs } from "./fake-jobs.ts";

export interface Answered {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
  /** The body as JSON. */
  readonly json: ReturnType<typeof JSON.parse>;
}

export interface Bench extends AsyncDisposable {
  readonly jobs: FakeJobs;
  readonly port: number;
  readonly url: string;
  readonly logged: { level: LogLevel; message: string; fields: LogFields }[];
  ask(method: string, path: string, body?: string | Uint8Array | AsyncIterable<string>, headers?: Readonly<Record<string, string>>): Promise<Answered>;
  /** JSON body. */
  post(path: string, value: unknown, headers?: Readonly<Record<string, string>>): Promise<Answered>;
  /** Bytes as they are; resolves with everything that came until the connection ended. */
  raw(bytes: string): Promise<string>;
}

export async function bench(options: Partial<ServiceOptions> = {}, jobs: FakeJobs = fakeJobs()): Promise<Bench> {
  const logged: Bench["logged"] = [];
  const service = await openService({
    ...{ jobs, host: "127.0.0.1", port: 0, access: { token: null, names: [], network: false }, assets: new Map() },
    log: (level, message, fields = {}) => void logged.push({ level, message, fields }),
    ...options,
  });
  const { port } = service;
  const ask = askOn(port);
  return {
    ...{ jobs, port, url: `http://127.0.0.1:${port}`, logged, ask },
    post: (path, value, headers = {}) => ask("POST", path, JSON.stringify(value), { "content-type": "application/json", ...headers }),
    raw: (bytes) =>
      new Promise((resolve) => {
        const socket = connect(port, "127.0.0.1", () => socket.write(bytes));
        let got = "";
        socket.setEncoding("latin1").on("data", (piece: string) => (got += piece));
        socket.on("error", () => undefined).on("close", () => resolve(got));
      }),
    [Symbol.asyncDispose]: () => service.close(100),
  };
}

/** Requests to whatever listens on that port of loopback. */
export function askOn(port: number): Bench["ask"] {
  return (method, path, body, headers = {}) =>
    new Promise((resolve, reject) => {
      const outgoing = request({ host: "127.0.0.1", port, method, path, headers, agent: false }, (incoming) => {
        text(incoming).then((whole) => {
          resolve({
            status: incoming.statusCode ?? 0,
            headers: incoming.headers,
            text: whole,
            get json() {
              return JSON.parse(whole);
            },
          });
        }, reject);
      });
      outgoing.on("error", reject);
      if (body === undefined || typeof body === "string" || body instanceof Uint8Array) outgoing.end(body);
      // An error of it is one of the request, too, or comes after the answer.
      else pipeline(Readable.from(body), outgoing).catch(() => undefined);
    });
}
