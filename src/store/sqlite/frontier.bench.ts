/** What durability costs a page: the same crawl on the memory and the durable frontier; run by hand: `npx node src/store/sqlite/frontier.bench.ts [pages]`. Not part of the tests. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { realClock } from "../../core/clock.ts";
import type { Frontier, FrontierConfig, FrontierHooks, Settled } from "../../core/frontier.ts";
import type { CrawlRequest } from "../../core/request.ts";
import { makeRequest } from "../../rules/admit.ts";
import { caseConfig } from "../../testing/frontier-cases.ts";
import { createMemoryFrontier } from "../memory.ts";
import { openSqliteFrontier } from "./frontier.ts";

const PAGES = Number(process.argv[2] ?? 20_000);
const LINKS = 30;
const emptyOutput = { page: null, listed: false, skipped: [], found: [], edges: [] };
const hooks: FrontierHooks = { write: () => undefined, checkpoint: () => new Map([["pages.jsonl", { bytes: written++ }]]), crashed: () => emptyOutput };
let written = 0;

function cpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
}

function settled(token: string): Settled {
  const facts = { sinceStartMs: 1, answer: { kind: "good", latencyMs: 5 } as const, host: null, setCookies: null, newSeeds: null };
  return { token, settlement: { kind: "done", counted: true, output: emptyOutput }, ...facts, tally: [["outcome:fetched", 1]] };
}

/** A site like the bench's small one: every page links to 30 others, `fresh` of them new. */
async function crawl(frontier: Frontier, hosts: number, batch: number, fresh: number): Promise<number> {
  const link = (i: number): CrawlRequest =>
    makeRequest(`http://127.0.0.${i % hosts}:8080/section/${i % 97}/page-${i}.html`, frontier.seed, {
      hop: "link",
      depth: 1,
      referrer: `http://127.0.0.${i % hosts}:8080/section/${i % 89}/page-${i >> 1}.html`,
    });
  const known = Array.from({ length: PAGES }, (_, i) => link(i));
  let next = 64 * hosts;
  await frontier.add(known.slice(0, next));
  let pages = 0;
  const begun = cpuMs();
  while (pages < PAGES / 2) {
    const claim = await frontier.claim(batch);
    if (claim.kind !== "leases") break;
    const links: CrawlRequest[] = [];
    for (const _ of claim.leases) {
      const at = (pages * 31) % (PAGES - LINKS);
      for (let i = 0; i < LINKS - fresh; i++) links.push(known[Math.min(at + i, next - 1)]!);
      for (let i = 0; i < fresh; i++) links.push(known[next < PAGES ? next++ : i]!);
      pages++;
    }
    await frontier.settle(
      claim.leases.map(({ token }) => settled(token)),
      links,
    );
  }
  return ((cpuMs() - begun) * 1_000) / pages;
}

async function compare(hosts: number, batch: number, fresh: number): Promise<void> {
  const config: FrontierConfig = { ...caseConfig, perHostConcurrency: 1_000, leaseMs: Infinity };
  const env = { clock: realClock, random: Math.random };
  const memory = await crawl(createMemoryFrontier(config, hooks, env), hosts, batch, fresh);
  const dir = mkdtempSync(join(tmpdir(), "skein-bench-"));
  const durable = await openSqliteFrontier({ dir, config, hooks, env, durability: "normal" });
  const kept = await crawl(durable, hosts, batch, fresh);
  await durable[Symbol.asyncDispose]();
  rmSync(dir, { recursive: true });
  const figures = [hosts, batch, fresh, memory.toFixed(1), kept.toFixed(1), (kept - memory).toFixed(1)];
  process.stdout.write(`${figures.map((figure) => String(figure).padStart(12)).join("")}\n`);
}

process.stdout.write(`${["hosts", "pages/settle", "new links", "memory µs", "durable µs", "more µs"].map((name) => name.padStart(12)).join("")}\n`);
for (const hosts of [1, 100]) for (const batch of [1, 4, 16, 64]) for (const fresh of [1, 10]) await compare(hosts, batch, fresh);
