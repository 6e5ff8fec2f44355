// What the two test runners share: where the suites lie, which Node runs them, and which tools they need.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { delimiter, dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

export const root = resolve(dirname(fileURLToPath(import.meta.url)), "..");

/** npm puts the checkout's own Node first on PATH; a script started by hand under an older one still finds it. */
export function nodePath() {
  if (Number(process.versions.node.split(".")[0]) >= 24) return process.execPath;
  const own = join(root, "node_modules/node/bin/node");
  if (existsSync(own)) return own;
  console.error("tests need Node.js 24 or newer.\nNext step: npm ci, which brings it");
  process.exit(2);
}

/** Paths from the root, sorted, of files in src/ and test/ whose name ends so. */
export function findSuites(ending) {
  const found = [];
  for (const folder of ["src", "test"]) {
    if (!existsSync(join(root, folder))) continue;
    for (const name of readdirSync(join(root, folder), { recursive: true })) if (name.endsWith(ending)) found.push(`${folder}/${name.replaceAll("\\", "/")}`);
  }
  return found.sort();
}

const onPath = (name) => (process.env.PATH ?? "").split(delimiter).some((folder) => folder !== "" && existsSync(join(folder, name)));
const conformance = resolve(root, process.env.SKEIN_CONFORMANCE_DIR ?? "../shared/conformance");
const docs = ["/usr/share/doc/python3-doc/html", "/usr/share/doc/postgresql-doc-15/html", "/usr/share/doc/git-doc/git.html"];

/** A suite says `needs: redis-server, docs` in a comment near its top; one that reads SKEIN_CONFORMANCE_DIR, or by a module that is named so, needs the conformance data. */
export const TOOLS = {
  conformance: { what: `conformance data (${conformance}; SKEIN_CONFORMANCE_DIR)`, present: () => existsSync(conformance) },
  docs: { what: "Debian's python3-doc, postgresql-doc-15 and git-doc", present: () => docs.every((path) => existsSync(path)) },
  nginx: { what: "nginx", present: () => onPath("nginx") || existsSync("/usr/sbin/nginx") },
  "redis-server": { what: "redis-server", present: () => onPath("redis-server") },
  chromium: { what: "chromium", present: () => onPath("chromium") },
};

export function needsOf(suite) {
  const text = readFileSync(join(root, suite), "utf8");
  const stated = /^(?:\/\/|\/?\s?\*+)\s.*\bneeds: ([a-z, -]+)/m.exec(text.slice(0, 1500))?.[1] ?? "";
  const names = new Set(stated.split(/[,\s]+/).filter((name) => name in TOOLS));
  if (text.includes("SKEIN_CONFORMANCE_DIR") || /from "[^"]*conformance\.ts"/.test(text)) names.add("conformance");
  return names;
}

/** One line for each tool that is not there and is needed; ends the process when SKEIN_REQUIRE names one of them. */
export function reportMissing(suites) {
  const required = (process.env.SKEIN_REQUIRE ?? "").split(",").map((name) => name.trim());
  const unknown = required.filter((name) => name !== "" && !(name in TOOLS));
  if (unknown.length > 0) {
    console.error(`SKEIN_REQUIRE: unknown ${unknown.join(", ")}; allowed: ${Object.keys(TOOLS).join(", ")}`);
    process.exit(2);
  }
  let failed = false;
  for (const [name, tool] of Object.entries(TOOLS)) {
    if (tool.present()) continue;
    const affected = suites.filter((suite) => needsOf(suite).has(name));
    if (affected.length > 0) console.log(`skipped for lack of ${tool.what}: ${affected.join(", ")}`);
    if (required.includes(name)) {
      console.error(`SKEIN_REQUIRE asks for ${name}, and it is not here: ${tool.what}`);
      failed = true;
    }
  }
  if (failed) process.exit(1);
}
