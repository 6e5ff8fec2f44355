// `node bench/scale.ts [queued] [seen] [dir]`: a durable frontier driven to many millions of URLs by its own calls, in steps of 16 pages as a busy crawl takes them:
// memory and time on the way, bytes on the disk, then what it takes to open the state again after a kill. By default 1,000,000 queued and 10,000,000 seen.
// Each part is a process of its own, so that memory is that of the part alone.
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { realClock } from "../src/core/clock.ts";
import type { FrontierConfig, FrontierHooks, Lease, Settled } from "../src/core/frontier.ts";
import type { CrawlRequest } from "../src/core/request.ts";
import { makeRequest } from "../src/rules/admit.ts";
import { type DurableFrontier, openFrontierIn, openStateDirectory } from "../src/store/sqlite/frontier.ts";
import { caseConfig } from "../src/testing/frontier-cases.ts";

const HOSTS = 1_000;
const PAGES_PER_STEP = 16;
const [part = "all", queuedText = "1000000", seenText = "10000000", given] = process.argv[2]?.match(/^(drive|open)$/)
  ? process.argv.slice(2)
  : ["all", ...process.argv.slice(2)];
const [QUEUED, SEEN] = [Number(queuedText), Number(seenText)];
const dir = given ?? mkdtempSync(join(tmpdir(), "skein-scale-"));

const mebi = (bytes: number): string => `${Math.round(bytes / 2 ** 20)} MiB`;
const print = (what: string, figure: string): void => void process.stdout.write(`${what.padEnd(60)} ${figure}\n`);
const cpuSeconds = (): number => (process.cpuUsage().user + process.cpuUsage().system) / 1e6;
const stateBytes = (): number =>
  readdirSync(dir).reduce((sum, name) => sum + (name.startsWith("state.db") && !name.endsWith("-shm") ? statSync(join(dir, name)).size : 0), 0);

const output = { page: null, listed: false, skipped: [], found: [], edges: [] };
let bytes = 0;
const hooks: FrontierHooks = { write: () => undefined, checkpoint: () => new Map([["pages.jsonl", { bytes: (bytes += 1_000) }]]), crashed: () => output };
const config: FrontierConfig = { ...caseConfig, perHostConcurrency: 1_000, leaseMs: Infinity };

function open(): Promise<DurableFrontier> {
  const state = openStateDirectory(dir, { durability: "normal" });
  return openFrontierIn(state, { config, hooks, env: { clock: realClock, random: Math.random }, durability: "normal" });
}

function settled({ token }: Lease): Settled {
  const facts = { sinceStartMs: 1, answer: { kind: "good", latencyMs: 5 } as const, host: null, setCookies: null, newSeeds: null };
  return { token, settlement: { kind: "done", counted: true, output }, ...facts, tally: [["outcome:fetched", 1]] };
}

/** The nth link there is: 80 characters, on one of the hosts, with a page of the same host as its referrer. */
function link(n: number, seed: DurableFrontier["seed"]): CrawlRequest {
  const origin = `https://www.example-${n % HOSTS}.test`;
  const url = `${origin}/section/${n % 977}/page-${n}/`.padEnd(80, "x");
  return makeRequest(url, seed, { hop: "link", depth: 1, referrer: `${origin}/section/${n % 977}/index.html` });
}

/** Fetches pages that all have some new links, until both numbers are reached; ends by a kill, with leases out. */
async function drive(): Promise<void> {
  const frontier = await open();
  const began = performance.now();
  let found = 0;
  let pages = 0;
  const next = (count: number): CrawlRequest[] => Array.from({ length: Math.min(count, SEEN - found) }, () => link(found++, frontier.seed));
  // The queue grows to its size first, as a crawl's does; then every page brings one new link.
  await frontier.add(next(64));
  while (found < SEEN || found - pages > QUEUED) {
    const claim = await frontier.claim(PAGES_PER_STEP);
    if (claim.kind !== "leases") throw new Error(`nothing to claim: ${claim.kind}`);
    const { leases } = claim;
    const queued = found - pages;
    await frontier.settle(leases.map(settled), next(queued < QUEUED ? leases.length * 10 : leases.length));
    const before = pages;
    pages += leases.length;
    if (Math.floor(pages / 1e6) > Math.floor(before / 1e6))
      print(`${Math.floor(pages / 1e6)} M pages, ${(found / 1e6).toFixed(1)} M seen: process`, mebi(process.memoryUsage.rss()));
  }
  const counts = await frontier.counts();
  print("µs of CPU a page (claim, settle, commit)", ((cpuSeconds() * 1e6) / pages).toFixed(1));
  print("µs a page by the clock", (((performance.now() - began) * 1_000) / pages).toFixed(1));
  print("queued, seen", `${counts.queued}, ${counts.seen}`);
  await frontier.claim(64);
  process.kill(process.pid, "SIGKILL");
}

async function openAgain(): Promise<void> {
  const before = process.memoryUsage.rss();
  const [cpu, began] = [cpuSeconds(), performance.now()];
  const frontier = await open();
  const seconds = `${(cpuSeconds() - cpu).toFixed(1)} s of CPU, ${((performance.now() - began) / 1_000).toFixed(1)} s by the clock`;
  print("to open it", seconds);
  print("process, at most while opening; before", `${mebi(process.resourceUsage().maxRSS * 1024)}; ${mebi(before)}`);
  const { queued, leased, seen } = await frontier.counts();
  print("queued, leased, seen", `${queued}, ${leased}, ${seen}`);
  globalThis.gc?.();
  const { heapUsed, external } = process.memoryUsage();
  print("process now; heap and buffers held", `${mebi(process.memoryUsage.rss())}; ${mebi(heapUsed + external)}`);
  await frontier[Symbol.asyncDispose]();
}

function disk(): void {
  const db = new DatabaseSync(join(dir, "state.db"), { readOnly: true });
  const row = db
    .prepare("SELECT (SELECT sum(length(entries)) FROM log) AS log, (SELECT count(*) FROM queue) AS queued, (SELECT count(*) FROM log) AS rows")
    .get();
  db.close();
  const log = Number(row?.log ?? 0);
  print("state.db and its -wal", mebi(stateBytes()));
  print("bytes of fingerprints a URL seen", (log / SEEN).toFixed(1));
  print("other bytes a URL queued", ((statSync(join(dir, "state.db")).size - log) / Number(row?.queued ?? 1)).toFixed(0));
}

function run(name: "drive" | "open", title: string): void {
  print(`\n${title}`, "");
  // The young generation as bin/skein.js bounds it.
  spawnSync(process.execPath, ["--max-semi-space-size=8", "--expose-gc", import.meta.filename, name, String(QUEUED), String(SEEN), dir], { stdio: "inherit" });
  disk();
}

if (part === "drive") await drive();
else if (part === "open") await openAgain();
else {
  run("drive", "driven");
  run("open", "opened after the kill");
  run("open", "opened once more");
  if (given === undefined) rmSync(dir, { recursive: true });
}
