/** What a crawl on Redis still has to do, read host by host while others go on. */
import type { CrawlRequest } from "../../core/request.ts";
import type { Link } from "./connect.ts";
import { readEntry } from "./pack.ts";
import type { Run } from "./views.ts";

const AT_ONCE = 500;

function requestsOf(flat: readonly unknown[]): CrawlRequest[] {
  return Array.from({ length: flat.length / 4 }, (_, n) => {
    const [host, priority, depth, entry] = flat.slice(n * 4, n * 4 + 4) as [Buffer, number, number, Buffer]; // remaining.lua
    return readEntry(entry, host.toString("utf8"), priority, depth).request;
  });
}

/** What is queued at one host, in the order of its lanes. */
export async function* ofHost(host: string, run: Run): AsyncGenerator<CrawlRequest> {
  for (let lane = 1; ; lane++) {
    for (let offset = 0; ; offset += AT_ONCE) {
      const [n, exists, flat] = (await run("remaining", "host", host, String(lane), String(offset), String(AT_ONCE))) as [number, number, unknown[]]; // remaining.lua
      if (exists === 0) return;
      yield* requestsOf(flat);
      if (n < AT_ONCE) break;
    }
  }
}

/** What moves meanwhile may be met or missed. */
export async function* remainingOf(link: Link, crawl: string, run: Run): AsyncGenerator<CrawlRequest> {
  for (let offset = 0; ; offset += AT_ONCE) {
    const [n, , flat] = (await run("remaining", "delayed", "", "0", String(offset), String(AT_ONCE))) as [number, number, unknown[]]; // remaining.lua
    yield* requestsOf(flat);
    if (n < AT_ONCE) break;
  }
  const met = new Set<string>();
  let cursor = "0";
  do {
    const [next, hosts] = (await link.command("HSCAN", `${crawl}:h`, cursor, "COUNT", 500)) as [Buffer, Buffer[]]; // what HSCAN answers
    for (let i = 0; i < hosts.length; i += 2) {
      const host = hosts[i]!.toString("utf8"); // i < length
      if (met.has(host)) continue;
      met.add(host);
      yield* ofHost(host, run);
    }
    cursor = next.toString("utf8");
  } while (cursor !== "0");
}
