/** Holds the floor plan (ARCHITECTURE.md): who may import whom, which package lives in which room, and how large a file may grow. */
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { test } from "node:test";

const root = resolve(import.meta.dirname, "..");
const IS_TEST = /\.(test|slow|long|bench)\.ts$/;

/** What the rooms that assemble may use. */
const PARTS = ["core", "rules", "store", "fetch", "parse", "sinks", "engine", "testing"];

/** Room → rooms it may import besides itself. `top` are the files directly in src/. */
const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  core: [],
  rules: ["core"],
  store: ["core", "rules"],
  fetch: ["core", "rules"],
  parse: ["core", "rules"],
  sinks: ["core", "rules"],
  engine: ["core", "rules"],
  testing: ["core", "rules"],
  top: [...PARTS, "threads", "cluster", "inspect"],
  threads: [...PARTS, "top"],
  cluster: [...PARTS, "top", "threads", "inspect"],
  inspect: [...PARTS, "top", "cluster"],
  jobs: [...PARTS, "top", "cluster", "inspect"],
  service: ["core", "rules", "top", "jobs", "inspect"],
  cli: ["core", "rules", "top", "threads", "cluster", "inspect", "jobs", "service"],
};

/** Third-party package → the one place that may import it. */
const PACKAGE_HOME: Readonly<Record<string, RegExp>> = {
  zod: /^core\/(?:spec|forms|job-spec)\.ts$/,
  cheerio: /^parse\/scrape\//,
  undici: /^fetch\//,
  ioredis: /^store\/redis\//,
  entities: /^parse\//,
  "whatwg-mimetype": /^rules\/media-type\.ts$/,
  tldts: /^rules\/site\.ts$/,
  "ipaddr.js": /^rules\/address\.ts$/,
  hono: /^service\//,
  "@fastify/busboy": /^service\/multipart\.ts$/,
  esbuild: /^service\/dashboard\/bundle\.ts$/,
  preact: /^service\/dashboard\//,
};
/** Only tests use these: oracles and generators of cases. */
const TEST_PACKAGES = new Set(["parse5", "fast-check"]);

/** Node's own modules that reach the network belong to fetch/, and to the test sites; service/ listens; those that do I/O at all stay out of core/ and rules/. */
const NETWORK = /^node:(net|tls|http|https|http2|dns|dgram)(\/|$)/;
const IO = /^node:(fs|child_process|worker_threads|cluster|readline|sqlite|stream|timers)(\/|$)/;

interface SourceFile {
  /** From src/, with forward slashes. */
  readonly path: string;
  readonly room: string;
  /** A suite, or a file whose first line says "for tests only". */
  readonly test: boolean;
  readonly text: string;
  readonly imports: readonly string[];
  /** Without `import type`: what is really loaded. */
  readonly loads: readonly string[];
}

function readSources(): readonly SourceFile[] {
  const names = readdirSync(join(root, "src"), { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".ts"));
  return names.sort().map((name) => {
    const path = name.replaceAll("\\", "/");
    const text = readFileSync(join(root, "src", path), "utf8");
    const statements = [...text.matchAll(/^\s*(?:import|export)\s(type\s)?(?:[^;"']*?\sfrom\s)?"([^"]+)"/gm)];
    const calls = [...text.matchAll(/\bimport\(\s*"([^"]+)"\s*\)/g)].map((match) => match[1] ?? "");
    const imports = [...statements.map((match) => match[2] ?? ""), ...calls];
    const loads = statements.filter((match) => match[1] === undefined).map((match) => match[2] ?? "");
    const test = IS_TEST.test(path) || /\bfor tests only\b/i.test(text.slice(0, text.indexOf("\n")));
    return { path, room: roomOf(path), test, text, imports, loads };
  });
}

const target = (file: SourceFile, specifier: string) => join(dirname(file.path), specifier).replaceAll("\\", "/");
const roomOf = (path: string) => (path.includes("/") ? path.slice(0, path.indexOf("/")) : "top");
const sources = readSources();

/** All complaints at once: a person who moves a file wants the whole list. */
function complain(complaints: readonly string[]): void {
  assert.equal(complaints.length, 0, `\n  ${complaints.join("\n  ")}\n`);
}

test("every room is on the floor plan", () => {
  complain([...new Set(sources.map((file) => file.room))].filter((room) => !(room in MAY_IMPORT)).map((room) => `src/${room}/ is in no table`));
});

test("a room imports only the rooms below it", () => {
  const complaints: string[] = [];
  for (const file of sources) {
    const allowed = new Set([file.room, ...(MAY_IMPORT[file.room] ?? [])]);
    // A test may use the published cases and test sites; a test of the whole crawl lives in src/ itself or in test/.
    if (file.test) allowed.add("testing");
    for (const specifier of file.imports) {
      if (!specifier.startsWith(".")) continue;
      const path = target(file, specifier);
      if (file.test && path.startsWith("../test/")) continue;
      const room = roomOf(path);
      if (!allowed.has(room)) complaints.push(`src/${file.path} imports ${specifier}: ${file.room} may not know ${room}`);
    }
  }
  complain(complaints);
});

test("relative imports end in .ts and stay inside src/, but for what suites find in test/", () => {
  const complaints: string[] = [];
  for (const file of sources) {
    for (const specifier of file.imports.filter((name) => name.startsWith("."))) {
      const data = /\.json$/.test(specifier);
      if (!data && !specifier.endsWith(".ts")) complaints.push(`src/${file.path}: ${specifier}`);
      const path = target(file, specifier);
      if (!data && path.startsWith("..") && !(file.test && path.startsWith("../test/"))) complaints.push(`src/${file.path} reaches outside: ${specifier}`);
    }
  }
  complain(complaints);
});

test("each third-party package has one home", () => {
  const complaints: string[] = [];
  for (const file of sources) {
    for (const specifier of file.imports.filter((name) => !name.startsWith(".") && !name.startsWith("node:"))) {
      const name = /^(@[^/]+\/[^/]+|[^/]+)/.exec(specifier)?.[0] ?? specifier;
      const home = PACKAGE_HOME[name];
      if (file.test && TEST_PACKAGES.has(name)) continue;
      if (home === undefined) complaints.push(`src/${file.path} imports ${name}, which is in no table`);
      else if (!home.test(file.path) && !file.test) complaints.push(`src/${file.path} imports ${name}; its home is ${home}`);
    }
  }
  complain(complaints);
});

test("sockets are opened by fetch/ and service/ only, and to the store by its probe, and core/ and rules/ do no I/O", () => {
  const complaints: string[] = [];
  for (const file of sources) {
    if (file.test) continue;
    for (const specifier of file.imports) {
      // `isIP` and the like are not I/O, but they are not worth an exception either: rules/address.ts has its own package.
      const mayListen = file.room === "service" && specifier === "node:http";
      // To the store's own address, which the operator named: what answers there when it is no Redis.
      const asksStore = file.path === "store/redis/probe.ts";
      if (NETWORK.test(specifier) && file.room !== "fetch" && file.room !== "testing" && !mayListen && !asksStore)
        complaints.push(`src/${file.path} imports ${specifier}`);
      if (IO.test(specifier) && (file.room === "core" || file.room === "rules")) complaints.push(`src/${file.path} imports ${specifier}`);
    }
  }
  complain(complaints);
});

test("what is for tests only is not loaded by the program", () => {
  const testFiles = new Set(sources.filter((file) => file.test).map((file) => file.path));
  const program = sources.filter((file) => !file.test && file.room !== "testing");
  complain(program.flatMap((file) => file.imports.filter((name) => testFiles.has(target(file, name))).map((name) => `src/${file.path} imports ${name}`)));
});

test("rules take time and chance as arguments", () => {
  const reader = /\b(Date\.now|performance\.now|new Date\(\)|Math\.random|setTimeout|setInterval|setImmediate)\b/;
  const offenders = sources.filter((file) => file.room === "rules" && !file.test && reader.test(file.text));
  complain(offenders.map((file) => `src/${file.path}: ${reader.exec(file.text)?.[0]}`));
});

test("there are no import circles, types and lazy imports apart", () => {
  const byPath = new Map(sources.map((file) => [file.path, file]));
  const finished = new Set<string>();
  const complaints: string[] = [];
  const visit = (path: string, trail: readonly string[]): void => {
    const file = byPath.get(path);
    if (file === undefined || finished.has(path)) return;
    const at = trail.indexOf(path);
    if (at >= 0) {
      complaints.push([...trail.slice(at), path].join(" → "));
      return;
    }
    for (const specifier of file.loads) if (specifier.startsWith(".")) visit(target(file, specifier), [...trail, path]);
    finished.add(path);
  };
  for (const file of sources) visit(file.path, []);
  complain(complaints);
});

test("index.ts is only the public door, and no folder is a drawer for odds and ends", () => {
  const publicDoors = new Set(["index.ts", "testing.ts"]);
  const complaints = sources.filter((file) => /(^|\/)index\.ts$/.test(file.path) && !publicDoors.has(file.path)).map((file) => `src/${file.path}`);
  for (const file of sources) if (/(^|\/)(utils?|common|shared|base|helpers?|misc)(\/|\.ts$)/.test(file.path)) complaints.push(`src/${file.path}`);
  complain(complaints);
});

test("no file is longer than 400 lines", () => {
  complain(
    sources
      .map((file) => ({ path: file.path, lines: file.text.split("\n").length - 1 }))
      .filter((file) => file.lines > 400)
      .map((file) => `src/${file.path}: ${file.lines} lines`),
  );
});

test("every file of the program opens with a sentence that says what it is for", () => {
  complain(sources.filter((file) => !file.test && !file.path.endsWith(".d.ts") && !/^(\/\*\*|\/\/|#!)/.test(file.text)).map((file) => `src/${file.path}`));
});
