import assert from "node:assert/strict";
import { test } from "node:test";
import { aSummary } from "../../test/cli/fake-crawl.ts";
import { fakeIo } from "../../test/cli/fake-io.ts";
import { createConsole } from "./console.ts";
import { progressLine, spellBytes, spellElapsed, spellRate } from "./progress.ts";
import { summaryLines } from "./summary.ts";

const stats = aSummary({ pages: 12_345, pagesPerSecond: 98.7, queued: 4_321, inFlight: 8, failed: 3, elapsedMs: 125_000, bottleneck: "per-host" });

test("the progress line tells pages, rate, queue, errors and what limits the speed", () => {
  assert.equal(progressLine(stats, 200), "12,345 pages · 99/s · 4,321 queued · 8 in flight · 3 failed · limited by --per-host · 2m 05s");
});

test("the progress line never reaches the last column", () => {
  for (let columns = 1; columns < 120; columns++) assert.ok(progressLine(stats, columns).length < columns);
  assert.equal(progressLine(stats, 30), "12,345 pages · 99/s");
});

test("the line is taken away before anything else is written, put back after it, and gone at the end", () => {
  const io = fakeIo({ terminal: true, env: { NO_COLOR: "1" } });
  const console = createConsole(io, { format: "text", quiet: false, verbose: false, progress: true });
  console.progress.draw(stats);
  console.progress.draw(stats);
  console.say("warn", "hello", "hello");
  console.progress.hold();
  console.progress.draw(stats);
  console.progress.release();
  console.progress.end();
  console.progress.end();
  console.say("warn", "bye", "bye");
  const line = `\r${progressLine(stats, 80)}\u001b[K`;
  const gone = "\r\u001b[K";
  assert.equal(io.err(), `${line}${gone}hello\n${line}${gone}${line}${gone}bye\n`);
});

test("no line without a terminal, when quiet, when told not to, or with JSON", () => {
  const options = { format: "text", quiet: false, verbose: false, progress: true } as const;
  for (const [terminal, changed] of [
    [false, {}],
    [true, { quiet: true }],
    [true, { progress: false }],
    [true, { format: "json" }],
  ] as const) {
    const io = fakeIo({ terminal });
    createConsole(io, { ...options, ...changed }).progress.draw(stats);
    assert.equal(io.err(), "");
  }
});

test("colours only on a terminal that wants them", () => {
  const said = (options: Parameters<typeof fakeIo>[0]) => {
    const io = fakeIo(options);
    createConsole(io, { format: "text", quiet: false, verbose: false, progress: false }).say("warn", "x", "x");
    return io.err();
  };
  assert.equal(said({ terminal: true }), "\u001b[33mx\u001b[0m\n");
  assert.equal(said({ terminal: true, env: { NO_COLOR: "1" } }), "x\n");
  assert.equal(said({ terminal: true, env: { TERM: "dumb" } }), "x\n");
  assert.equal(said({}), "x\n");
});

test("control characters from the web reach no terminal", () => {
  const io = fakeIo();
  createConsole(io, { format: "text", quiet: false, verbose: false, progress: false }).say("info", "a\u001b[2Jb\r\n\u009bc", "x");
  assert.equal(io.err(), "a\\x1b[2Jb\\x0d\\x0a\\x9bc\n");
});

test("JSON lines have time, level, message and fields", () => {
  const io = fakeIo();
  const console = createConsole(io, { format: "json", quiet: false, verbose: true, progress: true });
  console.log("debug", "something", { url: "http://a/", attempt: 1 });
  console.block(["one", "two"], "summary", { summary: { pages: 1 } });
  const [first, second] = io
    .err()
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));
  assert.deepEqual([first.level, first.message, first.url, first.attempt], ["debug", "something", "http://a/", 1]);
  assert.ok(!Number.isNaN(Date.parse(first.time)));
  assert.deepEqual([second.message, second.summary], ["summary", { pages: 1 }]);
});

test("quiet leaves only errors, debug needs verbose", () => {
  const io = fakeIo();
  const quiet = createConsole(io, { format: "text", quiet: true, verbose: true, progress: false });
  for (const level of ["debug", "info", "warn", "error"] as const) quiet.log(level, "no");
  for (const level of ["debug", "info", "warn"] as const) quiet.say(level, "no", "no");
  quiet.block(["no"], "no", {});
  quiet.say("error", "yes", "yes");
  createConsole(io, { format: "text", quiet: false, verbose: false, progress: false }).log("debug", "no");
  assert.equal(io.err(), "yes\n");
});

test("a message that the library repeats is counted after 20 lines", () => {
  const io = fakeIo();
  const console = createConsole(io, { format: "text", quiet: false, verbose: false, progress: false });
  for (let index = 0; index < 25; index++) console.log("error", "the scrape function threw", { url: `http://a/${index}` });
  console.log("warn", "other");
  console.finish();
  const lines = io.err().trimEnd().split("\n");
  assert.equal(lines.length, 22);
  assert.deepEqual(
    [lines[0], ...lines.slice(-2)],
    ["error: the scrape function threw (url http://a/0)", "warning: other", "… 5 more: the scrape function threw"],
  );
});

test("numbers are short", () => {
  assert.deepEqual([0, 999, 1_000, 9_960, 12_345_678, 2e9].map(spellBytes), ["0 B", "999 B", "1.0 KB", "10 KB", "12 MB", "2.0 GB"]);
  assert.deepEqual([0, 999, 12_340, 59_960, 125_000, 7_380_000].map(spellElapsed), ["0ms", "999ms", "12.3s", "1m 00s", "2m 05s", "2h 03m"]);
  assert.deepEqual([0.04, 9.9, 10.2, 12_345].map(spellRate), ["0.0", "9.9", "10", "12,345"]);
});

test("the summary has time, rate, bytes, counts, slowest hosts and files", () => {
  const host = (name: string, meanLatencyMs: number) => ({
    host: name,
    queued: 0,
    inFlight: 0,
    concurrency: 8,
    delayMs: 0,
    dueInMs: 0,
    settled: 5,
    meanLatencyMs,
  });
  const summary = aSummary({
    ...{ pages: 1_234, elapsedMs: 12_300, pagesPerSecond: 100.3, bytes: 45_600_000, retries: 3, loopCpuShare: 0.42, finishReason: "limit-pages" },
    ...{ byStatus: { "404": 7, "200": 1_227, "500": 0 }, byError: { dns: 1 }, bySkipReason: { "out-of-scope": 9 } },
    ...{ slowestHosts: [host("a.example", 120), host("b.example", 1_500)], files: ["pages.jsonl", "stdout"] },
  });
  assert.deepEqual(summaryLines(summary, false), [
    "ended by --limit: 1,234 pages in 12.3s, 100/s, 46 MB",
    "  status   200 1,227 · 404 7",
    "  failed   dns 1",
    "  skipped  out-of-scope 9",
    "  retries  3",
    "  slowest  b.example 1.5s · a.example 120ms",
    "  cpu      42% of one core",
    "  files    pages.jsonl",
  ]);
  assert.match(summaryLines(aSummary({ pages: 1, finishReason: "cancelled" }), true)[0] ?? "", /^ended: the reader of stdout went away: 1 page in /);
  const short = aSummary({ pages: 1, elapsedMs: 120, loopCpuShare: 0.3, parseCpuShare: 0.1, slowestHosts: [host("a.example", 7)] });
  assert.deepEqual(summaryLines(short, false).slice(1), ["  slowest  a.example 7ms", "  cpu      loop 30%, each parse worker 10% of one core"]);
  assert.deepEqual(summaryLines({ ...short, pages: 0 }, false).slice(1), [], "of a run that fetched nothing there is nothing to tell");
  const stopped = aSummary({ pages: 2, finishReason: "stop-condition", detail: "old\n  news" });
  assert.match(summaryLines(stopped, false)[0] ?? "", /^stopped \(old news\): 2 pages in /, "the reason that a scraper gave, on one line");
});
