import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { gunzipSync } from "node:zlib";
import type { CrawlError } from "../core/errors.ts";
import type { Output, PageRecord } from "../core/records.ts";
import { parseSpec } from "../core/spec.ts";
import { openSinks } from "./open.ts";
import { pagesTable } from "./tables.ts";
import { textSink } from "./text.ts";

const folder = mkdtempSync(join(tmpdir(), "skein-sinks-"));
after(() => rmSync(folder, { recursive: true }));
const at = (name: string) => join(folder, name);

function page(url: string, more: Partial<PageRecord> = {}): PageRecord {
  const facts = { status: 200, outcome: "fetched", depth: 0, referrer: null, redirects: [], contentType: null, bytes: 0, bytesDecoded: 0 } as const;
  return { url, ...facts, links: [], attempts: 1, fetchedAt: "2026-01-01T00:00:00.000Z", durationMs: 0, ...more };
}

function output(record: PageRecord | null, more: Partial<Output> = {}): Output {
  return { page: record, listed: true, skipped: [], found: [], edges: [], ...more };
}

const parsed = (text: string): unknown[] =>
  text
    .split("\n")
    .slice(0, -1)
    .map((line) => JSON.parse(line));
const codeOf = (error: unknown) => (error as CrawlError).code; // `as`: only read in assertions, which fail on anything else

test("each output goes to the files that want it", async () => {
  const sinks = openSinks(
    parseSpec({ outputs: [at("o.jsonl"), at("z.jsonl.gz")], pagesFile: at("p.jsonl"), skippedFile: at("s.jsonl"), linksFile: at("l.jsonl"), fields: ["url"] }),
  );
  const skipped = (url: string, reason: "depth" | "duplicate") => ({ idHi: 0, idLo: 0, value: { url, referrer: null, depth: 1, reason } });
  const outputs = [
    output(page("http://a/"), {
      edges: [{ from: "http://a/", to: "http://a/b" }],
      skipped: [skipped("http://a/d", "depth"), skipped("http://a/e", "duplicate")],
    }),
    output(page("http://a/b"), { listed: false }),
    output(null),
  ];
  for (const sink of sinks) {
    sink.write(outputs);
    sink.flush();
    await sink.close();
    await sink.close();
  }
  assert.equal(readFileSync(at("o.jsonl"), "utf8"), '{"url":"http://a/"}\n');
  assert.equal(gunzipSync(readFileSync(at("z.jsonl.gz"))).toString(), '{"url":"http://a/"}\n');
  assert.equal(readFileSync(at("p.jsonl"), "utf8"), '{"url":"http://a/"}\n{"url":"http://a/b"}\n');
  assert.deepEqual(parsed(readFileSync(at("s.jsonl"), "utf8")), [{ url: "http://a/d", referrer: null, depth: 1, reason: "depth" }]);
  assert.deepEqual(parsed(readFileSync(at("l.jsonl"), "utf8")), [{ from: "http://a/", to: "http://a/b" }]);
});

test("an existing file is replaced with the first record, and not before", async () => {
  const path = at("kept.jsonl");
  writeFileSync(path, "old\n");
  const unused = textSink(path, pagesTable({ which: "all", fields: null }));
  await unused.close();
  assert.equal(readFileSync(path, "utf8"), "old\n");
  const sink = textSink(path, pagesTable({ which: "all", fields: ["url"] }));
  sink.write([output(page("http://a/"))]);
  sink.flush();
  assert.equal(readFileSync(path, "utf8"), '{"url":"http://a/"}\n');
  await sink.close();
});

test("a crawl that settled pages but listed none leaves an empty file, not the last run's", async () => {
  const path = at("none.jsonl");
  writeFileSync(path, "old\n");
  const sink = textSink(path, pagesTable({ which: "listed", fields: null }));
  sink.write([output(page("http://a/"), { listed: false })]);
  await sink.close();
  assert.equal(readFileSync(path, "utf8"), "");
});

test("thousands of records arrive whole, plain and gzipped in several steps", async () => {
  for (const name of ["many.jsonl", "many.jsonl.gz"]) {
    const sink = textSink(at(name), pagesTable({ which: "all", fields: null }));
    const links = Array.from({ length: 30 }, (_, index) => `http://a.example/some/path/${index}`);
    for (let index = 0; index < 3_000; index += 10) {
      sink.write(Array.from({ length: 10 }, (_, step) => output(page(`http://a.example/${index + step}`, { title: "é", links }))));
    }
    await sink.close();
    const bytes = readFileSync(at(name));
    const records = parsed((name.endsWith(".gz") ? gunzipSync(bytes) : bytes).toString());
    assert.equal(records.length, 3_000);
    assert.deepEqual(records[2_999], page("http://a.example/2999", { title: "é", links }));
  }
});

test("a file that cannot be written is named before anything is touched", () => {
  mkdirSync(at("folder.jsonl"));
  writeFileSync(at("good.jsonl"), "old\n");
  const refused = (file: string, about: RegExp) =>
    assert.throws(
      () => openSinks(parseSpec({ outputs: [at("good.jsonl"), file] })),
      (error: unknown) => codeOf(error) === "output-unwritable" && error instanceof Error && about.test(error.message),
    );
  refused(at("folder.jsonl"), /folder\.jsonl: it is a folder/);
  refused(at("absent/x.jsonl"), /absent\/x\.jsonl: there is no folder/);
  assert.equal(readFileSync(at("good.jsonl"), "utf8"), "old\n");
});

test("a full device is output-unwritable, at once and for good", { skip: existsSync("/dev/full") ? false : "no /dev/full" }, async () => {
  symlinkSync("/dev/full", at("full.jsonl"));
  const sink = textSink(at("full.jsonl"), pagesTable({ which: "all", fields: null }));
  sink.write([output(page("http://a/"))]);
  const full = (error: unknown) => codeOf(error) === "output-unwritable" && error instanceof Error && /full\.jsonl.*ENOSPC/.test(error.message);
  assert.throws(() => sink.flush(), full);
  assert.throws(() => sink.write([output(page("http://b/"))]), full);
  await sink.close();
});

test("F115 what a full disk cut off is taken back to the last whole line", { skip: process.platform === "win32" ? "no ulimit" : false }, () => {
  for (const name of ["cut.jsonl", "cut.jsonl.gz"]) {
    const program = `
      import { textSink } from ${JSON.stringify(import.meta.resolve("./text.ts"))};
      import { pagesTable } from ${JSON.stringify(import.meta.resolve("./tables.ts"))};
      import { randomBytes } from "node:crypto";
      const sink = textSink(${JSON.stringify(at(name))}, pagesTable({ which: "all", fields: null }));
      try {
        for (let index = 0; index < 3000; index++) sink.write([{ page: { url: "http://a/" + index, title: randomBytes(500).toString("hex") }, listed: true, skipped: [], found: [], edges: [] }]);
        sink.flush();
      } catch (error) {
        await sink.close();
        console.log(error.code);
      }`;
    const child = spawnSync("sh", ["-c", 'ulimit -f 1600; exec "$0" --input-type=module -e "$1"', process.execPath, program], { encoding: "utf8" });
    assert.equal(child.stdout, "output-unwritable\n", child.stderr);
    const bytes = readFileSync(at(name));
    const text = (name.endsWith(".gz") ? gunzipSync(bytes) : bytes).toString();
    assert.ok(text.endsWith("\n"));
    const records = parsed(text) as PageRecord[]; // `as`: the lines were written above
    assert.ok(records.length > 100, `${records.length} records`);
    for (const [index, { url }] of records.entries()) assert.equal(url, `http://a/${index}`);
  }
});
