/** Output files of crawls on a real Redis, by the real commands: an unfinished crawl's are no other's, and one that cannot be opened leaves nothing in the store. needs: redis-server */
import assert from "node:assert/strict";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { silentLog } from "../../src/core/log.ts";
import { connectRedis, type Link } from "../../src/store/redis/connect.ts";
import { createCrawls } from "../../src/store/redis/crawls.ts";
import { skipRedis, startServer, type TestServer } from "../../src/store/redis/server-for-tests.ts";
import { run } from "../command.ts";
import { html, type Served, serve } from "../crawl/served.ts";
import { killAll, type Running, startCommand, until } from "./processes.ts";

const root = mkdtempSync(join(tmpdir(), "skein-outputs-"));
const bin = join(import.meta.dirname, "../../bin/skein.js");
let redis: TestServer;
before(async () => {
  if (skipRedis === false) redis = await startServer(["--maxmemory-policy", "noeviction"]);
});
after(async () => {
  killAll();
  await redis?.stop();
  rmSync(root, { recursive: true, force: true });
});

const PAGES = 12;
let stores = 0;

interface World extends AsyncDisposable {
  readonly url: string;
  readonly cwd: string;
  readonly site: Served;
  readonly link: Link;
  /** Pages from /`n` on are answered only once it is `Infinity`. */
  holdFrom(n: number): void;
  start(...args: string[]): Running;
  /** Its exit status and what it said. */
  skein(...args: string[]): Promise<{ readonly code: number | null; readonly said: string }>;
  lines(file: string): number;
  /** Numbers of the crawls that the store has, oldest first. */
  crawls(): Promise<readonly number[]>;
  /** A crawl to FILE that was interrupted when it had written three of its pages; answers its arguments. */
  interrupted(...more: string[]): Promise<readonly string[]>;
}

/** A store and a folder of its own, and a site of one page that links to `PAGES` others. */
async function world(): Promise<World> {
  const url = `${redis.url}?prefix=world-${++stores}`;
  const cwd = mkdtempSync(join(root, "d-"));
  let from = Infinity;
  let waiting: (() => void)[] = [];
  const site = await serve(async (request, response) => {
    const n = Number(request.url?.slice(1));
    if (n >= from) await new Promise<void>((go) => waiting.push(go));
    html(response, n > 0 ? "leaf" : Array.from({ length: PAGES }, (_, i) => `<a href="/${i + 1}">${i + 1}</a>`).join(""));
  });
  const link = await connectRedis(url, { log: silentLog });
  const started: Running[] = [];
  const made: World = {
    ...{ url, cwd, site, link },
    holdFrom(n) {
      from = n;
      if (n !== Infinity) return;
      for (const go of waiting) go();
      waiting = [];
    },
    start(...args) {
      const one = startCommand([...args, "--store", url], cwd);
      started.push(one);
      return one;
    },
    async skein(...args) {
      const one = made.start(...args);
      await until("it ends", () => one.over, [one]);
      return { code: await one.ended, said: one.stderr() };
    },
    lines: (file) => (existsSync(join(cwd, file)) ? readFileSync(join(cwd, file), "utf8").split("\n").length - 1 : 0),
    crawls: async () => (await createCrawls(link).list(100)).toReversed(),
    async interrupted(...more) {
      const args = ["crawl", site.origin, "-c", "1", "--per-host", "1", "-o", "pages.jsonl", ...more];
      made.holdFrom(3);
      const one = made.start(...args);
      await until("three pages are written", () => made.lines("pages.jsonl") === 3, [one]);
      one.signal("SIGINT");
      await until("it has heard", () => /finishing what is in flight/.test(one.stderr()), [one]);
      made.holdFrom(Infinity);
      assert.equal(await one.ended, 130, one.stderr());
      assert.ok(made.lines("pages.jsonl") < PAGES);
      return args;
    },
    async [Symbol.asyncDispose]() {
      made.holdFrom(Infinity);
      await Promise.all(started.map((one) => one.kill()));
      await link.close();
      await site[Symbol.asyncDispose]();
    },
  };
  return made;
}

test("the file of an unfinished crawl is refused to a command with other options, however it is spelt, and the crawl's own command goes on", {
  skip: skipRedis,
}, async () => {
  await using at = await world();
  const own = await at.interrupted();
  const before = readFileSync(join(at.cwd, "pages.jsonl"), "utf8");
  symlinkSync("pages.jsonl", join(at.cwd, "other-name.jsonl"));
  symlinkSync(at.cwd, join(at.cwd, "here"));
  for (const where of [
    ["-o", "./pages.jsonl"],
    ["-o", join(at.cwd, "here/pages.jsonl")],
    ["--skipped", "other-name.jsonl"],
    ["-o", "new.jsonl", "--links", "pages.jsonl"],
  ]) {
    const { code, said } = await at.skein("crawl", at.site.origin, "-d", "5", ...where);
    assert.equal(code, 2, said);
    assert.ok(said.includes(`${where.at(-1)} is a file of crawl 1 (${at.site.origin})`), said);
    assert.match(said, /unfinished and was started with other options: .*--depth/);
    assert.match(said, /Use the same ones to resume it, name another file, or --fresh to drop it/);
    assert.match(said, /skein export --store … --job 1 --follow --drop -o OTHER ends it/);
    assert.equal(readFileSync(join(at.cwd, "pages.jsonl"), "utf8"), before);
  }
  assert.ok(!existsSync(join(at.cwd, "new.jsonl")));
  assert.deepEqual(await at.crawls(), [1]);
  const depth = await at.skein("crawl", at.site.origin, "-c", "1", "--per-host", "1", "-d", "5", "-o", "here/pages.jsonl");
  assert.match(depth.said, /was started with other options: --depth\. /, "the file is the same");
  const other = await at.skein("crawl", at.site.origin, "-d", "5", "-o", "new.jsonl");
  assert.equal(other.code, 0, other.said);
  assert.equal(at.lines("new.jsonl"), PAGES + 1);
  const goesOn = await at.skein(...own);
  assert.equal(goesOn.code, 0, goesOn.said);
  assert.match(goesOn.said, /resuming the unfinished crawl in the store \(crawl 1\)/);
  assert.equal(at.lines("pages.jsonl"), PAGES + 1);
  // It has come to its end: now its file may be begun anew.
  const anew = await at.skein("crawl", at.site.origin, "-d", "0", "-o", "pages.jsonl");
  assert.equal(anew.code, 0, anew.said);
  assert.equal(at.lines("pages.jsonl"), 1);
});

test("a crawl is gone on with by its command however that spells its files, from wherever, and each record is there once", { skip: skipRedis }, async () => {
  await using at = await world();
  await at.interrupted("--skipped", "skipped.jsonl");
  const [file, skipped] = [join(at.cwd, "pages.jsonl"), join(at.cwd, "skipped.jsonl")];
  const options = [at.site.origin, "-c", "1", "--per-host", "1"];
  // Each of them finds where the one before left the files, which spelt them otherwise.
  for (const [n, spelt] of [
    [6, ["-o", join(at.cwd, "../", at.cwd.split("/").at(-1) ?? "", "pages.jsonl"), "--skipped", "./skipped.jsonl"]] as const,
    [9, ["-o", "pages.jsonl", "--skipped", skipped]] as const,
  ]) {
    at.holdFrom(n);
    const one = at.start("crawl", ...options, ...spelt);
    await until(`${n} pages are written`, () => at.lines("pages.jsonl") === n || one.over, [one]);
    one.signal("SIGINT");
    await until("it has heard", () => /finishing what is in flight/.test(one.stderr()) || one.over, [one]);
    at.holdFrom(Infinity);
    assert.equal(await one.ended, 130, one.stderr());
    assert.match(one.stderr(), /resuming the unfinished crawl in the store \(crawl 1\)/);
  }
  mkdirSync(join(at.cwd, "deep"));
  const last = startCommand(["crawl", ...options, "-o", "../pages.jsonl", "--skipped", "../skipped.jsonl", "--store", at.url], join(at.cwd, "deep"));
  assert.equal(await last.ended, 0, last.stderr());
  const urls = readFileSync(file, "utf8")
    .trimEnd()
    .split("\n")
    .map((line) => String(JSON.parse(line).url));
  assert.equal(urls.length, PAGES + 1);
  assert.equal(new Set(urls).size, PAGES + 1);
  assert.deepEqual(await at.crawls(), [1]);
});

test("an export that takes the unfinished crawl out of the store sets its files free", { skip: skipRedis }, async () => {
  await using at = await world();
  await at.interrupted();
  const taken = await at.skein("export", "--job", "1", "--follow", "--drop", "-o", "rest.jsonl");
  assert.equal(taken.code, 0, taken.said);
  assert.deepEqual(await at.crawls(), []);
  const anew = await at.skein("crawl", at.site.origin, "-d", "0", "-o", "pages.jsonl");
  assert.equal(anew.code, 0, anew.said);
  assert.equal(at.lines("pages.jsonl"), 1);
});

test("what is being written is refused with the process that writes it, and is not dropped by --fresh either", { skip: skipRedis }, async () => {
  await using at = await world();
  at.holdFrom(3);
  const one = at.start("crawl", at.site.origin, "-o", "pages.jsonl");
  await until("three pages are written", () => at.lines("pages.jsonl") >= 3, [one]);
  const other = await at.skein("crawl", `${at.site.origin}/1`, "-o", "pages.jsonl");
  assert.equal(other.code, 2, other.said);
  assert.match(other.said, new RegExp(`is being written by skein crawl \\(process ${one.child.pid} on .* other options: seeds\\. `));
  assert.match(other.said, /Name another file, or stop that one first$/m);
  const fresh = await at.skein("crawl", `${at.site.origin}/1`, "-o", "pages.jsonl", "--fresh");
  assert.equal(fresh.code, 7, fresh.said);
  assert.match(fresh.said, new RegExp(`crawl 1 are being written by skein crawl \\(process ${one.child.pid} `));
  at.holdFrom(Infinity);
  assert.equal(await one.ended, 0, one.stderr());
  assert.equal(at.lines("pages.jsonl"), PAGES + 1);
  assert.deepEqual(await at.crawls(), [1]);
});

test("of commands that begin at the same moment with one file, one gets it", { skip: skipRedis }, async () => {
  await using at = await world();
  for (let round = 1; round <= 2; round++) {
    at.holdFrom(1);
    const all = ["1", "2", "3"].map((depth) => at.start("crawl", at.site.origin, "-d", depth, "-o", `race-${round}.jsonl`));
    await until("all but one have ended", () => all.filter(({ over }) => over).length >= 2, all);
    at.holdFrom(Infinity);
    const codes = await Promise.all(all.map(({ ended }) => ended));
    assert.deepEqual(codes.toSorted(), [0, 2, 2], all.map((one) => one.stderr()).join("\n--\n"));
    assert.equal(at.lines(`race-${round}.jsonl`), PAGES + 1);
    assert.equal((await at.crawls()).length, round);
  }
});

test("--fresh drops the unfinished crawl whose file it takes: its workers stop, and nothing goes on with it", { skip: skipRedis }, async () => {
  await using at = await world();
  const own = await at.interrupted();
  const fresh = await at.skein("crawl", at.site.origin, "-d", "0", "-o", "pages.jsonl", "--fresh");
  assert.equal(fresh.code, 0, fresh.said);
  assert.equal(at.lines("pages.jsonl"), 1);
  const crawls = createCrawls(at.link);
  const dropped = await crawls.get(1);
  assert.deepEqual([dropped?.completed, dropped?.info.get("finished"), dropped?.info.get("dropped")], [true, "cancelled", "2"]);
  assert.deepEqual(await crawls.live(), []);
  // The place where the first one stopped is gone: its command is a crawl of its own.
  const again = await at.skein(...own);
  assert.equal(again.code, 0, again.said);
  assert.match(again.said, /crawl 3 in the store/);
  assert.equal(at.lines("pages.jsonl"), PAGES + 1);
});

test("a writer that was silent for too long writes no more once its crawl was dropped", { skip: skipRedis }, async () => {
  await using at = await world();
  at.holdFrom(3);
  const one = at.start("crawl", at.site.origin, "-o", "pages.jsonl");
  await until("three pages are written", () => at.lines("pages.jsonl") >= 3, [one]);
  one.signal("SIGSTOP");
  await at.link.command("DEL", `${at.link.tag}:1:own`); // as the end of its hold
  const fresh = await at.skein("crawl", at.site.origin, "-d", "0", "-o", "pages.jsonl", "--fresh");
  assert.equal(fresh.code, 0, fresh.said);
  one.signal("SIGCONT");
  at.holdFrom(Infinity);
  assert.equal(await one.ended, 7, one.stderr());
  assert.match(one.stderr(), /crawl 1 was dropped: another command \(crawl 2\) took its files with --fresh/);
  assert.equal(at.lines("pages.jsonl"), 1);
});

test("stdout is nobody's", { skip: skipRedis }, async () => {
  await using at = await world();
  at.holdFrom(3);
  const one = at.start("crawl", at.site.origin, "-c", "2", "-o", "-");
  await until("it is at work", () => at.site.targets().length >= 3, [one]);
  const other = await at.skein("crawl", at.site.origin, "-d", "0", "-o", "-");
  assert.equal(other.code, 0, other.said);
});

test("an output that cannot be opened leaves nothing in the store, and other outputs as they were", { skip: skipRedis }, async () => {
  await using at = await world();
  mkdirSync(join(at.cwd, "folder.jsonl"));
  writeFileSync(join(at.cwd, "file"), "");
  writeFileSync(join(at.cwd, "kept.jsonl"), "kept\n");
  for (const file of ["nowhere/pages.jsonl", "folder.jsonl", "file/pages.jsonl", "/proc/out.jsonl"]) {
    const { code, said } = await at.skein("crawl", at.site.origin, "-o", "kept.jsonl", "--skipped", file);
    assert.equal(code, 3, said);
    assert.match(said, /cannot write/);
    assert.deepEqual(await at.crawls(), [], file);
  }
  assert.equal(readFileSync(join(at.cwd, "kept.jsonl"), "utf8"), "kept\n");
  assert.equal(at.site.arrivals.length, 0);
});

test("nor does one that fails with its first record, nor a command without one good seed", { skip: skipRedis }, async () => {
  await using at = await world();
  mkdirSync(join(at.cwd, "out"));
  at.holdFrom(1);
  const one = at.start("crawl", `${at.site.origin}/1`, "-o", "out/pages.jsonl");
  await until("the first page is asked for", () => at.site.targets().length === 1, [one]);
  renameSync(join(at.cwd, "out"), join(at.cwd, "moved"));
  at.holdFrom(Infinity);
  assert.equal(await one.ended, 3, one.stderr());
  assert.deepEqual(await at.crawls(), []);
  writeFileSync(join(at.cwd, "seeds.txt"), "http://\nhttp://\n");
  const { code, said } = await at.skein("crawl", "-i", "seeds.txt", "-o", "pages.jsonl");
  assert.equal(code, 2, said);
  assert.deepEqual(await at.crawls(), []);
  assert.deepEqual(await at.link.command("HGETALL", `${at.link.tag}:files`), [], "a file has an owner that is gone");
});

test("an empty store is named with its database and prefix", { skip: skipRedis }, async () => {
  const empty = `${redis.url}/3?prefix=shop`;
  const { stdout } = await run(process.execPath, [bin, "status", "--store", empty], root);
  assert.match(stdout, new RegExp(`^no crawls in the store at 127\\.0\\.0\\.1:${redis.port}/3\\?prefix=shop`));
});

test("an export is no other crawl's writer: a file of an unfinished one is refused to it", { skip: skipRedis }, async () => {
  await using at = await world();
  assert.equal((await at.skein("crawl", `${at.site.origin}/1`, "-o", "first.jsonl")).code, 0);
  await at.interrupted();
  const before = readFileSync(join(at.cwd, "pages.jsonl"), "utf8");
  const refused = await at.skein("export", "--job", "1", "-o", "pages.jsonl");
  assert.equal(refused.code, 2, refused.said);
  assert.match(refused.said, /--output: \S+\/pages\.jsonl is a file of crawl 2 in the store at .*, which is unfinished: name another file/);
  assert.equal(readFileSync(join(at.cwd, "pages.jsonl"), "utf8"), before);
  const own = await at.skein("export", "--job", "2", "-o", "pages.jsonl");
  assert.doesNotMatch(own.said, /is a file of crawl/);
});
