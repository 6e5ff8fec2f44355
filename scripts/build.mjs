// Builds dist/: JavaScript bundled by esbuild, declarations by tsc, the licences of what is bundled. Why bundled: docs/decisions/0003.
// `--strict` (prepack) turns type errors into a failed build; otherwise they are only reported, so that a checkout in the middle of a change still runs.
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import * as esbuild from "esbuild";

const root = resolve(dirname(fileURLToPath(import.meta.url)), "..");
const dist = join(root, "dist");
const strict = process.argv.includes("--strict");
const startedAt = performance.now();

/** Leaves out what we never reach and what would be loaded at every start. */
const leaner = {
  name: "leaner",
  setup(build) {
    // undici's HTTP/2 half loads node:http2 and node:tls, a third of the time to the first request. fetch/ speaks HTTP/1.1 only and offers nothing else.
    build.onLoad({ filter: /undici\/lib\/dispatcher\/client-h2\.js$/ }, () => ({
      contents: 'module.exports = () => { throw new Error("HTTP/2 is not part of this build"); };',
    }));
    // zod brings its messages in 50 languages; ours are in English. Half of its weight at start-up.
    build.onResolve({ filter: /\/locales\/index\.js$/ }, (args) =>
      /node_modules\/zod\//.test(args.importer) ? { path: "zod-locales", namespace: "slim", pluginData: args.resolveDir } : null,
    );
    build.onLoad({ filter: /^zod-locales$/, namespace: "slim" }, (args) => ({
      contents: 'export { default as en } from "../locales/en.js";',
      resolveDir: args.pluginData,
    }));
    // cheerio's index brings undici of its own and readers of streams; a scraper's document is made from text.
    build.onResolve({ filter: /^cheerio$/ }, ({ importer, resolveDir }) =>
      /src\/parse\/scrape\//.test(importer.replaceAll("\\", "/"))
        ? build.resolve("cheerio", { kind: "import-statement", importer: "", resolveDir }).then(({ path }) => ({ path: join(dirname(path), "load-parse.js") }))
        : null,
    );
    // The Lua scripts of the Redis store are files beside the source; in the bundle they are text.
    build.onLoad({ filter: /store\/redis\/lua-text\.ts$/ }, ({ path }) => {
      const folder = join(dirname(path), "lua");
      const files = readdirSync(folder).filter((name) => name.endsWith(".lua"));
      const texts = Object.fromEntries(files.map((name) => [name.slice(0, -4), readFileSync(join(folder, name), "utf8")]));
      const watchFiles = files.map((name) => join(folder, name));
      return { contents: `const TEXTS = ${JSON.stringify(texts)};\nexport const luaText = (name) => TEXTS[name];`, loader: "js", watchFiles };
    });
    // Two constant functions in a package without a licence file: written here instead.
    build.onResolve({ filter: /^boolbase$/ }, () => ({ path: "boolbase", namespace: "slim-boolbase" }));
    build.onLoad({ filter: /.*/, namespace: "slim-boolbase" }, () => ({ contents: "exports.trueFunc = () => true; exports.falseFunc = () => false;" }));
  },
};

const ENTRIES = {
  index: "src/index.ts",
  cli: "src/cli/main.ts",
  testing: "src/testing.ts",
  worker: "src/parse/scrape/worker.ts",
  thread: "src/threads/worker.ts",
  "work-thread": "src/cluster/work-worker.ts",
};
const entries = Object.fromEntries(Object.entries(ENTRIES).filter(([, file]) => existsSync(join(root, file))));
const absent = Object.values(ENTRIES).filter((file) => !existsSync(join(root, file)));
if (absent.length > 0) console.error(`build: no ${absent.join(", no ")}; built without`);
if (Object.keys(entries).length === 0) process.exit(0);

// esbuild has printed its errors by then.
const [bundle, dashboard, types] = await Promise.all([bundleCode().catch(() => process.exit(1)), bundlePages().catch(() => process.exit(1)), emitTypes()]);
const wanted = new Map([...bundle.files, ...dashboard.files, ...types.files]);
wanted.set("THIRD-PARTY-LICENSES.txt", Buffer.from(licences([...new Set([...bundle.packages, ...dashboard.packages])].sort())));
publish(wanted);
const seconds = ((performance.now() - startedAt) / 1000).toFixed(1);
console.error(`build: ${wanted.size} files in dist/, ${seconds} s${types.errors > 0 ? `; ${types.errors} type errors (npm run types shows them)` : ""}`);
if (types.errors > 0 && strict) process.exit(1);

/** ESM with shared chunks: what an entry imports lazily is loaded only when it is needed. */
async function bundleCode() {
  const result = await esbuild.build({
    absWorkingDir: root,
    entryPoints: entries,
    outdir: dist,
    write: false,
    bundle: true,
    splitting: true,
    format: "esm",
    platform: "node",
    target: "node24",
    chunkNames: "chunks/[name]-[hash]",
    // Names are kept, so that stack traces and function names stay readable; the rest of the text is only weight at start-up.
    minifyWhitespace: true,
    minifySyntax: true,
    legalComments: "none",
    metafile: true,
    logLevel: "warning",
    // Of service/dashboard/bundle.ts, which a build does not reach: its pages are in dist/dashboard already.
    external: ["esbuild"],
    plugins: [leaner],
  });
  return { files: result.outputFiles.map((file) => [relative(dist, file.path), withRequire(file)]), packages: packagesOf(Object.keys(result.metafile.inputs)) };
}

/** The dashboard, by the function that a service run from the sources uses too; it is TypeScript, which the Node that runs this may not read. */
async function bundlePages() {
  const source = join(root, "src/service/dashboard/bundle.ts");
  if (!existsSync(source)) return { files: [], packages: [] };
  const { code } = await esbuild.transform(readFileSync(source, "utf8"), { loader: "ts", format: "esm", target: "node20" });
  mkdirSync(join(root, "node_modules/.cache"), { recursive: true });
  const script = join(root, `node_modules/.cache/dashboard-${process.pid}.mjs`);
  writeFileSync(script, code);
  try {
    const { bundleDashboard } = await import(pathToFileURL(script).href);
    const { files, inputs } = await bundleDashboard(root);
    return { files: [...files].map(([name, contents]) => [join("dashboard", name), Buffer.from(contents)]), packages: packagesOf(inputs) };
  } finally {
    rmSync(script, { force: true });
  }
}

/** Names of the packages in which these files lie. */
function packagesOf(inputs) {
  const names = inputs.map((input) => /node_modules\/((?:@[^/]+\/)?[^/]+)\/(?!.*node_modules\/)/.exec(input)?.[1]);
  return [...new Set(names.filter((name) => name !== undefined))];
}

/** The one chunk through which CommonJS packages require Node's own modules gets a `require`; in all chunks it would cost 10 ms at start. */
function withRequire(file) {
  if (!file.text.includes("typeof require")) return file.contents;
  return Buffer.from(`import { createRequire } from "node:module";\nconst require = createRequire(import.meta.url);\n${file.text}`);
}

/** Declarations of what the public entries reach, and nothing else: a consumer then needs no types but Node's and zod's. */
async function emitTypes() {
  mkdirSync(join(root, "node_modules/.cache"), { recursive: true });
  const folder = mkdtempSync(join(root, "node_modules/.cache/types-"));
  try {
    const files = [ENTRIES.index, ENTRIES.testing].filter((file) => existsSync(join(root, file)));
    if (files.length === 0) return { files: [], errors: 0 };
    const config = {
      extends: join(root, "tsconfig.json"),
      compilerOptions: {
        noEmit: false,
        declaration: true,
        emitDeclarationOnly: true,
        rewriteRelativeImportExtensions: true,
        noEmitOnError: false,
        stripInternal: true,
        rootDir: join(root, "src"),
        outDir: join(folder, "out"),
        typeRoots: [join(root, "node_modules/@types")],
      },
      include: [join(root, "src/**/*.d.ts")],
      files: files.map((file) => join(root, file)),
    };
    writeFileSync(join(folder, "tsconfig.json"), JSON.stringify(config));
    const tsc = await run(process.execPath, [join(root, "node_modules/typescript/bin/tsc"), "-p", join(folder, "tsconfig.json")]);
    const errors = tsc.output.split("\n").filter((line) => /error TS\d+/.test(line)).length;
    const out = join(folder, "out");
    if (!existsSync(out)) throw new Error(`tsc wrote no declarations:\n${tsc.output}`);
    const reached = reachable(
      out,
      files.map((file) => file.replace(/^src\//, "").replace(/\.ts$/, ".d.ts")),
    );
    return { files: [...reached].map(([name, text]) => [join("types", name), Buffer.from(text)]), errors };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Follows relative imports among declarations; the specifiers are made to end in .js, which every resolution mode understands. */
function reachable(folder, starts) {
  const found = new Map();
  const queue = [...starts];
  for (let name = queue.pop(); name !== undefined; name = queue.pop()) {
    if (found.has(name)) continue;
    const text = readFileSync(join(folder, name), "utf8").replace(/((?:from|import)\s*\(?\s*")(\.{1,2}\/[^"]+)\.(?:ts|js)"/g, (_, head, path) => {
      queue.push(join(dirname(name), `${path}.d.ts`));
      return `${head}${path}.js"`;
    });
    found.set(name, text);
  }
  return found;
}

/** The bundle holds code of others; their licences travel with it. */
function licences(packages) {
  const parts = packages.map((name) => {
    const folder = join(root, "node_modules", name);
    const { version, license } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
    const file = readdirSync(folder).find((entry) => /^licen[cs]e(\.|$)/i.test(entry));
    if (!file) throw new Error(`${name} has no licence file; it cannot be bundled`);
    return `${name} ${version} (${license})\n\n${readFileSync(join(folder, file), "utf8").trim()}\n`;
  });
  return `The JavaScript in this folder contains code of these packages.\n\n${parts.join(`\n${"-".repeat(80)}\n\n`)}`;
}

/** Files are replaced one by one and only when they differ: what runs meanwhile finds whole files, and Node's compile cache stays warm. */
function publish(files) {
  for (const [name, contents] of files) {
    const path = join(dist, name);
    if (existsSync(path) && readFileSync(path).equals(contents)) continue;
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(`${path}.${process.pid}.tmp`, contents);
    renameSync(`${path}.${process.pid}.tmp`, path);
  }
  if (!existsSync(dist)) return;
  for (const entry of readdirSync(dist, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath ?? entry.path, entry.name);
    // A .tmp file belongs to another build that is under way.
    if (entry.isFile() && !entry.name.endsWith(".tmp") && !files.has(relative(dist, path))) rmSync(path, { force: true });
  }
}

function run(command, args) {
  return new Promise((done, failed) => {
    const child = spawn(command, args, { cwd: root, stdio: ["ignore", "pipe", "pipe"] });
    let output = "";
    child.stdout.on("data", (data) => (output += data));
    child.stderr.on("data", (data) => (output += data));
    child.on("error", failed);
    child.on("close", (code) => done({ code, output }));
  });
}
