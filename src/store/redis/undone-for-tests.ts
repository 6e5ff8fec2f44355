/** A crawl on a Redis that can be taken back to a moment, as a power cut does; for tests only. */
import assert from "node:assert/strict";
import { readdirSync, statSync, truncateSync } from "node:fs";
import { join } from "node:path";
import type { TestContext } from "node:test";
import type { Frontier, Lease } from "../../core/frontier.ts";
import { silentLog } from "../../core/log.ts";
import type { CrawlRequest } from "../../core/request.ts";
import { makeRequest } from "../../rules/admit.ts";
import { outputFor, settledAs } from "../../testing/frontier/bench.ts";
import { caseConfig } from "../../testing/frontier-cases.ts";
import { connectRedis, type Link } from "./connect.ts";
import { createCrawls } from "./crawls.ts";
import { openRedisFrontier } from "./frontier.ts";
import { startServer } from "./server-for-tests.ts";

/** A crawl on a server of its own that can be taken back to a moment. */
export async function bench(t: TestContext, wrap: (link: Link) => Link = (link) => link) {
  const server = await startServer(["--appendfsync", "always", "--auto-aof-rewrite-percentage", "0"]);
  const link = await connectRedis(server.url, { log: silentLog });
  t.after(async () => {
    await link.close();
    await server.stop();
  });
  const id = await createCrawls(link).create({});
  const frontier = await openRedisFrontier({ ...caseConfig, leaseMs: 60_000 }, { link: wrap(link), id });
  // The rewrite that the first connection asks for.
  while (!/aof_rewrite_in_progress:0\r\naof_rewrite_scheduled:0/.test(String(await link.command("INFO", "persistence"))));
  const folder = join(server.dir, "appendonlydir");
  const file = (): string => join(folder, readdirSync(folder).find((name) => name.endsWith(".incr.aof")) ?? "");
  return {
    link,
    id,
    frontier,
    /** Answers what takes the server back to now; `meanwhile` happens while it is down. */
    moment(): (meanwhile?: () => void) => Promise<void> {
      const path = file();
      const { size } = statSync(path);
      return async (meanwhile) => {
        await server.kill();
        truncateSync(path, size);
        meanwhile?.();
        await server.start();
      };
    },
  };
}

export const link = (frontier: Frontier, url: string): CrawlRequest => makeRequest(url, frontier.seed, { hop: "link", depth: 1, referrer: null });
export const done = (frontier: Frontier, lease: Lease, links: readonly CrawlRequest[] = []) =>
  frontier.settle([settledAs(lease, { kind: "done", counted: true, output: outputFor(lease.request.url) })], links);

/** A claim that a power cut undid, and what the server hands out after it: the first one's token is nobody's. */
export async function checkUndoneClaim(t: TestContext, wrap?: (link: Link) => Link): Promise<void> {
  const { frontier, moment } = await bench(t, wrap);
  await frontier.add([link(frontier, "http://a.test/1"), link(frontier, "http://a.test/2")]);
  await frontier.seedsComplete();
  const back = moment();
  const before = await frontier.claim(1);
  await back();
  const after = await frontier.claim(1);
  assert.ok(before.kind === "leases" && after.kind === "leases");
  assert.deepEqual(await done(frontier, before.leases[0]!), ["stale"]);
  assert.deepEqual(await done(frontier, after.leases[0]!), ["applied"]);
}
