/** CPU per page of the fetcher against a bare undici dispatch loop, in turn in one process: `node src/fetch/http.bench.ts URLS.txt [CONCURRENCY]`, one URL of one origin a line. */
import { readFileSync } from "node:fs";
import { Pool } from "undici";
import { originOf } from "./target.ts";
import { exchangeFor, openFetcher } from "./trial.ts";

const [file, concurrency = "64"] = process.argv.slice(2);
if (!file) throw new Error("give a file of URLs");
const urls = readFileSync(file, "utf8").split("\n").filter(Boolean);
const origin = originOf(urls[0] ?? "");
const inFlight = Number(concurrency);
const ROUNDS = 12;

const fetcher = openFetcher({ perHostConcurrency: inFlight, timeoutMs: 30_000 });
const pool = new Pool(origin, { connections: inFlight, pipelining: 1, headersTimeout: 0, bodyTimeout: 0 });
const headers = ["User-Agent", "skein-test/1", "Accept", "text/html", "Accept-Encoding", "gzip, deflate, br, zstd", "Accept-Language", "en"];

async function ours(url: string): Promise<void> {
  const outcome = await fetcher.fetch(exchangeFor(url));
  if (outcome.kind !== "fetched") throw new Error(`${url}: ${outcome.kind}`);
}

function bare(url: string): Promise<void> {
  return new Promise((resolve, reject) => {
    pool.dispatch(
      { path: url.slice(origin.length), method: "GET", headers, blocking: false },
      { onRequestStart() {}, onResponseStart() {}, onResponseData() {}, onResponseEnd: () => resolve(), onResponseError: (_, error) => reject(error) },
    );
  });
}

/** CPU milliseconds for all URLs. */
async function round(fetchPage: (url: string) => Promise<void>): Promise<number> {
  const before = process.cpuUsage();
  let next = 0;
  const worker = async () => {
    for (let url = urls[next++]; url !== undefined; url = urls[next++]) await fetchPage(url);
  };
  await Promise.all(Array.from({ length: inFlight }, worker));
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1_000;
}

await round(ours);
await round(bare);
const sums = { ours: 0, bare: 0 };
for (let i = 0; i < ROUNDS; i++) {
  // Each goes first as often as the other: the machine is not the same from moment to moment.
  for (const name of i % 2 === 0 ? (["ours", "bare"] as const) : (["bare", "ours"] as const)) sums[name] += await round(name === "ours" ? ours : bare);
}
const perPage = (sum: number) => (sum / ROUNDS / urls.length).toFixed(4);
console.log(`fetcher ${perPage(sums.ours)} ms/page, bare loop ${perPage(sums.bare)} ms/page, ratio ${(sums.ours / sums.bare).toFixed(3)}`);
await fetcher[Symbol.asyncDispose]();
await pool.close();
