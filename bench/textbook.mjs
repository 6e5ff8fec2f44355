// The textbook's exercise: one page of each of 500 hosts that answer slowly, with 1 to 100 requests at a time in 1, 2 and 4 processes on one Redis, beside a Python script with as many threads.
// `node bench/textbook.mjs [--hosts 500] [--latency 50] [--runs 1]`. Needs `npm run build`, redis-server and python3. Every run is checked for its pages.
import { spawnSync } from "node:child_process";
import { parseArgs } from "node:util";
import { crawlWith, median, startBoth } from "./processes.mjs";

const { values } = parseArgs({
  options: { hosts: { type: "string", default: "500" }, latency: { type: "string", default: "50" }, runs: { type: "string", default: "1" } },
});
const [hosts, latency, runs] = ["hosts", "latency", "runs"].map((name) => Number(values[name]));
const AT_ONCE = [1, 5, 10, 20, 100];

/** What a textbook has: a list of URLs, a pool of threads, one request each. */
const SCRIPT = `
import sys, time, urllib.request
from concurrent.futures import ThreadPoolExecutor
threads, urls = int(sys.argv[1]), sys.stdin.read().split()
def load(url):
    try:
        with urllib.request.urlopen(url, timeout=30) as answer:
            answer.read()
            return answer.status == 200
    except Exception:
        return False
with ThreadPoolExecutor(threads) as pool:
    print(sum(pool.map(load, urls)))
`;

function python(urls, threads) {
  const began = performance.now();
  const { stdout, status } = spawnSync("python3", ["-c", SCRIPT, String(threads)], { input: urls.join("\n"), encoding: "utf8" });
  return { seconds: (performance.now() - began) / 1_000, errors: status === 0 ? urls.length - Number(stdout) : urls.length };
}

const both = await startBoth({ hosts, pages: 1, latency });
try {
  console.log(
    `one page of each of ${hosts} hosts, ${latency} ms each; total seconds with start and end of the command (speed-up against one at a time in one process)`,
  );
  console.log(
    "| at once, in each process | 1 process | 2 processes | 4 processes | errors | Python, as many threads | errors |\n|---|---|---|---|---|---|---|",
  );
  let one = 0;
  let oneThread = 0;
  let five = 0;
  for (const concurrency of AT_ONCE) {
    const cells = [];
    for (const processes of [1, 2, 4]) {
      const times = [];
      // A run with an error throws.
      for (let run = 0; run < runs; run++) times.push((await crawlWith({ both, processes, concurrency, expected: hosts })).seconds);
      const wall = median(times);
      one ||= wall;
      if (concurrency === 5 && processes === 1) five = one / wall;
      cells.push(`${wall.toFixed(2)} (${(one / wall).toFixed(1)})`);
    }
    const plain = python(both.urls, concurrency);
    oneThread ||= plain.seconds;
    console.log(`| ${concurrency} | ${cells.join(" | ")} | 0 | ${plain.seconds.toFixed(2)} (${(oneThread / plain.seconds).toFixed(1)}) | ${plain.errors} |`);
  }
  console.log(`\nfive at once are ${five.toFixed(1)} times as fast as one at a time${five >= 4 ? "" : ": less than the 4 that were promised"}`);
  if (five < 4) process.exitCode = 1;
} finally {
  await both.stop();
}
