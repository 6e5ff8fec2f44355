/** A limit that is larger goes on, a run that has its seeds needs none, and what is dropped or kept elsewhere is said: whole commands on state directories. */
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { main } from "../../src/cli/main.ts";
import { lines } from "../command.ts";
import { html, type Served, serve } from "../crawl/served.ts";
import { fakeIo } from "./fake-io.ts";

const PAGES = 12;
const folder = mkdtempSync(join(tmpdir(), "skein-going-on-"));
const inFolder = (name: string) => join(folder, name);
let served: Served;
let asked: string[] = [];
/** Told of each page that is asked for. */
let onAsk: () => void = () => undefined;

before(async () => {
  served = await serve((request, response) => {
    const path = request.url ?? "";
    if (path === "/robots.txt") return void response.writeHead(404).end();
    asked.push(path);
    onAsk();
    const n = Number(path.slice(1)) || 0;
    html(response, `<h1>page ${n}</h1>${n === 0 ? Array.from({ length: PAGES - 1 }, (_, i) => `<a href="/${i + 1}">x</a>`).join("") : ""}`);
  });
});
after(async () => {
  await served[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true });
});

async function run(argv: readonly string[], stdin = "", interrupt = false) {
  const io = fakeIo({ cwd: folder, stdin });
  asked = [];
  onAsk = () => (interrupt && asked.length === 3 ? io.signal("SIGINT") : undefined);
  const status = await main(["crawl", "--retries", "0", ...argv], io);
  return { status, err: io.err(), asked };
}
const pagesIn = (file: string) => lines(readFileSync(file, "utf8")).map((line) => JSON.parse(line));

test("a run that --max-items ended goes on without the limit: each page is asked for its items once more at most, each item stands once", async () => {
  const out = inFolder("items.jsonl");
  const command = [`${served.origin}/`, "-e", "h=h1", "-o", out, "--state", inFolder("items")];
  const first = await run([...command, "--max-items", "2"]);
  assert.equal(pagesIn(out).length, 2, first.err);
  const second = await run(command);
  assert.match(second.err, /ended by --max-items 2: going on/);
  assert.ok(!second.asked.includes("/"), "what is done is not asked for again");
  assert.deepEqual(
    pagesIn(out)
      .map(({ h }) => h)
      .sort(),
    Array.from({ length: PAGES }, (_, n) => `page ${n}`).sort(),
  );
});

test("a larger limit that is passed already ends the run at once, and drops nothing", async () => {
  const out = inFolder("bytes.jsonl");
  const command = [`${served.origin}/`, "-o", out, "--state", inFolder("bytes"), "-c", "1"];
  await run([...command, "--max-bytes", "1"]);
  const had = readFileSync(out, "utf8");
  const past = await run([...command, "--max-bytes", "2"]);
  assert.equal(past.status, 0);
  assert.match(past.err, /has passed --max-bytes 2\S* already: nothing is fetched, and nothing is dropped/);
  assert.deepEqual([past.asked, readFileSync(out, "utf8")], [[], had]);
  await run(command);
  assert.equal(pagesIn(out).length, PAGES);
});

test("a run whose list came from stdin goes on with an empty one, and with no seed named at all; a run that is over does not", async () => {
  for (const [name, again] of [
    ["empty", ["-i", "-"]],
    ["none", []],
  ] as const) {
    const out = inFolder(`${name}.jsonl`);
    const state = ["--state", inFolder(name)];
    const first = await run(["-i", "-", "-o", out, "-c", "1", ...state], `${served.origin}/\n`, true);
    assert.equal(first.status, 130);
    assert.match(first.err, /to resume: skein crawl .*-i - .* < \/dev\/null/);
    const options = name === "empty" ? ["-o", out] : [];
    const second = await run([...again, ...options, ...state]);
    assert.equal(second.status, 0, second.err);
    assert.match(second.err, /resuming the unfinished crawl/);
    assert.equal(pagesIn(out).length, PAGES);
    const third = await run([...again, ...options, ...state]);
    assert.equal(third.status, 2);
    assert.match(third.err, /nothing to crawl: no seed was given, and the crawl in \S+ is over/);
    assert.equal(pagesIn(out).length, PAGES);
  }
});

test("--fresh says what it drops, once there is something", async () => {
  const command = [`${served.origin}/`, "--state", inFolder("fresh"), "--fresh"];
  assert.doesNotMatch((await run([...command, "--limit", "2"])).err, /dropped/);
  assert.match((await run(command)).err, /dropped the last run in \S+ \(2 pages\): starting anew/);
});

test("a quiet crawl in memory that is interrupted prints the command that resumes it, and nothing else", async () => {
  const cwd = process.cwd();
  process.chdir(folder);
  try {
    const { status, err } = await run([`${served.origin}/`, "-q", "-c", "1"], "", true);
    assert.equal(status, 130);
    assert.match(err, /^to resume: skein crawl .* --state \.skein\/\w+\n$/);
  } finally {
    process.chdir(cwd);
  }
});
