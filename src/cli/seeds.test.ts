import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { gzipSync } from "node:zlib";
import fc from "fast-check";
import { CrawlError } from "../core/errors.ts";
import { checkInputFiles, openSeeds, type SeedSources } from "./seeds.ts";

const folder = mkdtempSync(join(tmpdir(), "skein-seeds-"));
after(() => rmSync(folder, { recursive: true }));

function file(name: string, content: string | Uint8Array): string {
  const path = join(folder, name);
  writeFileSync(path, content);
  return path;
}

async function read(sources: Partial<SeedSources>): Promise<{ good: string[]; bad: string[] }> {
  const bad: string[] = [];
  const onBad: SeedSources["onBad"] = ({ where, text, why }) => bad.push(`${where.replace(folder, "")} ${JSON.stringify(text)} ${why}`);
  const seeds = await openSeeds({ listed: [], files: [], defaultScheme: null, stdin: async function* () {}, onBad, ...sources });
  const good: string[] = [];
  for await (const seed of seeds ?? []) good.push(seed);
  return { good, bad };
}

test("a plain file: comments, blanks, CRLF, a byte order mark, no newline at the end", async () => {
  const path = file("a.txt", "\ufeffhttp://a.example/\r\n# comment\r\n\r\n  http://b.example/x#frag  \n\thttps://c.example/ # why\nHTTP://D.example");
  assert.deepEqual(await read({ files: [path] }), {
    good: ["http://a.example/", "http://b.example/x#frag", "https://c.example/", "HTTP://D.example"],
    bad: [],
  });
});

test("F122 bad lines are named by number, the good ones are passed on", async () => {
  const path = file("f122.txt", "http://127.0.0.1:1/\nsite.example\n\nhttp://[bad\nftp://a.example/\nmailto:a@b.example\nhttp://\nhttp://ok.example/");
  const { good, bad } = await read({ files: [path] });
  assert.deepEqual(good, ["http://127.0.0.1:1/", "http://ok.example/"]);
  assert.deepEqual(
    bad.map((line) => line.split(" ").slice(0, 2).join(" ")),
    ['/f122.txt:2 "site.example"', '/f122.txt:4 "http://[bad"', '/f122.txt:5 "ftp://a.example/"', '/f122.txt:6 "mailto:a@b.example"', '/f122.txt:7 "http://"'],
  );
  assert.match(bad[0] ?? "", /--default-scheme/);
});

test("F122 arguments: bare hosts are good, what looks like neither host nor URL is not", async () => {
  const listed = [
    "example.com",
    "localhost:8080/x",
    "127.0.0.1",
    "[::1]:80",
    "intranet:81",
    "http://single/",
    "example.com/{1..3}",
    "http://h{01..10}.example/",
  ];
  assert.deepEqual((await read({ listed })).good, listed);
  const { bad } = await read({ listed: ["http://a/", "", "crwal", "http://[bad", "a b.example", "javascript:alert(1)", "-x"] });
  assert.deepEqual(
    bad.map((line) => line.split(" ")[1]),
    ["2", "3", "4", "5", "6", "7"],
  );
});

test("bare hosts in files get the default scheme", async () => {
  const path = file("hosts.txt", "a.example\nb.example:8080/x\nhttps://c.example/\nnonsense\n");
  const { good, bad } = await read({ files: [path], defaultScheme: "http" });
  assert.deepEqual(good, ["http://a.example", "http://b.example:8080/x", "https://c.example/"]);
  assert.deepEqual(bad, ['/hosts.txt:4 "nonsense" neither a URL nor a host name']);
});

test("a CSV file gives the last column that holds a URL, or else a host", async () => {
  const csv =
    'rank,"site, quoted",note\r\n1,"http://a.example/x,y",see ""\n2,"say ""hi""",http://b.example/\n3,"two\nlines",http://c.example/,tail\n4,d.example\n5,none\n';
  const { good, bad } = await read({ files: [file("a.csv", csv)] });
  assert.deepEqual(good, ["http://a.example/x,y", "http://b.example/", "http://c.example/"]);
  assert.deepEqual(
    bad.map((line) => line.split(" ").slice(0, 2).join(" ")),
    ['/a.csv:6 "d.example"', '/a.csv:7 "5,none"'],
  );
  const ranks = await read({ files: [file("ranks.csv", "1,google.example\n2,b.example\n3.5,10.0.0.1\n")], defaultScheme: "https" });
  assert.deepEqual(ranks.good, ["https://google.example", "https://b.example", "https://10.0.0.1"]);
});

test("gzip is read by its bytes, from a file and from stdin", async () => {
  const packed = gzipSync("http://a.example/\nhttp://b.example/\n");
  assert.deepEqual((await read({ files: [file("a.txt.gz", packed)] })).good, ["http://a.example/", "http://b.example/"]);
  assert.deepEqual((await read({ files: [file("odd.csv.gz", gzipSync("x,http://a.example/\n"))] })).good, ["http://a.example/"]);
  const stdin = async function* () {
    yield packed.subarray(0, 5);
    yield packed.subarray(5);
  };
  assert.deepEqual((await read({ files: ["-"], stdin })).good, ["http://a.example/", "http://b.example/"]);
});

test("a broken gzip file is an error that names it", async () => {
  const packed = gzipSync("http://a.example/\n".repeat(10_000));
  await assert.rejects(read({ files: [file("cut.gz", packed.subarray(0, 60))] }), /cut\.gz cannot be read/);
});

test("lines are split right wherever the chunks end, also inside a character", async () => {
  const bytes = Buffer.from("http://a.example/é\r\nhttp://b.example/\r\n");
  const stdin = async function* () {
    for (const byte of bytes) yield Uint8Array.of(byte);
  };
  assert.deepEqual((await read({ files: ["-"], stdin })).good, ["http://a.example/é", "http://b.example/"]);
});

test("none good, or none at all, is no-seeds", async () => {
  const code = (error: unknown) => error instanceof CrawlError && error.code === "no-seeds";
  await assert.rejects(read({}), (error: unknown) => code(error) && /nothing to crawl/.test(String(error)));
  await assert.rejects(read({ listed: ["x", "y"] }), (error: unknown) => code(error) && /none of the 2 seeds/.test(String(error)));
  await assert.rejects(read({ files: [file("empty.txt", "\n# nothing\n")] }), code);
});

test("seeds are read as they are asked for", async () => {
  let given = 0;
  async function* endless() {
    for (;;) yield `http://a.example/${given++}`;
  }
  const seeds = await openSeeds({ listed: endless(), files: [], defaultScheme: null, stdin: async function* () {}, onBad: () => undefined });
  let taken = 0;
  for await (const _ of seeds!) if (++taken === 10) break;
  assert.ok(given <= 11, `${given} were read for ${taken}`);
});

test("missing input files and stdin twice are told before anything is read", () => {
  assert.deepEqual(
    checkInputFiles([join(folder, "absent"), folder, "-", "-"]).map(({ message }) => message.replace(folder, "")),
    ["/absent: no such file", ": is a folder", "stdin (-) can be read only once"],
  );
});

test("whatever the other cells hold, a CSV row gives its URL", async () => {
  const cell = fc.string({ unit: fc.constantFrom("a", " ", '"', ",", "\n", "\r\n", "#", ".", "é") });
  const row = fc.tuple(fc.array(cell, { maxLength: 3 }), fc.nat({ max: 999 }), fc.array(cell, { maxLength: 3 }));
  const quoted = (text: string) => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  await fc.assert(
    fc.asyncProperty(fc.array(row, { minLength: 1 }), async (rows) => {
      const urls = rows.map(([, number]) => `http://a.example/${number},x`);
      const csv = rows.map(([left, , right], index) => [`r${index}`, ...left, urls[index] ?? "", ...right].map(quoted).join(",")).join("\n");
      const stdin = async function* () {
        yield Buffer.from(csv);
      };
      const path = file("random.csv", csv);
      assert.deepEqual(await read({ files: [path], stdin }), { good: urls, bad: [] });
    }),
    { numRuns: 200 },
  );
});
