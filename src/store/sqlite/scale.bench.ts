/** A state of many millions of URLs: memory, time to open, bytes on the disk; run by hand: `npx node --expose-gc src/store/sqlite/scale.bench.ts [queued] [seen] [dir]`. Not part of the tests. */
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { realClock } from "../../core/clock.ts";
import type { FrontierConfig, FrontierHooks } from "../../core/frontier.ts";
import { makeRequest } from "../../rules/admit.ts";
import { seededRandom } from "../../testing/clock.ts";
import { caseConfig } from "../../testing/frontier-cases.ts";
import { databaseOf, openSqliteFrontier } from "./frontier.ts";

const QUEUED = Number(process.argv[2] ?? 1_000_000);
const SEEN = Number(process.argv[3] ?? 10_000_000);
const HOSTS = 1_000;
/** Fingerprints of one commit: what a settle of a dozen pages brings. */
const PER_COMMIT = 100;

const emptyOutput = { page: null, listed: false, skipped: [], found: [], edges: [] };
const hooks: FrontierHooks = { write: () => undefined, crashed: () => emptyOutput };
const config: FrontierConfig = { ...caseConfig, leaseMs: Infinity };
const dir = process.argv[4] ?? mkdtempSync(join(tmpdir(), "skein-scale-"));
const open = () => openSqliteFrontier({ dir, config, hooks, env: { clock: realClock, random: Math.random }, durability: "normal" });
const print = (what: string, figure: string): void => void process.stdout.write(`${what.padEnd(52)} ${figure}\n`);
const mebi = (bytes: number): string => `${(bytes / 2 ** 20).toFixed(0)} MiB`;
const size = (): number => statSync(join(dir, "state.db")).size;

function memory(): number {
  globalThis.gc?.();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

async function addQueued(): Promise<void> {
  const frontier = await open();
  const begun = performance.now();
  for (let from = 0; from < QUEUED; from += 50) {
    const referrer = `https://www.example-${from % HOSTS}.test/section/${from}/index.html`;
    const requests = Array.from({ length: 50 }, (_, i) => {
      const url = `https://www.example-${(from + (i % 5)) % HOSTS}.test/section/${from}/page-${from + i}/`.padEnd(80, "x");
      return makeRequest(url, frontier.seed, { hop: "link", depth: 1, referrer });
    });
    await frontier.add(requests);
  }
  print("µs to add a link, 50 a call", (((performance.now() - begun) * 1_000) / QUEUED).toFixed(1));
  await frontier[Symbol.asyncDispose]();
  print("bytes on the disk for a queued URL of 80 characters", (size() / QUEUED).toFixed(0));
}

/** As many commits as would have brought them; what was queued of them is gone. */
async function addSeen(): Promise<void> {
  const before = size();
  const frontier = await open();
  const db = databaseOf(frontier.state);
  const insert = db?.prepare("INSERT INTO log (kind, entries) VALUES (0, ?)");
  const random = seededRandom(3);
  const blob = Buffer.alloc(PER_COMMIT * 10);
  db?.exec("BEGIN");
  for (let from = 0; from < SEEN - QUEUED; from += PER_COMMIT) {
    for (let i = 0; i < PER_COMMIT; i++) {
      blob.writeUInt32LE(Math.floor(random() * 2 ** 32), i * 10);
      blob.writeUInt32LE(Math.floor(random() * 2 ** 32), i * 10 + 4);
      blob.writeUInt16LE(1, i * 10 + 8);
    }
    insert?.run(blob);
  }
  db?.exec("COMMIT");
  await frontier[Symbol.asyncDispose]();
  print("bytes on the disk for a URL that is only seen", ((size() - before) / (SEEN - QUEUED)).toFixed(1));
}

async function openAgain(what: string): Promise<void> {
  const before = memory();
  const begun = performance.now();
  const frontier = await open();
  const ms = performance.now() - begun;
  const held = memory() - before;
  print(`${what}: seconds to open`, (ms / 1_000).toFixed(1));
  print(`${what}: memory held`, `${mebi(held)}, process ${mebi(process.memoryUsage.rss())}`);
  const claim = await frontier.claim(64);
  print(`${what}: leases of a first claim`, String(claim.kind === "leases" ? claim.leases.length : 0));
  await frontier[Symbol.asyncDispose]();
  print(`${what}: state.db`, mebi(size()));
}

await addQueued();
await addSeen();
await openAgain("after a kill");
await openAgain("once set down anew");
if (process.argv[4] === undefined) rmSync(dir, { recursive: true });
