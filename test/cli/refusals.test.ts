/** What is refused before anything starts, what is said of it, and what is said when a file could not be written. */
import assert from "node:assert/strict";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { main } from "../../src/cli/main.ts";
import { html, type Served, serve } from "../crawl/served.ts";
import { fakeIo } from "./fake-io.ts";

const folder = mkdtempSync(join(tmpdir(), "skein-refusals-"));
const inFolder = (name: string) => join(folder, name);
let served: Served;

before(async () => {
  served = await serve((request, response) =>
    html(response, request.url === "/" ? '<a href="/a">a</a><a href="/b">b</a>' : "x", request.url === "/b" ? 404 : 200),
  );
});
after(async () => {
  await served[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true });
});

async function run(...argv: string[]) {
  const io = fakeIo({ cwd: folder });
  const status = await main(argv, io);
  return { status, out: io.out(), err: io.err() };
}
const crawl = (...more: string[]) => run("crawl", `${served.origin}/`, ...more);

/** Nothing was asked of the site, nothing was said but what is wrong. */
async function refused(argv: readonly string[], expected: number, said: RegExp): Promise<void> {
  const asked = served.arrivals.length;
  const { status, err } = await crawl(...argv);
  assert.equal(status, expected, err);
  assert.match(err, said);
  assert.equal(served.arrivals.length, asked);
}

test("--fresh and --incremental without --state are refused: there is no last run", async () => {
  await refused(["--incremental"], 2, /--incremental: needs a state directory .*: give --state DIR \(stateDir\) too\n$/);
  await refused(
    ["--incremental", "--store", "redis://h"],
    2,
    /--incremental: needs a state directory .*: give --state DIR \(stateDir\) in place of the store\n$/,
  );
  await refused(["--fresh"], 2, /^skein: --fresh: drops what a state directory holds, and none is named: add --state DIR or --store URL, or leave it out\n$/);
});

test("--state with the name of a file says so, and leaves the file as it is", async () => {
  writeFileSync(inFolder("notes.txt"), "mine");
  await refused(
    ["--state", inFolder("notes.txt")],
    3,
    /^skein: cannot use the state directory .*notes\.txt: it is a file, and --state takes a directory\. Name an empty or a new directory\n$/,
  );
  assert.equal(readFileSync(inFolder("notes.txt"), "utf8"), "mine");
});

test("one file named twice, however it is spelt, is a usage error before anything starts", async () => {
  mkdirSync(inFolder("real"));
  symlinkSync(inFolder("real"), inFolder("linked"));
  symlinkSync(inFolder("real/later.jsonl"), inFolder("ahead.jsonl"));
  for (const [one, other] of [
    ["a.jsonl", "./a.jsonl"],
    ["real/../a.jsonl", "a.jsonl"],
    ["real/b.jsonl", "linked/b.jsonl"],
    ["ahead.jsonl", "real/later.jsonl"],
  ] as const) {
    // Not by join, which would make one spelling of them.
    await refused(
      ["-o", `${folder}/${one}`, "--skipped", `${folder}/${other}`, "--state", inFolder("never")],
      2,
      /^skein: --skipped: \S+ is the same file as \S+; give each a file of its own\n$/,
    );
  }
  assert.equal(existsSync(inFolder("never")), false);
  await refused(
    ["-o", inFolder("never/pages.jsonl"), "--state", inFolder("never")],
    2,
    /^skein: --output: \S+ is the same file as the state in \S+never; give/,
  );
  const both = await crawl("-o", inFolder("both.sqlite"), "--skipped", inFolder("both.sqlite"));
  assert.equal(both.status, 0, both.err);
});

test("a file that cannot be made is status 3 before anything starts, in folders that only seem writable too", {
  skip: existsSync("/proc/self") ? false : "no /proc",
}, async () => {
  writeFileSync(inFolder("old.jsonl"), "old\n");
  const before = readdirSync(folder);
  await refused(
    ["-o", inFolder("old.jsonl"), "-o", inFolder("new.jsonl"), "--skipped", "/proc/x.jsonl", "--state", inFolder("none")],
    3,
    /^skein: cannot write \/proc\/x\.jsonl: ENOENT/,
  );
  assert.equal(readFileSync(inFolder("old.jsonl"), "utf8"), "old\n");
  assert.deepEqual(readdirSync(folder), before);
});

test("what is wrong with the command is said alone, without how long the crawl would live", async () => {
  await refused(["--cookies", inFolder("absent.txt")], 2, /^skein: --cookies: \S+absent\.txt: no such file\n$/);
  const seed = await run("crawl", "crwal");
  assert.deepEqual([seed.status, seed.err.split("\n").slice(1)], [2, ["skein: the one seed is not usable", ""]]);
  assert.match(seed.err, /^warning: skipped argument 1/);
});

test("an unknown variable is named in one line by every command", async () => {
  for (const argv of [
    ["crawl", `${served.origin}/`, "-q"],
    ["crawl", `${served.origin}/`],
    ["robots", `${served.origin}/`],
  ]) {
    const io = fakeIo({ cwd: folder, env: { SKEIN_DEPHT: "1", SKEIN_REQUIRE: "redis" } });
    assert.equal(await main(argv, io), 0, io.err());
    const said = io
      .err()
      .split("\n")
      .filter((line) => line.includes("SKEIN_"));
    assert.deepEqual(said, argv.includes("-q") ? [] : ["warning: the variable SKEIN_DEPHT is no option and does nothing; did you mean SKEIN_DEPTH?"]);
  }
});

test("help for a command that does not exist is status 2, with the nearest that does", async () => {
  for (const [word, said] of [
    ["crwal", 'skein: there is no command "crwal"; did you mean skein help crawl?\n'],
    ["zzzzzz", 'skein: there is no command "zzzzzz"; skein --help lists them\n'],
  ] as const) {
    const { status, err, out } = await run("help", word);
    assert.deepEqual([status, err, out], [2, said, ""]);
  }
});

test("the options of an output are not listed as those of requests", async () => {
  const { out } = await run("export", "--help");
  assert.match(out, /\nOptions:\n(?: .*\n)* {6}--fields/);
  assert.doesNotMatch(out, /Requests:/);
});

test("the summary names the files that were written, and says when none was", async () => {
  const none = await run(
    "crawl",
    "http://127.0.0.1:1/",
    "--retries",
    "0",
    "--links",
    inFolder("edges.jsonl"),
    "--list",
    "*.none",
    "-o",
    inFolder("listed.jsonl"),
  );
  assert.match(none.err, /\n {2}files {4}\S+listed\.jsonl · \S+edges\.jsonl\n/);
  const { summaryLines } = await import("../../src/cli/summary.ts");
  const { aSummary } = await import("./fake-crawl.ts");
  assert.equal(summaryLines(aSummary(), false, { limits: null, outputs: ["a.jsonl"] }).at(-1), "  files    nothing written to a.jsonl");
  const { watchFiles } = await import("../../src/cli/outputs.ts");
  const { parseSpec } = await import("../../src/core/spec.ts");
  writeFileSync(inFolder("kept.jsonl"), "from before\n");
  const written = watchFiles(parseSpec({ outputs: [inFolder("kept.jsonl"), inFolder("made.jsonl"), inFolder("never.jsonl")] }), folder);
  writeFileSync(inFolder("made.jsonl"), "");
  assert.deepEqual(written([inFolder("kept.jsonl"), inFolder("made.jsonl"), inFolder("never.jsonl"), "stdout"]), [inFolder("made.jsonl"), "stdout"]);
});

test("a limit is said in words with its figure, and is a token for programs", async () => {
  const dir = inFolder("limited");
  const first = await crawl("--state", dir, "--limit", "1");
  assert.match(first.err, /^ended by --limit 1: 1 page in /);
  assert.match((await run("status", "--state", dir)).out, /^state {4}finished \(ended by --limit 1\)\n/);
  const { finishReason, endedBy } = JSON.parse((await run("status", "--state", dir, "--json")).out);
  assert.deepEqual([finishReason, endedBy], ["limit-pages", "ended by --limit 1"]);
  assert.match((await run("doctor", "--state", dir)).out, /the crawl in \S+: ended by --limit 1\n/);
  assert.match((await crawl("--state", dir, "--limit", "1")).err, /^the crawl in \S+ is over \(ended by --limit 1, 1 page\): starting a new run\n/);
  assert.match((await crawl("--state", dir, "--limit", "2")).err, /^the crawl in \S+ ended by --limit 1: going on \(1 page done, 2 queued\)\n/);
  assert.match((await crawl("--state", dir, "--log-format", "json", "--fresh", "--limit", "1")).err, /"finishReason":"limit-pages"/);
});

test("a full disk: what to do is said, and what becomes of the crawl", { skip: existsSync("/dev/full") ? false : "no /dev/full" }, async () => {
  symlinkSync("/dev/full", inFolder("full.jsonl"));
  const inMemory = await crawl("-o", inFolder("full.jsonl"));
  assert.equal(inMemory.status, 3);
  assert.match(
    inMemory.err,
    /\nskein: cannot write \S+full\.jsonl: ENOSPC\b.*\. Make room and run the same command again: the crawl begins anew: it lived in memory \(with --state DIR it would go on\)\n$/,
  );
  const kept = await crawl("-o", inFolder("full.jsonl"), "--state", inFolder("full"));
  assert.equal(kept.status, 3);
  assert.match(
    kept.err,
    /skein: cannot write \S+full\.jsonl: ENOSPC\b.*\. Make room and run the same command again: the crawl goes on where the last commit left it\n$/,
  );
});
