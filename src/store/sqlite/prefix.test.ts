/** Power cuts: whatever of the unsynced bytes is lost, the state is that of some earlier commit, whole; with `strict` it is the last one. */
import assert from "node:assert/strict";
import { cpSync, readdirSync, readFileSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import type { FrontierHooks } from "../../core/frontier.ts";
import { makeRequest } from "../../rules/admit.ts";
import { createTestClock, seededRandom } from "../../testing/clock.ts";
import { tearFile } from "../../testing/faults.ts";
import { outputFor, settledAs } from "../../testing/frontier/bench.ts";
import { caseConfig, crashedOutput } from "../../testing/frontier-cases.ts";
import { copyState, makeDirectory, removeDirectory } from "./bench-for-tests.ts";
import { crawlMadeUpWeb } from "./crawl-for-tests.ts";
import { type Durability, databaseOf, openSqliteFrontier } from "./frontier.ts";
import { readState } from "./read.ts";

const ROUNDS = 60;

/** Everything the state says, in one text. */
function digestOf(dir: string): string {
  const reader = readState(dir);
  if (reader === null) return "new";
  const { counters } = reader;
  const queue = [...reader.queue()].map((place) => [place.request.url, place.standing, place.attempt]);
  const text = JSON.stringify([counters === null ? null : { ...counters, elapsedMs: 0 }, [...reader.sinks], queue]);
  reader.close();
  return text;
}

/** Nothing was committed yet. */
function isNew(dir: string): boolean {
  const reader = readState(dir);
  const { counters } = reader ?? { counters: null };
  reader?.close();
  return counters === null;
}

/** Opens it as a resume would: it balances, and the queue is what the counters say. */
async function checkSound(dir: string): Promise<void> {
  const hooks = { write: () => undefined, crashed: crashedOutput };
  const env = { clock: createTestClock(), random: seededRandom(1) };
  const frontier = await openSqliteFrontier({ dir, config: caseConfig, hooks, env, durability: "normal" });
  const { seen, queued, delayed, leased, done, dropped } = await frontier.counts();
  assert.equal(seen, queued + delayed + leased + done + dropped);
  let remaining = 0;
  for await (const _ of frontier.remaining()) remaining++;
  assert.equal(remaining, queued + delayed);
  const lines = readFileSync(join(dir, "pages.jsonl"), "utf8").split("\n").length - 1;
  assert.ok(lines >= done, `${done} pages are done, ${lines} have a record`);
  await frontier[Symbol.asyncDispose]();
}

interface Snapshot {
  readonly digest: string;
  readonly wal: number;
}

/** Crawls, and keeps what the state said after each commit; the files are copied before the process may tidy them. */
async function record(durability: Durability, copy: string): Promise<Snapshot[]> {
  const dir = makeDirectory();
  const history: Snapshot[] = [];
  const note = (): void => {
    history.push({ digest: digestOf(dir), wal: statSync(join(dir, "state.db-wal")).size });
    copyState(dir, copy);
  };
  try {
    let commits = 0;
    const passing = (point: string): void => {
      if (point === "after-commit" && commits++ < 80) note();
    };
    await crawlMadeUpWeb({ dir, pages: 120, limit: null, durability, passing });
  } finally {
    removeDirectory(dir);
  }
  return history;
}

async function withDirectories(run: (copy: string, torn: string) => Promise<void>): Promise<void> {
  const copy = makeDirectory();
  const torn = makeDirectory();
  try {
    await run(copy, torn);
  } finally {
    removeDirectory(copy);
    removeDirectory(torn);
  }
}

function renew(from: string, to: string): void {
  removeDirectory(to);
  cpSync(from, to, { recursive: true });
  // The index of the log is memory of the machine that lost its power.
  for (const name of readdirSync(to)) if (name.endsWith("-shm")) writeFileSync(join(to, name), "");
}

test("a log cut at any byte leaves the state of an earlier commit, whole, and the later the cut the later the state", async () => {
  await withDirectories(async (copy, torn) => {
    const history = await record("normal", copy);
    const digests = history.map((one) => one.digest);
    const { size } = statSync(join(copy, "state.db-wal"));
    const random = seededRandom(5);
    const cuts = Array.from({ length: ROUNDS }, () => Math.floor(random() * (size + 1))).sort((a, b) => a - b);
    let last = -1;
    for (const cut of cuts) {
      renew(copy, torn);
      truncateSync(join(torn, "state.db-wal"), cut);
      const at = digests.lastIndexOf(digestOf(torn));
      assert.ok(at >= 0 || isNew(torn), "the state is none that was committed");
      assert.ok(at >= last, "a later cut gives an earlier state");
      last = at;
      await checkSound(torn);
    }
    assert.ok(last > 40, "the cuts reach many commits");
  });
});

test("a log that lost sectors or its end leaves the state of an earlier commit, whole", async () => {
  await withDirectories(async (copy, torn) => {
    const history = await record("normal", copy);
    const digests = new Set(history.map((one) => one.digest));
    const random = seededRandom(6);
    for (let round = 0; round < ROUNDS; round++) {
      renew(copy, torn);
      tearFile(join(torn, "state.db-wal"), Math.floor(random() * statSync(join(torn, "state.db-wal")).size), random);
      const digest = digestOf(torn);
      assert.ok(digests.has(digest) || isNew(torn), "the state is none that was committed");
      await checkSound(torn);
    }
  });
});

test("strict: what was written after the last sync may be lost in any part, what was committed before may not", async () => {
  await withDirectories(async (copy, torn) => {
    const history = await record("strict", copy);
    const random = seededRandom(7);
    const lines = readFileSync(join(copy, "pages.jsonl"));
    for (let round = 0; round < ROUNDS; round++) {
      renew(copy, torn);
      const at = Math.floor(random() * history.length);
      const before = history[at];
      assert.ok(before !== undefined);
      // The commit `at` was synced; of what followed anything may be there.
      tearFile(join(torn, "state.db-wal"), before.wal, random);
      const now = history.findLastIndex((one) => one.digest === digestOf(torn));
      assert.ok(now >= at, `the state is that of commit ${now}, but ${at} was synced`);
      const reader = readState(torn);
      const bytes = Number(reader?.sinks.get("pages")?.length ?? 0);
      reader?.close();
      assert.ok(bytes <= lines.length && (bytes === 0 || lines[bytes - 1] === 10), "the sink's place is the end of a line");
      await checkSound(torn);
    }
  });
});

for (const durability of ["normal", "strict"] as const) {
  test(`${durability}: sinks are on the disk before ${durability === "strict" ? "every commit" : "a commit, once a second"}, and the state is synced as asked`, async () => {
    const dir = makeDirectory();
    const clock = createTestClock();
    const synced: boolean[] = [];
    const hooks: FrontierHooks = {
      write: () => undefined,
      crashed: crashedOutput,
      checkpoint(sync) {
        synced.push(sync);
        return new Map();
      },
    };
    const frontier = await openSqliteFrontier({ dir, config: caseConfig, hooks, env: { clock, random: seededRandom(1) }, durability });
    try {
      assert.equal(databaseOf(frontier.state)?.prepare("PRAGMA synchronous").get()?.synchronous, durability === "strict" ? 2 : 1);
      const url = (n: number) => `http://h${n}.test/`;
      await frontier.add([1, 2, 3, 4].map((n) => makeRequest(url(n), frontier.seed, { hop: "link", depth: 0, referrer: null })));
      const claim = await frontier.claim(4);
      assert.ok(claim.kind === "leases");
      for (const lease of claim.leases) {
        await frontier.settle([settledAs(lease, { kind: "done", counted: true, output: outputFor(lease.request.url) })], []);
        await clock.advance(400);
      }
      assert.deepEqual(synced, durability === "strict" ? [true, true, true, true] : [false, false, false, true]);
    } finally {
      await frontier[Symbol.asyncDispose]();
      removeDirectory(dir);
    }
  });
}
