/** The built command as a process of its own against a site on loopback: what a person's shell sees. */
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer, type ServerResponse } from "node:http";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { after, before, test } from "node:test";
import { gunzipSync } from "node:zlib";
import type { PageRecord } from "../../src/core/records.ts";

const bin = resolve(import.meta.dirname, "../../bin/skein.js");
const folder = mkdtempSync(join(tmpdir(), "skein-e2e-"));
const PAGES = 40;
/** Requests of /held/N wait here until the test answers them. */
const held: { path: string; answer: () => void }[] = [];
let onHeld: (() => void) | null = null;
let wide = 0;
let onWide: (() => void) | null = null;
let base = "";

function page(response: ServerResponse, links: readonly string[]): void {
  response.setHeader("content-type", "text/html");
  response.end(`<title>A page</title>${links.map((link) => `<a href="${link}">x</a>`).join("\n")}`);
}

const server = createServer((request, response) => {
  const path = request.url ?? "/";
  const tree = /^\/t\/(\d+)$/.exec(path);
  if (tree) {
    const at = Number(tree[1]);
    return page(
      response,
      [2 * at + 1, 2 * at + 2].filter((next) => next < PAGES).map((next) => `/t/${next}`),
    );
  }
  if (path === "/held/")
    return page(
      response,
      Array.from({ length: 200 }, (_, index) => `/held/${index}`),
    );
  if (path.startsWith("/held/")) {
    held.push({ path, answer: () => page(response, []) });
    onHeld?.();
    return;
  }
  if (path === "/wide/")
    return page(
      response,
      Array.from({ length: 30 }, (_, index) => `/wide/${index}`),
    );
  if (path.startsWith("/wide/")) {
    wide++;
    onWide?.();
    return page(
      response,
      Array.from({ length: 2_000 }, (_, index) => `http://far.example${path}/${index}/${"x".repeat(40)}`),
    );
  }
  if (path === "/broken/") return page(response, ["/broken/1", "/broken/2", "/broken/3", "/t/39"]);
  if (path.startsWith("/broken/")) return void request.socket.destroy();
  response.statusCode = 404;
  response.end();
});

before(async () => {
  await new Promise<void>((ready) => server.listen(0, "127.0.0.1", ready));
  const address = server.address();
  assert.ok(address !== null && typeof address === "object");
  base = `http://127.0.0.1:${address.port}`;
});

after(() => {
  server.closeAllConnections();
  server.close();
  rmSync(folder, { recursive: true });
});

function start(argv: readonly string[], env: Record<string, string> = {}): ChildProcess {
  return spawn(process.execPath, [bin, ...argv], { cwd: folder, env: { ...process.env, NO_PROXY: "127.0.0.1", NODE_TEST_CONTEXT: undefined, ...env } });
}

async function ended(child: ChildProcess): Promise<{ status: number | null; signal: string | null; out: string; err: string }> {
  let out = "";
  let err = "";
  child.stdout?.on("data", (chunk) => void (out += chunk));
  child.stderr?.on("data", (chunk) => void (err += chunk));
  return new Promise((done) => child.on("close", (status, signal) => done({ status, signal, out, err })));
}

const run = (...argv: string[]) => ended(start(argv));
const lines = (text: string) => text.split("\n").slice(0, -1);
// `as`: the lines are page records, or the assertions on them fail.
const records = (text: string) => lines(text).map((line) => JSON.parse(line) as PageRecord);
const tree = () => Array.from({ length: PAGES }, (_, index) => `${base}/t/${index}`).sort();

test("a crawl prints the URL of each page, and writes a record of each", async () => {
  const { status, out, err } = await run("crawl", `${base}/t/0`, "-o", "pages.jsonl", "-o", "pages.jsonl.gz");
  assert.equal(status, 0, err);
  assert.deepEqual(lines(out).sort(), tree());
  const text = readFileSync(join(folder, "pages.jsonl"), "utf8");
  assert.deepEqual(
    records(text)
      .map(({ url }) => url)
      .sort(),
    tree(),
  );
  assert.equal(gunzipSync(readFileSync(join(folder, "pages.jsonl.gz"))).toString(), text);
  assert.match(err, /^finished: 40 pages in /m);
  assert.match(err, /files {4}pages\.jsonl · pages\.jsonl\.gz/);
});

test("-o - gives records on stdout instead, with the chosen fields", async () => {
  const { out, status } = await run("crawl", `${base}/t/0`, "-o", "-", "--fields", "status,url", "-q");
  assert.equal(status, 0);
  assert.deepEqual(
    lines(out).sort(),
    tree().map((url) => `{"status":200,"url":"${url}"}`),
  );
});

test("--print links gives each distinct link once", async () => {
  const { out } = await run("crawl", `${base}/t/0`, "-d", "2", "--print", "links", "-q");
  assert.deepEqual(lines(out).sort(), Array.from({ length: 14 }, (_, index) => `${base}/t/${index + 1}`).sort());
  const { out: some } = await run("crawl", `${base}/t/0`, "-d", "2", "--print", "links", "--list", "1?", "-q");
  assert.deepEqual(
    lines(some).sort(),
    [10, 11, 12, 13, 14].map((index) => `${base}/t/${index}`),
    "--list chooses what is printed",
  );
});

test("seeds from stdin, with a range, bad lines named", async () => {
  const child = start(["crawl", "-i", "-", "-d", "0"]);
  child.stdin?.end(`# seeds\r\n${base}/t/{8..11}\r\nnonsense\r\n`);
  const { out, err, status } = await ended(child);
  assert.equal(status, 0);
  assert.deepEqual(
    lines(out).sort(),
    [10, 11, 8, 9].map((index) => `${base}/t/${index}`),
  );
  assert.match(err, /skipped stdin:3: "nonsense"/);
});

test("a scraper module's links are followed", async () => {
  writeFileSync(join(folder, "scrape.mjs"), `export default (url, html) => html.includes("A page") && url.endsWith("/39") ? ["/t/38"] : [];`);
  const { out } = await run("crawl", `${base}/t/39`, "-s", "scrape.mjs", "-q");
  assert.deepEqual(lines(out), [`${base}/t/39`, `${base}/t/38`]);
});

test("pages that cannot be reached are named, and the crawl moves on", async () => {
  const { out, err, status } = await run("crawl", `${base}/broken/`, "--retries", "0");
  assert.equal(status, 0);
  assert.deepEqual(lines(out).sort(), [`${base}/broken/`, `${base}/t/39`]);
  for (const index of [1, 2, 3]) assert.match(err, new RegExp(`^not accessible \\(reset\\): ${base}/broken/${index}, moving on$`, "m"));
  assert.equal((await run("crawl", `${base}/broken/`, "--retries", "0", "--max-errors", "1", "-q")).status, 6);
});

test("no seed reached is status 4, a missing seed is a warning", async () => {
  const free = createServer();
  await new Promise<void>((ready) => free.listen(0, "127.0.0.1", ready));
  const address = free.address();
  await new Promise((closed) => free.close(closed));
  assert.ok(address !== null && typeof address === "object");
  const dead = await run("crawl", `http://127.0.0.1:${address.port}/`, "--retries", "0");
  assert.equal(dead.status, 4, dead.err);
  assert.match(dead.err, /not accessible \(connect\)/);
  const missing = await run("crawl", `${base}/missing`);
  assert.equal(missing.status, 0);
  assert.match(missing.err, /seed answered 404/);
});

test("a start that fails leaves an existing output untouched", async () => {
  writeFileSync(join(folder, "old.jsonl"), "old\n");
  for (const [argv, expected] of [
    [["crawl", `${base}/t/0`, "-o", "old.jsonl", "--depth", "x"], 2],
    [["crawl", "http://[bad", "-o", "old.jsonl"], 2],
    [["crawl", `${base}/t/0`, "-o", "old.jsonl", "-o", "absent/x.jsonl"], 3],
  ] as const) {
    assert.equal((await run(...argv)).status, expected);
    assert.equal(readFileSync(join(folder, "old.jsonl"), "utf8"), "old\n");
  }
});

test("a full disk is status 3 and named", { skip: existsSync("/dev/full") ? false : "no /dev/full" }, async () => {
  symlinkSync("/dev/full", join(folder, "full.jsonl"));
  const { status, err } = await run("crawl", `${base}/t/0`, "-o", "full.jsonl");
  assert.equal(status, 3);
  assert.match(err, /^skein: cannot write full\.jsonl: .*ENOSPC/m);
});

test("a reader that goes away (| head) ends the crawl quietly with 0", async () => {
  const child = start(["crawl", `${base}/held/`, "--per-host", "64", "-q"]);
  onHeld = () => setImmediate(() => held.shift()?.answer());
  child.stdout?.once("data", () => child.stdout?.destroy());
  const { status, err } = await ended(child);
  onHeld = null;
  held.length = 0;
  assert.deepEqual([status, err], [0, ""]);
});

test("F098 Ctrl-C finishes what is in flight: whole records, status 130; SIGTERM 143", async () => {
  for (const [signal, expected] of [
    ["SIGINT", 130],
    ["SIGTERM", 143],
  ] as const) {
    held.length = 0;
    const child = start(["crawl", `${base}/held/`, "--per-host", "4", "-o", "held.jsonl"]);
    const full = new Promise<void>((resolve) => (onHeld = () => held.length === 4 && resolve()));
    const over = ended(child);
    await full;
    const said = new Promise<void>((resolve) => child.stderr?.on("data", (chunk) => String(chunk).includes("finishing what is in flight") && resolve()));
    child.kill(signal);
    await said;
    const inFlight = held.splice(0);
    for (const { answer } of inFlight) answer();
    const { status, out } = await over;
    assert.equal(status, expected);
    const urls = [`${base}/held/`, ...inFlight.map(({ path }) => `${base}${path}`)].sort();
    assert.deepEqual(
      records(readFileSync(join(folder, "held.jsonl"), "utf8"))
        .map(({ url }) => url)
        .sort(),
      urls,
    );
    assert.deepEqual(lines(out).sort(), urls);
    assert.equal(held.length, 0, "something was requested after the signal");
  }
  onHeld = null;
});

test("F098 a second Ctrl-C aborts although nothing answers", async () => {
  held.length = 0;
  const child = start(["crawl", `${base}/held/`, "--per-host", "2"]);
  const over = ended(child);
  await new Promise<void>((resolve) => (onHeld = () => held.length === 2 && resolve()));
  const said = new Promise<void>((resolve) => child.stderr?.on("data", (chunk) => String(chunk).includes("again to abort") && resolve()));
  child.kill("SIGINT");
  await said;
  child.kill("SIGINT");
  const { status, signal } = await over;
  onHeld = null;
  assert.ok(status === 130 || signal === "SIGINT", `${status} ${signal}`);
});

test("a reader that pauses gets every line when it goes on", async () => {
  wide = 0;
  const child = start(["crawl", `${base}/wide/`, "--print", "links", "-q"]);
  const over = ended(child);
  await new Promise<void>((resolve) => child.stdout?.once("data", () => resolve()));
  child.stdout?.pause();
  // More than pipe and buffers hold is found while nobody reads.
  await new Promise<void>((resolve) => (onWide = () => wide > 10 && resolve()));
  onWide = null;
  child.stdout?.resume();
  const { out, status } = await over;
  assert.equal(status, 0);
  assert.equal(new Set(lines(out)).size, 30 + 30 * 2_000);
  assert.equal(lines(out).length, 30 + 30 * 2_000);
});

test("diagnostics as JSON lines, the summary last", async () => {
  const { err } = await run("crawl", `${base}/broken/`, "--retries", "0", "--log-format", "json");
  const said = lines(err).map((line) => JSON.parse(line));
  assert.equal(said.filter(({ message }) => message === "not accessible").length, 3);
  assert.equal(said.at(-1).message, "summary");
  assert.equal(said.at(-1).summary.pages, 2);
});

test("help comes without the crawler being loaded", () => {
  const root = resolve(import.meta.dirname, "../..");
  const seen = new Set<string>();
  const visit = (file: string): void => {
    if (seen.has(file)) return;
    seen.add(file);
    for (const match of readFileSync(file, "utf8").matchAll(/^(?:import|export) (?!type )[^;]*?from "(\.[^"]+)";/gm))
      visit(resolve(file, "..", match[1] ?? ""));
  };
  for (const entry of ["src/cli/main.ts", "src/cli/help.ts", "src/cli/commands/crawl.ts"]) visit(join(root, entry));
  const rooms = new Set([...seen].map((file) => file.slice(root.length + 5).split("/")[0]));
  assert.deepEqual([...rooms].sort(), ["cli", "core", "rules", "version.ts"]);
});
