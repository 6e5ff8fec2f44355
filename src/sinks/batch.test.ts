/** Sinks of the user's own: batches in order, back-pressure, failures, and every committed record once over kills at any moment. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { CrawlError } from "../core/errors.ts";
import type { Output, PageRecord } from "../core/records.ts";
import type { BatchItem, BatchSink, Sink, SinkState } from "../core/sink.ts";
import { lineBuffer } from "../rules/lines.ts";
import { createTestClock, seededRandom } from "../testing/clock.ts";
import { outputAt } from "../testing/sink-cases.ts";
import { type BatchingSink, batchSink } from "./batch.ts";
import { itemAppender } from "./item-lines.ts";
import { openOwnSinks } from "./own.ts";
import { itemsTable } from "./tables.ts";

const table = itemsTable({ types: [{ name: "product", key: "id", columns: null }], meta: true, journal: true });

/** Every job that is due, and what these set off. */
async function settled(): Promise<void> {
  for (let round = 0; round < 30; round++) await new Promise(setImmediate);
}

function linesOf(outputs: readonly Output[]): string[] {
  const buffer = lineBuffer();
  const append = itemAppender(table, "\n");
  for (const output of outputs) table.each(output, (taken) => append(buffer, taken));
  return Buffer.from(buffer.take()).toString().split("\n").slice(0, -1);
}

const fieldsIn = (lines: readonly string[]): unknown[] => lines.map((line) => JSON.parse(line).item);

interface Stored {
  rows: BatchItem[];
  checkpoint: string | null;
}

/** A user's database: rows and checkpoint change together. `slow`: a batch waits for `release`. */
function database(
  store: Stored,
  more: { readonly batchSize?: number; readonly before?: () => Promise<void>; readonly isDead?: () => boolean } = {},
): Extract<BatchSink, { takes: "items" }> {
  return {
    ...{ name: "shop", takes: "items", batchSize: more.batchSize ?? 4 },
    open: async () => store.checkpoint,
    async write(records, checkpoint) {
      await more.before?.();
      // A dead process writes nothing.
      if (more.isDead?.()) await new Promise(() => undefined);
      store.rows = [...store.rows, ...records];
      store.checkpoint = checkpoint;
    },
  };
}

const outputs = (from: number, to: number): Output[] => Array.from({ length: to - from }, (_, index) => outputAt(from + index));

test("in a crawl in memory records come in batches, in order, the rest after a second or at the end", async () => {
  const clock = createTestClock();
  const store: Stored = { rows: [], checkpoint: null };
  const sink = batchSink(database(store, { batchSize: 5 }), { id: "r", clock, durable: null });
  await sink.start();
  sink.write(outputs(0, 8));
  await settled();
  assert.equal(store.rows.length, 10);
  assert.equal(store.checkpoint, "r:10");
  await clock.advance(999);
  assert.equal(store.rows.length, 10);
  await clock.advance(1);
  await settled();
  const wanted = linesOf(outputs(0, 20));
  assert.equal(store.rows.length, linesOf(outputs(0, 8)).length);
  sink.write(outputs(8, 20));
  await sink.close();
  await sink.close();
  assert.deepEqual(
    store.rows.map(({ item }) => item),
    fieldsIn(wanted),
  );
  assert.equal(store.checkpoint, `r:${wanted.length}`);
  const { item: _, ...rest } = store.rows[0]!;
  assert.deepEqual(rest, { type: "product", key: "p1", url: "http://a.test/1", depth: 0, fetchedAt: "2026-01-01T00:00:00Z" });
});

test("a sink of pages gets page records, listed or not", async () => {
  const pages: PageRecord[] = [];
  const user: BatchSink = { name: "pages", takes: "pages", write: async (records) => void pages.push(...records) };
  const sink = batchSink(user, { id: "r", clock: createTestClock(), durable: null });
  await sink.start();
  sink.write(outputs(0, 30));
  await sink.close();
  assert.deepEqual(
    pages,
    outputs(0, 30).flatMap(({ page }) => (page === null ? [] : [page])),
  );
});

test("the gate closes while more than four batches wait, and one write runs at a time", async () => {
  const gates: (() => void)[] = [];
  let running = 0;
  let most = 0;
  const store: Stored = { rows: [], checkpoint: null };
  const before = async () => {
    most = Math.max(most, ++running);
    await new Promise<void>((resolve) => gates.push(resolve));
    running--;
  };
  const sink = batchSink(database(store, { batchSize: 2, before }), { id: "r", clock: createTestClock(), durable: null });
  await sink.start();
  assert.equal(sink.gate.open(), true);
  sink.write(outputs(0, 20));
  assert.equal(sink.gate.open(), false);
  let opened = 0;
  sink.gate.onOpen(() => opened++);
  while (!sink.gate.open()) {
    assert.equal(opened, 0);
    await settled();
    gates.shift()?.();
    await settled();
  }
  assert.equal(opened, 1);
  const closing = sink.close();
  for (let done = false; !done; ) {
    gates.shift()?.();
    done = await Promise.race([closing.then(() => true), settled().then(() => false)]);
  }
  assert.equal(most, 1);
  assert.equal(store.rows.length, linesOf(outputs(0, 20)).length);
});

test("a batch that is refused ends the crawl with the sink's name, opens the gate, and closes the sink", async () => {
  let closed = 0;
  const told: CrawlError[] = [];
  const user: BatchSink = {
    ...{ name: "shop", takes: "items", batchSize: 1 },
    write: () => Promise.reject(new Error("the table is gone")),
    close: async () => void closed++,
  };
  const sink = batchSink(user, { id: "r", clock: createTestClock(), durable: null, onFailure: (error) => told.push(error) });
  await sink.start();
  sink.write(outputs(0, 40));
  assert.equal(sink.gate.open(), false);
  let opened = 0;
  sink.gate.onOpen(() => opened++);
  await settled();
  assert.equal(opened, 1);
  const refused = { code: "output-unwritable", message: "sink shop: a batch was refused: the table is gone" };
  assert.equal(told.length, 1);
  assert.throws(() => sink.write([outputAt(0)]), refused);
  assert.throws(() => sink.checkpoint?.(true), refused);
  await assert.rejects(sink.close(), refused);
  await assert.rejects(sink.close(), refused);
  assert.equal(closed, 1);
});

test("a batch that is refused at the very end is told by close, though nobody listens for failures", async () => {
  const user: BatchSink = { name: "shop", takes: "items", write: () => Promise.reject(new Error("the table is gone")) };
  const sink = batchSink(user, { id: "r", clock: createTestClock(), durable: null });
  await sink.start();
  sink.write(outputs(0, 3));
  sink.flush();
  await assert.rejects(sink.close(), { code: "output-unwritable", message: "sink shop: a batch was refused: the table is gone" });
});

test("a sink that cannot be opened, or has more than the state, is refused before anything starts", async () => {
  const clock = createTestClock();
  const user: BatchSink = { name: "shop", takes: "items", open: () => Promise.reject(new Error("no such host")), write: async () => undefined };
  await assert.rejects(batchSink(user, { id: "r", clock, durable: null }).start(), {
    code: "output-unwritable",
    message: /^sink shop: cannot be opened: no such host/,
  });
  const ahead = database({ rows: [], checkpoint: "r:7" });
  const durable = { records: 5, state: null, async *lines() {} };
  await assert.rejects(batchSink(ahead, { id: "r", clock, durable }).start(), {
    code: "output-unwritable",
    message: /it has 7 records .* state 5.*beyond r:5/,
  });
  // Of another run: all of this one is new to it.
  await batchSink(ahead, { id: "other", clock, durable: { ...durable, records: 0 } }).start();
});

test("nothing is handed over before the call after its checkpoint, which only follows a commit", async () => {
  const store: Stored = { rows: [], checkpoint: null };
  const clock = createTestClock();
  const sink = batchSink(database(store, { batchSize: 1 }), { id: "r", clock, durable: { records: 0, state: null, async *lines() {} } });
  await sink.start();
  sink.write(outputs(1, 4));
  await settled();
  sink.checkpoint?.(false);
  await settled();
  assert.equal(store.rows.length, 0);
  sink.write(outputs(5, 6));
  await settled();
  assert.equal(store.rows.length, 6);
  sink.checkpoint?.(false);
  sink.committed();
  await settled();
  assert.equal(store.rows.length, 7);
  sink.write(outputs(6, 7));
  sink.checkpoint?.(false);
  await sink.close();
  assert.equal(store.rows.length, 7);
});

/** A crawl that is killed at any step and goes on from its last commit, settling what was lost in another order. */
async function randomRun(seed: number, withOpen: boolean): Promise<{ readonly store: Stored; readonly journal: readonly string[] }> {
  const random = seededRandom(seed);
  const below = (most: number) => Math.floor(random() * most);
  const store: Stored = { rows: [], checkpoint: null };
  const journal: string[] = [];
  let state: SinkState | null = null;
  let next = 0;
  for (let life = 0; life < 6; life++) {
    let alive = true;
    const before = async () => {
      for (let ticks = below(4); ticks > 0; ticks--) await new Promise(setImmediate);
    };
    const { open, ...rest } = database(store, { batchSize: 1 + below(6), before, isDead: () => !alive });
    const committed = [...journal];
    const durable = {
      records: committed.length,
      state,
      lines: async function* () {
        for (const line of committed) yield [line];
      },
    };
    const sink: BatchingSink = batchSink(withOpen && open !== undefined ? { ...rest, open } : rest, { id: "r", clock: createTestClock(), durable });
    await sink.start();
    for (let step = below(12); step > 0; step--) {
      const count = below(5);
      const batch = outputs(next, next + count).sort(() => random() - 0.5);
      sink.write(batch);
      if (life < 5 && below(6) === 0) break; // killed before the commit
      state = sink.checkpoint?.(false) ?? null;
      if (life < 5 && below(8) === 0) break; // … inside it
      journal.push(...linesOf(batch));
      next += count;
      if (below(2) === 0) sink.committed();
      if (below(2) === 0) await settled();
    }
    if (life === 5) {
      sink.checkpoint?.(true);
      sink.committed();
      await sink.close();
    }
    alive = false;
  }
  return { store, journal };
}

test("whatever is killed, the user's sink has every committed record once and in the order of the journal", async () => {
  for (let seed = 1; seed <= 60; seed++) {
    const { store, journal } = await randomRun(seed, true);
    assert.deepEqual(
      store.rows.map(({ item }) => item),
      fieldsIn(journal),
      `seed ${seed}`,
    );
    assert.equal(store.checkpoint, `r:${journal.length}`);
  }
});

test("a sink that stores no checkpoint of its own has every committed record at least once", async () => {
  for (let seed = 1; seed <= 20; seed++) {
    const { store, journal } = await randomRun(seed, false);
    const rows = new Set(store.rows.map(({ item, url }) => JSON.stringify([item, url])));
    for (const line of journal) {
      const { item, url } = JSON.parse(line);
      assert.ok(rows.has(JSON.stringify([item, url])), `seed ${seed}: ${line}`);
    }
  }
});

test("sinks of a program are opened in order with what the journals hold; one that cannot be closes those before it", async () => {
  const closed: string[] = [];
  const store: Stored = { rows: [], checkpoint: "run:2" };
  const good: BatchSink = { ...database(store), close: async () => void closed.push("good") };
  const plain: Sink = { name: "plain", write: () => undefined, flush: () => undefined, close: async () => void closed.push("plain") };
  const journal = linesOf(outputs(0, 8));
  const durable = {
    states: new Map<string, SinkState>([["journal:items", { records: journal.length }]]),
    async *lines(kind: string) {
      if (kind === "items") yield journal;
    },
  };
  const run = { id: "run", clock: createTestClock(), durable };
  const { sinks, gates } = await openOwnSinks([plain, good], run);
  assert.deepEqual([sinks.map(({ name }) => name), gates.length], [["plain", "shop"], 1]);
  for (const sink of sinks) await sink.close();
  assert.deepEqual(
    store.rows.map(({ item }) => item),
    fieldsIn(journal.slice(2)),
  );
  const bad: BatchSink = { name: "bad", takes: "pages", open: () => Promise.reject(new Error("no")), write: async () => undefined };
  closed.length = 0;
  await assert.rejects(openOwnSinks([good, bad], run), { message: "sink bad: cannot be opened: no" });
  assert.deepEqual(closed, ["good"]);
});

test("what is no sink is refused by what it lacks", async () => {
  const run = { id: "r", clock: createTestClock(), durable: null };
  const cases: readonly (readonly [object, RegExp])[] = [
    [{ name: "s" }, /^sinks: sink 2 lacks write\(\), flush\(\), close\(\); a sink with takes/],
    [{ takes: "items" }, /^sinks: sink 2 lacks a name, write\(\)$/],
    [{ name: "s", takes: "links", async write() {} }, /^sinks: sink 2 lacks takes: "items" or "pages"$/],
  ];
  const good: BatchSink = { name: "good", takes: "pages", async write() {} };
  // `as`: JavaScript gives anything.
  for (const [sink, message] of cases) await assert.rejects(openOwnSinks([good, sink as BatchSink], run), { code: "invalid-options", message });
});
