import assert from "node:assert/strict";
import { tmpdir } from "node:os";
import { test } from "node:test";
import { checkClock, checkFiles, checkNode, examine } from "./doctor.ts";

test("a Node.js that is too old fails", () => {
  assert.equal(checkNode("24.1.0").level, "ok");
  assert.equal(checkNode("26.0.0").level, "ok");
  const old = checkNode("22.15.0");
  assert.deepEqual([old.level, old.text], ["fail", "Node.js 22.15.0 is too old"]);
  assert.match(old.next ?? "", /install Node\.js 24/);
});

test("fewer open files than -c needs fail, with both ways out", () => {
  const limits = (soft: string) => `Limit  Soft Limit  Hard Limit  Units\nMax open files            ${soft}                 4096                 files\n`;
  assert.equal(checkFiles(limits("1024"), 64).level, "ok");
  assert.equal(checkFiles(limits("unlimited"), 10_000).level, "ok");
  assert.equal(checkFiles(null, 10_000).level, "ok");
  const few = checkFiles(limits("256"), 1_000);
  assert.deepEqual([few.level, few.next], ["fail", "raise it (ulimit -n 1064), or crawl with -c 192"]);
});

test("a clock that stands before the installation fails", () => {
  const installed = Date.UTC(2026, 5, 1);
  assert.equal(checkClock(installed + 1, installed).level, "ok");
  assert.equal(checkClock(0, installed).level, "fail");
});

test("on this machine everything is well, in an order that does not change", () => {
  const checks = examine({ concurrency: 8, stateDir: null, cwd: tmpdir() });
  assert.deepEqual(
    checks.filter(({ level }) => level === "fail"),
    [],
  );
  assert.deepEqual(
    checks.map(({ name }) => name),
    ["node", "bodies", "charsets", "files", "clock", "sqlite", "folder"],
  );
});
