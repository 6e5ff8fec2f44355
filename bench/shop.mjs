// `node bench/shop.mjs [--pages N] [workers …]`: the shop of 500 list pages, 14,500 details and 400,000 items (or N pages of that kind) through the real command,
// with so many parse workers in turn (default 0 1 2). The server answers after 50 to 200 ms, in a process of its own. Linux only: CPU and memory are read from /proc.
import { fork, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const root = join(import.meta.dirname, "..");
const args = process.argv.slice(2);
const at = args.indexOf("--pages");
const pages = at < 0 ? 15_000 : Number(args.splice(at, 2)[1]);
const workers = args.length === 0 ? [0, 1, 2] : args.map(Number);
const products = Math.round((pages * 29) / 30);
const offers = Math.round((products * 400_000) / 14_500);
const CONCURRENCY = 64;
const TICKS_A_SECOND = 100;

for (const n of workers) console.log(line(n, await measure(n)));

async function measure(n) {
  const server = fork(join(import.meta.dirname, "shop-server.mjs"), [products, offers, 50, 200].map(String), { execPath: process.execPath });
  const [{ origin, lists }] = await once(server, "message");
  const folder = mkdtempSync(join(tmpdir(), "skein-bench-shop-"));
  try {
    const began = performance.now();
    const skein = spawn(
      process.execPath,
      [
        join(root, "bin/skein.js"),
        "crawl",
        `${origin}/list/0`,
        "-s",
        join(import.meta.dirname, "shop-scraper.mjs"),
        "--parse-workers",
        String(n),
        "-c",
        String(CONCURRENCY),
      ].concat(["--per-host", String(CONCURRENCY), "--no-robots", "-o", "items.jsonl", "--fields", "url,status", "--pages", "pages.jsonl"]),
      { cwd: folder, stdio: ["ignore", "ignore", "pipe"] },
    );
    let stderr = "";
    skein.stderr.setEncoding("utf8").on("data", (text) => (stderr += text));
    const seen = { cpuS: 0, rssMiB: 0 };
    const sampler = setInterval(() => sample(skein.pid, seen), 50);
    const [code] = await once(skein, "close");
    clearInterval(sampler);
    const seconds = (performance.now() - began) / 1000;
    server.send("report");
    const [report] = await once(server, "message");
    const items = count(join(folder, "items.jsonl"));
    const fetched = count(join(folder, "pages.jsonl"));
    if (code !== 0 || items !== offers || fetched !== products + lists)
      throw new Error(`${n} workers: exit ${code}, ${items} items, ${fetched} pages\n${stderr}`);
    const cpu = /cpu +(.*)/.exec(stderr)?.[1] ?? "";
    return { seconds, items, fetched, ...seen, server: report, cpu, itemsMB: statSync(join(folder, "items.jsonl")).size / 1e6 };
  } finally {
    server.disconnect();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** The last sample misses what was used in the last twentieth of a second. */
function sample(pid, seen) {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1].split(" ");
    seen.cpuS = (Number(fields[11]) + Number(fields[12])) / TICKS_A_SECOND;
    seen.rssMiB = Math.max(seen.rssMiB, Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? 0) / 1024);
  } catch {
    // It has just ended.
  }
}

function count(file) {
  let lines = 0;
  for (const byte of readFileSync(file)) if (byte === 10) lines++;
  return lines;
}

function line(n, { seconds, fetched, items, cpuS, rssMiB, server, cpu }) {
  const rate = (count) => Math.round(count / seconds).toLocaleString("en");
  return `| ${n} | ${seconds.toFixed(1)} | ${rate(fetched)} | ${rate(items)} | ${cpuS.toFixed(1)} | ${((cpuS * 1000) / fetched).toFixed(2)} | ${Math.round(rssMiB)} | ${server.mostAtOnce} | ${server.cpuS.toFixed(1)} | ${cpu} |`;
}
