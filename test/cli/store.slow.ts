/** Commands that look at a crawl on a real Redis, and take its results out: status, explain, export, doctor. needs: redis-server */
import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { after, before, test } from "node:test";
import { gunzipSync } from "node:zlib";
import { freePort, skipRedis, startServer, type TestServer } from "../../src/store/redis/server-for-tests.ts";
import { until } from "../cluster/processes.ts";
import { run } from "../command.ts";
import { comparable, faultySite, runCommand } from "../crawl/kills.ts";
import { serve } from "../crawl/served.ts";

const root = mkdtempSync(join(tmpdir(), "skein-store-"));
const folder = () => mkdtempSync(join(root, "d-"));
const bin = join(import.meta.dirname, "../../bin/skein.js");
let redis: TestServer | null = null;

before(async () => {
  if (skipRedis === false) redis = await startServer(["--maxmemory-policy", "noeviction"]);
});
after(async () => {
  await redis?.stop();
  rmSync(root, { recursive: true, force: true });
});

const skein = (args: readonly string[], cwd: string) => run(process.execPath, [bin, ...args], cwd);
const plain = (): string => redis?.url ?? "";
let stores = 0;
/** A store of the test's own on the one server. */
const newStore = (): string => `${plain()}?prefix=t${++stores}`;
const worker = (store: string, idle = "2s") =>
  runCommand(["work", "--store", store, "--allow-address", "127.0.0.1", "--exit-when-idle", idle, "-c", "8"], folder(), null);
const json = (text: string) => JSON.parse(text);
const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

const FILES = ["pages.jsonl", "skipped.jsonl", "links.jsonl"] as const;
const asked = ["-o", FILES[0], "--skipped", FILES[1], "--links", FILES[2]];
const crawlOf = (origin: string, ...more: string[]) => ["crawl", origin, "-d", "30", ...asked, ...more];

const sizeOf = (path: string): number => (existsSync(path) ? statSync(path).size : 0);

/** Kills the process that creates the crawl, once some pages are settled and the first of them written, a while ago. */
async function createAndDie(origin: string, store: string, cwd: string, arrivals: () => number): Promise<void> {
  let writtenAt = Number.POSITIVE_INFINITY;
  const enough = (): boolean => {
    if (writtenAt === Number.POSITIVE_INFINITY && sizeOf(join(cwd, FILES[0])) > 0) writtenAt = arrivals();
    return arrivals() > Math.max(40, writtenAt + 15);
  };
  const { code } = await runCommand(crawlOf(origin, "--store", store, "--delay", "20ms", "-c", "4"), cwd, enough);
  assert.equal(code, null, "killed");
}

test("another process exports what the creator left, killed and gone on with; together they are a crawl in memory", { skip: skipRedis }, async () => {
  await using server = await serve(faultySite(120));
  const calm = folder();
  const first = await skein(crawlOf(server.origin), calm);
  assert.equal(first.code, 0, first.stderr);

  const store = newStore();
  const creator = folder();
  const asks = server.arrivals.length;
  await createAndDie(server.origin, store, creator, () => server.arrivals.length - asks);
  const elsewhere = folder();
  const exporting = ["export", "--store", store, "--job", "1", "--follow", "-o", FILES[0], "--skipped", FILES[1], "--links", FILES[2]];
  // While the dead one's hold lasts nobody else may write; it was of this machine, so that its end is waited for.
  // No worker is there yet: the crawl cannot end before the kill.
  const killed = await runCommand(exporting, elsewhere, () => sizeOf(join(elsewhere, FILES[0])) > 0);
  assert.equal(killed.code, null, killed.stderr);
  assert.match(killed.stderr, /the last writer has died/);
  const helper = worker(store, "6s");
  const whole = await skein(exporting, elsewhere);
  assert.equal(whole.code, 0, whole.stderr);
  assert.match(whole.stderr, /written before, and no more in the store: pages\.jsonl \(\d+ records\)/);
  assert.match(whole.stderr, /the crawl is over \(finished\)/);
  await helper;
  for (const file of FILES) {
    // What the creator wrote after its last checkpoint is in its file and was written again here: its own next start would cut it off.
    const states = json((await skein(["status", "--store", store, "--job", "1", "--json"], root)).stdout).results.files;
    const { bytes } = states.find(({ path, by }: { path: string; by: string }) => path === file && by === "crawl") ?? { bytes: 0 };
    const kept = join(creator, `kept-${file}`);
    writeFileSync(kept, readFileSync(join(creator, file)).subarray(0, bytes));
    assert.deepEqual([...comparable(kept), ...comparable(join(elsewhere, file))].sort(), comparable(join(calm, file)), file);
  }
});

test("every format, from a crawl that has ended; then it is dropped", { skip: skipRedis }, async () => {
  await using server = await serve(faultySite(60));
  const store = newStore();
  const cwd = folder();
  const memory = await skein(["crawl", server.origin, "-o", "all.jsonl", "--skipped", "no.jsonl"], cwd);
  assert.equal(memory.code, 0, memory.stderr);
  // Its process dies at once; the seeds are read, a worker does the rest.
  const asks = server.arrivals.length;
  const died = await runCommand(
    ["crawl", server.origin, "--store", store, "--skipped", "s.jsonl", "--delay", "20ms", "-c", "1"],
    cwd,
    () => server.arrivals.length > asks + 3,
  );
  assert.equal(died.code, null);
  await worker(store, "3s");
  const names = ["p.jsonl", "p.json", "p.csv", "p.jsonl.gz", "p.sqlite"];
  const files = names.flatMap((name) => ["-o", name]);
  const { code, stderr } = await skein(["export", "--store", store, "--job", "1", ...files, "--skipped", "s.csv", "--drop"], cwd);
  assert.equal(code, 0, stderr);
  assert.match(stderr, /page records, \d+ skipped URLs written; the crawl is over \(finished\)\njob 1 was taken out of the store/);
  const urls = comparable(join(cwd, "p.jsonl")).map((line) => json(line).url);
  assert.deepEqual(
    json(readFileSync(join(cwd, "p.json"), "utf8"))
      .map(({ url }: { url: string }) => url)
      .sort(),
    [...urls].sort(),
  );
  assert.equal(gunzipSync(readFileSync(join(cwd, "p.jsonl.gz"))).toString(), readFileSync(join(cwd, "p.jsonl"), "utf8"));
  assert.equal(readFileSync(join(cwd, "p.csv"), "utf8").split("\r\n").length - 2, urls.length);
  using db = new DatabaseSync(join(cwd, "p.sqlite"));
  assert.equal(db.prepare("SELECT count(*) AS n FROM pages").get()?.["n"], urls.length);
  const lines = comparable(join(cwd, "all.jsonl"));
  assert.ok(urls.length <= lines.length && urls.length > lines.length / 2, "the dead one's first pages went to its stdout");
  const gone = await skein(["status", "--store", store], cwd);
  assert.match(gone.stdout, /^no crawls in the store at/);
});

test("status, explain and doctor of a crawl under way; who may write its results", { skip: skipRedis }, async () => {
  await using server = await serve(faultySite(3_000));
  const store = newStore();
  const cwd = folder();
  let over = false;
  const crawl = runCommand(crawlOf(server.origin, "--store", store, "--delay", "20ms", "-c", "4"), cwd, () => over, "SIGINT");
  while (server.arrivals.length < 5) await pause(50);
  const helper = worker(store, "2s");
  let status = json("null");
  await until("both are at work and have told of it", async () => {
    const { stdout, stderr } = await skein(["status", "--store", store, "--job", "1", "--json"], cwd);
    assert.notEqual(stdout, "", stderr);
    status = json(stdout);
    return status.pages > 20 && status.elapsedMs > 3_000 && status.workers.length === 2 && status.workers.every(({ taken }: { taken: number }) => taken > 0);
  });

  const list = await skein(["status", "--store", store], cwd);
  assert.match(list.stdout, /^job +kind +state +queued +in flight +done +results +workers +created \(UTC\) +first seed\n +1 +crawl +running /, list.stderr);
  assert.equal(status.state, "running");
  assert.ok(status.queued > 0, JSON.stringify(status));
  assert.deepEqual(status.workers.map(({ kind }: { kind: string }) => kind).sort(), ["crawl", "work"]);
  // Each tells of itself every few seconds, and is forgotten after a minute.
  for (const { silentMs } of status.workers) assert.ok(silentMs < 30_000, JSON.stringify(status.workers));
  assert.equal(status.results.writer.kind, "crawl");
  const words = await skein(["status", "--store", store, "--job", "1"], cwd);
  assert.match(words.stdout, /^workers +(crawl|work) on \S+, process \d+: \d+ in flight, \d+ taken/m);
  assert.match(words.stdout, /^results +\d+ written, .*; written by crawl on \S+, process \d+$/m);

  const second = await skein(["export", "--store", store, "--job", "1", "--follow", "-o", "x.jsonl", "--skipped", "y.jsonl", "--links", "z.jsonl"], cwd);
  assert.equal(second.code, 7, second.stderr);
  assert.match(second.stderr, /are being written by skein crawl \(process \d+ on /);

  const { origin } = server;
  const explain = async (urls: readonly string[], where: string) =>
    (await skein(["explain", ...urls, "--store", store, "--job", "1"], where)).stdout.split("\n\n");
  const here = await explain([`${origin}/`, `${origin}/private/0`, "http://elsewhere.invalid/0", `${origin}/p99999`], cwd);
  assert.match(here[0] ?? "", /It was fetched on .*\nIt is a seed, depth 0\./);
  assert.match(here[1] ?? "", /It was not fetched: line 2 of \S+ disallows it: "Disallow: \/private\/"/);
  assert.match(here[2] ?? "", /lies outside the crawl, whose scope is "host"/);
  assert.match(here[3] ?? "", /The crawl has not met it: .*\nIf it were found it would be fetched/);
  const elsewhere = folder();
  let there: readonly string[] = [];
  await until("the record has been written, and has left the store", async () => {
    there = await explain(["http://elsewhere.invalid/0", `${origin}/p1`], elsewhere);
    return /Its record has left the store/.test(there[1] ?? "");
  });
  assert.match(there[0] ?? "", /It was found and passed over/);
  assert.match(
    there[1] ?? "",
    /It was settled\.\nIts record has left the store: it was written to pages\.jsonl\.\nFrom here pages\.jsonl cannot be read \(another machine/,
  );

  over = true;
  const { code, stderr } = await crawl;
  assert.equal(code, 130, stderr);
  await helper;
  const doctor = await skein(["doctor", "--store", store], cwd);
  assert.equal(doctor.code, 0, doctor.stdout);
  assert.match(doctor.stdout, /^ok +crawl 1 +stopped; [\d,]+ URLs seen, [\d,]+ wait, 1 host; sound$/m);
  assert.match(doctor.stdout, /^ok +persistence +append-only file on/m);

  // What waits stands in the queue with its place.
  const queued = comparable(join(cwd, FILES[0]))
    .flatMap((text) => json(text).links as string[])
    .filter((url) => url.startsWith(`${origin}/p`));
  const met = new Set(comparable(join(cwd, FILES[0])).map((text) => json(text).url));
  const waiting = queued.find((url) => !met.has(url));
  assert.ok(waiting !== undefined);
  assert.match(
    (await explain([waiting], cwd)).join("\n"),
    /It waits in the queue, (next in turn on its host|behind [\d,]+ pages? of its host); [\d,]+ pages wait in all\.[\s\S]*It was found \d+ links? from a seed/,
  );
});

test("what would be lost is refused, and so is a job that is not there", { skip: skipRedis }, async () => {
  await using server = await serve(faultySite(20));
  const store = newStore();
  const cwd = folder();
  const crawl = await skein(["crawl", server.origin, "--store", store, ...asked], cwd);
  assert.equal(crawl.code, 0, crawl.stderr);
  const refused = await skein(["export", "--store", store, "--job", "1", "-o", "x.jsonl"], cwd);
  assert.equal(refused.code, 2, refused.stderr);
  assert.match(refused.stderr, /add skipped URLs \(--skipped FILE\), links \(--links FILE\)/);
  const own = await skein(["export", "--store", store, "--job", "1", ...asked], cwd);
  assert.equal(own.code, 2, own.stderr);
  assert.match(own.stderr, /pages\.jsonl is a file of the crawl itself/);
  for (const command of [["status"], ["export"], ["explain", `${server.origin}/`]]) {
    const none = await skein([...command, "--store", store, "--job", "7"], cwd);
    assert.equal(none.code, 2, none.stderr);
    assert.match(none.stderr, /there is no job 7 in the store at \S+; there is 1 \(finished, http/);
  }
  const nothing = await skein(["export", "--store", store, "--job", "1", "--follow", "-o", "x.jsonl", "--skipped", "y.csv", "--links", "z.csv"], cwd);
  assert.equal(nothing.code, 0, nothing.stderr);
  assert.match(nothing.stderr, /written before, and no more in the store: pages\.jsonl \(\d+ records\), skipped\.jsonl .*\n0 page records/);
});

test("a store that is away: 5, and a failure that doctor tells", async () => {
  const away = `redis://:secret@127.0.0.1:${await freePort()}`;
  const results = await Promise.all([
    skein(["status", "--store", away], root),
    skein(["export", "--store", away, "--job", "1", "--follow"], root),
    skein(["explain", "http://a.example/", "--store", away, "--job", "1"], root),
    skein(["doctor", "--store", away], root),
  ]);
  assert.deepEqual(
    results.map(({ code }) => code),
    [5, 5, 5, 5],
  );
  assert.match(results[3]?.stdout ?? "", /^fail +store +the store at 127\.0\.0\.1:\d+ did not answer within 10 s/m);
  for (const { stdout, stderr } of results) assert.doesNotMatch(stdout + stderr, /secret/);
});
