// How much faster 2 and 4 processes are than one, on a site that keeps them waiting: `node bench/workers.mjs [--hosts 200] [--pages 15] [--latency 100] [-c 32] [--runs 3]`.
// Needs `npm run build` and redis-server. Every run is checked for its pages: each once.
import { parseArgs } from "node:util";
import { crawlWith, median, startBoth } from "./processes.mjs";

const { values } = parseArgs({
  options: {
    hosts: { type: "string", default: "200" },
    pages: { type: "string", default: "15" },
    latency: { type: "string", default: "100" },
    concurrency: { type: "string", short: "c", default: "32" },
    runs: { type: "string", default: "3" },
  },
});
const [hosts, pages, latency, concurrency, runs] = ["hosts", "pages", "latency", "concurrency", "runs"].map((name) => Number(values[name]));
const expected = hosts * pages;
const both = await startBoth({ hosts, pages, latency });
try {
  console.log(`${expected} pages on ${hosts} hosts, ${latency} ms each, -c ${concurrency}; medians of ${runs} runs`);
  console.log("| processes | wall s (min–max) | pages/s | speed-up | least possible s | requests |\n|---|---|---|---|---|---|");
  let one = 0;
  for (const processes of [1, 2, 4]) {
    const all = [];
    for (let run = 0; run < runs; run++) all.push(await crawlWith({ both, processes, concurrency, expected }));
    const times = all.map(({ seconds }) => seconds);
    const wall = median(times);
    one ||= wall;
    const ideal = (expected * latency) / 1_000 / (concurrency * processes);
    const range = `${Math.min(...times).toFixed(2)}–${Math.max(...times).toFixed(2)}`;
    const asked = [...new Set(all.map((run) => run.asked))].join(", ");
    console.log(
      `| ${processes} | ${wall.toFixed(2)} (${range}) | ${Math.round(expected / wall)} | ${(one / wall).toFixed(2)} | ${ideal.toFixed(2)} | ${asked} |`,
    );
  }
} finally {
  await both.stop();
}
