/** A folder served over loopback as a plain file server would, with a log of what was asked for. For tests only. */
import { createReadStream, realpathSync, statSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { extname, join, normalize } from "node:path";

export interface StaticSite extends AsyncDisposable {
  /** `http://127.0.0.1:PORT`. */
  readonly origin: string;
  /** Request targets in order of arrival. */
  readonly requests: readonly string[];
}

export const TYPES: Readonly<Record<string, string>> = {
  ".html": "text/html",
  ".htm": "text/html",
  ".txt": "text/plain; charset=utf-8",
  ".css": "text/css",
  ".js": "text/javascript",
  ".png": "image/png",
  ".svg": "image/svg+xml",
  ".xml": "application/xml",
  ".py": "text/x-python",
};

/** Resolves a path of the site to a file, a redirect to the folder's slash, or nothing. */
export function lookUp(root: string, pathname: string): { kind: "file"; path: string } | { kind: "folder" } | { kind: "missing" } {
  let path = join(root, normalize(decodeURIComponent(pathname)));
  try {
    if (statSync(path).isDirectory()) {
      if (!pathname.endsWith("/")) return { kind: "folder" };
      path = join(path, "index.html");
    }
    if (!statSync(path).isFile()) return { kind: "missing" };
    return { kind: "file", path: realpathSync(path) };
  } catch {
    return { kind: "missing" };
  }
}

export async function serveFolder(root: string): Promise<StaticSite> {
  const requests: string[] = [];
  const server: Server = createServer((request, response) => {
    const target = request.url ?? "/";
    requests.push(target);
    const found = lookUp(root, new URL(target, "http://h").pathname);
    switch (found.kind) {
      case "missing":
        response.writeHead(404, { "content-type": "text/html" }).end("<p>Not here");
        return;
      case "folder":
        response.writeHead(301, { location: `${target}/` }).end();
        return;
      case "file":
        response.writeHead(200, { "content-type": TYPES[extname(found.path)] ?? "application/octet-stream" });
        createReadStream(found.path).pipe(response);
    }
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo; // a listening TCP server has one
  return {
    origin: `http://127.0.0.1:${port}`,
    requests,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
