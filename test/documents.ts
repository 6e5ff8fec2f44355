/** Runs the marked code blocks of a document, for the suites that say which documents. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { mkdir, readdir, symlink, writeFile } from "node:fs/promises";
import { delimiter, dirname, join } from "node:path";
import { test } from "node:test";
import { freePort } from "../src/testing/free-port.ts";
import { lines, root, run, temporaryFolder } from "./command.ts";
import { type DemoSite, openDemoSite } from "./demo-site.ts";

const inDocs = existsSync(join(root, "docs")) ? readdirSync(join(root, "docs"), { recursive: true, encoding: "utf8" }) : [];

/** Every document, relative to the root. */
export const files: readonly string[] = [
  ...readdirSync(root).filter((name) => name.endsWith(".md")),
  ...inDocs.filter((name) => name.endsWith(".md")).map((name) => `docs/${name}`),
  "bench/RESULTS.md",
];
export const read = (name: string): string => readFileSync(join(root, name), "utf8");

/**
 * A block is marked by the comment above it. All blocks of a document run in one folder, against one demo site, from top to bottom.
 * `<!-- run -->` runs shell or TypeScript (with `s/a/b/` or `s|a|b|` changed first), `<!-- file: name -->` puts it into the folder,
 * `<!-- prints -->` is what the block before it prints, line by line in any order (times and rates differ; a line `…` stands for others),
 * `<!-- background -->` starts a server at port 8080, which stands for one that is free, and ends the one before it.
 */
interface Block {
  readonly file: string;
  readonly line: number;
  readonly marker: string;
  readonly language: string;
  readonly code: string;
}

function markedBlocks(file: string): readonly Block[] {
  const text = read(file);
  return [...text.matchAll(/^<!-- ((?:run|file|prints|background)\b[^>]*?) -->\n```(\w+)\n([\s\S]*?)^```$/gm)].map((match) => ({
    file,
    line: text.slice(0, match.index).split("\n").length,
    marker: match[1] ?? "",
    language: match[2] ?? "",
    code: match[3] ?? "",
  }));
}

interface Place {
  readonly folder: string;
  readonly site: DemoSite;
  readonly port: string;
}

/** The block as it is run here: on the demo site, by this checkout's command. */
function localised(block: Block, { site, port }: Place): string {
  const change = /\bs([/|])(.*?)\1(.*?)\1/.exec(block.marker);
  const code = change ? block.code.replace(change[2] ?? "", change[3] ?? "") : block.code;
  if (change) assert.notEqual(code, block.code, `${block.file}:${block.line}: nothing to replace`);
  return code
    .replaceAll("https://example.com/", site.url)
    .replaceAll("8080", port)
    .replaceAll("npx skein", `"${process.execPath}" "${join(root, "bin/skein.js")}"`);
}

/** What differs from run to run. */
function masked(text: string, { site, port }: Place): string {
  return text
    .replaceAll(site.url, "https://example.com/")
    .replaceAll(new URL(site.url).host, "example.com")
    .replaceAll(port, "8080")
    .replaceAll(/\b\d+m \d\ds\b|\b[\d.]+m?s\b/g, "TIME")
    .replaceAll(/\b[\d.]+\/s\b/g, "RATE")
    .replaceAll(/\([\d,]+ pages\/s, \d+ parse workers?\)/g, "(RATE)")
    .replaceAll(/(\(--stop-when .*\): )\d+ pages/g, "$1PAGES")
    .replaceAll(/\b[\d.]+ [KM]?B\b/g, "SIZE")
    .replaceAll(/\b\d+%/g, "SHARE")
    .replaceAll(/\b\d{4}-\d\d-\d\dT[\d:.]+Z/g, "DATE")
    .replaceAll(/ {2,}/g, " ");
}

/** Resolves once it has said its first line. */
async function startServer(code: string, folder: string): Promise<AsyncDisposable> {
  const path = [dirname(process.execPath), process.env.PATH ?? ""].join(delimiter);
  const child = spawn("sh", ["-ec", `exec ${code.trim()}`], { cwd: folder, env: { ...process.env, PATH: path }, stdio: ["ignore", "pipe", "inherit"] });
  const ended = once(child, "exit");
  await Promise.race([once(child.stdout, "data"), ended.then(() => Promise.reject(new Error(`ended at once: ${code}`)))]);
  return {
    async [Symbol.asyncDispose]() {
      child.kill();
      await ended;
    },
  };
}

async function runBlock(block: Block, place: Place): Promise<string> {
  const { folder, site } = place;
  const where = `${block.file}:${block.line}`;
  const code = localised(block, place);
  const before = new Set(await readdir(folder));
  const asked = site.asked.length;
  const script = `block-${block.line}.ts`;
  if (block.language === "ts") await writeFile(join(folder, script), code);
  const result = block.language === "ts" ? await run(process.execPath, [script], folder) : await run("sh", ["-ec", code], folder);
  assert.equal(result.code, 0, `${where}: ${result.stdout}${result.stderr}`);
  const crawls = /skein (?:crawl|fetch)|crawl\(/.test(block.code) && block.code.includes("https://example.com/");
  assert.ok(!crawls || site.asked.length > asked, `${where}: the site was not asked for anything`);
  const written = (await readdir(folder)).filter((entry) => !before.has(entry) && entry !== script);
  assert.ok(result.stdout !== "" || written.length > 0, `${where}: nothing printed, nothing written`);
  return `${result.stdout}\n${result.stderr}`;
}

/** One test, if the document has blocks to run. */
export function testDocument(file: string): void {
  const blocks = markedBlocks(file);
  const count = blocks.filter((block) => block.marker.startsWith("run")).length;
  if (count === 0) return;
  test(`${file}: ${count} code blocks run and give something`, async () => {
    await using temporary = await temporaryFolder();
    await using site = await openDemoSite();
    const place = { folder: temporary.path, site, port: String(await freePort()) };
    await mkdir(join(place.folder, "node_modules"));
    await symlink(root, join(place.folder, "node_modules/skein"), "dir");
    await symlink(join(root, "node_modules/zod"), join(place.folder, "node_modules/zod"), "dir");
    let server: AsyncDisposable | null = null;
    let printed = "";
    try {
      for (const block of blocks) {
        const name = /^file: (\S+)/.exec(block.marker)?.[1];
        if (name !== undefined) await writeFile(join(place.folder, name), localised(block, place));
        else if (block.marker === "background") {
          await server?.[Symbol.asyncDispose]();
          server = await startServer(localised(block, place), place.folder);
        } else if (block.marker === "prints") {
          const there = new Set(lines(masked(printed, place)).map((line) => line.trim()));
          const absent = lines(masked(block.code, place)).filter((line) => line.trim() !== "…" && !there.has(line.trim()));
          assert.deepEqual(absent, [], `${block.file}:${block.line}: printed was\n${printed}`);
        } else printed = await runBlock(block, place);
      }
    } finally {
      await server?.[Symbol.asyncDispose]();
    }
  });
}
