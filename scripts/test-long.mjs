// `npm run test:long`: the suites named *.long.ts (random webs, kills, soaks), which work in rounds until their share of the time is over.
// SKEIN_LONG_MINUTES (default 5) is divided equally; each suite finds its own share in the same variable and prints `rounds: N`. None done is a failure.
import { spawn } from "node:child_process";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { findSuites, nodePath, reportMissing, root } from "./suites.mjs";

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
const share = minutes / suites.length;
console.log(`${suites.length} long ${suites.length === 1 ? "suite" : "suites"}, ${share.toFixed(2)} minutes each: ${suites.join(", ")}`);

const guard = pathToFileURL(join(root, "scripts/guard.mjs")).href;
const child = spawn(nodePath(), ["--import", guard, "--test", "--test-concurrency=1", "--test-reporter=spec", ...suites], {
  cwd: root,
  stdio: ["ignore", "pipe", "inherit"],
  env: { ...process.env, SKEIN_LONG_MINUTES: String(share), SUITE_MINUTES: String(share + 8) },
});
let rounds = 0;
let reports = 0;
let rest = "";
child.stdout.setEncoding("utf8");
child.stdout.on("data", (text) => {
  process.stdout.write(text);
  const lines = (rest + text).split("\n");
  rest = lines.pop() ?? "";
  for (const line of lines) {
    const match = /\brounds: (\d+)/.exec(line);
    if (!match) continue;
    reports++;
    rounds += Number(match[1]);
    if (Number(match[1]) === 0) process.exitCode = 1;
  }
});
child.on("close", (code) => {
  if (code !== 0) process.exitCode = 1;
  if (reports < suites.length) {
    console.error(`only ${reports} of ${suites.length} long suites said how many rounds they did`);
    process.exitCode = 1;
  }
  console.log(`rounds in all: ${rounds}`);
});
