/** The parts of a multipart body (RFC 7578) one after the other, each a stream of bytes: whoever does not read makes the client wait. */
import { Busboy, type BusboyFileStream } from "@fastify/busboy";
import type { Bytes } from "./bytes.ts";
import { HttpProblem } from "./problem.ts";

export interface Part {
  readonly name: string;
  readonly chunks: Bytes;
}

const MOST_PARTS = 100;

function broken(detail: string): HttpProblem {
  return new HttpProblem({ status: 400, detail: `the multipart body cannot be read: ${detail}`, close: true });
}

/** What waits for the next part, a drained parser or the end; woken by every event. */
function bell(): { wait(): Promise<void>; ring(): void } {
  let ring: () => void = () => undefined;
  let rung = new Promise<void>((resolve) => (ring = resolve));
  return {
    wait: () => rung,
    ring() {
      ring();
      rung = new Promise<void>((resolve) => (ring = resolve));
    },
  };
}

function parserOf(contentType: string): InstanceType<typeof Busboy> {
  try {
    return new Busboy({
      headers: { "content-type": contentType },
      // Every part is a stream, also a plain field: its size is then the body's, which is bounded.
      isPartAFile: () => true,
      limits: { parts: MOST_PARTS, headerPairs: 20, headerSize: 16_384, fieldNameSize: 100 },
    });
  } catch {
    throw broken("its Content-Type has no boundary");
  }
}

/** A part must be read or left before the next one is asked for. Throws HttpProblem 400 for what is no multipart, and whatever the body throws. */
export async function* partsOf(body: Bytes, contentType: string): AsyncGenerator<Part> {
  const parser = parserOf(contentType);
  const events = bell();
  const found: { readonly name: string; readonly stream: BusboyFileStream }[] = [];
  let failure: unknown = null;
  let ended = false;
  let left = false;
  const open = new Set<BusboyFileStream>();
  const fail = (error: unknown) => {
    failure ??= error;
    for (const stream of open) stream.destroy(error instanceof Error ? error : new Error("failed"));
    events.ring();
  };
  /** The parser ends an unfinished part with an error of its own, which may come before the one it tells of. */
  async function* read(stream: BusboyFileStream): AsyncGenerator<Uint8Array> {
    try {
      for await (const chunk of stream.iterator({ destroyOnReturn: false })) yield chunk;
    } catch (error) {
      throw failure ?? (error instanceof HttpProblem ? error : broken("it ends early"));
    }
  }
  parser.on("file", (name, stream) => {
    open.add(stream);
    // The error reaches whoever reads; a part that nobody reads must not end the process.
    stream.on("error", () => undefined).on("close", () => open.delete(stream));
    found.push({ name: name ?? "", stream });
    events.ring();
  });
  parser.on("partsLimit", () => fail(broken(`it has more than ${MOST_PARTS} parts`)));
  parser.on("error", (error) => fail(broken(error instanceof Error && /unexpected end/i.test(error.message) ? "it ends early" : "it is malformed")));
  parser.on("finish", () => {
    ended = true;
    events.ring();
  });
  parser.on("drain", () => events.ring());
  // Not waited for: once nobody reads it ends with the next piece of the body, or with the connection. What it throws goes to whoever reads.
  void (async () => {
    for await (const chunk of body) {
      if (left || failure !== null) return;
      const free = parser.write(chunk);
      while (!free && parser.writableNeedDrain && !left && failure === null) await events.wait();
    }
    parser.end();
  })().catch(fail);
  try {
    for (;;) {
      const next = found.shift();
      if (next !== undefined) {
        yield { name: next.name, chunks: read(next.stream) };
        next.stream.resume();
      } else if (failure !== null) throw failure;
      else if (ended) return;
      else await events.wait();
    }
  } finally {
    left = true;
    for (const stream of open) stream.destroy();
    events.ring();
  }
}
