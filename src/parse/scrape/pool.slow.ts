import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { pathToFileURL } from "node:url";
import type { ScrapeLog, ScrapeOutcome, Scraping } from "../../core/scraping.ts";
import { ownFiles } from "./own-files.ts";
import { openPool, type PoolOptions } from "./pool.ts";
import { scrapeTask } from "./task-for-tests.ts";

const folder = mkdtempSync(join(tmpdir(), "skein-pool-"));
/** A pool with nothing special, for every test that does not spoil it: to start a worker takes its time. */
let usual: Promise<Trial> | null = null;
after(async () => {
  await (await usual)?.scraping[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true, force: true });
});

async function usualTrial(): Promise<Trial> {
  usual ??= openTrial();
  return { ...(await usual), [Symbol.asyncDispose]: async () => undefined };
}

/** Handlers that do what their name says; `data` tells how. */
const SCRAPER = `
import { writeFileSync } from "node:fs";
const { promise: never } = Promise.withResolvers();
export default { version: 1, items: { page: { key: "n" } }, handlers: {
  async item({ item, data, state, log }) { if (data.say) console.log("printed"); log.info("seen", { n: data.n }); item({ n: data.n, state: state.get("s") ?? null }); },
  title({ $, item }) { item({ n: $("h1").text() }); },
  exit() { process.exit(3); },
  hang({ signal, data, log }) { log.debug("hangs"); return new Promise((done) => signal.addEventListener("abort", () => { writeFileSync(data.heard, ""); done(); })); },
  leak({ item }) { setTimeout(() => item({ n: 0 }), 0); },
  reject() { Promise.reject(new Error("nobody awaits this")); return never; },
  throws() { throw new RangeError("boom"); },
  follow({ follow, stop }) { follow("x", { body: new Uint8Array([1, 2]) }); stop({ reason: "r" }); },
} };`;

/** The same as a plain function, which starts sooner. Gates are files: no test waits by the clock. */
const PLAIN = `
import { existsSync, writeFileSync } from "node:fs";
const actions = {
  spin() { for (;;); },
  spinOnce({ file }) { if (!existsSync(file)) { writeFileSync(file, ""); for (;;); } },
  exit() { process.exit(3); },
  memory() { const all = []; for (;;) all.push(new Array(100_000).fill({})); },
  waitFor({ begun, go }) { writeFileSync(begun, ""); while (!existsSync(go)); },
};
export default (url) => { const { action, ...rest } = Object.fromEntries(new URL(url).searchParams); actions[action]?.(rest); return [rest.n ?? action]; };`;
writeFileSync(join(folder, "plain.mjs"), PLAIN);
writeFileSync(join(folder, "scraper.mjs"), SCRAPER);

interface Trial extends AsyncDisposable {
  readonly scraping: Scraping;
  readonly logged: string[];
  run(handler: string, data?: object, rest?: Parameters<typeof scrapeTask>[1]): Promise<ScrapeOutcome>;
}

async function openTrial(over: Partial<PoolOptions> = {}): Promise<Trial> {
  const logged: string[] = [];
  const log: ScrapeLog = (level, message, fields) => logged.push(`${level} ${message} ${JSON.stringify(fields)}`);
  const { scraping } = await openPool({
    ...{ source: { kind: "file", file: "scraper.mjs", cwd: folder }, own: ownFiles(), workers: 1, parseTimeoutMs: 60_000, memoryMb: 256 },
    buffer: { pages: 100, bytes: 1e9 },
    log,
    ...over,
  });
  return {
    scraping,
    logged,
    run: (handler, data = {}, rest = {}) => scraping.run(scrapeTask("<h1>Title</h1>", { handler, data: JSON.stringify(data), ...rest })),
    [Symbol.asyncDispose]: () => scraping[Symbol.asyncDispose](),
  };
}

/** What came of the page: items, links, or the outcome itself. */
function itemsOf(outcome: ScrapeOutcome): readonly unknown[] {
  if (outcome.kind !== "scraped") return [outcome];
  return outcome.scraped.links ?? outcome.scraped.items.map(({ json }) => JSON.parse(json));
}

/** A pool of its own, for what spoils it. */
async function openPlain(over: Partial<PoolOptions> = {}): Promise<Trial> {
  const trial = await openTrial({ source: { kind: "file", file: "plain.mjs", cwd: folder }, ...over });
  const urlOf = (action: string, data: object) => `http://shop.test/?${new URLSearchParams({ action, ...data })}`;
  return { ...trial, run: (action, data = {}, rest = {}) => trial.scraping.run(scrapeTask("<h1>Title</h1>", { url: urlOf(action, data), ...rest })) };
}

const path = (name: string) => join(folder, name);

test("pages go through a worker and come back as they would inline", async () => {
  await using trial = await usualTrial();
  const { scraping } = trial;
  assert.deepEqual([scraping.kind, scraping.version, scraping.first], ["handlers", "version 1", "item"]);
  assert.deepEqual(itemsOf(await trial.run("title")), [{ n: "Title" }]);
  const followed = await trial.run("follow");
  assert.ok(followed.kind === "scraped");
  assert.deepEqual([[...(followed.scraped.follows[0]?.body ?? [])], followed.scraped.stop], [[1, 2], { mode: "flight", reason: "r" }]);
  const thrown = await trial.run("throws");
  assert.ok(thrown.kind === "threw");
  assert.deepEqual([thrown.message, thrown.stack?.includes("scraper.mjs")], ["boom", true]);
  assert.deepEqual(itemsOf(await trial.run("item", { n: 5 })), [{ n: 5, state: null }]);
  assert.deepEqual(trial.logged.slice(-1), ['info seen {"url":"http://shop.test/list/page.html","n":5}']);
  const { workers, busy, waiting, cpuShare } = scraping.view();
  assert.deepEqual([workers, busy, waiting, cpuShare > 0 && cpuShare <= 1], [1, 0, 0, true]);
});

test("a body that is part of a larger buffer stays whole, and the task keeps its own", async () => {
  await using trial = await usualTrial();
  const pooled = Buffer.from("xx<h1>Part</h1>yy").subarray(2, -2);
  const task = scrapeTask(pooled, { handler: "title" });
  assert.deepEqual(itemsOf(await trial.scraping.run(task)), [{ n: "Part" }]);
  assert.equal(pooled.toString(), "<h1>Part</h1>");
});

test("a page that hangs costs the worker, is tried once more, and is recorded; pages behind it are done", async () => {
  await using trial = await openPlain({ parseTimeoutMs: 600 });
  const [hung, behind, later] = await Promise.all([trial.run("spin"), trial.run("item", { n: 1 }), trial.run("item", { n: 2 })]);
  assert.deepEqual(hung, { kind: "crashed", message: "the parse worker took longer than 600ms, at the second try with this page" });
  assert.deepEqual([itemsOf(behind), itemsOf(later)], [["1"], ["2"]]);
  assert.equal(trial.logged.filter((line) => line.startsWith("warn a parse worker was replaced")).length, 1);
});

test("a page that hangs once is done at its second try", async () => {
  await using trial = await openPlain({ parseTimeoutMs: 600 });
  assert.deepEqual(itemsOf(await trial.run("spinOnce", { file: path("spun") })), ["spinOnce"]);
});

test("a worker that runs out of memory is replaced", async () => {
  await using trial = await openPlain({ memoryMb: 32 });
  const [full, behind] = await Promise.all([trial.run("memory"), trial.run("item", { n: 1 })]);
  assert.deepEqual(full, { kind: "crashed", message: "the parse worker ran out of memory (its limit is 32 MB), at the second try with this page" });
  assert.deepEqual(itemsOf(behind), ["1"]);
});

test("process.exit in a scraper ends its thread only", async () => {
  await using trial = await openPlain();
  assert.deepEqual(await trial.run("exit"), {
    kind: "crashed",
    message: "the parse worker was ended by the scraper (exit code 3), at the second try with this page",
  });
  assert.deepEqual(itemsOf(await trial.run("item", { n: 1 })), ["1"]);
});

test("errors that nobody catches are those of the page that runs; code that outlives its page is told in the log", async () => {
  await using trial = await usualTrial();
  const rejected = await trial.run("reject");
  assert.deepEqual([rejected.kind, rejected.kind === "threw" && rejected.message], ["threw", "nobody awaits this"]);
  assert.equal((await trial.run("leak")).kind, "scraped");
  // The timer of the leak was set before; this page gives it time to come.
  while (!trial.logged.some((line) => line.includes("is settled: await what you start"))) await trial.run("item", { n: 1 });
});

test("larger priority first, then by arrival", async () => {
  await using trial = await openPlain();
  const order: unknown[] = [];
  const go = path("order-go");
  const first = trial.run("waitFor", { n: "first", begun: path("order-begun"), go });
  // The second is posted already and stays where it is; the others wait for their turn.
  const rest = [0, 0, -5, 9, 0, 9].map((priority, n) => trial.run("item", { n }, { priority }).then((outcome) => void order.push(...itemsOf(outcome))));
  writeFileSync(go, "");
  await Promise.all([first, ...rest]);
  assert.deepEqual(order, ["0", "3", "5", "1", "4", "2"]);
});

test("the buffer is full by pages or by bytes, and calls back once when it has room", async () => {
  for (const buffer of [
    { pages: 2, bytes: 1e9 },
    { pages: 1000, bytes: 28 },
  ]) {
    const go = path(`full-${buffer.pages}`);
    await using trial = await openPlain({ buffer });
    const runs = [trial.run("waitFor", { n: 0, begun: path("full-begun"), go })];
    let called = 0;
    for (let i = 1; i <= 2; i++) {
      assert.equal(trial.scraping.full(), false);
      runs.push(trial.run("item", { n: i }));
    }
    assert.equal(trial.scraping.full(), true);
    const { busy, waiting, waitingBytes } = trial.scraping.view();
    assert.deepEqual([busy, waiting, waitingBytes], [1, 2, 28]);
    const room = new Promise<void>((done) => {
      trial.scraping.onSpace(() => {
        called++;
        done();
      });
    });
    writeFileSync(go, "");
    await Promise.all([room, ...runs]);
    assert.equal(called, 1);
  }
});

test("what is ready before a busy worker is taken over by an idle one", async () => {
  await using trial = await openPlain({ workers: 2 });
  // The second worker is started when there is a page that waits for one, and has it then.
  const gates = ["a", "b"].map((name) => trial.run("waitFor", { n: name, begun: path(`over-${name}`), go: path(`over-go-${name}`) }));
  const ready = [trial.run("item", { n: 1 }), trial.run("item", { n: 2 })];
  writeFileSync(path("over-go-b"), "");
  assert.equal((await gates[1])?.kind, "scraped");
  // The first worker is still busy: everything else is done by the second.
  await Promise.all(ready);
  writeFileSync(path("over-go-a"), "");
  assert.equal((await gates[0])?.kind, "scraped");
});

test("values that were learnt come with the next page, to every worker and to those that replace one", async () => {
  await using trial = await usualTrial();
  const stateOf = async () => itemsOf(await trial.run("item", { n: 1 }));
  assert.deepEqual(await stateOf(), [{ n: 1, state: null }]);
  trial.scraping.learn([["state:s", '"a"']]);
  assert.deepEqual(await stateOf(), [{ n: 1, state: "a" }]);
  await trial.run("exit");
  assert.deepEqual(await stateOf(), [{ n: 1, state: "a" }]);
  trial.scraping.learn(new Map([["state:s", null]]));
  assert.deepEqual(await stateOf(), [{ n: 1, state: null }]);
});

test("abort ends what runs and waits, fires the signal, and the pool goes on", async () => {
  await using trial = await usualTrial();
  const runs = [trial.run("hang", { heard: path("heard") }), trial.run("item", { n: 1 }), trial.run("item", { n: 2 })];
  while (!trial.logged.some((line) => line.startsWith("debug hangs"))) await new Promise(setImmediate);
  trial.scraping.abort();
  assert.deepEqual(
    (await Promise.all(runs)).map(({ kind }) => kind),
    ["aborted", "aborted", "aborted"],
  );
  assert.deepEqual(itemsOf(await trial.run("item", { n: 3 })), [{ n: 3, state: null }]);
  assert.equal(existsSync(path("heard")), true);
});

test("a pool is disposed of while a page hangs, and takes nothing more", async () => {
  const trial = await openPlain();
  const hung = trial.run("spin");
  await trial[Symbol.asyncDispose]();
  assert.deepEqual([await hung, await trial.run("item")], [{ kind: "aborted" }, { kind: "aborted" }]);
});

test("a module that cannot be loaded, or ends its thread, is refused when the pool opens", async () => {
  writeFileSync(path("broken.mjs"), "export default 7;");
  writeFileSync(path("exits.mjs"), "process.exit(4); export default () => [];");
  const open = (file: string) => openTrial({ source: { kind: "file", file, cwd: folder } });
  await assert.rejects(open("broken.mjs"), { code: "invalid-options", message: /^scraper: broken\.mjs: expected a default export .*found number 7$/ });
  await assert.rejects(open("absent.mjs"), { code: "invalid-options", message: "scraper: absent.mjs: no such file" });
  await assert.rejects(open("exits.mjs"), {
    code: "invalid-options",
    message: "scraper: exits.mjs: cannot be loaded: its thread was ended by the scraper (exit code 4)",
  });
});

test("a scraper that can no longer be loaded fails its pages, and none of them waits for ever", async () => {
  const file = "fragile.mjs";
  writeFileSync(
    path(file),
    'import { existsSync } from "node:fs"; if (existsSync("FLAG")) throw new Error("gone"); export default () => process.exit(1);'.replace(
      "FLAG",
      path("flag").replaceAll("\\", "/"),
    ),
  );
  await using trial = await openTrial({ source: { kind: "file", file, cwd: folder } });
  writeFileSync(path("flag"), "");
  const outcomes = await Promise.all([trial.run("a"), trial.run("b"), trial.run("c")]);
  for (const outcome of outcomes)
    assert.match(
      outcome.kind === "crashed" ? outcome.message : outcome.kind,
      /^no parse worker can be started: scraper: fragile\.mjs: cannot be loaded: gone \(fragile\.mjs:1\)$/,
    );
  assert.equal((await trial.run("d")).kind, "crashed");
});

test("`skein` is the running program in a worker too, wherever the scraper lies", async () => {
  writeFileSync(
    path("imports.ts"),
    'import { defineScraper } from "skein"; export default defineScraper({ handlers: { a: ({ item }): void => item({ n: 1 }) } });',
  );
  await using trial = await openTrial({ source: { kind: "file", file: "imports.ts", cwd: folder } });
  assert.deepEqual(itemsOf(await trial.run("a")), [{ n: 1 }]);
});

test("fields of -e are read in workers too", async () => {
  await using trial = await openTrial({ source: { kind: "fields", extract: { title: "h1" } } });
  assert.deepEqual(itemsOf(await trial.run("")), [{ title: "Title" }]);
  await assert.rejects(openTrial({ source: { kind: "fields", extract: { title: "h1[" } } }), { code: "invalid-options", message: /^extract: / });
});

test("what a scraper prints goes to stderr, and idle workers keep no process alive", async () => {
  const pool = pathToFileURL(join(import.meta.dirname, "pool.ts")).href;
  const own = pathToFileURL(join(import.meta.dirname, "own-files.ts")).href;
  const program = `
    import { openPool } from ${JSON.stringify(pool)};
    import { ownFiles } from ${JSON.stringify(own)};
    const source = { kind: "file", file: "scraper.mjs", cwd: process.cwd() };
    const { scraping } = await openPool({ source, own: ownFiles(), workers: 2, parseTimeoutMs: 60000, memoryMb: 64, buffer: { pages: 9, bytes: 999 }, log() {} });
    const task = { url: "http://a/", sentAs: "http://a/", status: 200, headers: [], contentType: null, body: new Uint8Array(), depth: 0, referrer: null, method: "GET" };
    const run = (handler, data) => scraping.run({ ...task, priority: 0, attempt: 0, handler, data: JSON.stringify(data), series: null, index: null, oldRuns: null });
    const outcome = await run("item", { n: 1, say: true });
    process.stdout.write(outcome.kind);`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", program], { cwd: folder, stdio: ["ignore", "pipe", "pipe"] });
  const text = { out: "", err: "" };
  child.stdout.on("data", (chunk) => (text.out += chunk));
  child.stderr.on("data", (chunk) => (text.err += chunk));
  const code = await new Promise((done) => child.on("close", done));
  assert.deepEqual([code, text.out, text.err], [0, "scraped", "printed\n"]);
});
