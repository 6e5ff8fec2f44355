// A site on many loopback addresses that answers after a while, for bench/workers.mjs and bench/textbook.mjs: `node bench/latency-server.mjs PAGES LATENCY_MS`.
// Page n of an address links to pages 2n + 1 and 2n + 2 of the same, so that all are met from page 0. Prints its port; /asked tells how often a page was asked for.
import { createServer } from "node:http";

const [pages, latency] = process.argv.slice(2).map(Number);
const FILLING = `<p>${"text ".repeat(200)}</p>`;
let asked = 0;

function bodyOf(n) {
  const links = [2 * n + 1, 2 * n + 2].filter((to) => to < pages).map((to) => `<a href="/${to}">${to}</a>`);
  return `<!doctype html><title>${n}</title>${links.join(" ")}${FILLING}`;
}

function serve(request, response) {
  if (request.url === "/asked") {
    response.setHeader("connection", "close");
    response.end(String(asked));
    asked = 0;
    return;
  }
  const n = Number(request.url.slice(1));
  const known = Number.isInteger(n) && n < pages;
  if (known) asked++;
  setTimeout(() => {
    response.writeHead(known ? 200 : 404, { "content-type": "text/html" });
    response.end(known ? bodyOf(n) : "");
  }, latency);
}

// One port on all addresses of the loopback network.
const server = createServer({ keepAliveTimeout: 60_000 }, serve);
server.listen({ port: 0, host: "0.0.0.0", backlog: 4_096 }, () => console.log(server.address().port));
