import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { parseSpec } from "./spec.ts";
import { TRAP_LIMITS, TRAP_NAMES } from "./traps.ts";

test("every rule has a name, a figure, and a line with both in docs/traps.md", () => {
  const page = readFileSync(new URL("../../docs/traps.md", import.meta.url), "utf8");
  assert.deepEqual([...TRAP_NAMES].sort(), Object.keys(TRAP_LIMITS).sort());
  for (const name of TRAP_NAMES) assert.match(page, new RegExp(`^\\| \`${name}\` \\| ${TRAP_LIMITS[name]} \\|`, "m"), name);
});

test("a rule is changed by a figure and lifted by off or null; another name is refused", () => {
  assert.deepEqual(parseSpec({ traps: { template: "50000", chain: "off", hosts: null, all: 7 } }).traps, {
    template: 50_000,
    chain: null,
    hosts: null,
    all: 7,
  });
  assert.throws(() => parseSpec({ traps: { templates: 3 } }), { code: "invalid-options" });
  assert.throws(() => parseSpec({ traps: { template: "many" } }), { code: "invalid-options" });
  assert.throws(() => parseSpec({ traps: { template: 1.5 } }), { code: "invalid-options" });
});
