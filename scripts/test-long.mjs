// `npm run test:long`: the suites named *.long.ts (random webs, kills, soaks), which work in rounds until their share of the time is over.
// SKEIN_LONG_MINUTES (default 5) are for all of them; each suite finds its own share in the same variable and prints `rounds: N`. None done is a failure.
import { spawn } from "node:child_process";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { findSuites, nodePath, reportMissing, root } from "./suites.mjs";

/** Minutes: enough for a round of each. */
const LEAST_SHARE = 0.1;

const minutes = Number(process.env.SKEIN_LONG_MINUTES ?? "5");
if (!(minutes > 0)) {
  console.error("SKEIN_LONG_MINUTES: expected a number of minutes above 0");
  process.exit(2);
}
const suites = findSuites(".long.ts").filter((suite) => process.argv.length === 2 || process.argv.slice(2).some((part) => suite.includes(part)));
if (suites.length === 0) {
  console.log("no long suites (*.long.ts)");
  process.exit(0);
}
reportMissing(suites);
console.log(`${suites.length} long ${suites.length === 1 ? "suite" : "suites"} in ${minutes} minutes: ${suites.join(", ")}`);

const guard = pathToFileURL(join(root, "scripts/guard.mjs")).href;
const over = performance.now() + minutes * 60_000;
let rounds = 0;

/** Answers the rounds of one suite; null: it did not say. */
function runSuite(suite, share) {
  const child = spawn(nodePath(), ["--import", guard, "--test", "--test-reporter=spec", suite], {
    cwd: root,
    stdio: ["ignore", "pipe", "inherit"],
    env: { ...process.env, SKEIN_LONG_MINUTES: String(share), SUITE_MINUTES: String(share + 8) },
  });
  let done = null;
  let rest = "";
  child.stdout.setEncoding("utf8");
  child.stdout.on("data", (text) => {
    process.stdout.write(text);
    const lines = (rest + text).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) {
      const match = /\brounds: (\d+)/.exec(line);
      if (match) done = Math.min(done ?? Infinity, Number(match[1]));
      if (match) rounds += Number(match[1]);
    }
  });
  return new Promise((resolve) => {
    child.on("close", (code) => {
      if (code !== 0) process.exitCode = 1;
      resolve(done);
    });
  });
}

for (const [i, suite] of suites.entries()) {
  // What one needs past its share, to begin and to end its last round, is taken from the shares of the rest, so that all of them keep to the time.
  const share = Math.max(over - performance.now(), 0) / (suites.length - i) / 60_000;
  const done = await runSuite(suite, Math.max(share, LEAST_SHARE));
  if (done === null || done === 0) {
    console.error(`${suite} ${done === null ? "did not say how many rounds it did" : "did no round"}`);
    process.exitCode = 1;
  }
}
console.log(`rounds in all: ${rounds}`);
