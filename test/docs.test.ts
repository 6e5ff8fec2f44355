/** The documentation is true: the README's marked code blocks run, links lead somewhere, and tables name what the code names. The other documents' blocks run in docs.slow.ts, the tutorials' in tutorials.slow.ts. */
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { root } from "./command.ts";
import { files, read, testDocument } from "./documents.ts";

testDocument("README.md");

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
