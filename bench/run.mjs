// `npm run bench -- [small|large|real] [--runs N] [--port 8080] [--lock FILE]`: Skein and wget over the same generated site, by the benchmark harness at SKEIN_BENCH_DIR.
// It prints the harness's table and the ratio of CPU time per page. Needs nginx, wget, /usr/bin/time and two cores.
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";

const root = resolve(import.meta.dirname, "..");
const harness = resolve(root, process.env.SKEIN_BENCH_DIR ?? "../shared/bench");
const SIZES = ["small", "large", "real"];
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { runs: { type: "string", default: "3" }, port: { type: "string", default: "8080" }, lock: { type: "string" } },
});
const sizes = positionals.length > 0 ? positionals : ["small"];
const wrong = sizes.filter((size) => !SIZES.includes(size));
if (wrong.length > 0) stop(2, `bench: unknown ${wrong.join(", ")}; allowed: ${SIZES.join(", ")}`);
if (!existsSync(join(harness, "compare.mjs"))) stop(0, `bench: no harness at ${harness}; set SKEIN_BENCH_DIR to the folder that holds compare.mjs`);

// The harness runs each crawler in an empty folder: absolute paths, and the checkout's own Node without npx in between.
const own = join(root, "node_modules/node/bin/node");
const node = existsSync(own) ? own : process.execPath;
const ours = `ours:64=sh -c '${node} ${join(root, "bin/skein.js")} crawl {url} -c {c} --no-robots -q -o p.jsonl && wc -l < p.jsonl'`;

class BenchFailure extends Error {}
try {
  for (const size of sizes) measure(size);
} catch (error) {
  if (!(error instanceof BenchFailure)) throw error;
  stop(1, `bench: ${error.message} (is port ${values.port} taken? choose another with --port)`);
}

function measure(size) {
  const folder = mkdtempSync(join(tmpdir(), "skein-bench-"));
  const site = join(folder, size);
  try {
    const base = `http://127.0.0.1:${values.port}`;
    must(node, [join(harness, "site.mjs"), site, "--size", size, "--base", base]);
    // The server's state lies in our folder: a server that another run has on this port is not replaced, it is an error.
    must("sh", [join(harness, "serve-nginx.sh"), "start", site, values.port], { TMPDIR: folder });
    const raw = join(folder, "runs.jsonl");
    const lock = values.lock ? ["--lock", values.lock] : [];
    const url = ["--site", site, "--url", `${base}/index.html`, "--label", size];
    must(node, [
      join(harness, "compare.mjs"),
      ...url,
      "--runs",
      values.runs,
      "--timeout",
      "300",
      "--baseline",
      "wget:1",
      "--json",
      raw,
      ...lock,
      "wget:1",
      ours,
    ]);
    console.log(verdict(size, raw));
  } finally {
    if (existsSync(site))
      spawnSync("sh", [join(harness, "serve-nginx.sh"), "stop", site, values.port], { stdio: "ignore", env: { ...process.env, TMPDIR: folder } });
    rmSync(folder, { recursive: true, force: true });
  }
}

/** CPU time is the steadiest figure: user and system time of the whole process tree, start-up included. */
function verdict(size, raw) {
  const runs = readFileSync(raw, "utf8").trim().split("\n").map(JSON.parse);
  const cpu = (name) => median(runs.filter((run) => run.name === name && run.ok).map((run) => run.cpu));
  const [our, theirs] = [cpu("ours:64"), cpu("wget:1")];
  if (our === null || theirs === null) return `${size}: no ratio, a runner failed`;
  return `${size}: CPU ${our.toFixed(2)} s against wget's ${theirs.toFixed(2)} s, ratio ${(our / theirs).toFixed(2)}`;
}

function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  if (sorted.length === 0) return null;
  const half = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
}

function must(command, args, env = {}) {
  const { status, error } = spawnSync(command, args, { stdio: ["ignore", "inherit", "inherit"], cwd: tmpdir(), env: { ...process.env, ...env } });
  if (error) throw error;
  if (status !== 0) throw new BenchFailure(`${args[0]} ended with ${status}`);
}

function stop(code, message) {
  console.error(message);
  process.exit(code);
}
