/** The package as a user gets it: packed, installed in an empty folder without a registry, run by its command, imported, and type-checked. */
import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { after, before, test } from "node:test";
import { lines, root, run, temporaryFolder } from "./command.ts";
import { type DemoSite, openDemoSite } from "./demo-site.ts";

const manifest: { readonly version: string; readonly dependencies: Record<string, string> } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
let folder: Awaited<ReturnType<typeof temporaryFolder>>;
let site: DemoSite;

before(async () => {
  site = await openDemoSite();
  folder = await temporaryFolder();
  await mkdir(join(folder.path, "packed"));
  // The build is there already (scripts/test.mjs), hence no scripts. What the package depends on comes from the checkout.
  const sources = [root, ...Object.keys(manifest.dependencies).map((name) => join(root, "node_modules", name))];
  const packed = await run("npm", ["pack", "--ignore-scripts", "--silent", "--pack-destination", join(folder.path, "packed"), ...sources], root);
  assert.equal(packed.code, 0, packed.stderr);
  await writeFile(join(folder.path, "package.json"), JSON.stringify({ name: "consumer", private: true, type: "module" }));
  const tarballs = lines(packed.stdout).map((name) => join("packed", name));
  const flags = ["--offline", "--no-audit", "--no-fund", "--ignore-scripts"];
  const installed = await run("npm", ["install", ...flags, ...tarballs.map((path) => `./${path}`)], folder.path);
  assert.equal(installed.code, 0, installed.stderr);
});

after(async () => {
  await site?.[Symbol.asyncDispose]();
  await folder?.[Symbol.asyncDispose]();
});

/** The packages and all that they need, by the lock file. */
function neededBy(direct: readonly string[]): readonly string[] {
  const { packages } = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8")); // npm's own format
  const needed = new Set<string>();
  const add = (name: string): void => {
    if (needed.has(name)) return;
    needed.add(name);
    for (const next of Object.keys(packages[`node_modules/${name}`]?.dependencies ?? {})) add(next);
  };
  for (const name of direct) add(name);
  return [...needed].filter((name) => !name.startsWith("@"));
}

test("the package brings its licences and nothing of the checkout", () => {
  const installed = join(folder.path, "node_modules/skein");
  const names = readdirSync(installed, { recursive: true, encoding: "utf8" });
  for (const name of ["README.md", "LICENSE", "CHANGELOG.md", "dist/THIRD-PARTY-LICENSES.txt", "dist/types/index.d.ts"]) assert.ok(names.includes(name), name);
  assert.deepEqual(
    names.filter((name) => /(^|\/)(src|test|scripts|\.ci|\.skein)(\/|$)|\.tmp$/.test(name)),
    [],
  );
  for (const name of ["undici", "zod"]) assert.match(readFileSync(join(installed, "dist/THIRD-PARTY-LICENSES.txt"), "utf8"), new RegExp(`^${name} \\d`, "m"));
  const packages = readdirSync(join(folder.path, "node_modules")).filter((name) => !name.startsWith("."));
  assert.deepEqual(packages.sort(), ["skein", ...neededBy(Object.keys(manifest.dependencies))].sort());
});

test("the installed command crawls a site and writes its records", async () => {
  const result = await run(join(folder.path, "node_modules/.bin/skein"), ["crawl", site.url, "-o", "pages.jsonl"], folder.path);
  assert.equal(result.code, 0, result.stderr);
  const records = lines(readFileSync(join(folder.path, "pages.jsonl"), "utf8")).map((line) => JSON.parse(line));
  const paths = records.map((record) => `${record.outcome} ${new URL(record.url).pathname}`);
  assert.deepEqual(paths.sort(), [
    "disallowed /private/secret.html",
    "fetched /",
    "fetched /about.html",
    "fetched /docs/",
    "fetched /docs/a.html",
    "fetched /docs/b.html",
    "fetched /docs/deep.html",
    "fetched /docs/deeper.html",
    "fetched /docs/deepest.html",
    "fetched /missing.html",
    "redirected /moved",
  ]);
});

test("the command knows its version, and an old Node gets a sentence instead of a stack trace", async () => {
  const bin = join(folder.path, "node_modules/skein/bin/skein.js");
  const version = await run(process.execPath, [bin, "--version"], folder.path);
  assert.match(version.stdout, new RegExp(`\\b${manifest.version.replaceAll(".", "\\.")}\\b`));
  await writeFile(join(folder.path, "old.cjs"), 'Object.defineProperty(process, "versions", { value: { ...process.versions, node: "18.20.0" } });');
  const old = await run(process.execPath, ["--require", "./old.cjs", bin, "crawl", site.url], folder.path);
  assert.equal(old.code, 2);
  assert.equal(old.stdout, "");
  assert.match(old.stderr, /^skein needs Node\.js 24 or newer; .*\nNext step: /);
});

test("help comes without loading the crawl, and the crawl's first steps without the network", () => {
  const dist = join(folder.path, "node_modules/skein/dist");
  const loads = (entry: string, seen = new Set<string>()): ReadonlySet<string> => {
    if (seen.has(entry)) return seen;
    seen.add(entry);
    // Static imports only: what is imported lazily is written `import(`.
    const imports = readFileSync(join(dist, entry), "utf8").matchAll(/(?:\bfrom|\bimport)\s*"(\.[^"]+)"/g);
    for (const [, path = ""] of imports) loads(join(dirname(entry), path), seen);
    return seen;
  };
  const text = (entry: string) => [...loads(entry)].map((path) => readFileSync(join(dist, path), "utf8")).join("\n");
  assert.ok(text("cli.js").length < 30_000, "the command's entry has grown: what does it load at once?");
  assert.doesNotMatch(text("cli.js"), /zod|undici/);
  assert.doesNotMatch(text("index.js"), /undici\/lib\/(dispatcher|llhttp)|node:tls|node:http/);
});

test("the installed library crawls", async () => {
  const program = `import { crawl, VERSION } from "skein";
    let pages = 0;
    for await (const page of crawl({ seeds: [process.argv[2]], maxDepth: 1 })) if (page.outcome === "fetched") pages++;
    console.log(pages, VERSION);`;
  await writeFile(join(folder.path, "program.mjs"), program);
  const result = await run(process.execPath, ["program.mjs", site.url], folder.path);
  assert.equal(result.stdout, `6 ${manifest.version}\n`, result.stderr);
});

test("a consumer's program type-checks, in both module resolutions and with libraries checked", async () => {
  await writeFile(
    join(folder.path, "consumer.ts"),
    `import { crawl, CrawlError, type PageRecord, type Summary } from "skein";
    const run = crawl({ seeds: ["https://example.com/"], maxDepth: 2, perHost: { delay: "1s" } }, { scrape: (url, html) => [url + html.length] });
    const urls: string[] = [];
    for await (const page of run) urls.push((page satisfies PageRecord).url);
    const summary: Summary = await run.done;
    console.log(summary.finishReason, new CrawlError("internal", "x").code);
    // @ts-expect-error an option that does not exist
    crawl({ seeds: [], nonsense: 1 });
    // @ts-expect-error a number where a duration is a string or a number
    crawl({ seeds: [], timeout: true });\n`,
  );
  if (existsSync(join(root, "src/testing.ts")))
    await writeFile(join(folder.path, "cases.ts"), `import * as testing from "skein/testing";\nconsole.log(typeof testing);\n`);
  for (const [module, moduleResolution] of [
    ["nodenext", "nodenext"],
    ["esnext", "bundler"],
  ]) {
    const compilerOptions = {
      ...{ module, moduleResolution, target: "es2024", lib: ["es2024", "esnext.disposable"], strict: true, noEmit: true, skipLibCheck: false },
      exactOptionalPropertyTypes: true,
      types: ["node"],
      typeRoots: [join(root, "node_modules/@types")],
    };
    await writeFile(join(folder.path, "tsconfig.json"), JSON.stringify({ compilerOptions, include: ["*.ts"] }));
    const result = await run(process.execPath, [join(root, "node_modules/typescript/bin/tsc"), "-p", "."], folder.path);
    assert.equal(result.code, 0, `${moduleResolution}: ${result.stdout}`);
  }
});
