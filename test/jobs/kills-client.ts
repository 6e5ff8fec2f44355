/** A client that outlives its service: asks again until there is an answer, and uploads in pieces; for tests only. */
import assert from "node:assert/strict";
import { type Agent, request } from "node:http";
import { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { pipeline } from "node:stream/promises";

type Json = ReturnType<typeof JSON.parse>;

/** Nothing of this takes so long but on a machine that does nothing for us. */
export const PATIENCE_MS = 120_000;

export interface Answered {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
}

export interface Asking {
  readonly method?: string;
  /** An upload comes in pieces, with pauses between them. */
  readonly body?: string | readonly string[];
  readonly headers?: Readonly<Record<string, string>>;
}

export const pause = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));

/** One request; rejects when the connection breaks. */
function once(port: number, path: string, { method = "GET", body, headers = {} }: Asking, agent: Agent): Promise<Answered> {
  return new Promise((resolve, reject) => {
    const outgoing = request({ host: "127.0.0.1", port, method, path, headers, agent, timeout: PATIENCE_MS }, (incoming) => {
      text(incoming).then((whole) => resolve({ status: incoming.statusCode ?? 0, headers: incoming.headers, text: whole }), reject);
    });
    outgoing.on("error", reject).on("timeout", () => outgoing.destroy(new Error("no answer")));
    if (body === undefined || typeof body === "string") return void outgoing.end(body);
    async function* slowly(pieces: readonly string[]): AsyncGenerator<string> {
      for (const piece of pieces) {
        yield piece;
        await pause(60);
      }
    }
    // What breaks it breaks the request, too, or comes after its answer.
    pipeline(Readable.from(slowly(body)), outgoing).catch(() => undefined);
  });
}

export interface Client {
  readonly counted: { requests: number; broken: number; steered: number };
  /** Until there is an answer: a service that is down or starts is asked again. */
  ask(path: string, asking?: Asking): Promise<Answered>;
  /** Null: the connection broke. */
  once(path: string, asking: Asking): Promise<Answered | null>;
  json(path: string): Promise<Json>;
}

export function clientOf(port: number, agent: Agent, alive: () => boolean): Client {
  const counted = { requests: 0, broken: 0, steered: 0 };
  const ask: Client["ask"] = async (path, asking = {}) => {
    const until = performance.now() + PATIENCE_MS;
    for (;;) {
      assert.ok(alive(), "the service was given up");
      try {
        const answer = await once(port, path, asking, agent);
        counted.requests++;
        if (answer.status !== 503) return answer;
      } catch (error) {
        counted.broken++;
        if (performance.now() > until) throw new Error(`${path}: no answer`, { cause: error });
      }
      await pause(100);
    }
  };
  return {
    counted,
    ask,
    once: (path, asking) => once(port, path, asking, agent).catch(() => null),
    async json(path) {
      const answer = await ask(path);
      assert.equal(answer.status, 200, `${path}: ${answer.text}`);
      return JSON.parse(answer.text);
    },
  };
}
