/** A worker as a process of its own, to be killed: claims, pretends to fetch, settles; for tests only. `node worker-for-tests.ts url prefix crawl pages` */
import { setTimeout as sleep } from "node:timers/promises";
import { silentLog } from "../../core/log.ts";
import { makeRequest } from "../../rules/admit.ts";
import { outputFor, settledAs } from "../../testing/frontier/bench.ts";
import { caseConfig } from "../../testing/frontier-cases.ts";
import { connectRedis } from "./connect.ts";
import { openRedisFrontier } from "./frontier.ts";

const [url = "", prefix = "", crawl = "", pages = ""] = process.argv.slice(2);
const size = Number(pages);
const link = await connectRedis(url, { log: silentLog, prefix });
const frontier = await openRedisFrontier({ ...caseConfig, leaseMs: 700, perHostConcurrency: 4, limitPages: null }, { link, id: Number(crawl), pollMs: 30 });

for (;;) {
  const claim = await frontier.claim(6);
  if (claim.kind === "drained") break;
  if (claim.kind !== "leases") {
    await sleep(claim.kind === "wait" ? Math.min(30, claim.waitMs) : 30);
    continue;
  }
  await frontier.progress(
    claim.leases.map(({ token }) => ({ token, sinceMs: 0 })),
    [],
  );
  // What a fetch takes: the moments at which a kill finds the worker at work.
  await sleep(4 + Math.random() * 12);
  await frontier.progress(
    [],
    claim.leases.map(({ token }) => token),
  );
  for (const lease of claim.leases) {
    const n = Number(lease.request.url.split("/").at(-1));
    const links = [2 * n, 2 * n + 1, (n * 7) % size].filter((to) => to < size);
    await frontier.settle(
      [settledAs(lease, { kind: "done", counted: true, output: outputFor(lease.request.url) }, { sinceStartMs: 5, answer: { kind: "good", latencyMs: 5 } })],
      links.map((to) =>
        makeRequest(`http://h${to % 9}.test/${to}`, frontier.seed, { hop: "link", depth: lease.request.depth + 1, referrer: lease.request.url }),
      ),
    );
  }
}
await frontier[Symbol.asyncDispose]();
await link.close();
