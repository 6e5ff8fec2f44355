/** Processes killed at random moments, every format in turn, for as long as the share of test:long allows. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { ITEMS, SUFFIXES } from "./bench-for-tests.ts";
import { killed, resumeAndCheck, type Told } from "./kill-for-tests.ts";

const minutes = Number(process.env.SKEIN_LONG_MINUTES ?? "1");

test("an output killed again and again is that of an undisturbed run", { timeout: (minutes + 5) * 60_000 }, async () => {
  const until = performance.now() + minutes * 60_000;
  let rounds = 0;
  let kills = 0;
  for (; performance.now() < until; rounds++) {
    const suffix = SUFFIXES[rounds % SUFFIXES.length] ?? "jsonl";
    const index = Math.floor(rounds / SUFFIXES.length) % 2 === 0 ? 0 : ITEMS;
    const dir = mkdtempSync(join(tmpdir(), "skein-kills-"));
    const path = join(dir, `out.${suffix}`);
    let last: Told = { done: 0, state: null };
    for (let left = 1 + Math.floor(Math.random() * 5); left > 0; left--, kills++)
      last = await killed(path, last, 1 + Math.floor(Math.random() ** 2 * 60), index);
    await resumeAndCheck(path, last, last.done + Math.floor(Math.random() * 300), index);
    rmSync(dir, { recursive: true });
  }
  console.log(`outputs killed and resumed, rounds: ${rounds}, kills: ${kills}`);
  assert.ok(rounds > 0 && kills > 0);
});
