import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import type { CrawlError } from "../core/errors.ts";
import type { Journal } from "./inspect.ts";
import { findMention, findRecord, findSeeds, journalLines } from "./journal.ts";

const folder = mkdtempSync(join(tmpdir(), "skein-journal-"));
after(() => rmSync(folder, { recursive: true }));

let files = 0;
function journal(text: string, bytes = Buffer.byteLength(text)): Journal {
  const path = join(folder, `${files++}.jsonl`);
  writeFileSync(path, text);
  return { path, bytes };
}

const line = (url: string, rest: object = {}): string => `${JSON.stringify({ url, ...rest, end: 1 })}\n`;

async function all(of: Journal): Promise<string[]> {
  const found: string[] = [];
  for await (const lines of journalLines(of)) found.push(...lines);
  return found;
}

/** Far more than one piece; lines of very different length, so that every kind of boundary falls somewhere. */
function large(): { text: string; urls: string[] } {
  const urls: string[] = [];
  let text = "";
  for (let index = 0; text.length < 5_000_000; index++) {
    const url = `http://a.example/${index}`;
    urls.push(url);
    text += line(url, { title: "é", links: Array.from({ length: (index * 7) % 60 }, (_, link) => `http://a.example/link/${index}/${link}`) });
  }
  return { text, urls };
}

test("records are found wherever they lie, also across the pieces in which the file is read", async () => {
  const { text, urls } = large();
  const of = journal(text);
  for (let index = 0; index < urls.length; index += 97) {
    const url = urls[index] ?? "";
    const found = await findRecord(of, url);
    assert.equal(JSON.parse(found?.text ?? "null")?.url, url);
    assert.equal(
      Buffer.from(text)
        .subarray(found?.at)
        .toString("utf8", 0, url.length + 8),
      `{"url":"${url}`,
    );
  }
  assert.equal(await findRecord(of, "http://a.example/none"), null);
  const mention = await findMention(of, "http://a.example/link/4321/3");
  assert.equal(JSON.parse(mention?.text ?? "null")?.url, "http://a.example/4321");
  assert.deepEqual((await all(of)).length, urls.length);
  assert.equal(`${(await all(of)).join("\n")}\n`, text);
});

test("a needle is found at each offset around the end of a piece", async () => {
  const size = 1024 * 1024;
  for (let shift = -80; shift <= 5; shift++) {
    const head = line("http://a.example/pad", { pad: "" });
    const pad = line("http://a.example/pad", { pad: "x".repeat(size + shift - head.length) });
    assert.equal(pad.length, size + shift);
    const of = journal(pad + line("http://a.example/wanted", { shift }) + line("http://a.example/after"));
    assert.equal((await findRecord(of, "http://a.example/wanted"))?.at, size + shift);
    assert.equal((await findMention(of, "http://a.example/wanted"))?.at, size + shift);
    rmSync(of.path);
  }
});

test("only whole URLs of records count: no prefix, no mention in another record, nothing nested", async () => {
  const of = journal(
    line("http://a.example/xy") +
      line("http://a.example/1", { links: ["http://a.example/x"], redirects: [{ url: "http://a.example/x", status: 301 }] }) +
      line("http://a.example/x"),
  );
  assert.equal(JSON.parse((await findRecord(of, "http://a.example/x"))?.text ?? "null")?.links, undefined);
  assert.equal(JSON.parse((await findMention(of, "http://a.example/x"))?.text ?? "null")?.url, "http://a.example/1");
});

test("what lies behind the committed bytes, or begins after a given one, is not seen", async () => {
  const first = line("http://a.example/1");
  const second = line("http://a.example/2");
  const of = journal(`${first}${second}{"url":"http://a.example/3","torn`, first.length + second.length);
  assert.equal(await findRecord(of, "http://a.example/3"), null);
  assert.equal(await findMention(of, "http://a.example/3"), null);
  assert.equal(await findRecord(of, "http://a.example/2", first.length), null);
  assert.equal((await findRecord(of, "http://a.example/1", first.length))?.at, 0);
  assert.equal((await all(of)).length, 2);
});

test("URLs and references that JSON escapes are found as they were written", async () => {
  const odd = 'mailto:"a\\b"\u2028é';
  const of = journal(line("http://a.example/") + line(odd));
  assert.equal(JSON.parse((await findRecord(of, odd))?.text ?? "null")?.url, odd);
});

test("seeds are the records of depth 0 that no page led to", async () => {
  const record = (url: string, depth: number, referrer: string | null) =>
    `${JSON.stringify({ url, status: 200, outcome: "fetched", depth, referrer, bytes: 0 })}\n`;
  const of = journal(
    record("http://a/", 0, null) + record("http://a/1", 1, "http://a/") + record("http://b/", 0, null) + record("http://a/s", 0, "http://a/sitemap.xml"),
  );
  const urls: string[] = [];
  for await (const { text } of findSeeds(of)) urls.push(JSON.parse(text).url);
  assert.deepEqual(urls, ["http://a/", "http://b/"]);
});

test("a journal without bytes need not exist; one that is shorter than was committed is an error that names it", async () => {
  const none = { path: join(folder, "none.jsonl"), bytes: 0 };
  assert.equal(await findRecord(none, "http://a/"), null);
  assert.deepEqual(await all(none), []);
  const broken = (error: unknown) => (error as CrawlError).code === "state-unwritable" && error instanceof Error && /\.jsonl/.test(error.message); // `as`: only read
  await assert.rejects(findRecord({ ...none, bytes: 5 }, "http://a/"), broken);
  await assert.rejects(all(journal(line("http://a/"), 500)), broken);
  await assert.rejects(all(journal('{"url":"no end"')), broken);
});
