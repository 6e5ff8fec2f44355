/** Many hosts in a process of its own, so that crawlers do not hold it up, with a log of what arrives: `node polite-site.ts HOSTS`; the log is asked for by a message. */
import type { RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { html, listenAll } from "../crawl/served.ts";

export interface LogLine {
  /** Address of the host. */
  readonly host: string;
  readonly target: string;
  readonly agent: string;
  /** ms of the machine's monotonic clock. */
  readonly at: number;
  /** Requests of the host that were under way when it was read, itself included. */
  readonly together: number;
}

export const addressOf = (n: number): string => `127.0.${40 + Math.floor(n / 200)}.${1 + (n % 200)}`;

/** Every host has these, and robots.txt: links, a redirect, a failure that passes, an answer that takes longer than the delay. */
const LINKS = ["/a", "/moved", "/flaky", "/slow", "/slower", "/no/x"].map((to) => `<a href="${to}">${to}</a>`).join("");

async function serveHosts(hosts: number): Promise<void> {
  const log: LogLine[] = [];
  const open = new Map<string, number>();
  const failed = new Set<string>();
  const listenerOf =
    (host: string): RequestListener =>
    (request, response) => {
      const together = (open.get(host) ?? 0) + 1;
      open.set(host, together);
      const target = request.url ?? "";
      const agent = request.headers["user-agent"] ?? "";
      log.push({ host, target, agent, at: Number(process.hrtime.bigint()) / 1e6, together });
      let over = false;
      const end = (): void => {
        if (!over) open.set(host, (open.get(host) ?? 1) - 1);
        over = true;
      };
      // Written to the end, or its reader is gone.
      response.on("finish", end).on("close", end);
      if (target === "/robots.txt") response.writeHead(200, { "content-type": "text/plain" }).end("User-agent: *\nDisallow: /no/\n");
      else if (target === "/moved") response.writeHead(302, { location: "/target" }).end();
      else if (target === "/flaky" && !failed.has(`${host} ${agent}`)) {
        failed.add(`${host} ${agent}`);
        response.writeHead(503, { "retry-after": "0" }).end();
      } else if (target.startsWith("/slow")) setTimeout(() => html(response, "<p>at last"), target === "/slow" ? 250 : 330);
      else html(response, target === "/" ? LINKS : "<p>leaf");
    };
  const addresses = Array.from({ length: hosts }, (_, n) => addressOf(n));
  const servers = await listenAll(listenerOf, addresses);
  process.on("message", () => process.send?.(log));
  process.send?.((servers[0]!.address() as AddressInfo).port); // of one host at least; a listening TCP server has one
}

if (process.argv[1] === import.meta.filename) await serveHosts(Number(process.argv[2]));
