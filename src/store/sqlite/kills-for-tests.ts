/** A crawl's process is killed and its state resumed until the crawl ends, and what must be true then: the same records as undisturbed, each once; for tests only. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { seededRandom } from "../../testing/clock.ts";
import { runChild } from "../../testing/faults.ts";
import { makeDirectory, removeDirectory } from "./bench-for-tests.ts";
import { isUncounted, urlOf } from "./crawl-for-tests.ts";
import { readState } from "./read.ts";

const PROGRAM = join(import.meta.dirname, "crawl-for-tests.ts");
const PAGES = 400;

const linesOf = (path: string): string[] => {
  const text = readFileSync(path, "utf8");
  assert.ok(text === "" || text.endsWith("\n"), `${path} ends in the middle of a line`);
  return text.split("\n").slice(0, -1);
};

/** What must be true once the crawl has ended. */
export function checkWhole(dir: string, limit: number | null): void {
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
export async function untilItEnds(
  dir: string,
  limit: number | null,
  disturb: (run: number) => { env?: Record<string, string>; killAfterMs?: number; killFrom?: string } | null,
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

/** A crawl with a few kills at random moments, every other one with a limit. Answers how many kills came in time. */
export async function crawlWithKills(seed: number): Promise<number> {
  const random = seededRandom(seed);
  const dir = makeDirectory();
  const limit = random() < 0.5 ? null : 1 + Math.floor(random() * 300);
  try {
    // Thrice before anything is settled would, rightly, be blamed on a page that was fetched alone.
    const from = ["started", "settled", "started", "settled"];
    const killed = await untilItEnds(dir, limit, (run) => {
      const killFrom = from[run];
      return killFrom === undefined ? null : { killFrom, killAfterMs: random() ** 2 * 120 };
    });
    checkWhole(dir, limit);
    return killed;
  } finally {
    removeDirectory(dir);
  }
}
