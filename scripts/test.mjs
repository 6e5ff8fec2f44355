// `npm test`: builds, then runs every short suite (*.test.ts); `npm run test:slow` those that start many processes, servers or a browser (*.slow.ts).
// They run with node's test runner, the short ones one more at once than there are cores, since many wait for servers.
// Arguments narrow it down: paths or parts of paths choose suites (`npm test -- robots`), options go to node (`npm test -- --test-name-pattern=delay`).
// `--update` lets the suites rewrite their golden files (SKEIN_UPDATE=1).
import { spawnSync } from "node:child_process";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { findSuites, nodePath, reportMissing, root } from "./suites.mjs";

const args = process.argv.slice(2);
const update = args.includes("--update");
const slow = args.includes("--slow");
const options = args.filter((arg) => arg.startsWith("--") && arg !== "--update" && arg !== "--slow");
const parts = args.filter((arg) => !arg.startsWith("--"));
const suites = findSuites(slow ? ".slow.ts" : ".test.ts").filter((suite) => parts.length === 0 || parts.some((part) => suite.includes(part)));
if (suites.length === 0) {
  console.error(`no suite matches ${parts.join(", ")}`);
  process.exit(2);
}

const node = nodePath();
// The suites of the command line and of the package run what is built.
const build = spawnSync(node, [join(root, "scripts/build.mjs")], { cwd: root, stdio: "inherit" });
if (build.status !== 0) process.exit(build.status ?? 1);

reportMissing(suites);
/** Longer than any suite takes, also on a machine that is three times as slow. */
const SUITE_MINUTES = "8";
const env = { ...process.env, SUITE_MINUTES, NODE_COMPILE_CACHE: join(root, "node_modules/.cache/node") };
if (update) env.SKEIN_UPDATE = "1";
const guard = pathToFileURL(join(root, "scripts/guard.mjs")).href;
const run = spawnSync(
  node,
  ["--import", guard, "--test", `--test-concurrency=${availableParallelism() + (slow ? 0 : 1)}`, "--test-timeout=170000", ...options, ...suites],
  {
    cwd: root,
    stdio: "inherit",
    env,
  },
);
process.exit(run.status ?? 1);
