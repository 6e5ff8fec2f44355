/** A wire to a Redis that breaks when it is told to, with or without the answer getting through; for tests only. */
import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";

export interface TestProxy {
  readonly port: number;
  readonly cuts: number;
  /** The next answer of the server is kept from the client, and the connection breaks. */
  swallowNext(): void;
  /** Connections stay, new ones come about, and nothing gets through any more, until it is turned off: what came meanwhile is lost, and the connections with it. */
  swallowAll(on: boolean): void;
  /** Breaks the connection at a share of the answers, half of them before the client gets it. Answers what ends that. */
  cutAtRandom(random: () => number, share: number): () => void;
  close(): Promise<void>;
}

export async function startProxy(to: number): Promise<TestProxy> {
  const open = new Set<Socket>();
  let swallow = false;
  let hole = false;
  let chance: (() => number) | null = null;
  let share = 0;
  let cuts = 0;
  const server = createServer((client) => {
    const upstream = connect(to, "127.0.0.1");
    open.add(client).add(upstream);
    const end = (): void => {
      client.destroy();
      upstream.destroy();
      open.delete(client);
      open.delete(upstream);
    };
    client.on("data", (bytes) => hole || upstream.write(bytes));
    upstream.on("data", (bytes) => {
      if (hole) return;
      if (swallow) {
        swallow = false;
        cuts++;
        end();
        return;
      }
      if (chance !== null && chance() < share) {
        cuts++;
        if (chance() < 0.5) end();
        else client.end(bytes, end);
        return;
      }
      client.write(bytes);
    });
    for (const socket of [client, upstream]) socket.on("close", end).on("error", end);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  return {
    port: typeof address === "object" && address !== null ? address.port : 0,
    get cuts() {
      return cuts;
    },
    swallowNext() {
      swallow = true;
    },
    swallowAll(on) {
      if (hole && !on) for (const socket of open) socket.destroy();
      hole = on;
    },
    cutAtRandom(random, part) {
      chance = random;
      share = part;
      return () => {
        chance = null;
      };
    },
    async close() {
      for (const socket of open) socket.destroy();
      server.close();
      await once(server, "close");
    },
  };
}
