/** Whole outputs, format by format, against test/golden; SKEIN_UPDATE=1 rewrites them. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { after, test } from "node:test";
import type { Output, PageRecord } from "../core/records.ts";
import { parseSpec } from "../core/spec.ts";
import { journalSinks, openSinks } from "./open.ts";
import { sharedLines } from "./shared-lines.ts";

const folder = mkdtempSync(join(tmpdir(), "skein-golden-"));
after(() => rmSync(folder, { recursive: true }));

const facts = { status: 200, outcome: "fetched", depth: 0, referrer: null, contentType: "text/html", charset: "utf-8", charsetSource: "header" } as const;
const sizes = { bytes: 120, bytesDecoded: 300, attempts: 1, fetchedAt: "2026-01-01T00:00:00.000Z", durationMs: 12 };
const home: PageRecord = {
  url: "http://a.test/",
  ...facts,
  redirects: [],
  title: 'Home, "sweet" home – 家',
  links: ["http://a.test/b", "http://b.test/?x=1,2"],
  ...sizes,
};
const second: PageRecord = {
  ...{ url: "http://a.test/b", ...facts, depth: 1, referrer: "http://a.test/", redirects: [{ url: "http://a.test/old", status: 301 }] },
  ...{
    truncated: true,
    digest: `sha256:${"0f".repeat(32)}`,
    etag: '"1"',
    robots: ["noindex", "nofollow"],
    links: [],
    images: ["http://a.test/i.png"],
    ...sizes,
  },
  ...{ title: "", durationMs: 1.25 },
};
const failed: PageRecord = {
  ...{ url: "http://c.test/", status: null, outcome: "failed", depth: 1, referrer: "http://a.test/", redirects: [] },
  ...{ contentType: null, bytes: 0, bytesDecoded: 0, links: [] },
  ...{ attempts: 3, error: { code: "dns", message: "c.test has no address" }, fetchedAt: "2026-01-01T00:00:01.000Z", durationMs: 0 },
};
const skip = (url: string, more: object = {}) => ({
  idHi: 0,
  idLo: 0,
  value: { url, referrer: "http://a.test/", depth: 1, reason: "excluded" as const, ...more },
});
const run: readonly Output[] = [
  {
    ...{
      page: home,
      listed: true,
      found: [],
      skipped: [skip("http://a.test/no", { rule: '/no, "never"' }), skip("http://a.test/deep", { reason: "depth", depth: 2 })],
    },
    edges: [
      { from: "http://a.test/", to: "http://a.test/b" },
      { from: "http://a.test/", to: "http://b.test/?x=1,2", nofollow: true },
    ],
  },
  { page: second, listed: false, found: [], skipped: [], edges: [] },
  { page: null, listed: false, found: [], skipped: [skip("http://a.test/", { reason: "duplicate", depth: 2 })], edges: [] },
  { page: failed, listed: true, found: [], skipped: [], edges: [] },
];

function golden(name: string, found: string): void {
  // The formatter would have a file called .json its own way.
  const path = join(import.meta.dirname, "../../test/golden", name.endsWith(".json") ? `${name}.txt` : name);
  if (process.env.SKEIN_UPDATE === "1") writeFileSync(path, found);
  assert.equal(found, readFileSync(path, "utf8"), name);
}

/** Schema and rows as text. */
function dump(path: string): string {
  const db = new DatabaseSync(path);
  const schema = db.prepare("SELECT name, sql FROM sqlite_schema WHERE type = 'table' ORDER BY rowid").all();
  const parts = schema.map(({ name, sql }) => [
    sql,
    ...db
      .prepare(`SELECT * FROM "${name}" ORDER BY rowid`)
      .all()
      .map((row) => JSON.stringify(row)),
  ]);
  db.close();
  return `${parts.flat().join("\n")}\n`;
}

test("each option and format writes what the golden files show", async () => {
  const at = (name: string) => join(folder, name);
  const outputs = ["listed.jsonl", "listed.json", "listed.csv", "all.sqlite"].map(at);
  const more = { pagesFile: at("pages.csv"), skippedFile: at("all.sqlite"), linksFile: at("all.sqlite") };
  const sinks = [
    ...openSinks(parseSpec({ outputs, ...more })),
    ...openSinks(
      parseSpec({
        outputs: [at("fields.csv")],
        pagesFile: at("fields.json"),
        skippedFile: at("skipped.csv"),
        linksFile: at("links.csv"),
        fields: ["title", "url"],
      }),
    ),
    ...openSinks(parseSpec({ pagesFile: at("pages.jsonl"), skippedFile: at("skipped.json"), linksFile: at("links.jsonl"), skippedAll: true })),
  ];
  for (const sink of sinks) {
    sink.write(run);
    await sink.close();
  }
  for (const name of [
    "listed.jsonl",
    "listed.json",
    "listed.csv",
    "pages.csv",
    "pages.jsonl",
    "fields.csv",
    "fields.json",
    "skipped.csv",
    "skipped.json",
    "links.csv",
    "links.jsonl",
  ]) {
    golden(name, readFileSync(at(name), "utf8"));
  }
  golden("all.sqlite.txt", dump(at("all.sqlite")));
});

test("a run without a record leaves a valid file of each format", async () => {
  const at = (name: string) => join(folder, `empty-${name}`);
  const spec = parseSpec({ outputs: ["a.jsonl", "a.json", "a.csv"].map(at), linksFile: at("a.sqlite"), skippedFile: at("s.csv") });
  for (const sink of openSinks(spec)) {
    sink.write([{ page: null, listed: false, found: [], skipped: [], edges: [] }]);
    await sink.close();
  }
  assert.equal(readFileSync(at("a.jsonl"), "utf8"), "");
  assert.equal(readFileSync(at("a.json"), "utf8"), "[]\n");
  assert.match(readFileSync(at("a.csv"), "utf8"), /^url,status,.*,durationMs,itemErrors\r\n$/);
  assert.equal(readFileSync(at("s.csv"), "utf8"), "url,referrer,depth,reason,rule\r\n");
  assert.match(dump(at("a.sqlite")), /^CREATE TABLE "links" \([^)]*\)\n$/);
});

test("the journal has every page and skipped URL whatever is listed, under names that do not depend on its folder", async () => {
  const before = join(folder, "state");
  mkdirSync(before);
  const shared = sharedLines();
  const spec = parseSpec({ outputs: [join(folder, "beside.jsonl"), join(folder, "beside.json")], fields: null });
  const sinks = [...journalSinks(before, null, shared), ...openSinks(spec, null, shared)];
  const states = new Map();
  for (const sink of sinks) {
    sink.write(run.slice(0, 2));
    states.set(sink.name, sink.checkpoint?.(false));
    sink.write(run.slice(2));
    await sink.close();
  }
  golden("pages.jsonl", readFileSync(join(before, "pages.jsonl"), "utf8"));
  golden("listed.jsonl", readFileSync(join(folder, "beside.jsonl"), "utf8"));
  golden("listed.json", readFileSync(join(folder, "beside.json"), "utf8"));
  assert.equal(readFileSync(join(before, "skipped.jsonl"), "utf8").split("\n").length, 3);
  assert.deepEqual([...states.keys()].slice(0, 2), ["journal:pages", "journal:skipped"]);
  const [pages] = journalSinks(before, states);
  await pages?.close();
  assert.equal(readFileSync(join(before, "pages.jsonl"), "utf8").split("\n").length, 3);
});

test("lines made once for two files are those of this batch, also when an array is filled anew", () => {
  const shared = sharedLines();
  const batch = [...run];
  const text = () => Buffer.from(shared.of(batch).bytes).toString();
  const first = text();
  assert.equal(first, `${[home, second, failed].map((page) => JSON.stringify(page)).join("\n")}\n`);
  assert.equal(text(), first);
  batch.reverse();
  assert.equal(text(), `${[failed, second, home].map((page) => JSON.stringify(page)).join("\n")}\n`);
  assert.equal(Buffer.from(shared.of([]).bytes).toString(), "");
});

test("a crawl without a database never loads SQLite, and one without gzip and checkpoints no zlib", () => {
  const program = `
    const { openSinks } = await import(${JSON.stringify(import.meta.resolve("./open.ts"))});
    const { parseSpec } = await import(${JSON.stringify(import.meta.resolve("../core/spec.ts"))});
    const before = new Set(process.moduleLoadList);
    for (const sink of openSinks(parseSpec({ outputs: ["a.jsonl", "a.json", "a.csv"].map((name) => ${JSON.stringify(`${folder}/`)} + name) }))) {
      sink.write([{ page: { url: "http://a/" }, listed: true, skipped: [], found: [], edges: [] }]);
      await sink.close();
    }
    console.log(process.moduleLoadList.filter((name) => /sqlite/.test(name) || (!before.has(name) && /zlib/.test(name))).join());`;
  const child = spawnSync(process.execPath, ["--input-type=module", "-e", program], { encoding: "utf8" });
  assert.equal(child.stdout, "\n", child.stderr);
});
