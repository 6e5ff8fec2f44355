import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { exitCode } from "../../src/cli/exit.ts";
import { main } from "../../src/cli/main.ts";
import { optionsPage } from "../../src/cli/reference.ts";
import { CrawlError } from "../../src/core/errors.ts";
import { VERSION } from "../../src/version.ts";
import { aPage, aSummary, type FakeRun, fakeCrawl } from "./fake-crawl.ts";
import { type FakeIoOptions, fakeIo } from "./fake-io.ts";
import { golden } from "./golden.ts";

const folder = mkdtempSync(join(tmpdir(), "skein-cli-"));
after(() => rmSync(folder, { recursive: true }));

async function run(argv: string[], play: (run: FakeRun) => Promise<object> = async () => ({}), options: FakeIoOptions = {}) {
  const io = fakeIo({ cwd: folder, ...options });
  const { runs, load } = fakeCrawl(play);
  const status = await main(argv, io, load);
  return { status, out: io.out(), err: io.err(), runs, io };
}

const VERBS = ["serve", "fetch", "robots", "explain", "status", "export", "reparse", "cache", "doctor"];

test("help texts are as they were reviewed, and at most 100 columns wide", async () => {
  const texts: Record<string, string> = {
    "help.txt": (await run(["--help"])).out,
    "help-crawl.txt": (await run(["crawl", "https://a.example/", "--help"])).out,
  };
  for (const verb of VERBS) texts[`help-${verb}.txt`] = (await run([verb, "--help", "--what"])).out;
  for (const [name, text] of Object.entries(texts)) {
    golden(name, text);
    for (const line of text.split("\n")) assert.ok(line.length <= 100, line);
  }
  for (const verb of ["crawl", ...VERBS]) {
    assert.equal((await run(["help", verb])).out, texts[`help-${verb}.txt`]);
    assert.match(texts["help.txt"] ?? "", new RegExp(`^  ${verb} `, "m"));
  }
  assert.equal((await run(["crawl", "-h"])).status, 0);
});

test("docs/options.md is what the schema gives (npm run docs writes it)", () => {
  assert.equal(readFileSync(new URL("../../docs/options.md", import.meta.url), "utf8"), optionsPage());
});

test("the version, and what is no command", async () => {
  assert.deepEqual([(await run(["--version"])).out, (await run(["--version"])).status], [`${VERSION}\n`, 0]);
  for (const [argv, said] of [
    [["crwal", "x"], 'skein: there is no command "crwal"; did you mean skein crawl?\n'],
    [["https://a.example/"], 'skein: there is no command "https://a.example/"; did you mean skein crawl https://a.example/?\n'],
    [["plan"], 'skein: there is no command "plan"; skein --help lists them\n'],
    [["--depth", "2"], 'skein: there is no command "--depth"; skein --help lists them\n'],
  ] as const) {
    const { status, err, out } = await run([...argv]);
    assert.deepEqual([status, err, out], [2, said, ""]);
  }
  const bare = await run([]);
  assert.equal(bare.status, 2);
  assert.match(bare.err, /^Skein crawls/);
});

test("wrong usage: status 2, every problem on a line, nothing crawled", async () => {
  const { status, err, out, runs } = await run(["crawl", "http://a/", "--dpeth", "1", "-c", "0", "-i", "absent.txt"]);
  assert.equal(status, 2);
  assert.equal(out, "");
  assert.deepEqual(err.trimEnd().split("\n"), [
    "skein: --dpeth: no such option; did you mean --depth?",
    "skein: --input-file: absent.txt: no such file",
    "skein: -c: expected a whole number from 1 to 10000, got 0",
  ]);
  assert.equal(runs.length, 0);
  const json = await run(["crawl", "http://a/", "--log-format", "json", "--what"]);
  assert.deepEqual([json.status, JSON.parse(json.err).code], [2, "invalid-options"]);
});

test("no seeds: status 2", async () => {
  assert.deepEqual([(await run(["crawl"])).status, (await run(["crawl"])).err], [2, "skein: nothing to crawl: give a URL, or a file of URLs with -i\n"]);
  const bad = await run(["crawl", "crwal", "http://[bad"]);
  assert.equal(bad.status, 2);
  assert.match(bad.err, /skipped argument 1: "crwal": neither a URL nor a host name\n.*argument 2.*\nskein: none of the 2 seeds is usable\n$/s);
});

test("URLs of pages go to stdout, everything else to stderr; the summary ends it", async () => {
  const { status, out, err } = await run(["crawl", "http://a/"], async (crawl) => {
    crawl.settle(aPage("http://a/"), aPage("http://a/off", { outcome: "failed", status: null, depth: 1, error: { code: "dns", message: "m" } }));
    crawl.settle(aPage("http://a/503", { outcome: "failed", status: 503, depth: 1, error: { code: "http", message: "m" } }));
    return { pages: 1, failed: 2 };
  });
  assert.deepEqual([status, out], [0, "http://a/\n"]);
  assert.match(
    err,
    /^this crawl lives in memory.*\nnot accessible \(dns\): http:\/\/a\/off, moving on\nnot accessible \(http 503\): http:\/\/a\/503, moving on\nfinished: 1 page in /,
  );
});

test("-q silences stderr, not stdout", async () => {
  const { out, err } = await run(["crawl", "-q", "http://a/"], async (crawl) => {
    crawl.settle(aPage("http://a/"), aPage("http://a/off", { outcome: "failed", status: null, error: { code: "dns", message: "m" } }));
    return {};
  });
  assert.deepEqual([out, err], ["http://a/\n", ""]);
});

test("failures are grouped after 20 a host", async () => {
  const { err } = await run(["crawl", "http://a/"], async (crawl) => {
    for (let index = 0; index < 25; index++)
      crawl.settle(aPage(`http://a/${index}`, { outcome: "failed", status: null, error: { code: "timeout", message: "m" } }));
    crawl.settle(aPage("http://b/", { outcome: "failed", status: null, error: { code: "connect", message: "m" } }));
    return {};
  });
  assert.equal(err.match(/not accessible \(timeout\): .*, moving on/g)?.length, 20);
  assert.match(err, /\(connect\): http:\/\/b\//);
  assert.match(err, /not accessible: … 5 more on a\n/);
});

test("odd seeds, moved seeds and dangerous options are warned of", async () => {
  const { err } = await run(["crawl", "http://a/", "--no-robots", "--insecure"], async (crawl) => {
    crawl.event({ kind: "seed-moved", from: "http://a/", to: "http://b/" });
    crawl.settle(
      aPage("http://a/x", { outcome: "disallowed", status: null }),
      aPage("http://a/y", { status: 404 }),
      aPage("http://a/z", { status: 404, depth: 1 }),
    );
    return {};
  });
  for (const said of [
    /--no-robots/,
    /--insecure/,
    /seed moved: http:\/\/a\/ leads to http:\/\/b\//,
    /seed disallowed by robots.txt: http:\/\/a\/x/,
    /seed answered 404: http:\/\/a\/y/,
  ])
    assert.match(err, said);
  assert.doesNotMatch(err, /http:\/\/a\/z/);
});

test("-v tells how patterns were read, and retries", async () => {
  const play = async (crawl: FakeRun) => {
    crawl.event({ kind: "retry", url: "http://a/", code: "http", status: 503, attempt: 1, afterMs: 1_200 });
    return {};
  };
  const verbose = (await run(["crawl", "http://a/", "-v", "--list", "*.html"], play)).err;
  assert.match(verbose, /list \*\.html: ./);
  assert.match(verbose, /try 1 failed \(http 503\), again in 1\.2s: http:\/\/a\//);
  assert.doesNotMatch((await run(["crawl", "http://a/", "--list", "*.html"], play)).err, /list|try 1/);
});

test("the crawl gets the spec, the seeds as given, and where the scraper lies", async () => {
  const seeds: string[] = [];
  const { runs } = await run(
    ["crawl", "a.example/{1..2}", "-i", "-", "-s", "scrape.mjs", "-o", "-", "-d", "1"],
    async (crawl) => {
      for await (const seed of crawl.input.seeds as AsyncIterable<string>) seeds.push(seed); // `as`: the command line always gives an iterable
      return {};
    },
    { stdin: "http://b.example/\n" },
  );
  assert.deepEqual(seeds, ["a.example/{1..2}", "http://b.example/"]);
  const [crawl] = runs;
  assert.deepEqual([crawl?.input.maxDepth, crawl?.input.outputs, crawl?.input.scraper], [1, [], "scrape.mjs"]);
  assert.equal(crawl?.options.cwd, folder);
});

test("the first Ctrl-C finishes what is in flight, the second aborts, the third kills", async () => {
  for (const [signal, status] of [
    ["SIGINT", 130],
    ["SIGTERM", 143],
  ] as const) {
    const io = fakeIo({ cwd: folder });
    const { runs, load } = fakeCrawl(async (crawl) => {
      io.signal(signal);
      await crawl.until("stop flight");
      io.signal(signal);
      await crawl.until("stop now");
      io.signal(signal);
      return { finishReason: "interrupted" };
    });
    assert.equal(await main(["crawl", "http://a/"], io, load), status);
    assert.deepEqual(runs[0]?.asked, ["stop flight", "stop now"]);
    assert.deepEqual(io.died, [signal]);
    assert.match(io.err(), /finishing what is in flight, again to abort\naborting\n/);
  }
});

test("a reader that goes away ends the crawl quietly with 0", async () => {
  const write = () => Promise.reject(Object.assign(new Error("EPIPE"), { code: "EPIPE" }));
  const { status, err } = await run(
    ["crawl", "http://a/"],
    async (crawl) => {
      crawl.settle(aPage("http://a/"));
      await crawl.until("stop now");
      return { finishReason: "stop-condition" };
    },
    { write },
  );
  assert.equal(status, 0);
  assert.match(err, /ended: the reader of stdout went away/);
});

test("what fails in the crawl has its own status and is said in one line", async () => {
  const failing = (error: unknown) => run(["crawl", "http://a/"], async () => Promise.reject(error));
  const unwritable = await failing(new CrawlError("output-unwritable", "cannot write x: full"));
  assert.deepEqual([unwritable.status, unwritable.err.split("\n").at(-2)], [3, "skein: cannot write x: full"]);
  const internal = await failing(new TypeError("oops"));
  assert.equal(internal.status, 1);
  assert.match(internal.err, /skein: internal error: TypeError: oops\n {4}at /);
});

test("exit statuses of the contract", () => {
  const none = { signal: null, readerLeft: false };
  assert.equal(exitCode(aSummary(), none), 0);
  assert.equal(exitCode(aSummary({ finishReason: "limit-pages" }), none), 0);
  assert.equal(exitCode(aSummary({ finishReason: "stop-condition" }), none), 0);
  assert.equal(exitCode(aSummary({ seedsReached: 0 }), none), 4);
  assert.equal(exitCode(aSummary({ seedsReached: 0, finishReason: "limit-errors" }), none), 6);
  assert.equal(exitCode(aSummary({ finishReason: "failed" }), none), 1);
  assert.equal(exitCode(aSummary({ seedsReached: 0 }), { signal: null, readerLeft: true }), 0);
  assert.equal(exitCode(aSummary({ seedsReached: 0 }), { signal: "SIGINT", readerLeft: true }), 130);
  assert.equal(exitCode(aSummary({ finishReason: "interrupted" }), { signal: "SIGTERM", readerLeft: false }), 143);
});
