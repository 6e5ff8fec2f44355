/** Items in files: `_meta`, the columns of CSV, tables of SQLite whatever fields and types are called, and what a resume takes back. */
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { after, test } from "node:test";
import type { ItemRecord, Output } from "../core/records.ts";
import type { SinkState } from "../core/sink.ts";
import { type CrawlSpecInput, parseSpec } from "../core/spec.ts";
import { outputFor, pageRecordOf } from "../testing/frontier/bench.ts";
import { type ItemOutputs, openSinks } from "./open.ts";
import type { ItemType } from "./tables.ts";

const folder = mkdtempSync(join(tmpdir(), "skein-items-"));
after(() => rmSync(folder, { recursive: true }));
let files = 0;
const fresh = (suffix: string) => join(folder, `${files++}.${suffix}`);

const at = "2026-01-01T00:00:00Z";
const typed = (type: string, key: string | null = null, columns: readonly string[] | null = null): ItemType => ({ name: type, key, columns });
const itemOf = (value: object, type = "thing", key: string | null = null): ItemRecord => ({ type, key, json: JSON.stringify(value) });

/** One page with these items. */
function pageWith(items: readonly ItemRecord[], url = "http://a.test/p"): Output {
  return outputFor(url, { page: pageRecordOf(url), items });
}

async function written(suffix: string, outputs: readonly Output[], items: ItemOutputs = { types: [] }, more: Partial<CrawlSpecInput> = {}): Promise<string> {
  const path = fresh(suffix);
  const sinks = openSinks(parseSpec({ ...more, outputs: [path] }), null, undefined, items);
  for (const sink of sinks) {
    sink.write(outputs);
    await sink.close();
  }
  return path;
}

const textOf = async (...args: Parameters<typeof written>) => readFileSync(await written(...args), "utf8");
const rowsOf = async (...args: Parameters<typeof written>) => (await textOf(...args)).split("\r\n").slice(0, -1);

function tablesOf(path: string): Record<string, object[]> {
  using db = new DatabaseSync(path, { readOnly: true });
  const names = db.prepare("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY _rowid_").all();
  return Object.fromEntries(
    names.map(({ name }) => {
      const table = `"${String(name).replaceAll('"', '""')}"`;
      return [
        name,
        db
          .prepare(`SELECT * FROM ${table}`)
          .all()
          .map((row) => ({ ...row })),
      ];
    }),
  );
}

test("an item is its own text with _meta as its last field, or alone with --no-meta; only items of listed pages are written", async () => {
  const odd = '{"b":1e3,"a":"\\u00e9","nested":{"x":[1,{}]}}';
  const outputs = [
    pageWith([{ type: "t", key: null, json: odd }, itemOf({})]),
    { ...pageWith([itemOf({ a: 1 })]), listed: false },
    { ...pageWith([itemOf({ a: 2 })]), page: null },
  ];
  const meta = `"_meta":{"url":"http://a.test/p","depth":0,"fetchedAt":"${at}"}}`;
  assert.equal(await textOf("jsonl", outputs), `${odd.slice(0, -1)},${meta}\n{${meta}\n{"a":2}\n`);
  assert.equal(await textOf("json", outputs), `[\n${odd.slice(0, -1)},${meta},\n{${meta},\n{"a":2}\n]\n`);
  assert.equal(await textOf("jsonl", outputs, { types: [] }, { meta: false }), `${odd}\n{}\n{"a":2}\n`);
});

test("F113 CSV has one header with every field, also of later items, and nothing is dropped", async () => {
  const items = [
    { url: 1, a: 2 },
    { url: 3, b: 4 },
    { b: 5, url: 6, a: 7 },
  ].map((item) => itemOf(item));
  assert.deepEqual(await rowsOf("csv", [pageWith(items)], { types: [] }, { meta: false }), ["url,a,b", "1,2,", "3,,4", "6,7,5"]);
  assert.equal((await rowsOf("csv", [pageWith(items)]))[0], "url,a,b,_url,_depth,_fetchedAt");
});

test("F114 cells are placed by name, whatever the order of the fields", async () => {
  const items = [{ a: "A", b: "B", c: "C" }, { c: "C", a: "A", b: "B" }, { b: "B" }].map((item) => itemOf(item));
  assert.deepEqual(await rowsOf("csv", [pageWith(items)], { types: [] }, { meta: false }), ["a,b,c", "A,B,C", "A,B,C", ",B,"]);
});

test("CSV: a field that is new after 1,000 items stands in _extra, as does one that no type declares", async () => {
  const many = Array.from({ length: 1_001 }, (_, n) => itemOf(n === 1_000 ? { n, late: [1], "": 2 } : n === 999 ? { n, last: true } : { n }));
  const rows = await rowsOf("csv", [pageWith(many)], { types: [] }, { meta: false });
  assert.deepEqual([rows[0], rows[1], rows[1000], rows[1001]], ["n,last,_extra", "0,,", "999,true,", '1000,,"{""late"":[1],"""":2}"']);
  const types = [typed("thing", null, ["b", "a"])];
  assert.deepEqual(await rowsOf("csv", [pageWith([itemOf({ a: 1, c: 2 }), itemOf({ b: 3 })])], { types }, { meta: false }), [
    "b,a,_extra",
    ',1,"{""c"":2}"',
    "3,,",
  ]);
  assert.deepEqual(await rowsOf("csv", [pageWith([itemOf({ a: 1 })])], { types }, { meta: false }), ["b,a", ",1"]);
  assert.deepEqual(await rowsOf("csv", [pageWith([])], { types }), ["b,a,_url,_depth,_fetchedAt"]);
});

test("CSV: items of several types have their type in a column, or in _extra when the second comes late", async () => {
  const mixed = [itemOf({ a: 1 }, "x"), itemOf({ b: 2 }, "y")];
  assert.deepEqual(await rowsOf("csv", [pageWith(mixed)], { types: [] }, { meta: false }), ["_type,a,b", "x,1,", "y,,2"]);
  const late = [...Array.from({ length: 1_000 }, () => itemOf({ a: 1 }, "x")), itemOf({ a: 2 }, "y")];
  assert.equal((await rowsOf("csv", [pageWith(late)], { types: [] }, { meta: false })).at(-1), '2,"{""_type"":""y""}"');
});

const NAMES = ["_url", "_depth", "_fetchedAt", "_extra", "_type", "", "__proto__", "constructor", "toString", "rowid", "_rowid_", "oid", "select", "a b"];
const MORE_NAMES = ['"', '""', "'", "`", "]", "x\0y", "Title", "title", "TITLE", "título", "\ud800", "--", "a,b", "\r\n", "key", "é".repeat(5_000), "9"];
const oddItem = () => Object.fromEntries([...NAMES, ...MORE_NAMES].map((name, index) => [name, `v${index}`]));

test("whatever fields are called, every value has a column of its own, in CSV and SQLite, and comes back", async () => {
  // An item of few fields between: what it lacks is empty, also what every object has.
  const items = [{ a: 1 }, oddItem(), { b: 2 }].map((item) => itemOf(item));
  const [header = "", , odd = "", last] = (await textOf("csv", [pageWith(items)], { types: [] }, { meta: false })).split(/(?<!"\r\n?)(?<!")\r\n/);
  assert.ok(header.startsWith("9,a") || header.startsWith("a,9"), header.slice(0, 50));
  for (let index = 0; index < NAMES.length + MORE_NAMES.length; index++) assert.ok(odd.split(",").includes(`v${index}`), `v${index}`);
  assert.match(last ?? "", /^,*2$/);
  const path = await written("sqlite", [pageWith(items)]);
  const [first, second, third] = tablesOf(path).thing ?? [];
  assert.deepEqual(Object.values(second ?? {}).filter((value) => /^v\d+$/.test(String(value))).length, NAMES.length + MORE_NAMES.length);
  for (const row of [first, third]) assert.deepEqual(Object.values(row ?? {}).filter((value) => value !== null).length, 4);
});

test("SQLite: 2,500 fields have 1,000 columns, and the others stand in _extra", async () => {
  const wide = Object.fromEntries(Array.from({ length: 2_500 }, (_, n) => [`f${n}`, n]));
  const row: Record<string, unknown> = { ...tablesOf(await written("sqlite", [pageWith([itemOf({ first: 1 }), itemOf(wide)])])).thing?.[1] };
  const { _extra: extra, ...columns } = row;
  assert.equal(Object.keys(columns).length, 1_003);
  assert.deepEqual(Object.keys(JSON.parse(String(extra))).length, 1_501);
  assert.deepEqual({ f0: columns.f0, f998: columns.f998, f999: JSON.parse(String(extra)).f999 }, { f0: 0, f998: 998, f999: 999 });
});

test("SQLite: texts stay texts, whole numbers are whole, lists are JSON, true is 1", async () => {
  const path = await written("sqlite", [
    pageWith([itemOf({ a: 7, b: 1.5, c: "x", d: true, e: [1], f: null }), itemOf({ a: "007", b: "1.50", c: 3, d: 2 ** 53, e: "x\0y" })]),
  ]);
  using db = new DatabaseSync(path);
  const types = db.prepare("SELECT typeof(a) a, typeof(b) b, typeof(c) c, typeof(d) d, typeof(e) e, typeof(f) f FROM thing").all();
  assert.deepEqual(
    types.map((row) => Object.values(row).join()),
    ["integer,real,text,integer,text,null", "text,text,integer,real,text,null"],
  );
  assert.deepEqual({ ...db.prepare("SELECT a, b, c, d, e FROM thing WHERE a = '007'").get() }, { a: "007", b: "1.50", c: 3, d: 2 ** 53, e: "x\0y" });
});

test("SQLite: a table a type, whatever types are called, beside other tables of the same file; pages have no key then", async () => {
  const names = ["skipped", "Skipped", "sqlite_x", "", "x\0y", '"; DROP TABLE skipped; --', "a", "A", "_skein_undo", "select", "z".repeat(300)];
  const path = fresh("sqlite");
  const items = names.map((name, n) => itemOf({ n }, name));
  const same = [pageWith(items), pageWith([])];
  const pages = fresh("sqlite");
  for (const sink of openSinks(parseSpec({ outputs: [path], skippedFile: path, pagesFile: pages }), null, undefined, {
    types: [typed("declared", null, ["x"])],
  })) {
    sink.write(same);
    await sink.close();
  }
  const tables = tablesOf(path);
  // Requests that differ by more than their URL have a record each.
  assert.equal(tablesOf(pages).pages?.length, 2);
  assert.deepEqual(tables.skipped, []);
  assert.deepEqual(tables.declared, []);
  assert.equal(Object.keys(tables).length, 2 + names.length);
  const found = Object.values(tables).flatMap((rows) => rows.flatMap((row) => ("n" in row ? [row.n] : [])));
  assert.deepEqual(found, [...names.keys()]);
});

test("SQLite: the last item of a key stands in the place of the first; without its key's field each has a row", async () => {
  const types = [typed("p", "id")];
  const items = [{ id: 1, a: "old", b: 1 }, { id: 2 }, { a: "none" }, { a: "new", id: 1 }, { a: "none" }, { id: null }].map((item) => itemOf(item, "p"));
  const rows = tablesOf(await written("sqlite", [pageWith(items)], { types }, { meta: false })).p;
  assert.deepEqual(rows, [
    { id: 1, a: "new", b: null },
    { id: 2, a: null, b: null },
    { id: null, a: "none", b: null },
    { id: null, a: "none", b: null },
    { id: null, a: null, b: null },
  ]);
  using db = new DatabaseSync(await written("sqlite", [pageWith(items)], { types }));
  assert.throws(() => db.exec("INSERT INTO p (id) VALUES (2)"), /UNIQUE/);
});

test("SQLite: what was replaced, added or altered and not committed is taken back by a resume", async () => {
  const path = fresh("sqlite");
  const items = { types: [typed("p", "id")] };
  const open = (state: SinkState | null) =>
    openSinks(parseSpec({ outputs: [path], meta: false }), state === null ? null : new Map([[path, state]]), undefined, items)[0]!;
  let sink = open(null);
  sink.write([pageWith([itemOf({ id: "a", v: 1 }, "p", "a"), itemOf({ id: "b", v: 1 }, "p", "b")])]);
  const state = sink.checkpoint?.(false) ?? null;
  sink.write([
    pageWith([itemOf({ id: "a", v: 2, later: true }, "p", "a"), itemOf({ id: "a", v: 3 }, "p", "a"), itemOf({ x: 1 }, "other"), itemOf({ id: "c" }, "p", "c")]),
  ]);
  sink.flush();
  await sink.close();
  assert.equal(tablesOf(path).p?.length, 3);
  sink = open(state);
  sink.committed?.();
  await sink.close();
  // The item that was replaced is back: the page that replaced it was never settled, and may give another one now.
  assert.deepEqual(tablesOf(path), {
    p: [
      { id: "a", v: 1 },
      { id: "b", v: 1 },
    ],
  });
});

test("CSV: a kill after the header has grown beyond the commit loses nothing, and a file that cannot be replaced is held back", async () => {
  const path = fresh("csv");
  const open = (state: SinkState | null) =>
    openSinks(parseSpec({ outputs: [path], meta: false }), state === null ? null : new Map([[path, state]]), undefined, { types: [] })[0]!;
  let sink = open(null);
  sink.write([pageWith([itemOf({ a: 'x,"' }), itemOf({ b: "" })])]);
  const state = sink.checkpoint?.(true) ?? null;
  sink.write([pageWith([itemOf({ z: 1, b: 2 })])]);
  sink.flush();
  assert.equal(readFileSync(path, "utf8"), 'a,b,z\r\n"x,""",,\r\n,"",\r\n,2,1\r\n');
  sink = open(state);
  sink.write([pageWith([itemOf({ c: 3 }, "second")])]);
  await sink.close();
  assert.equal(readFileSync(path, "utf8"), '_type,a,b,c\r\nthing,"x,""",,\r\nthing,,"",\r\nsecond,,,3\r\n');
  writeFileSync(path, readFileSync(path, "utf8").replace("x,", "y,"));
  assert.throws(() => open(state), { code: "output-unwritable", message: /replaced or changed.*--fresh/ });
});
