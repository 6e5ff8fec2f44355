/** Items of a journal, exported into every format. */
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { after, test } from "node:test";
import { journalSinks } from "../sinks/open.ts";
import { outputAt } from "../testing/sink-cases.ts";
import { exportTo, itemLine } from "./export.ts";
import type { Journal } from "./inspect.ts";
import { journalLines } from "./journal.ts";

const folder = mkdtempSync(join(tmpdir(), "skein-export-"));
after(() => rmSync(folder, { recursive: true }));

const outputs = Array.from({ length: 50 }, (_, n) => outputAt(n));
const from = (n: number) => ({ url: `http://a.test/${n}`, depth: 0, fetchedAt: "2026-01-01T00:00:00Z" });
const wanted = outputs.flatMap(({ items = [] }, n) => items.map(({ json }) => ({ ...JSON.parse(json), _meta: from(n) })));
const options = { what: "items", fields: null, meta: true } as const;

/** A journal of which something was never committed. */
async function journalOf(): Promise<Journal> {
  const items = { types: [{ name: "product", key: "id", columns: null }] };
  const sinks = journalSinks(folder, null, undefined, items);
  for (const sink of sinks) sink.write(outputs);
  const bytes = Number(sinks[2]?.checkpoint?.(false).bytes);
  for (const sink of sinks) {
    sink.write([outputAt(51)]);
    await sink.close();
  }
  return { path: join(folder, "items.jsonl"), bytes };
}

test("items go into every format as a crawl writes them, with all their fields as columns", async () => {
  const journal = await journalOf();
  const to = (name: string) => exportTo(journal, join(folder, name), options);
  assert.equal(await to("out.jsonl"), wanted.length);
  const lines = readFileSync(join(folder, "out.jsonl"), "utf8").split("\n").slice(0, -1);
  assert.deepEqual(
    lines.map((line) => JSON.parse(line)),
    wanted,
  );
  const printed: string[] = [];
  for await (const piece of journalLines(journal)) printed.push(...piece.map((line) => itemLine(line, true)));
  assert.deepEqual(printed, lines);
  await to("out.json");
  assert.deepEqual(JSON.parse(readFileSync(join(folder, "out.json"), "utf8")), wanted);
  await to("out.csv");
  const header = readFileSync(join(folder, "out.csv"), "utf8").split("\r\n")[0];
  assert.equal(header, "_type,id,price,name,tags,late0,late1,late2,late3,inStock,_url,_depth,_fetchedAt");
  await to("out.sqlite");
  using db = new DatabaseSync(join(folder, "out.sqlite"), { readOnly: true });
  const products = new Set(outputs.flatMap(({ items = [] }) => items.flatMap(({ type, key }) => (type === "product" ? [key] : []))));
  assert.equal(db.prepare("SELECT count(*) AS n FROM product").get()?.n, products.size);
  assert.deepEqual({ ...db.prepare("SELECT id, price, _url FROM product WHERE id = 'p1'").get() }, { id: "p1", price: 47 / 4, _url: "http://a.test/47" });
});

test("without _meta items are the scraper's fields and nothing else", async () => {
  const journal = await journalOf();
  await exportTo(journal, join(folder, "plain.jsonl"), { ...options, meta: false });
  assert.equal(readFileSync(join(folder, "plain.jsonl"), "utf8"), outputs.flatMap(({ items = [] }) => items.map(({ json }) => `${json}\n`)).join(""));
});
