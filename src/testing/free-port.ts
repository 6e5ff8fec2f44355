/** Ports for servers that a test starts later, or ends and starts again; what listens at once takes port 0. */
import { once } from "node:events";
import { createServer } from "node:net";

/** Below those that systems give to outgoing connections (from 32768 on): whoever asks again and again for a server that is away may get its very port there, and so itself. */
const PORTS = { from: 12_000, count: 20_000 } as const;

/** A port of 127.0.0.1 that nobody has. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = PORTS.from + Math.floor(Math.random() * PORTS.count);
    const server = createServer();
    const isFree = await new Promise<boolean>((resolve, reject) => {
      server.once("error", (error: NodeJS.ErrnoException) => (error.code === "EADDRINUSE" ? resolve(false) : reject(error)));
      server.listen(port, "127.0.0.1", () => resolve(true));
    });
    if (!isFree) continue;
    server.close();
    await once(server, "close");
    return port;
  }
}
