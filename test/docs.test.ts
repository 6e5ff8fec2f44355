/** The documentation is true: marked code blocks run, links lead somewhere, and tables name what the code names. */
import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { mkdir, readdir, symlink, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { root, run, temporaryFolder } from "./command.ts";
import { openDemoSite } from "./demo-site.ts";

const inDocs = existsSync(join(root, "docs")) ? readdirSync(join(root, "docs"), { recursive: true, encoding: "utf8" }) : [];
const files = [
  ...readdirSync(root).filter((name) => name.endsWith(".md")),
  ...inDocs.filter((name) => name.endsWith(".md")).map((name) => `docs/${name}`),
  "bench/RESULTS.md",
];
const read = (name: string) => readFileSync(join(root, name), "utf8");

/**
 * A block is marked by the comment above it: `<!-- run -->` runs shell or TypeScript (with `s/a/b/` changed first, to save time),
 * `<!-- file: name -->` puts it into the folder where the blocks of that document run.
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
  return [...text.matchAll(/^<!-- ((?:run|file)\b[^>]*?) -->\n```(\w+)\n([\s\S]*?)^```$/gm)].map((match) => ({
    file,
    line: text.slice(0, match.index).split("\n").length,
    marker: match[1] ?? "",
    language: match[2] ?? "",
    code: match[3] ?? "",
  }));
}

/** The block as it is run here: on the demo site, by this checkout's command. */
function localised(block: Block, siteUrl: string): string {
  const change = /\bs\/(.*?)\/(.*?)\//.exec(block.marker);
  const code = change ? block.code.replace(change[1] ?? "", change[2] ?? "") : block.code;
  if (change) assert.notEqual(code, block.code, `${block.file}:${block.line}: nothing to replace`);
  return code.replaceAll("https://example.com/", siteUrl).replaceAll("npx skein", `"${process.execPath}" "${join(root, "bin/skein.js")}"`);
}

for (const file of files) {
  const blocks = markedBlocks(file);
  const count = blocks.filter((block) => block.marker.startsWith("run")).length;
  if (count === 0) continue;
  test(`${file}: ${count} code blocks run and give something`, async () => {
    await using folder = await temporaryFolder();
    await mkdir(join(folder.path, "node_modules"));
    await symlink(root, join(folder.path, "node_modules/skein"), "dir");
    for (const block of blocks) {
      const where = `${block.file}:${block.line}`;
      await using site = await openDemoSite();
      const code = localised(block, site.url);
      const name = /^file: (\S+)/.exec(block.marker)?.[1];
      if (name !== undefined) {
        await writeFile(join(folder.path, name), code);
        continue;
      }
      const before = new Set(await readdir(folder.path));
      const script = `block-${block.line}.ts`;
      if (block.language === "ts") await writeFile(join(folder.path, script), code);
      const result = block.language === "ts" ? await run(process.execPath, [script], folder.path) : await run("sh", ["-ec", code], folder.path);
      assert.equal(result.code, 0, `${where}: ${result.stderr}`);
      assert.ok(site.asked.includes("/"), `${where}: the seed was not asked for`);
      const written = (await readdir(folder.path)).filter((entry) => !before.has(entry) && entry !== script);
      assert.ok(result.stdout !== "" || written.length > 0, `${where}: nothing printed, nothing written`);
    }
  });
}

test("links between documents lead to files that exist", () => {
  const dead: string[] = [];
  for (const file of files) {
    for (const [, target = ""] of read(file).matchAll(/\]\(([^)\s]+)\)/g)) {
      if (/^[a-z]+:/.test(target)) continue;
      const [path = "", anchor] = target.split("#");
      const at = path === "" ? join(root, file) : join(root, dirname(file), path);
      if (!existsSync(at)) dead.push(`${file}: ${target}`);
      else if (anchor !== undefined && !headings(readFileSync(at, "utf8")).has(anchor)) dead.push(`${file}: ${target} (no such heading)`);
    }
  }
  assert.deepEqual(dead, []);
});

function headings(text: string): ReadonlySet<string> {
  const slugs = [...text.matchAll(/^#+ (.*)$/gm)].map((match) =>
    (match[1] ?? "")
      .toLowerCase()
      .replace(/[^\p{L}\p{N} -]/gu, "")
      .replaceAll(" ", "-"),
  );
  return new Set(slugs);
}

test("CI runs the README's test command", () => {
  const command = /^npm ci && npm test$/m.exec(read("README.md"))?.[0];
  assert.ok(command, "the README has no test command");
  assert.ok(read(".ci/run").includes(`\n${command}\n`));
});

test("docs/records.md names every field, outcome, error code and skip reason, and no other", () => {
  const source = read("src/core/records.ts");
  const union = (name: string) => {
    const body = new RegExp(`type ${name} =([\\s\\S]*?);`).exec(source)?.[1] ?? "";
    return [...body.matchAll(/"([^"]+)"/g)].map((match) => match[1] ?? "");
  };
  const fields = (name: string) => {
    const body = new RegExp(`interface ${name} \\{([\\s\\S]*?)\\n\\}`).exec(source)?.[1] ?? "";
    return [...body.matchAll(/^ {2}readonly (\w+)\??:/gm)].map((match) => match[1] ?? "");
  };
  const document = read("docs/records.md");
  const section = (title: string) => {
    const body = document.split(/^## /m).find((part) => part.startsWith(`${title}\n`)) ?? "";
    return [...body.matchAll(/^\| `([^`]+)` +\|/gm)].map((match) => match[1] ?? "");
  };
  assert.deepEqual(section("Page records"), fields("PageRecord"));
  assert.deepEqual(section("Outcomes"), union("Outcome"));
  assert.deepEqual(section("Error codes"), union("ErrorCode"));
  assert.deepEqual(section("Skipped URLs"), union("SkipReason"));
});
