/** Starts and stops the test sites' servers on loopback; what they answer is their own affair. */
import type { Server } from "node:http";
import type { AddressInfo } from "node:net";

/** `port` 0: any that is free. Rejects when it is taken. */
export async function listenOnLoopback(server: Server, port: number): Promise<{ readonly port: number; close(): Promise<void> }> {
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, "127.0.0.1", resolve);
  });
  // `as`: a TCP server that listens has an address and port.
  const { port: at } = server.address() as AddressInfo;
  return {
    port: at,
    async close() {
      if (!server.listening) return;
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
