/** State directories: who may open them, what is refused, runs, versions, and reading one that is in use. */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import { CrawlError, type CrawlErrorCode } from "../../core/errors.ts";
import type { FrontierHooks } from "../../core/frontier.ts";
import { makeRequest } from "../../rules/admit.ts";
import { createTestClock, seededRandom } from "../../testing/clock.ts";
import { runChild } from "../../testing/faults.ts";
import { noRecord, outputFor, settledAs } from "../../testing/frontier/bench.ts";
import { caseConfig, crashedOutput } from "../../testing/frontier-cases.ts";
import { createMemoryFrontier } from "../memory.ts";
import { makeDirectory, removeDirectory } from "./bench-for-tests.ts";
import { databaseOf, openFrontierIn, openSqliteFrontier, openStateDirectory } from "./frontier.ts";
import { readState } from "./read.ts";
import { saveFrontier } from "./save.ts";
import { SCHEMA_VERSION } from "./schema.ts";

const normal = { durability: "normal" } as const;
const hooks: FrontierHooks = { write: () => undefined, checkpoint: () => new Map([["pages.jsonl", { bytes: 12 }]]), crashed: crashedOutput };
const optionsOf = (dir: string) => ({ dir, config: caseConfig, hooks, env: { clock: createTestClock(), random: seededRandom(1) }, ...normal });

function inDirectory(name: string, run: (dir: string) => Promise<void> | void): void {
  test(name, async () => {
    const dir = makeDirectory();
    try {
      await run(dir);
    } finally {
      removeDirectory(dir);
    }
  });
}

function fails(code: CrawlErrorCode, message: RegExp) {
  return (error: unknown): boolean => {
    assert.ok(error instanceof CrawlError, String(error));
    assert.equal(error.code, code);
    assert.match(error.message, message);
    return true;
  };
}

/** What must not change; SQLite's own side files come and go. */
const contentOf = (dir: string): string[] =>
  readdirSync(dir)
    .filter((name) => !/lock\.db|-shm$|-wal$/.test(name))
    .map(
      (name) =>
        `${name} ${createHash("sha256")
          .update(readFileSync(join(dir, name)))
          .digest("hex")}`,
    );

inDirectory("a directory in use is held, for this process and for another, and is free at once when its owner is killed", async (dir) => {
  const owner = openStateDirectory(dir, normal);
  assert.throws(() => openStateDirectory(dir, normal), fails("state-held", new RegExp(`${dir}.*held by another process`)));
  const program = `import { openStateDirectory } from ${JSON.stringify(join(import.meta.dirname, "frontier.ts"))};
    try { openStateDirectory(${JSON.stringify(dir)}, { durability: "normal" }); console.log("open"); setInterval(() => {}, 1000); } catch (error) { console.log(error.code); }`;
  const args = ["--input-type=module", "-e", program];
  assert.equal((await runChild({ args })).stdout, "state-held\n");
  owner.close();
  const killed = await runChild({ args, killFrom: "open", killAfterMs: 1 });
  assert.deepEqual([killed.stdout, killed.signal], ["open\n", "SIGKILL"]);
  openStateDirectory(dir, normal).close();
});

inDirectory("a directory that holds other files is no state, and is left as it is", (dir) => {
  writeFileSync(join(dir, "thesis.txt"), "words");
  const before = contentOf(dir);
  assert.throws(() => openStateDirectory(dir, normal), fails("state-unwritable", /it holds other files \(thesis\.txt\) and no state/));
  assert.deepEqual(contentOf(dir), before);
  assert.deepEqual(readdirSync(dir), ["thesis.txt"]);
});

inDirectory("a directory is made where there is none; a file in its place is refused", (dir) => {
  openStateDirectory(join(dir, "a", "b"), normal).close();
  writeFileSync(join(dir, "file"), "");
  assert.throws(() => openStateDirectory(join(dir, "file"), normal), fails("state-unwritable", /cannot use the state directory/));
});

test("a directory below something that takes no folders is refused, not waited for", async (t) => {
  if (!existsSync("/proc/self")) return t.skip("no /proc here"); // in a child, since where this goes wrong it never comes back
  const program = `import { openStateDirectory } from ${JSON.stringify(join(import.meta.dirname, "frontier.ts"))};
    try { openStateDirectory("/proc/no/state", { durability: "normal" }); } catch (error) { console.log(error.code); }`;
  assert.equal((await runChild({ args: ["--input-type=module", "-e", program], killAfterMs: 20_000 })).stdout, "state-unwritable\n");
});

/** A state with a few hundred queued places. */
async function fill(dir: string): Promise<void> {
  const frontier = await openSqliteFrontier(optionsOf(dir));
  frontier.state.startRun({ name: "one", spec: "{}", startedAt: 5 });
  await frontier.add(Array.from({ length: 500 }, (_, i) => makeRequest(`http://h.test/${i}`, frontier.seed, { hop: "link", depth: 1, referrer: null })));
  await frontier[Symbol.asyncDispose]();
}

const DAMAGE: readonly (readonly [name: string, damage: (file: string) => void, message: RegExp])[] = [
  ["garbage", (file) => writeFileSync(file, "not a database at all, but long enough to be looked at"), /state\.db is damaged/],
  ["cut off in its first page", (file) => truncateSync(file, 700), /damaged|malformed/],
  ["cut off in the middle", (file) => truncateSync(file, 4096 * 3), /state\.db is damaged/],
  ["another program's database", (file) => otherDatabase(file), /was not made by this program/],
];

function otherDatabase(file: string): void {
  writeFileSync(file, "");
  const db = new DatabaseSync(file);
  db.exec("CREATE TABLE bookmarks (url TEXT); INSERT INTO bookmarks VALUES ('http://a.test/')");
  db.close();
}

for (const [what, damage, message] of DAMAGE) {
  inDirectory(`a state file that is ${what} is refused with a clear message and stays as it is`, async (dir) => {
    await fill(dir);
    damage(join(dir, "state.db"));
    const before = contentOf(dir);
    await assert.rejects(openSqliteFrontier(optionsOf(dir)), fails("state-unwritable", message));
    assert.deepEqual(contentOf(dir), before);
    await assert.rejects(async () => {
      const reader = readState(dir);
      for (const _ of reader?.queue() ?? []) assert.ok(true);
      reader?.close();
    });
  });
}

inDirectory("a state of a newer version is refused, naming both versions", async (dir) => {
  await fill(dir);
  const db = new DatabaseSync(join(dir, "state.db"));
  db.exec(`PRAGMA user_version = ${SCHEMA_VERSION + 1}`);
  db.close();
  const before = contentOf(dir);
  const expected = fails(
    "state-unwritable",
    new RegExp(`newer version of this program \\(state version ${SCHEMA_VERSION + 1}; this one knows ${SCHEMA_VERSION}\\)`),
  );
  assert.throws(() => openStateDirectory(dir, normal), expected);
  assert.throws(() => readState(dir), expected);
  assert.deepEqual(contentOf(dir), before);
});

/** As the first version made it: runs had no time at which they were finished. */
function fileOfVersion1(dir: string): void {
  const db = new DatabaseSync(join(dir, "state.db"));
  db.exec(`
    PRAGMA journal_mode = WAL;
    BEGIN;
    CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
    CREATE TABLE run (id INTEGER PRIMARY KEY, name TEXT NOT NULL, spec TEXT NOT NULL, started_at INTEGER NOT NULL, finish_reason TEXT);
    CREATE TABLE progress (id INTEGER PRIMARY KEY, counters TEXT NOT NULL, leased BLOB NOT NULL);
    CREATE TABLE queue (seq INTEGER PRIMARY KEY, hi INTEGER NOT NULL, lo INTEGER NOT NULL, facts INTEGER NOT NULL, url TEXT NOT NULL, referrer TEXT, rest TEXT, history TEXT);
    CREATE TABLE log (id INTEGER PRIMARY KEY, kind INTEGER NOT NULL, entries BLOB NOT NULL);
    CREATE TABLE sink (name TEXT PRIMARY KEY, state TEXT NOT NULL) WITHOUT ROWID;
    CREATE TABLE host (key TEXT PRIMARY KEY, crawl_delay_ms REAL NOT NULL, not_before INTEGER, concurrency INTEGER) WITHOUT ROWID;
    CREATE TABLE robots (origin TEXT PRIMARY KEY, host TEXT NOT NULL, expires_at INTEGER NOT NULL, state TEXT NOT NULL) WITHOUT ROWID;
    CREATE TABLE cookie (site TEXT PRIMARY KEY, jar TEXT NOT NULL) WITHOUT ROWID;
    CREATE TABLE seed (url TEXT PRIMARY KEY) WITHOUT ROWID;
    INSERT INTO meta VALUES ('seed', '[1,2,3,4]'), ('x:note', 'kept');
    INSERT INTO run VALUES (1, 'old', '{"a":1}', 77, NULL);
    INSERT INTO queue VALUES (9, 5, 6, ${(2 * 256 + 128) * 32 + 1}, 'http://a.test/x', '/', NULL, '[1,0,null]');
    INSERT INTO log VALUES (1, 0, x'05000000060000000200');
    INSERT INTO sink VALUES ('pages.jsonl', '{"bytes":3}');
    PRAGMA application_id = ${0x534b4549};
    PRAGMA user_version = 1;
    COMMIT`);
  db.close();
}

inDirectory("a state of version 1 is brought to the present version and goes on", async (dir) => {
  fileOfVersion1(dir);
  const frontier = await openSqliteFrontier(optionsOf(dir));
  assert.deepEqual(frontier.seed, [1, 2, 3, 4]);
  assert.equal(frontier.state.meta("note"), "kept");
  assert.deepEqual(frontier.state.run(), { name: "old", spec: '{"a":1}', startedAt: 77, elapsedMs: 0, finishReason: null });
  const claim = await frontier.claim(1);
  assert.ok(claim.kind === "leases");
  assert.deepEqual([claim.leases[0]?.request.url, claim.leases[0]?.request.referrer, claim.leases[0]?.attempt], ["http://a.test/x", "http://a.test/", 1]);
  frontier.finish("finished");
  await frontier[Symbol.asyncDispose]();
  const db = new DatabaseSync(join(dir, "state.db"), { readOnly: true });
  assert.equal(db.prepare("PRAGMA user_version").get()?.user_version, SCHEMA_VERSION);
  db.close();
});

inDirectory("runs: started, finished, opened again, followed by a new one; everything dropped", async (dir) => {
  const settleOne = async (frontier: Awaited<ReturnType<typeof openSqliteFrontier>>): Promise<void> => {
    const claim = await frontier.claim(1);
    assert.ok(claim.kind === "leases");
    await frontier.settle(
      claim.leases.map((lease) =>
        settledAs(lease, { kind: "done", counted: true, output: outputFor(lease.request.url) }, { setCookies: [jar], host: { crawlDelayMs: 9 } }),
      ),
      [],
    );
  };
  const jar = { name: "c", value: "1", domain: "h.test", hostOnly: true, path: "/", secure: false, expiresAt: null };
  await fill(dir);
  const options = optionsOf(dir);
  const first = await openSqliteFrontier(options);
  await settleOne(first);
  await options.env.clock.advance(40);
  first.finish("limit-pages");
  await first[Symbol.asyncDispose]();

  const state = openStateDirectory(dir, normal);
  assert.deepEqual(state.run(), { name: "one", spec: "{}", startedAt: 5, elapsedMs: 40, finishReason: "limit-pages" });
  assert.deepEqual(state.sinkStates(), new Map([["pages.jsonl", { bytes: 12 }]]));
  state.setMeta("k", "v");
  state.setSpec("{2}");
  state.reopenRun();
  assert.deepEqual([state.run()?.finishReason, state.run()?.spec], [null, "{2}"]);
  state.newRun({ cookies: true });
  state.startRun({ name: "two", spec: "{3}", startedAt: 6 });
  assert.deepEqual([state.sinkStates().size, state.meta("k"), state.run()?.name, state.run()?.elapsedMs], [0, "v", "two", 0]);
  const second = await openFrontierIn(state, { ...options, ...normal });
  assert.deepEqual([(await second.counts()).seen, (await second.hosts(9))[0]?.delayMs], [0, 9]);
  await second.add([makeRequest("http://h.test/1", second.seed, { hop: "seed", depth: 0, referrer: null })]);
  await options.env.clock.advance(10);
  const claim = await second.claim(1);
  assert.deepEqual(claim.kind === "leases" ? claim.leases[0]?.cookies : null, [jar]);
  await second[Symbol.asyncDispose]();

  const third = openStateDirectory(dir, normal);
  const { seed } = third;
  third.dropAll();
  assert.deepEqual([third.run(), third.meta("k"), third.seed], [null, null, seed]);
  const empty = await openFrontierIn(third, { ...options, ...normal });
  assert.deepEqual([(await empty.counts()).seen, (await empty.hosts(9)).length], [0, 0]);
  await empty[Symbol.asyncDispose]();
});

inDirectory("another process reads a state that is in use: counts, places, what became of a URL", async (dir) => {
  const options = optionsOf(dir);
  const frontier = await openSqliteFrontier(options);
  frontier.state.startRun({ name: "run", spec: "{}", startedAt: 1 });
  frontier.state.setMeta("k", "v");
  const link = (n: number, depth = 1) => makeRequest(`http://h.test/${n}`, frontier.seed, { hop: "link", depth, referrer: "http://h.test/" });
  await frontier.add([1, 2, 3, 4, 5].map((n) => link(n)));
  await frontier.add([link(5, 0)]);
  const claim = await frontier.claim(4);
  assert.ok(claim.kind === "leases");
  const [one, two, three, four] = claim.leases;
  await frontier.settle(
    [
      settledAs(one!, { kind: "done", counted: true, output: noRecord }, { tally: [["pages", 1]] }),
      settledAs(two!, { kind: "dropped", output: null }),
      settledAs(three!, { kind: "retry", afterMs: 60_000 }),
    ],
    [],
  );
  assert.equal(four?.request.url, "http://h.test/4");
  const reader = readState(dir);
  assert.ok(reader !== null);
  const standings = [1, 2, 3, 4, 5, 6].map((n) => reader.lookUp(link(n)));
  assert.deepEqual(
    standings.map((place) => [place?.standing, place?.depth, place?.attempt]),
    [
      ["done", 1, 0],
      ["dropped", 1, 0],
      ["delayed", 1, 1],
      ["leased", 1, 0],
      ["queued", 0, 0],
      [undefined, undefined, undefined],
    ],
  );
  assert.equal(standings[2]?.dueEpoch, options.env.clock.epoch() + 60_000);
  assert.deepEqual(
    [...reader.queue()].map(({ request, standing }) => [request.url, standing, request.referrer]),
    [
      ["http://h.test/4", "leased", "http://h.test/"],
      ["http://h.test/5", "queued", "http://h.test/"],
      ["http://h.test/3", "delayed", "http://h.test/"],
    ],
  );
  const { counters } = reader;
  assert.deepEqual([counters?.queued, counters?.delayed, counters?.leased, counters?.done, counters?.dropped], [1, 1, 1, 1, 1]);
  assert.deepEqual([counters?.tally, reader.meta("k"), reader.run?.name, reader.seed], [[["pages", 1]], "v", "run", frontier.seed]);
  assert.deepEqual(reader.sinks, new Map([["pages.jsonl", { bytes: 12 }]]));
  reader.close();
  await frontier[Symbol.asyncDispose]();
  assert.equal(readState(join(dir, "nothing")), null);
});

inDirectory("a crawl in memory is saved and resumed", async (dir) => {
  const { env, config } = optionsOf(dir);
  for (const order of ["bfs", "dfs"] as const) {
    const frontier = createMemoryFrontier({ ...config, order, levels: order === "dfs" }, hooks, env);
    const link = (n: number) => makeRequest(`http://h.test/${n}`, frontier.seed, { hop: "link", depth: 1, referrer: "http://h.test/" });
    await frontier.add(Array.from({ length: 60 }, (_, n) => link(n)));
    await frontier.tune("h.test", { concurrency: 100 });
    await frontier.seedsComplete();
    const claim = await frontier.claim(8);
    assert.ok(claim.kind === "leases");
    const output = outputFor("http://h.test/", { skipped: [], found: [] });
    await frontier.settle(
      [
        settledAs(claim.leases[0]!, { kind: "done", counted: true, output }, { tally: [["pages", 1]] }),
        settledAs(claim.leases[1]!, { kind: "retry", afterMs: 50 }),
        settledAs(claim.leases[2]!, { kind: "dropped", output: null }),
      ],
      [],
    );
    const target = join(dir, order);
    saveFrontier(frontier, {
      dir: target,
      name: "saved",
      spec: "{}",
      startedAt: 3,
      elapsedMs: 99,
      finishReason: null,
      sinks: new Map([["out", { bytes: 5 }]]),
      seeds: ["http://moved.test/"],
    });
    const resumed = await openSqliteFrontier({ dir: target, config: { ...config, order, levels: order === "dfs" }, hooks, env, ...normal });
    const { queued, delayed, done, dropped, seen, counted, tally } = await resumed.counts();
    assert.deepEqual([queued, delayed, done, dropped, seen, counted, tally], [57, 1, 1, 1, 60, 1, new Map([["pages", 1]])]);
    assert.deepEqual([resumed.state.run()?.name, resumed.elapsedMs(), resumed.state.sinkStates()], ["saved", 99, new Map([["out", { bytes: 5 }]])]);
    assert.deepEqual(await resumed.add([link(0), link(1), link(2), link(30)]), { added: 0, known: 4, lowered: 0 });
    await env.clock.advance(50);
    const rest: number[] = [];
    for (let next = await resumed.claim(128); next.kind === "leases"; next = await resumed.claim(128)) {
      if (rest.length === 0) assert.deepEqual(next.seeds, ["http://moved.test/"]);
      rest.push(...next.leases.map(({ request }) => Number(request.url.split("/").at(-1))));
    }
    const held = order === "bfs" ? [3, 4, 5, 6, 7] : [56, 55, 54, 53, 52];
    const queue = Array.from({ length: 52 }, (_, n) => (order === "bfs" ? n + 8 : 51 - n));
    const retried = order === "bfs" ? 1 : 58;
    assert.deepEqual(rest, [retried, ...held, ...queue]);
    await resumed[Symbol.asyncDispose]();
    assert.throws(
      () => saveFrontier(frontier, { dir: target, name: "x", spec: "", startedAt: 0, elapsedMs: 0, finishReason: null, sinks: new Map(), seeds: [] }),
      fails("state-unwritable", /another crawl already/),
    );
  }
});

inDirectory("a disk that is full ends the frontier; what was committed is whole and goes on", async (dir) => {
  const options = optionsOf(dir);
  const frontier = await openSqliteFrontier(options);
  const link = (n: number) => makeRequest(`http://h.test/${"x".repeat(3_000)}${n}`, frontier.seed, { hop: "link", depth: 1, referrer: null });
  await frontier.add([link(0), link(1)]);
  const before = await frontier.counts();
  const db = new DatabaseSync(join(dir, "state.db"));
  const pages = Number(db.prepare("PRAGMA page_count").get()?.page_count);
  db.close();
  databaseOf(frontier.state)?.exec(`PRAGMA max_page_count = ${pages + 2}`);
  const full = fails("state-unwritable", /the disk is full; what was written before is whole/);
  const claim = await frontier.claim(1);
  assert.ok(claim.kind === "leases");
  const page = settledAs(claim.leases[0]!, { kind: "done", counted: true, output: noRecord });
  await assert.rejects(
    frontier.settle(
      [page],
      Array.from({ length: 200 }, (_, n) => link(n + 2)),
    ),
    full,
  );
  await assert.rejects(frontier.settle([page], []), full);
  await assert.rejects(frontier.counts(), full);
  await frontier[Symbol.asyncDispose]();
  const again = await openSqliteFrontier(options);
  assert.deepEqual(await again.counts(), before);
  const first = await again.claim(1);
  assert.deepEqual(first.kind === "leases" ? [first.leases[0]?.request.url, first.leases[0]?.crashes] : null, [link(0).url, 0]);
  await again[Symbol.asyncDispose]();
});

inDirectory("sinks that fail end the frontier, and where they stood is what the last commit says", async (dir) => {
  const options = optionsOf(dir);
  let length = 0;
  let refuse = false;
  const failing: FrontierHooks = {
    write(outputs) {
      length += outputs.length;
      if (refuse) throw new CrawlError("output-unwritable", "cannot write out.jsonl: no space");
    },
    checkpoint: () => new Map([["out", { length }]]),
    crashed: crashedOutput,
  };
  const frontier = await openSqliteFrontier({ ...options, hooks: failing });
  const link = (n: number) => makeRequest(`http://h.test/${n}`, frontier.seed, { hop: "link", depth: 1, referrer: null });
  await frontier.add([link(0), link(1)]);
  for (const fail of [false, true]) {
    refuse = fail;
    const claim = await frontier.claim(1);
    assert.ok(claim.kind === "leases");
    const settling = frontier.settle([settledAs(claim.leases[0]!, { kind: "done", counted: true, output: outputFor("x") })], [link(9)]);
    if (fail) await assert.rejects(settling, fails("output-unwritable", /no space/));
    else await settling;
  }
  await assert.rejects(frontier.claim(1), fails("output-unwritable", /no space/));
  await frontier[Symbol.asyncDispose]();
  refuse = false;
  const again = await openSqliteFrontier({ ...options, hooks: failing });
  assert.deepEqual(again.state.sinkStates(), new Map([["out", { length: 1 }]]));
  const { done, queued } = await again.counts();
  assert.deepEqual([done, queued], [1, 2]);
  await again[Symbol.asyncDispose]();
});
