// Runs of the built command with several processes on one Redis, for bench/workers.mjs and bench/textbook.mjs: starts redis-server (on PATH), a slow site and workers, and checks what came out.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createConnection, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

const root = resolve(import.meta.dirname, "..");
const own = join(root, "node_modules/node/bin/node");
const node = existsSync(own) ? own : process.execPath;
const skein = join(root, "bin/skein.js");
const LONGEST_MS = 180_000;

export const addressOf = (n) => `127.0.${(n + 1) >> 8}.${(n + 1) & 255}`;
export const median = (values) => values.toSorted((a, b) => a - b)[values.length >> 1];

async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  server.close();
  await once(server, "close");
  return port;
}

async function answers(port) {
  for (let tries = 0; tries < 100; tries++) {
    const socket = createConnection(port, "127.0.0.1");
    const open = await new Promise((done) => socket.on("connect", () => done(true)).on("error", () => done(false)));
    socket.destroy();
    if (open) return;
    await new Promise((done) => setTimeout(done, 50));
  }
  throw new Error(`nothing listens on port ${port}`);
}

/** A Redis and a site that answers after `latency` ms; `stop` ends both. */
export async function startBoth({ hosts, pages, latency }) {
  if (!existsSync(join(root, "dist"))) throw new Error("there is no dist: npm run build comes first");
  const dir = mkdtempSync(join(tmpdir(), "skein-bench-"));
  const redisPort = await freePort();
  const redis = spawn("redis-server", ["--port", redisPort, "--bind", "127.0.0.1", "--dir", dir, "--save", "", "--appendonly", "yes"].map(String), {
    stdio: "ignore",
  });
  const site = spawn(node, [join(import.meta.dirname, "latency-server.mjs"), pages, latency].map(String), { stdio: ["ignore", "pipe", "inherit"] });
  const [first] = await once(site.stdout, "data");
  const port = Number(first);
  await answers(redisPort);
  return {
    dir,
    port,
    store: `redis://127.0.0.1:${redisPort}`,
    urls: Array.from({ length: hosts }, (_, n) => `http://${addressOf(n)}:${port}/0`),
    asked: async () => Number(await (await fetch(`http://127.0.0.1:${port}/asked`)).text()),
    async stop() {
      const gone = [once(redis, "exit"), once(site, "exit")];
      redis.kill();
      site.kill();
      await Promise.all(gone);
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

async function startWorker(store, concurrency) {
  const args = [skein, "work", "--store", store, "-c", concurrency, "--allow-address", "127.0.0.0/8"];
  const child = spawn(node, args.map(String), { stdio: ["ignore", "ignore", "pipe"] });
  await once(child.stderr, "data");
  child.stderr.resume();
  // It has said for which store it works; it looks for crawls each second.
  await new Promise((done) => setTimeout(done, 500));
  return child;
}

/**
 * One crawl of all pages by so many processes: `skein crawl` and, for the rest, `skein work`, which wait before it begins.
 * Answers the wall time of the crawl command in seconds. Throws unless each page is in the output once, and good.
 */
export async function crawlWith({ both, processes, concurrency, expected }) {
  const workers = [];
  for (let n = 1; n < processes; n++) workers.push(await startWorker(both.store, concurrency));
  const output = join(both.dir, `${Math.random()}.jsonl`);
  await both.asked();
  const args = [
    "crawl",
    ...both.urls,
    "--store",
    both.store,
    "--fresh",
    "-c",
    concurrency,
    "--no-robots",
    "-q",
    "-o",
    output,
    "--allow-address",
    "127.0.0.0/8",
  ];
  const began = performance.now();
  const child = spawn(node, [skein, ...args].map(String), { stdio: ["ignore", "ignore", "pipe"] });
  let said = "";
  child.stderr.on("data", (text) => {
    said += text;
  });
  const timer = setTimeout(() => child.kill("SIGKILL"), LONGEST_MS);
  const [status] = await once(child, "exit");
  const seconds = (performance.now() - began) / 1_000;
  clearTimeout(timer);
  const gone = workers.map((worker) => once(worker, "exit"));
  for (const worker of workers) worker.kill();
  await Promise.all(gone);
  if (status !== 0) throw new Error(`the crawl ended with ${status}: ${said}`);
  const records = readFileSync(output, "utf8")
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
  const good = new Set(records.filter((record) => record.status === 200).map((record) => record.url));
  if (records.length !== expected || good.size !== expected)
    throw new Error(`${expected} pages expected, ${records.length} written, ${good.size} of them good and different`);
  return { seconds, asked: await both.asked() };
}
