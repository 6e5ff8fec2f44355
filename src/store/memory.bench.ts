/** Speed and size of the memory frontier and the seen table; run by hand: `npx node --expose-gc src/store/memory.bench.ts`. Not part of the tests. */
import { realClock } from "../core/clock.ts";
import type { FrontierConfig, Settled } from "../core/frontier.ts";
import type { CrawlRequest } from "../core/request.ts";
import { makeRequest } from "../rules/admit.ts";
import { createSeenTable } from "../rules/seen.ts";
import { seededRandom } from "../testing/clock.ts";
import { caseConfig } from "../testing/frontier-cases.ts";
import { createMemoryFrontier } from "./memory.ts";

const emptyOutput = { page: null, listed: false, skipped: [], found: [], edges: [] };
const print = (what: string, figure: string): void => void process.stdout.write(`${what.padEnd(58)} ${figure}\n`);

/** CPU time of this process, ms: the machine may be busy with other things. */
function cpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
}

function memoryNow(): number {
  globalThis.gc?.();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

function frontierOf(config: Partial<FrontierConfig>) {
  const hooks = { write: () => undefined, crashed: () => emptyOutput };
  return createMemoryFrontier({ ...caseConfig, ...config }, hooks, { clock: realClock, random: Math.random, seed: [1, 2, 3, 4] });
}

function benchSeen(): void {
  const n = 2_000_000;
  const random = seededRandom(1);
  const ids = Int32Array.from({ length: n * 2 }, () => random() * 2 ** 32);
  const table = createSeenTable();
  let most = 0;
  const begun = cpuMs();
  for (let i = 0; i < n; i++) {
    table.putIfAbsent(ids[i * 2]!, ids[i * 2 + 1]!, 1);
    if ((i & 0x3fff) === 0 && i > 100_000) most = Math.max(most, table.bytes / table.size);
  }
  const inserted = cpuMs();
  for (let i = 0; i < n; i++) table.putIfAbsent(ids[i * 2]!, ids[i * 2 + 1]!, 1);
  const ended = cpuMs();
  print("seen table: inserts a second", `${(n / (inserted - begun) / 1_000).toFixed(2)} M`);
  print("seen table: look-ups of known ones a second", `${(n / (ended - inserted) / 1_000).toFixed(2)} M`);
  print("seen table: bytes an entry, at the end and at most", `${(table.bytes / table.size).toFixed(1)}, ${most.toFixed(1)}`);
}

async function benchQueue(): Promise<void> {
  const frontier = frontierOf({});
  const n = 500_000;
  const links = (from: number): CrawlRequest[] =>
    Array.from({ length: 50 }, (_, i) => {
      const url = `https://www.example-${(from + i) % 100}.test/section/${from + i}/`.padEnd(79, "x");
      return makeRequest(`${url}y`, frontier.seed, { hop: "link", depth: 1, referrer: `https://www.example.test/page/${from}` });
    });
  const before = memoryNow();
  let spent = 0;
  for (let from = 0; from < n; from += 50) {
    const batch = links(from);
    const begun = cpuMs();
    await frontier.add(batch);
    spent += cpuMs() - begun;
  }
  print("bytes a queued URL of 80 characters, referrer and seen included", ((memoryNow() - before) / n).toFixed(0));
  print("µs to add a new link", ((spent * 1_000) / n).toFixed(2));
  const begun = cpuMs();
  let claimed = 0;
  for (let claim = await frontier.claim(64); claim.kind === "leases" && claimed < 200_000; claim = await frontier.claim(64)) {
    claimed += claim.leases.length;
    await frontier.settle(
      claim.leases.map((lease) => settled(lease.token)),
      [],
    );
  }
  print("µs to claim and settle a page without links", (((cpuMs() - begun) * 1_000) / claimed).toFixed(2));
}

function settled(token: string): Settled {
  return {
    token,
    settlement: { kind: "done", counted: true, output: emptyOutput },
    sinceStartMs: 1,
    answer: { kind: "good", latencyMs: 5 },
    host: null,
    setCookies: null,
    newSeeds: null,
    tally: [["pages", 1]],
  };
}

async function benchCycle(hosts: number, config: Partial<FrontierConfig>): Promise<void> {
  const frontier = frontierOf(config);
  const n = 100_000;
  const all = Array.from({ length: n }, (_, i) =>
    makeRequest(`http://h${i % hosts}.test/page/${i}`, frontier.seed, { hop: "link", depth: 1, referrer: "http://h0.test/" }),
  );
  await frontier.add(all);
  const known = Array.from({ length: 64 }, (_, k) => all.slice(k * 30, k * 30 + 30));
  let pages = 0;
  const begun = cpuMs();
  for (let claim = await frontier.claim(16); claim.kind === "leases"; claim = await frontier.claim(16)) {
    const links: CrawlRequest[] = [];
    for (const _ of claim.leases) links.push(...known[pages++ & 63]!);
    const tokens = claim.leases.map((lease) => lease.token);
    await frontier.progress(
      tokens.map((token) => ({ token, sinceMs: 1 })),
      tokens,
    );
    await frontier.settle(tokens.map(settled), links);
  }
  print(`µs a page with 30 known links, ${hosts} hosts${config.levels ? ", levels" : ""}`, (((cpuMs() - begun) * 1_000) / pages).toFixed(2));
}

await benchQueue();
benchSeen();
for (const hosts of [1, 100, 10_000]) await benchCycle(hosts, {});
await benchCycle(100, { levels: true });
