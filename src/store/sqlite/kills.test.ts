/** A crawl's process is killed at named steps and at random, and its state is resumed until it ends: the same records as undisturbed, each once. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { seededRandom } from "../../testing/clock.ts";
import { runChild } from "../../testing/faults.ts";
import { makeDirectory, removeDirectory } from "./bench-for-tests.ts";
import { isUncounted, urlOf } from "./crawl-for-tests.ts";
import type { FaultPoint } from "./frontier.ts";
import { readState } from "./read.ts";

const PROGRAM = join(import.meta.dirname, "crawl-for-tests.ts");
const PAGES = 400;
const ROUNDS = Number(process.env.SKEIN_KILL_ROUNDS ?? 6);

const linesOf = (path: string): string[] => {
  const text = readFileSync(path, "utf8");
  assert.ok(text === "" || text.endsWith("\n"), `${path} ends in the middle of a line`);
  return text.split("\n").slice(0, -1);
};

/** What must be true once the crawl has ended. */
function checkWhole(dir: string, limit: number | null): void {
  const records = linesOf(join(dir, "pages.jsonl")).map((line) => JSON.parse(line) as [string, string]); // written so by the program
  const urls = records.map(([url]) => url);
  assert.equal(new Set(urls).size, urls.length, "a record stands twice");
  assert.deepEqual(
    records.filter(([, outcome]) => outcome !== "fetched"),
    [],
  );
  const skipped = linesOf(join(dir, "skipped.jsonl"));
  assert.equal(new Set(skipped).size, skipped.length, "a skipped line stands twice");
  if (limit === null) {
    assert.deepEqual(urls.sort(), Array.from({ length: PAGES }, (_, n) => urlOf(n)).sort());
    assert.equal(skipped.length, 17);
  } else assert.equal(urls.filter((url) => !isUncounted(Number(url.split("/").at(-1)))).length, limit);
  const reader = readState(dir);
  const counters = reader?.counters;
  assert.ok(counters != null && reader !== null);
  assert.deepEqual([counters.done, counters.leased, new Map(counters.tally).get("pages"), reader.run?.finishReason], [urls.length, 0, urls.length, "finished"]);
  assert.equal([...reader.queue()].length, counters.queued + counters.delayed);
  reader.close();
}

/** Runs the program again and again; the last run ends by itself. Answers how many were killed. */
async function untilItEnds(
  dir: string,
  limit: number | null,
  disturb: (run: number) => { env?: Record<string, string>; killAfterMs?: number } | null,
): Promise<number> {
  for (let run = 0; ; run++) {
    const how = disturb(run);
    const args = [PROGRAM, dir, String(PAGES), ...(limit === null ? [] : [String(limit)])];
    const end = await runChild({ args, killFrom: "started", ...how });
    assert.equal(end.stderr, "");
    if (end.code === 0) return run;
    assert.equal(end.signal, "SIGKILL");
  }
}

const POINTS: readonly FaultPoint[] = ["during-start", "after-claim", "after-append", "inside-commit", "after-commit"];

for (const point of POINTS) {
  test(`killed ${point}, a crawl ends with every record once`, async () => {
    const dir = makeDirectory();
    try {
      // Later each time, so that every run gets somewhere.
      const times = point === "during-start" ? [1] : [2, 7];
      const killed = await untilItEnds(dir, null, (run) => (times[run] === undefined ? null : { env: { SKEIN_FAULT: `${point}:${times[run]}` } }));
      assert.equal(killed, times.length);
      checkWhole(dir, null);
    } finally {
      removeDirectory(dir);
    }
  });
}

test("killed at random moments, crawls end with every record once, and limits are exact", async (context) => {
  const random = seededRandom(Number(process.env.SKEIN_KILL_SEED ?? 1));
  let killed = 0;
  for (let crawl = 0; killed < ROUNDS; crawl++) {
    const dir = makeDirectory();
    const limit = crawl % 2 === 0 ? null : 1 + Math.floor(random() * 300);
    try {
      let kills = 0;
      killed += await untilItEnds(dir, limit, () => (kills++ < 4 ? { killAfterMs: random() ** 2 * 120 } : null));
      checkWhole(dir, limit);
    } finally {
      removeDirectory(dir);
    }
  }
  context.diagnostic(`${killed} kills`);
  assert.ok(killed > 0);
});
