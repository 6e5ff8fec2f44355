/** What every sink with checkpoints must show, as data: any sink, any test runner. A case opens nothing itself; its bench does. */
import assert from "node:assert/strict";
import { CrawlError } from "../core/errors.ts";
import type { ItemRecord, Output, PageRecord, SkippedRecord } from "../core/records.ts";
import type { Sink, SinkState } from "../core/sink.ts";
import { seededRandom } from "./clock.ts";
import { outputFor, pageRecordOf } from "./frontier/bench.ts";

/** One output under test, in a place of its own. */
export interface SinkBench {
  /** Opens the sink: afresh (null) or at a state of it. */
  open(state: SinkState | null): Sink;
  /** `kill -9` now: what the sinks opened so far did not hand to the operating system is lost; what is opened next finds the rest. */
  kill(): void;
  /** Takes the output away, as a careless user does. */
  remove(): void;
  /** The records in the output, in order, after a clean end. Throws when anything is torn. */
  read(): readonly object[];
  /** All of the output in a form that is equal when the outputs are. */
  content(): unknown;
  /** What the sink should hold of these outputs. */
  wanted(outputs: readonly Output[]): readonly object[];
}

export type OpenSinkBench = () => SinkBench;

export interface SinkCase {
  /** A sentence that is true of a sink that keeps the contract. */
  readonly name: string;
  /** `another` opens a second output of the same kind. Rejects when the rule is broken. */
  run(bench: SinkBench, another: OpenSinkBench): Promise<void>;
}

const EVERY_FIELD: PageRecord = {
  ...{ url: "http://a.test/every", status: 200, outcome: "fetched", depth: 3, referrer: "http://a.test/", location: "http://a.test/next" },
  ...{ redirects: [{ url: "http://a.test/old", status: 301 }], contentType: "text/html; charset=utf-8", charset: "utf-8", charsetSource: "header" },
  ...{ bytes: 1_234, bytesDecoded: 5_678, truncated: true, bodySkipped: true, digest: `sha256:${"0f".repeat(32)}`, etag: 'W/"1,2"' },
  ...{ lastModified: "Thu, 01 Jan 2026 00:00:00 GMT", title: 'A "title", with a comma', canonical: "http://a.test/canonical", robots: ["noindex"] },
  ...{ links: ["http://a.test/1", "http://a.test/2?a=1,2"], images: ["http://a.test/i.png"], attempts: 2, fromCache: true, change: "new" },
  ...{ error: { code: "http", message: "503 Service Unavailable" }, fetchedAt: "2026-01-01T00:00:00.000Z", durationMs: 12.5 },
};

/** Field text as the web has it, and as it should not be. */
const ODD_TEXTS = [
  "ünïcödé – “quotes”",
  "日本語のページ",
  "🕷️ spider",
  "a\nb\r\nc\td",
  '"',
  '""',
  ",",
  "\\",
  "\u0000\u0001\u007f\u0085",
  "\u2028\u2029",
  "' OR 1=1; --",
  "",
  " ",
  "]",
  "x".repeat(100_000),
];

function skipped(url: string, more: Partial<SkippedRecord> = {}): Output["skipped"][number] {
  return { idHi: 0, idLo: 0, value: { url, referrer: "http://a.test/", depth: 1, reason: "depth", ...more } };
}

/** Items of the n-th output: of two types, one with a key that comes again later; fields come and go, new ones turn up at any time. */
function itemsAt(n: number): readonly ItemRecord[] {
  const product = { id: `p${n % 23}`, price: n / 4, name: n < 300 ? (ODD_TEXTS[n % 14] ?? "") : "plain", tags: n % 3 === 0 ? [] : [`t${n}`, { a: '"' }] };
  const late = n % 5 === 0 ? { [`late${Math.floor(n / 15) % 40}`]: n } : {};
  const review = { inStock: n % 2 === 0, late0: n, ...(n % 6 === 0 ? {} : { id: `r${n}` }) };
  return [
    { type: "product", key: product.id, json: JSON.stringify(n % 9 === 8 ? { ...late, ...product } : { ...product, ...late }) },
    { type: "review", key: null, json: JSON.stringify(review) },
    { type: "review", key: null, json: "{}" },
  ].slice(0, n % 4);
}

/** The n-th output of a run: a page with what is skipped and found on it, and up to three items; each eleventh has no page, each seventh is not listed. */
export function outputAt(n: number): Output {
  const url = `http://a.test/${n}`;
  const edges = [
    { from: url, to: `http://b.test/${n}` },
    { from: url, to: "http://b.test/", nofollow: true as const },
  ];
  const page = n % 11 === 10 ? null : pageRecordOf(url, { title: ODD_TEXTS[n % 14] ?? "", links: [url, `http://b.test/${n}`] });
  const items = page === null ? {} : { items: itemsAt(n) };
  return outputFor(url, {
    ...items,
    page,
    listed: n % 7 !== 6,
    skipped: [skipped(`http://a.test/skipped/${n}`, n % 2 === 0 ? {} : { rule: "--depth 0" })],
    edges,
  });
}

const outputsFrom = (start: number, count: number) => Array.from({ length: count }, (_, index) => outputAt(start + index));

/** Through JSON, as a store keeps it. */
function checkpoint(sink: Sink, sync = false): SinkState {
  assert.ok(sink.checkpoint, "the sink has no checkpoint");
  return JSON.parse(JSON.stringify(sink.checkpoint(sync)));
}

/** Formats with columns cannot tell null from absent. */
function trimmed(records: readonly object[]): readonly object[] {
  return records.map((record) => Object.fromEntries(Object.entries(record).filter(([, value]) => value !== null && value !== undefined)));
}

/** Record by record: a difference of ten thousand records takes minutes to print. */
function assertHolds(bench: SinkBench, outputs: readonly Output[], message = ""): void {
  const found = trimmed(bench.read());
  const wanted = trimmed(bench.wanted(outputs));
  for (const [index, record] of found.slice(0, wanted.length).entries()) assert.deepEqual(record, wanted[index], `record ${index} ${message}`);
  assert.equal(found.length, wanted.length, `records ${message}`);
}

/** The output is what an undisturbed run of the first `count` outputs leaves. */
async function assertUndisturbed(bench: SinkBench, another: OpenSinkBench, count: number, message = ""): Promise<void> {
  const undisturbed = another();
  const sink = undisturbed.open(null);
  sink.write(outputsFrom(0, count));
  await sink.close();
  assert.deepEqual(bench.content(), undisturbed.content(), message);
}

function assertRefused(open: () => Sink): void {
  assert.throws(open, (error) => error instanceof CrawlError && error.code === "output-unwritable" && error.message.includes("--fresh"));
}

const plainCases: readonly SinkCase[] = [
  {
    name: "records come out whole and in the order of the settles",
    async run(bench) {
      const sink = bench.open(null);
      for (let n = 0; n < 100; n += 10) sink.write(outputsFrom(n, 10));
      await sink.close();
      await sink.close();
      assertHolds(bench, outputsFrom(0, 100));
    },
  },
  {
    name: "10,000 records in batches of all sizes arrive, with checkpoints now and then",
    async run(bench) {
      const sink = bench.open(null);
      const short = Array.from({ length: 10_000 }, (_, n) => ({ ...outputAt(n), page: pageRecordOf(`http://a.test/${n}`) }));
      for (let n = 0, size = 1; n < 10_000; n += size, size = (size * 7) % 97) {
        sink.write(short.slice(n, n + size));
        if (size % 5 === 0) checkpoint(sink);
      }
      await sink.close();
      assertHolds(bench, short);
    },
  },
  {
    name: "every field and odd text comes back as it was",
    async run(bench) {
      const texts = ODD_TEXTS.map((text, n) => {
        const url = `http://a.test/${n}?${encodeURIComponent(text.slice(0, 100))}`;
        return outputFor(url, {
          page: pageRecordOf(url, { title: text, etag: text, links: [text] }),
          items: [{ type: "product", key: `${n}`, json: JSON.stringify({ id: `${n}`, name: text, tags: [text] }) }],
          skipped: [skipped(url, { rule: text })],
          edges: [{ from: url, to: text }],
        });
      });
      const outputs = [outputFor("", { page: EVERY_FIELD }), ...texts];
      const sink = bench.open(null);
      sink.write(outputs);
      await sink.close();
      assertHolds(bench, outputs);
    },
  },
  {
    name: "half a surrogate pair does not tear the output",
    async run(bench) {
      const sink = bench.open(null);
      const items = [{ type: "product", key: null, json: '{"id":"x\ud800y","name":"\\udc00"}' }];
      sink.write([outputFor("http://a.test/", { page: pageRecordOf("http://a.test/", { title: "x\ud800y" }), items }), outputAt(1)]);
      await sink.close();
      bench.read();
    },
  },
  {
    name: "a run that settled nothing worth a record leaves a valid, empty output",
    async run(bench) {
      const sink = bench.open(null);
      sink.write([outputFor("", { page: null })]);
      await sink.close();
      assert.deepEqual(bench.read(), []);
    },
  },
  {
    name: "a start that comes to nothing leaves the last run's output alone",
    async run(bench) {
      const first = bench.open(null);
      first.write(outputsFrom(0, 3));
      await first.close();
      const before = bench.content();
      await bench.open(null).close();
      assert.deepEqual(bench.content(), before);
    },
  },
  {
    name: "a fresh run replaces the last run's output with its first record, also when it is shorter or empty",
    async run(bench) {
      for (const outputs of [outputsFrom(0, 50), outputsFrom(50, 3), [outputFor("", { page: null })]]) {
        const sink = bench.open(null);
        sink.write(outputs);
        await sink.close();
        assertHolds(bench, outputs);
      }
    },
  },
];

const resumeCases: readonly SinkCase[] = [
  {
    name: "what was written before a checkpoint is kept and what came after is undone, whether or not it was flushed",
    async run(bench) {
      for (const flushed of [false, true]) {
        let sink = bench.open(null);
        sink.write(outputsFrom(0, 20));
        const state = checkpoint(sink);
        sink.write(outputsFrom(20, 20));
        if (flushed) sink.flush();
        bench.kill();
        sink = bench.open(state);
        await sink.close();
        assertHolds(bench, outputsFrom(0, 20));
      }
    },
  },
  {
    name: "what is written again after a kill stands there once",
    async run(bench, another) {
      let sink = bench.open(null);
      sink.write(outputsFrom(0, 10));
      const state = checkpoint(sink, true);
      sink.write(outputsFrom(10, 10));
      checkpoint(sink);
      bench.kill();
      sink = bench.open(state);
      sink.write(outputsFrom(10, 20));
      await sink.close();
      assertHolds(bench, outputsFrom(0, 30));
      await assertUndisturbed(bench, another, 30);
    },
  },
  {
    name: "a start that is killed itself can be repeated from the same state",
    async run(bench) {
      let sink = bench.open(null);
      sink.write(outputsFrom(0, 10));
      const state = checkpoint(sink);
      sink.write(outputsFrom(10, 5));
      sink.flush();
      for (let round = 0; round < 3; round++) {
        bench.kill();
        sink = bench.open(state);
        sink.write(outputsFrom(10, round));
        if (round === 1) checkpoint(sink);
      }
      await sink.close();
      assertHolds(bench, outputsFrom(0, 12));
    },
  },
  {
    name: "a run that was ended cleanly goes on from its last checkpoint",
    async run(bench, another) {
      let sink = bench.open(null);
      sink.write(outputsFrom(0, 10));
      const state = checkpoint(sink);
      await sink.close();
      assertHolds(bench, outputsFrom(0, 10));
      sink = bench.open(state);
      sink.write(outputsFrom(10, 10));
      await sink.close();
      await assertUndisturbed(bench, another, 20);
    },
  },
  {
    name: "a checkpoint before the first record is one of a fresh run",
    async run(bench) {
      let sink = bench.open(null);
      const early = checkpoint(sink);
      sink.write([outputFor("", { page: null })]);
      const empty = checkpoint(sink, true);
      for (const state of [early, empty]) {
        sink.write(outputsFrom(0, 3));
        sink.flush();
        bench.kill();
        sink = bench.open(state);
        sink.write(outputsFrom(0, 2));
        checkpoint(sink);
      }
      await sink.close();
      assertHolds(bench, outputsFrom(0, 2));
      bench.kill();
      await bench.open(empty).close();
      assert.deepEqual(bench.read(), []);
    },
  },
  {
    name: "a checkpoint without anything new is the one before",
    async run(bench) {
      const sink = bench.open(null);
      sink.write(outputsFrom(0, 5));
      assert.deepEqual(checkpoint(sink), checkpoint(sink, true));
      await sink.close();
    },
  },
  {
    name: "an output of another run is refused and left as it is, one that is gone is refused",
    async run(bench, another) {
      const sink = bench.open(null);
      sink.write(outputsFrom(0, 30));
      const state = checkpoint(sink);
      await sink.close();
      const other = another();
      const later = other.open(null);
      later.write(outputsFrom(100, 60));
      await later.close();
      const before = other.content();
      assertRefused(() => other.open(state));
      assert.deepEqual(other.content(), before);
      bench.remove();
      assertRefused(() => bench.open(state));
    },
  },
  {
    name: "an output with less in it than was committed is refused",
    async run(bench) {
      const sink = bench.open(null);
      sink.write(outputsFrom(0, 10));
      checkpoint(sink);
      sink.write(outputsFrom(10, 20));
      const state = checkpoint(sink);
      await sink.close();
      const again = bench.open(null);
      again.write(outputsFrom(0, 10));
      await again.close();
      assertRefused(() => bench.open(state));
    },
  },
];

/** A run of many steps at random: writes, checkpoints that are committed or not, flushes, kills and clean stops. */
async function randomRun(bench: SinkBench, seed: number): Promise<number> {
  const random = seededRandom(seed);
  const below = (most: number) => Math.floor(random() * most);
  let committed: { readonly state: SinkState | null; readonly done: number } = { state: null, done: 0 };
  let sink = bench.open(null);
  let done = 0;
  for (let step = 0; step < 30; step++) {
    const choice = below(10);
    if (choice < 4) {
      const size = below(below(4) === 0 ? 120 : 6);
      sink.write(outputsFrom(done, size));
      done += size;
    } else if (choice < 7) {
      const state = checkpoint(sink, choice === 4);
      // A commit may fail, or the process die before it: then an older state stands.
      if (below(4) > 0) committed = { state, done };
    } else if (choice === 7) sink.flush();
    else {
      if (choice === 8) bench.kill();
      else await sink.close();
      sink = bench.open(committed.state);
      done = committed.done;
    }
  }
  sink.write(outputsFrom(done, 3));
  await sink.close();
  return done + 3;
}

const randomCases: readonly SinkCase[] = [
  {
    name: "whatever is written, committed, killed and resumed, the output is that of an undisturbed run",
    async run(_bench, another) {
      for (let seed = 1; seed <= 15; seed++) {
        const bench = another();
        const count = await randomRun(bench, seed);
        assertHolds(bench, outputsFrom(0, count), `seed ${seed}`);
        await assertUndisturbed(bench, another, count, `seed ${seed}`);
      }
    },
  },
];

export const sinkCases: readonly SinkCase[] = [...plainCases, ...resumeCases, ...randomCases];
