// What a crawl costs a Redis: bytes for each URL seen and queued, server CPU for each page and each script. `node bench/redis.ts [urls]` (default 1,000,000).
// Starts a redis-server of its own (on PATH) and reads the server's own CPU clock, so that what else the machine does hardly shows.

import type { Frontier, FrontierConfig, Lease } from "../src/core/frontier.ts";
import { silentLog } from "../src/core/log.ts";
import type { CrawlRequest } from "../src/core/request.ts";
import { makeRequest } from "../src/rules/admit.ts";
import { connectRedis, type Link } from "../src/store/redis/connect.ts";
import { createCrawls } from "../src/store/redis/crawls.ts";
import { openRedisFrontier } from "../src/store/redis/frontier.ts";
import { openOutbox } from "../src/store/redis/outbox.ts";
import { startServer } from "../src/store/redis/server-for-tests.ts";

const urls = Number(process.argv[2] ?? 1_000_000);
const config: FrontierConfig = {
  limitPages: null,
  levels: false,
  order: "bfs",
  perHostConcurrency: 1_000,
  perHostDelayMs: 0,
  jitter: 0,
  hosts: new Map(),
  ratePerMinute: null,
  robots: false,
  maxWaitMs: 60_000,
  leaseMs: 15_000,
  startWithinMs: 250,
};

const server = await startServer();
const link = await connectRedis(server.url, { log: silentLog, prefix: "bench" });
const crawls = createCrawls(link);

async function info(section: string, field: string): Promise<number> {
  return Number(new RegExp(`^${field}:([\\d.]+)`, "m").exec(String(await link.command("INFO", section)))?.[1] ?? 0);
}
const cpu = async (): Promise<number> => (await info("cpu", "used_cpu_user")) + (await info("cpu", "used_cpu_sys"));
const memory = () => info("memory", "used_memory");

async function open(more: Partial<FrontierConfig> = {}): Promise<{ id: number; frontier: Frontier }> {
  const id = await crawls.create({ spec: "{}" });
  const bounds = { most: 1e9, bytes: 1e12 };
  return { id, frontier: await openRedisFrontier({ ...config, ...more }, { link, id, outbox: bounds }) };
}

const urlOf = (n: number, hosts: number) => `http://www.host${n % hosts}.example.com/catalogue/category-${n % 97}/item-${n}.html`;
const requestOf = (frontier: Frontier, n: number, hosts: number): CrawlRequest =>
  makeRequest(urlOf(n, hosts), frontier.seed, { hop: "link", depth: n % 6, referrer: null });
const range = (from: number, to: number): number[] => Array.from({ length: to - from }, (_, n) => from + n);

/** What the deletion of a crawl's queues alone gives back. */
async function dropQueues(to: Link, id: number, hosts: number): Promise<void> {
  const names = range(0, hosts).map((n) => `${to.tag}:${id}:q:0:0:www.host${n}.example.com`);
  for (let from = 0; from < names.length; from += 500) await to.command("UNLINK", ...names.slice(from, from + 500));
  await to.command("PING");
}

async function measureMemory(hosts: number): Promise<void> {
  const { id, frontier } = await open();
  const before = await memory();
  const began = await cpu();
  for (let from = 0; from < urls; from += 5_000) await frontier.add(range(from, Math.min(urls, from + 5_000)).map((n) => requestOf(frontier, n, hosts)));
  const spent = (await cpu()) - began;
  const full = await memory();
  await dropQueues(link, id, hosts);
  const left = await memory();
  const mean = urlOf(urls >> 1, hosts).length;
  const path = mean - new URL(urlOf(urls >> 1, hosts)).origin.length;
  console.log(
    `${urls} URLs of ${mean} bytes (path ${path}) on ${hosts} hosts: ${((full - before) / urls).toFixed(1)} B a queued URL, of it ${((left - before) / urls).toFixed(1)} B seen (hosts included); ` +
      `adding took ${((spent / urls) * 1e6).toFixed(1)} µs CPU each`,
  );
  await crawls.delete(id);
}

/** Pages with 50 links: 44 to pages that everybody links to, 6 new. Answers the server's CPU a page in µs. */
async function measureCycle(hosts: number, pages: number): Promise<void> {
  const { id, frontier } = await open();
  await frontier.add(range(0, hosts).map((n) => requestOf(frontier, n, hosts)));
  const popular = range(0, 500).map((n) => requestOf(frontier, n, hosts));
  await frontier.add(popular);
  await using outbox = await openOutbox(link, id, { crashed: () => ({ page: null, listed: false, skipped: [], found: [], edges: [] }) });
  let next = 500 + hosts;
  let done = 0;
  const output = (lease: Lease) => ({
    page: {
      url: lease.request.url,
      status: 200,
      outcome: "fetched" as const,
      depth: lease.request.depth,
      referrer: null,
      contentType: "text/html",
      bytes: 9_000,
      bytesDecoded: 20_000,
      links: [],
      attempts: 1,
      fetchedAt: "2026-01-01T00:00:00Z",
      durationMs: 20,
    },
    listed: true,
    skipped: [],
    found: [],
    edges: [],
  });
  const round = async (): Promise<void> => {
    const claim = await frontier.claim(64);
    const leases = claim.kind === "leases" ? claim.leases : [];
    await frontier.progress(
      leases.map(({ token }) => ({ token, sinceMs: 1 })),
      leases.map(({ token }) => token),
    );
    for (let from = 0; from < leases.length; from += 16) {
      const batch = leases.slice(from, from + 16);
      const links = batch.flatMap((_, n) => [
        ...popular.slice(n * 20, n * 20 + 44),
        ...range(next + n * 6, next + n * 6 + 6).map((k) => requestOf(frontier, k, hosts)),
      ]);
      next += batch.length * 6;
      await frontier.settle(
        batch.map((lease) => ({
          token: lease.token,
          settlement: { kind: "done" as const, counted: true, output: output(lease) },
          sinceStartMs: 20,
          answer: { kind: "good" as const, latencyMs: 20 },
          host: null,
          setCookies: null,
          newSeeds: null,
          tally: [
            ["pages", 1],
            ["bytes", 9_000],
          ] as const,
        })),
        links,
      );
      done += batch.length;
    }
    for (let read = await outbox.read(); read !== null; read = await outbox.read()) await outbox.checkpoint(read.cursor, new Map());
  };
  for (let n = 0; n < 5; n++) await round();
  done = 0;
  const began = await cpu();
  const start = performance.now();
  while (done < pages) await round();
  const spent = (await cpu()) - began;
  console.log(
    `${hosts} hosts, 50 links a page, 6 of them new: ${((spent / done) * 1e6).toFixed(0)} µs server CPU a page (claim, progress, settle, drain), ` +
      `${Math.round(done / spent)} pages per second of server CPU, ${Math.round((done / (performance.now() - start)) * 1_000)} a second by the wall clock`,
  );
  await crawls.delete(id);
}

async function timed(what: string, calls: number, step: (n: number) => Promise<unknown>): Promise<void> {
  await step(-1);
  const began = await cpu();
  for (let n = 0; n < calls; n++) await step(n);
  console.log(`${what}: ${((((await cpu()) - began) / calls) * 1e3).toFixed(2)} ms`);
}

async function measureScripts(hosts: number): Promise<void> {
  const { id, frontier } = await open();
  console.log(`scripts on ${hosts} hosts, server CPU a call:`);
  let next = 0;
  const fresh = (n: number): CrawlRequest[] => range(next, (next += n)).map((k) => requestOf(frontier, k, hosts));
  await timed("  add, 100 new", 200, () => frontier.add(fresh(100)));
  const known = range(0, 250).map((k) => requestOf(frontier, k, hosts));
  await timed("  add, 250 known", 100, () => frontier.add(known));
  for (const most of [16, 64]) {
    const held: Lease[] = [];
    await timed(`  claim of ${most}`, 40, async () => {
      const claim = await frontier.claim(most);
      if (claim.kind === "leases") held.push(...claim.leases);
    });
    await timed(`  settle of ${most}`, 40, () =>
      frontier.settle(
        held.splice(0, most).map(({ token, request }) => ({
          token,
          settlement: {
            kind: "done" as const,
            counted: true,
            output: { page: null, listed: true, skipped: [], found: [], edges: [{ from: request.url, to: "x".repeat(100) }] },
          },
          sinceStartMs: 20,
          answer: null,
          host: null,
          setCookies: null,
          newSeeds: null,
          tally: [],
        })),
        [],
      ),
    );
  }
  await timed("  claim with nothing due", 200, () => frontier.claim(0));
  await timed("  renew of 64 unknown tokens", 100, () => frontier.renew(range(0, 64).map(String)));
  await crawls.delete(id);
}

console.log(`${link.server.kind} ${link.server.version}, append-only file synced every second`);
await measureMemory(100);
await measureMemory(10_000);
for (const hosts of [1, 100, 10_000]) await measureCycle(hosts, 4_000);
for (const hosts of [1, 10_000]) await measureScripts(hosts);
await link.close();
await server.stop();
