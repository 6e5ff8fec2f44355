/** Whole outputs under test/cli/golden; SKEIN_UPDATE=1 rewrites them, and the difference is reviewed. */
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

export function golden(name: string, text: string): void {
  const path = join(import.meta.dirname, "golden", name);
  if (process.env.SKEIN_UPDATE === "1") writeFileSync(path, text);
  assert.equal(text, readFileSync(path, "utf8"));
}
