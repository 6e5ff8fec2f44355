/** A small web site over loopback that the tests of the package, the docs and the examples crawl. Not for faults or speed: see src/testing. */
import { createServer } from "node:http";

export interface DemoSite extends AsyncDisposable {
  /** `http://127.0.0.1:PORT/` */
  readonly url: string;
  /** Paths asked for, in order of arrival. */
  readonly asked: readonly string[];
}

const page = (title: string, ...links: readonly string[]) =>
  `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>${title}</title></head><body><h1>${title}</h1>${links
    .map((href) => `<p><a href="${href}">${href}</a></p>`)
    .join("")}</body></html>`;

/** Home is depth 0; the docs lead down to depth 4; nothing links to hidden.html, nor to the guide, which is a site of its own for the tutorials. */
const PAGES: Readonly<Record<string, string>> = {
  "/": page(
    "Home",
    "/docs/",
    "/docs/a.html",
    "/about.html",
    "/private/secret.html",
    "/missing.html",
    "/moved",
    "https://elsewhere.example/x",
    "mailto:a@b.example",
  ),
  "/about.html": page("About the weaver", "/"),
  "/docs/": page("Docs", "a.html", "b.html"),
  "/docs/a.html": page("A", "deep.html"),
  "/docs/b.html": page("B"),
  "/docs/deep.html": page("Deep", "deeper.html"),
  "/docs/deeper.html": page("Deeper", "deepest.html"),
  "/docs/deepest.html": page("Deepest"),
  "/docs/hidden.html": page("Hidden"),
  "/private/secret.html": page("Secret"),
  "/guide/": page(
    "Guide",
    "first.html",
    "second.html",
    "old-name.html",
    "gone.html",
    "broken.html",
    "/private/notes.html",
    "https://elsewhere.example/more.html",
  ),
  "/guide/first.html": page("First steps", "second.html"),
  "/guide/second.html": page("Second steps", "third.html"),
  "/guide/third.html": page("Third steps", "fourth.html"),
  "/guide/fourth.html": page("Fourth steps"),
};

export async function openDemoSite(): Promise<DemoSite> {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    const path = request.url ?? "/";
    asked.push(path);
    if (path === "/robots.txt") response.setHeader("content-type", "text/plain").end("User-agent: *\nDisallow: /private/\n");
    else if (path === "/moved") response.writeHead(301, { location: "/docs/b.html" }).end();
    else if (path === "/guide/old-name.html") response.writeHead(301, { location: "second.html" }).end();
    else if (path === "/guide/broken.html") response.writeHead(503, { "content-type": "text/html" }).end(page("Out of order"));
    else if (PAGES[path] === undefined) response.writeHead(404, { "content-type": "text/html" }).end(page("Not found"));
    else response.setHeader("content-type", "text/html; charset=utf-8").end(PAGES[path]);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the demo site has no port");
  return {
    url: `http://127.0.0.1:${address.port}/`,
    asked,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
