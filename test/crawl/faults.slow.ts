/** Durable crawls whose clock jumps, whose disk is slow, and whose power is cut. Kills are in durable.slow.ts and the long suites. */
import assert from "node:assert/strict";
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, truncateSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test, { after } from "node:test";
import { realClock } from "../../src/core/clock.ts";
import { crawl } from "../../src/crawl.ts";
import { readState } from "../../src/store/sqlite/read.ts";
import { seededRandom } from "../../src/testing/clock.ts";
import { faultySite } from "./kills.ts";
import { serve } from "./served.ts";

const root = mkdtempSync(join(existsSync("/dev/shm") ? "/dev/shm" : tmpdir(), "skein-faults-"));
after(() => rmSync(root, { recursive: true, force: true }));
const folder = (name: string) => mkdtempSync(join(root, `${name}-`));
const lines = (file: string) => readFileSync(file, "utf8").split("\n").filter(Boolean);
const urls = (file: string) => lines(file).map((line) => JSON.parse(line).url as string);

test("a wall clock that jumps by days, forwards and backwards, changes nothing but times", async () => {
  await using server = await serve(faultySite(80));
  const dir = folder("clock");
  const random = seededRandom(3);
  const clock = { ...realClock, epoch: () => Date.now() + Math.round((random() - 0.5) * 4 * 86_400_000) };
  const spec = { seeds: server.origin, stateDir: join(dir, "state"), outputs: [join(dir, "out.jsonl")], maxWait: "2s" };
  await crawl({ ...spec, limits: { pages: 60 } }, { world: { clock } }).done;
  const summary = await crawl(spec, { world: { clock } }).done;
  assert.equal(summary.finishReason, "finished");
  const calm = folder("calm");
  await crawl({ ...spec, stateDir: null, outputs: [join(calm, "out.jsonl")] }).done;
  assert.deepEqual(urls(join(dir, "out.jsonl")).sort(), urls(join(calm, "out.jsonl")).sort());
});

test("a disk that takes 15 ms for every step makes the crawl slow, not wrong", async () => {
  await using server = await serve(faultySite(60));
  const dir = folder("slow");
  const cell = new Int32Array(new SharedArrayBuffer(4));
  let steps = 0;
  const passing = (point: string) => {
    if (point !== "inside-commit") return;
    steps++;
    Atomics.wait(cell, 0, 0, 15);
  };
  const summary = await crawl({ seeds: server.origin, stateDir: join(dir, "state"), outputs: [join(dir, "out.jsonl")] }, { world: { passing } }).done;
  assert.equal(summary.finishReason, "finished");
  assert.ok(steps > 5);
  const all = urls(join(dir, "out.jsonl"));
  assert.equal(new Set(all).size, all.length);
  assert.equal(
    all.length,
    Object.values(summary.byOutcome).reduce((sum, n) => sum + n, 0),
  );
});

test("strict: after a power cut at any step the outputs hold what the state speaks of, and the crawl ends as if nothing had been", async () => {
  await using server = await serve(faultySite(60));
  const dir = folder("power");
  const files = ["out.jsonl", "out.csv", "out.json", "out.jsonl.gz"];
  const at = (where: string) => ({
    seeds: server.origin,
    stateDir: join(where, "state"),
    durability: "strict" as const,
    outputs: files.map((file) => join(where, file)),
  });
  const cuts: string[] = [];
  const random = seededRandom(11);
  const passing = (point: string) => {
    if (point !== "after-commit" || random() > 0.4 || cuts.length >= 12) return;
    cuts.push(powerCut(dir, files, random));
  };
  await crawl(at(dir), { world: { passing } }).done;
  assert.ok(cuts.length > 3);
  const whole = urls(join(dir, "out.jsonl")).sort();
  for (const cut of cuts) {
    const states = readState(join(cut, "state"));
    const sinks = states?.sinks ?? new Map();
    states?.close();
    for (const [name, state] of sinks) {
      if (name.startsWith("journal:")) continue;
      const file = join(cut, name.slice(dir.length));
      assert.ok(typeof state["bytes"] !== "number" || statSync(file).size >= state["bytes"], `${file} is shorter than its state says`);
    }
    // The state names its files by the paths of the run: they are put where it expects them.
    for (const file of ["state", ...files]) rmSync(join(dir, file), { recursive: true, force: true });
    copyAll(cut, dir);
    const summary = await crawl(at(dir)).done;
    assert.equal(summary.finishReason, "finished");
    assert.deepEqual(urls(join(dir, "out.jsonl")).sort(), whole);
    assert.equal(JSON.parse(readFileSync(join(dir, "out.json"), "utf8")).length, whole.length);
  }
});

/** What a disk holds that loses everything not synced: the state as committed, each output cut to a random length between what the state speaks of and what was written. */
function powerCut(dir: string, files: readonly string[], random: () => number): string {
  const to = folder("cut");
  copyAll(dir, to);
  const reader = readState(join(to, "state"));
  const sinks = reader?.sinks ?? new Map();
  reader?.close();
  for (const file of files) {
    const path = join(to, file);
    if (!existsSync(path)) continue;
    const state = sinks.get(join(dir, file));
    // A file that was made after the last commit: the cut takes it whole.
    if (state === undefined) {
      rmSync(path);
      continue;
    }
    const kept = state["bytes"];
    assert.ok(typeof kept === "number", `${file}: its state has no offset`);
    const size = statSync(path).size;
    if (size > kept) truncateSync(path, kept + Math.floor(random() * (size - kept)));
  }
  return to;
}

function copyAll(from: string, to: string): void {
  mkdirSync(to, { recursive: true });
  for (const entry of readdirSync(from, { withFileTypes: true })) {
    if (entry.name.startsWith("lock.db")) continue;
    if (entry.isDirectory()) copyAll(join(from, entry.name), join(to, entry.name));
    else copyFileSync(join(from, entry.name), join(to, entry.name));
  }
}
