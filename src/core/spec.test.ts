import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { CrawlError } from "./errors.ts";
import { nearest } from "./nearest.ts";
import { OPTION_GROUPS } from "./schema.ts";
import { type CrawlSpecInput, options, parseSpec } from "./spec.ts";
import { parseDuration, parseRate, parseSize, spellDuration, spellSize } from "./units.ts";

function problemsOf(input: unknown): Record<string, string> {
  try {
    parseSpec(input);
  } catch (error) {
    assert.ok(error instanceof CrawlError);
    assert.equal(error.code, "invalid-options");
    for (const { option, message } of error.problems) assert.ok(error.message.includes(`${option}: ${message}`));
    return Object.fromEntries(error.problems.map(({ option, message }) => [option, message]));
  }
  assert.fail("the spec was accepted");
}

test("an empty spec is completed with the defaults of the contract", () => {
  const spec = parseSpec({});
  assert.deepEqual(spec.scope, { preset: "host", include: [], exclude: [] });
  assert.deepEqual(spec.limits, { pages: null, items: null, time: null, bytes: null, errors: null });
  assert.deepEqual(spec.perHost, { concurrency: 8, delay: "auto", jitter: 0 });
  assert.deepEqual([spec.concurrency, spec.retry.max, spec.timeout, spec.maxWait, spec.maxBodySize], [64, 2, 30_000, 300_000, 10_000_000]);
  assert.deepEqual([spec.robots, spec.types, spec.print, spec.order, spec.maxDepth], [true, "text", "pages", "bfs", null]);
});

test("a finished spec is a valid input and comes out unchanged", () => {
  const input: CrawlSpecInput = {
    seeds: ["http://a/"],
    perHost: { delay: "2s" },
    limits: { time: "1h", bytes: "1GiB" },
    maxRequestsPerMinute: "2/s",
    hosts: { a: { delay: "1m" } },
  };
  const spec = parseSpec(input);
  assert.deepEqual([spec.perHost.delay, spec.limits.time, spec.limits.bytes, spec.maxRequestsPerMinute], [2_000, 3_600_000, 1024 ** 3, 120]);
  assert.deepEqual(spec.hosts, { a: { delay: 60_000 } });
  assert.deepEqual(parseSpec(spec), spec);
});

test("two specs share no list or object", () => {
  assert.notEqual(parseSpec({}).scope.include, parseSpec({}).scope.include);
  assert.notEqual(parseSpec({}).headers, parseSpec({}).headers);
});

test("all problems are told at once, each with option, allowed form and given value", () => {
  const problems = problemsOf({
    seeds: "http://a/",
    maxDepth: -1,
    concurrency: 2.5,
    limits: { pages: 0, time: "soon" },
    perHost: { delay: true, jitter: 2 },
    types: "pdf",
    outputs: ["x.tsv"],
    fields: ["urls"],
    proxy: ["ftp://p/"],
    retry: 3,
    hosts: { "a.example": { delay: "x" } },
  });
  assert.deepEqual(problems, {
    seeds: 'expected a list (or sync or async iterable) of URLs, got "http://a/"',
    maxDepth: "expected a whole number from 0, got -1",
    concurrency: "expected a whole number from 1 to 10000, got 2.5",
    "limits.pages": "expected a whole number from 1, got 0",
    "limits.time": 'expected a duration from 1ms such as 250ms, 1s, 2m, 1h, 30d, or a number of milliseconds, got "soon"',
    "perHost.delay": "expected auto, or a duration such as 250ms, 1s, 2m, or a number of milliseconds, got true",
    "perHost.jitter": "expected a number from 0 to 1, got 2",
    types: 'expected one of text, html, all, got "pdf"',
    outputs: 'expected a file name that ends in .jsonl, .json, .csv (each also with .gz) or .sqlite, or - for stdout, got "x.tsv"',
    fields: problems.fields,
    proxy: "expected an http:// or https:// URL, got something else (not shown: it may hold a password)",
    retry: "expected an object with max, got 3",
    "hosts.a.example.delay": 'expected a duration such as 250ms, 1s, 2m, 1h, 30d, or a number of milliseconds, got "x"',
  });
  assert.match(problems.fields ?? "", /^expected names from url, status,.* got "urls"$/);
});

test("an unknown key is an error that names the key that was meant", () => {
  assert.deepEqual(problemsOf({ maxdepth: 1, limit: 3, state: "x", scope: { includes: [] }, limits: { page: 1 } }), {
    maxdepth: "no such option; did you mean maxDepth?",
    limit: "no such option; did you mean limits.pages?",
    state: "no such option; did you mean stateDir?",
    "scope.includes": "no such option; did you mean include?",
    "limits.page": "no such option; did you mean pages?",
  });
});

test("messages never repeat what may be a password", () => {
  for (const input of [
    { auth: { "a.example": "hunter2" } },
    { headers: { "bad name": "hunter2" } },
    { headers: { a: "hunter2\n" } },
    { proxy: ["socks://u:hunter2@p/"] },
  ]) {
    assert.ok(!JSON.stringify(problemsOf(input)).includes("hunter2"));
  }
});

test("two outputs may not share a file", () => {
  assert.deepEqual(problemsOf({ outputs: ["a.jsonl"], pagesFile: "a.jsonl" }), {
    pagesFile: "another output goes to a.jsonl too; give each a file of its own",
  });
});

test("one database may hold pages, skipped URLs and links, each once", () => {
  parseSpec({ outputs: ["a.sqlite"], skippedFile: "a.sqlite", linksFile: "a.sqlite" });
  assert.deepEqual(Object.keys(problemsOf({ outputs: ["a.sqlite"], pagesFile: "a.sqlite" })), ["pagesFile"]);
  assert.deepEqual(Object.keys(problemsOf({ outputs: ["a.sqlite", "a.sqlite"] })), ["outputs"]);
});

test("outputs are told by their suffix", () => {
  for (const file of ["a.jsonl", "a.json", "A.CSV", "dir/a.jsonl.gz", "a.json.gz", "a.csv.gz", "a.sqlite"])
    parseSpec({ outputs: [file], linksFile: `x${file.slice(file.lastIndexOf("/") + 1)}` });
  for (const file of [".json", "a.sqlite.gz", "a.gz", "a.db", "a", "jsonl"]) assert.ok("outputs" in problemsOf({ outputs: [file] }), file);
});

test("seeds may be a list or any iterable, which is handed on untouched", () => {
  async function* later() {
    yield "http://a/";
  }
  const seeds = later();
  assert.equal(parseSpec({ seeds }).seeds, seeds);
  assert.deepEqual(problemsOf({ seeds: ["http://a/", 3] }), { seeds: 'expected a list (or sync or async iterable) of URLs, got ["http://a/",3]' });
});

test("every option has a sentence, an allowed form, a unit if it is a number, a unique flag and letter, and a line in the docs", () => {
  const docs = readFileSync(new URL("../../docs/options.md", import.meta.url), "utf8");
  const seen = new Set<string>();
  for (const { path, meta, allowed, kind } of options()) {
    assert.match(meta.description, /^[A-Z].*\.$/, path);
    assert.notEqual(allowed, "", path);
    assert.ok(OPTION_GROUPS.includes(meta.group), path);
    if (kind === "number" || /\ba (duration|size|rate)\b/.test(allowed)) assert.ok(meta.unit, `${path} has no unit`);
    if (kind !== "boolean" && meta.flag) assert.ok(meta.value, `${path} does not say what its value is called`);
    assert.ok(docs.includes(`\n| \`${path}\` |`), `${path} is not in docs/options.md`);
    for (const name of [meta.flag, meta.short]) {
      if (name === undefined) continue;
      assert.ok(!seen.has(name), `${name} is used twice`);
      seen.add(name);
    }
  }
});

test("durations, sizes and rates are read as documented, and nothing else is", () => {
  assert.deepEqual(["250ms", "1s", "2m", "1.5h", "30d", "7", " 3 s "].map(parseDuration), [250, 1_000, 120_000, 5_400_000, 2_592_000_000, 7, 3_000]);
  assert.deepEqual(["1w", "-1s", "", "s", "1e3"].map(parseDuration), [null, null, null, null, null]);
  assert.deepEqual(["500KB", "10MB", "1GiB", "7", "1.5kb"].map(parseSize), [500_000, 10_000_000, 1024 ** 3, 7, 1_500]);
  assert.deepEqual(["10 bits", "-1", ""].map(parseSize), [null, null, null]);
  assert.deepEqual(["120/min", "2/s", "60/h", "90"].map(parseRate), [120, 120, 1, 90]);
  assert.deepEqual(["0/s", "2/day", "fast"].map(parseRate), [null, null, null]);
  for (const ms of [0, 1, 999, 1_000, 90_000, 300_000, 86_400_000]) assert.equal(parseDuration(spellDuration(ms)), ms);
  for (const bytes of [0, 1, 1_000, 1_500, 10_000_000, 1024 ** 3]) assert.equal(parseSize(spellSize(bytes)), bytes);
});

test("a word is taken for a known one only when it is near", () => {
  const known = ["max-depth", "depth", "delay", "concurrency"];
  assert.deepEqual(
    ["dpeth", "max_depth", "maxDepth", "concurency", "conc", "zzz", "d"].map((word) => nearest(word, known)),
    ["depth", "max-depth", "max-depth", "concurrency", "concurrency", null, null],
  );
});
