/** Server-sent events over fetch, since EventSource cannot send a token: parsed, and asked for again where they broke off. */
import { ApiProblem, ask, reachable } from "./api.ts";
import { pause, waitAfter } from "./store.ts";

export interface ServerEvent {
  readonly id: string;
  readonly kind: string;
  readonly data: string;
}

/** HTML Standard §9.2.6. `take` gets pieces of the stream as they come; `alive` is called for each. */
export function eventParser(take: (event: ServerEvent) => void): (piece: string) => void {
  let rest = "";
  let [id, kind, data] = ["", "", ""];
  const line = (text: string) => {
    if (text === "") {
      if (data !== "") take({ id, kind: kind || "message", data: data.slice(0, -1) });
      kind = data = "";
      return;
    }
    const colon = text.indexOf(":");
    const name = colon < 0 ? text : text.slice(0, colon);
    const value = colon < 0 ? "" : text.slice(colon + 1).replace(/^ /, "");
    if (name === "data") data += `${value}\n`;
    else if (name === "event") kind = value;
    else if (name === "id") id = value;
  };
  return (piece) => {
    const lines = (rest + piece).split(/\r\n|\n|\r(?!$)/);
    rest = lines.pop() ?? "";
    for (const text of lines) line(text);
  };
}

/** The service says at least every 15 s that it is there. */
const SILENCE_MS = 40_000;

/** Reads one answer to its end, or until nothing comes any more. */
async function read(body: ReadableStream<Uint8Array>, take: (event: ServerEvent) => void): Promise<void> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  const parse = eventParser(take);
  for (;;) {
    const silence = setTimeout(() => void reader.cancel().catch(() => undefined), SILENCE_MS);
    const { done, value } = await reader.read().finally(() => clearTimeout(silence));
    if (done) return;
    parse(decoder.decode(value, { stream: true }));
  }
}

export interface Follower {
  take(event: ServerEvent): void;
  /** Whether the last event known was the last one. */
  ended(): boolean;
  /** There is no stream for now. */
  missing(): void;
}

/** Tells of events until the signal, or until there are no more: then it resolves. */
export async function follow(path: string, signal: AbortSignal, { take, ended, missing }: Follower): Promise<void> {
  let last = "";
  for (let failures = 0; !signal.aborted; ) {
    try {
      const response = await ask(path, { headers: { accept: "text/event-stream", ...(last === "" ? {} : { "last-event-id": last }) }, signal });
      if (response.status === 204) return;
      if (response.status === 404) throw new ApiProblem(404, "there is no such job");
      if (response.ok && response.body !== null) {
        await read(response.body, (event) => {
          failures = 0;
          last = event.id;
          take(event);
        });
        if (ended()) return;
      } else {
        await response.body?.cancel();
        missing();
      }
    } catch (error) {
      if (error instanceof ApiProblem) throw error;
      if (!signal.aborted) reachable.set(false);
    }
    failures++;
    await pause(waitAfter(failures), signal);
  }
}
