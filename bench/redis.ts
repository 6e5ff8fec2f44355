// What a crawl costs a Redis: server CPU for each page and each script, bytes for each URL seen and queued. `node bench/redis.ts [--urls 1000000] [--pages 4000] [--calls 200]`;
// quick: `--urls 100000 --pages 1000 --calls 50`. Starts a redis-server of its own (on PATH) and reads the server's own CPU clock. Others on the machine raise that
// too (caches, shared cores): of several parts the least is given, which is nearest to the truth.

import { parseArgs } from "node:util";
import type { Frontier, FrontierConfig, Lease, Settled } from "../src/core/frontier.ts";
import { silentLog } from "../src/core/log.ts";
import type { CrawlRequest } from "../src/core/request.ts";
import { makeRequest } from "../src/rules/admit.ts";
import { connectRedis } from "../src/store/redis/connect.ts";
import { createCrawls } from "../src/store/redis/crawls.ts";
import { openRedisFrontier } from "../src/store/redis/frontier.ts";
import { openOutbox } from "../src/store/redis/outbox.ts";
import { startServer } from "../src/store/redis/server-for-tests.ts";

const { values } = parseArgs({
  options: { urls: { type: "string", default: "1000000" }, pages: { type: "string", default: "4000" }, calls: { type: "string", default: "200" } },
});
const urls = Number(values.urls);
const pages = Number(values.pages);
const calls = Number(values.calls);
const HOSTS = [1, 100, 10_000];
const PARTS = 5;
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
  leaseMs: 60_000,
  startWithinMs: 250,
};

const server = await startServer();
const link = await connectRedis(server.url, { log: silentLog, prefix: "bench" });
const crawls = createCrawls(link);

async function info(section: string, ...names: readonly string[]): Promise<number> {
  const text = String(await link.command("INFO", section));
  return names.map((name) => Number(new RegExp(`^${name}:([\\d.]+)`, "m").exec(text)?.[1] ?? 0)).reduce((sum, n) => sum + n, 0);
}
/** Seconds, all threads. */
const cpu = () => info("cpu", "used_cpu_user", "used_cpu_sys");
const memory = () => info("memory", "used_memory");

interface Opened {
  readonly id: number;
  readonly frontier: Frontier;
  /** Another worker, which knows no link yet. */
  worker(): Promise<Frontier>;
}

async function open(): Promise<Opened> {
  const id = await crawls.create({ spec: "{}" });
  const worker = () => openRedisFrontier(config, { link, id, outbox: { most: 1e9, bytes: 1e12 } });
  return { id, frontier: await worker(), worker };
}

const urlOf = (n: number, hosts: number) => `http://www.host${n % hosts}.example.com/catalogue/category-${n % 97}/item-${n}.html`;
const requestOf = (frontier: Frontier, n: number, hosts: number): CrawlRequest =>
  makeRequest(urlOf(n, hosts), frontier.seed, { hop: "link", depth: n % 6, referrer: null });
const range = (from: number, to: number): number[] => Array.from({ length: to - from }, (_, n) => from + n);

function settledOf(lease: Lease): Settled {
  const page = {
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
  };
  return {
    token: lease.token,
    settlement: { kind: "done", counted: true, output: { page, listed: true, skipped: [], found: [], edges: [] } },
    sinceStartMs: 20,
    answer: { kind: "good", latencyMs: 20 },
    host: null,
    setCookies: null,
    newSeeds: null,
    tally: [
      ["pages", 1],
      ["bytes", 9_000],
    ],
  };
}

async function claimed(frontier: Frontier, most: number): Promise<readonly Lease[]> {
  const claim = await frontier.claim(most);
  return claim.kind === "leases" ? claim.leases : [];
}

async function tell(frontier: Frontier, leases: readonly Lease[]): Promise<void> {
  await frontier.progress(
    leases.map(({ token }) => ({ token, sinceMs: 1 })),
    leases.map(({ token }) => token),
  );
}

/** µs of server CPU a page: claim of 64, progress, settles of 16 with 50 links a page, drain. `fresh`: how many of the links are new; `knows`: the worker remembers links. */
async function cycle(hosts: number, fresh: number, knows: boolean): Promise<number> {
  const { id, frontier, worker } = await open();
  const popular = range(0, 500).map((n) => requestOf(frontier, n, hosts));
  await frontier.add(popular);
  // Enough is queued for all pages, on every host.
  let next = 500;
  const more = (n: number): CrawlRequest[] => range(next, (next += n)).map((k) => requestOf(frontier, k, hosts));
  await frontier.add(more(Math.max(hosts, pages + 1_000)));
  const outbox = await openOutbox(link, id, { crashed: () => ({ page: null, listed: false, skipped: [], found: [], edges: [] }) });
  let done = 0;

  async function round(): Promise<void> {
    const leases = await claimed(frontier, 64);
    if (leases.length === 0) throw new Error("nothing was queued any more");
    await tell(frontier, leases);
    for (let from = 0; from < leases.length; from += 16) {
      const batch = leases.slice(from, from + 16);
      const links = [...batch.flatMap((_, n) => popular.slice(n * 20, n * 20 + 50 - fresh)), ...more(batch.length * fresh)];
      const distinct = [...new Map(links.map((one) => [one.url, one])).values()];
      await (knows ? frontier : await worker()).settle(batch.map(settledOf), distinct);
      done += batch.length;
    }
    for (let read = await outbox.read(); read !== null; read = await outbox.read()) await outbox.checkpoint(read.cursor, new Map());
  }

  for (let n = 0; n < 3; n++) await round();
  const parts: number[] = [];
  for (let part = 0; part < PARTS; part++) {
    done = 0;
    const began = await cpu();
    while (done < pages / PARTS) await round();
    parts.push((((await cpu()) - began) / done) * 1e6);
  }
  await outbox[Symbol.asyncDispose]();
  await frontier[Symbol.asyncDispose]();
  await crawls.delete(id);
  return Math.min(...parts);
}

async function printCycles(): Promise<void> {
  const row = async (what: string, fresh: number, knows: boolean): Promise<void> => {
    const all: number[] = [];
    for (const hosts of HOSTS) all.push(await cycle(hosts, fresh, knows));
    console.log(`| ${what} | ${all.map((us) => `${us.toFixed(0)} µs, ${Math.round(1e6 / us).toLocaleString("en")} pages/s`).join(" | ")} |`);
  };
  console.log("\n| server CPU for a page with 50 links | 1 host | 100 hosts | 10,000 hosts |\n|---|---|---|---|");
  await row("1 link new (a crawl's mean: each page is new once), the worker remembers links", 1, true);
  await row("6 links new, the worker remembers links", 6, true);
  await row("1 link new, nothing remembered", 1, false);
}

async function measureMemory(hosts: number): Promise<void> {
  const { id, frontier } = await open();
  const before = await memory();
  const began = await cpu();
  for (let from = 0; from < urls; from += 5_000) await frontier.add(range(from, Math.min(urls, from + 5_000)).map((n) => requestOf(frontier, n, hosts)));
  const spent = (await cpu()) - began;
  const full = (await memory()) - before;
  const names = range(0, hosts).map((n) => `${link.tag}:${id}:q:0:0:www.host${n}.example.com`);
  for (let from = 0; from < names.length; from += 500) await link.command("UNLINK", ...names.slice(from, from + 500));
  await link.command("DEL", `${link.tag}:${id}:h`, `${link.tag}:${id}:w`);
  const seen = (await memory()) - before;
  const url = urlOf(urls >> 1, hosts);
  const path = url.length - new URL(url).origin.length;
  const planned = 16.4 + path + 14 + (460 * hosts) / urls;
  const [queued, each] = [full / urls, seen / urls].map((n) => n.toFixed(1));
  console.log(
    `| ${hosts.toLocaleString("en")} | ${url.length} (${path}) | ${queued} | ${planned.toFixed(1)} | ${each} | ${((spent / urls) * 1e6).toFixed(1)} |`,
  );
  await frontier[Symbol.asyncDispose]();
  await crawls.delete(id);
}

/** What is left of a host whose pages are done. */
async function measureIdle(hosts: number): Promise<void> {
  const { id, frontier } = await open();
  const before = await memory();
  await frontier.add(range(0, hosts).map((n) => requestOf(frontier, n, hosts)));
  for (let leases = await claimed(frontier, 64); leases.length > 0; leases = await claimed(frontier, 64)) {
    await tell(frontier, leases);
    await frontier.settle(leases.map(settledOf), []);
  }
  await link.command("DEL", `${link.tag}:${id}:out`);
  console.log(`\nAn idle host takes ${(((await memory()) - before) / hosts - 16.4).toFixed(0)} B (110 planned).`);
  await frontier[Symbol.asyncDispose]();
  await crawls.delete(id);
}

/** Mean and 99th percentile of the server's CPU in ms, without what asking for it takes. */
async function timed(what: string, step: () => Promise<unknown>): Promise<string> {
  let asking = Infinity;
  for (let n = 0; n < 20; n++) {
    const began = await cpu();
    asking = Math.min(asking, (await cpu()) - began);
  }
  const all: number[] = [];
  for (let n = 0; n < calls; n++) {
    const began = await cpu();
    await step();
    all.push(Math.max(0, (await cpu()) - began - asking) * 1_000);
  }
  all.sort((a, b) => a - b);
  const mean = all.reduce((sum, ms) => sum + ms, 0) / all.length;
  return `${what}: ${mean.toFixed(2)} / ${all[Math.floor(all.length * 0.99)]?.toFixed(2)}`;
}

async function scripts(hosts: number): Promise<readonly string[]> {
  const { id, frontier, worker } = await open();
  let next = 0;
  const fresh = (n: number): CrawlRequest[] => range(next, (next += n)).map((k) => requestOf(frontier, k, hosts));
  const out = [await timed("add, 100 new", () => frontier.add(fresh(100)))];
  const known = range(0, 250).map((k) => requestOf(frontier, k, hosts));
  const empty = await Promise.all(range(0, calls).map(worker));
  out.push(await timed("add, 250 known (of 100 hosts at most a call)", () => empty.pop()?.add(known) ?? Promise.resolve()));
  await frontier.add(fresh(calls * 230));
  for (const most of [16, 64, 128]) {
    const held: (readonly Lease[])[] = [];
    out.push(await timed(`claim of ${most}${most > 40 ? " (of 40 hosts at most)" : ""}`, async () => held.push(await claimed(frontier, most))));
    const told = [...held];
    out.push(await timed(`progress of ${most}`, () => tell(frontier, told.pop() ?? [])));
    if (most <= 64) out.push(await timed(`settle of ${most}`, () => frontier.settle((held.pop() ?? []).map(settledOf), [])));
  }
  out.push(await timed("claim with nothing asked", () => frontier.claim(0)));
  await frontier[Symbol.asyncDispose]();
  await crawls.delete(id);
  return out;
}

async function printScripts(): Promise<void> {
  const columns: (readonly string[])[] = [];
  for (const hosts of HOSTS) columns.push(await scripts(hosts));
  console.log("\n| script, mean / 99 % of its calls, ms of server CPU | 1 host | 100 hosts | 10,000 hosts |\n|---|---|---|---|");
  for (const [n, first] of (columns[0] ?? []).entries()) {
    const cells = columns.map((column) => column[n]?.split(": ")[1]);
    console.log(`| ${first.split(": ")[0]} | ${cells.join(" | ")} |`);
  }
}

console.log(`${link.server.kind} ${link.server.version}, append-only file synced every second; ${new Date().toISOString().slice(0, 10)}`);
await printCycles();
await printScripts();
console.log(
  `\n| hosts, ${urls.toLocaleString("en")} URLs queued | bytes of a URL (path) | B queued and seen, hosts included | planned | B seen | µs CPU to add |\n|---|---|---|---|---|---|`,
);
for (const hosts of [100, 10_000]) await measureMemory(hosts);
await measureIdle(10_000);
await link.close();
await server.stop();
