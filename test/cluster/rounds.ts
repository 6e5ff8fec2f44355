/**
 * Whole crawls of a faulty site by the real commands, `crawl --store` and `work`, while everything that may die or stall does so at random; afterwards
 * everything that was written must be equal to what an undisturbed crawl in memory wrote. Leases are made short in the store itself: there is no option.
 */
import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, truncateSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { silentLog } from "../../src/core/log.ts";
import { connectRedis, type Link } from "../../src/store/redis/connect.ts";
import { createCrawls } from "../../src/store/redis/crawls.ts";
import { scanInvariants } from "../../src/store/redis/doctor.ts";
import { glance, tallyOf } from "../../src/store/redis/look.ts";
import { startProxy, type TestProxy } from "../../src/store/redis/proxy-for-tests.ts";
import { startServer, type TestServer } from "../../src/store/redis/server-for-tests.ts";
import { seededRandom } from "../../src/testing/clock.ts";
import { faultySite } from "../crawl/kills.ts";
import { type Answer, fromPage, type Gate, gated, type Served, serve } from "../crawl/served.ts";
import { type Running, startCommand } from "./processes.ts";

/** What may befall a crawl, and how often of a hundred. */
const TROUBLES = [
  ["worker killed", 34],
  ["worker frozen beyond its lease", 12],
  ["worker sent away", 8],
  ["Redis killed", 12],
  ["end of the log torn off", 10],
  ["connections cut", 12],
  ["creator killed", 7],
  ["creator frozen beyond its lease", 5],
] as const;
export type Trouble = (typeof TROUBLES)[number][0];

export interface Round {
  readonly seed: number;
  readonly troubles: ReadonlyMap<Trouble, number>;
  /** A page took three workers down and was given up, as it must: then the outputs cannot be equal, and are not compared. */
  readonly givenUp: number;
  readonly ms: number;
}

const LEASE_MS = 2_500;
const FROZEN_MS = 3_300;
const SIZES = [40, 90, 160] as const;
const FILES = ["pages.jsonl", "items.jsonl", "skipped.jsonl", "links.jsonl"] as const;
const OUTPUTS = ["--extract", "title=title", "--pages", FILES[0], "-o", FILES[1], "--skipped", FILES[2], "--links", FILES[3]];
/** A crawl that needs longer after the last trouble hangs. */
const LONGEST_MS = 60_000;

export interface Rounds extends AsyncDisposable {
  /** Rejects when anything differs, with the seed in its message. `only`: no other troubles. */
  run(seed: number, options?: { readonly only?: Trouble; readonly most?: number }): Promise<Round>;
}

/** One site for all rounds, so that what an undisturbed crawl leaves is asked for once a size. */
export async function openRounds(): Promise<Rounds> {
  const root = mkdtempSync(join(tmpdir(), "skein-rounds-"));
  let answer: Answer = faultySite(1);
  const site = await serve((request, response) => answer(request, response));
  const calm = new Map<string, string>();

  async function undisturbed(pages: number, depth: readonly string[]): Promise<string> {
    const key = `${pages} ${depth.join(" ")}`;
    const known = calm.get(key);
    if (known !== undefined) return known;
    answer = faultySite(pages);
    const cwd = mkdtempSync(join(root, "calm-"));
    const crawl = startCommand(["crawl", site.origin, ...depth, ...OUTPUTS], cwd);
    assert.equal(await crawl.ended, 0, crawl.stderr());
    calm.set(key, cwd);
    return cwd;
  }

  return {
    async run(seed, options = {}) {
      const random = seededRandom(seed);
      const pages = SIZES[Math.floor(random() * SIZES.length)] ?? SIZES[0];
      const depth = random() < 0.5 ? ["-d", "30"] : [];
      const like = await undisturbed(pages, depth);
      const gate = gated(faultySite(pages), fromPage(pages / 2));
      answer = gate.answer;
      gate.shut();
      const cwd = mkdtempSync(join(root, "wild-"));
      const fsync = random() < 0.5 ? "always" : "everysec";
      const redis = await startServer(["--appendfsync", fsync, "--maxmemory-policy", "noeviction", "--auto-aof-rewrite-percentage", "0"]);
      const wild = await openWild({ redis, site, gate, cwd, random, depth, most: options.most ?? 4 + Math.floor(random() * 10), only: options.only ?? null });
      try {
        const begun = performance.now();
        await wild.run();
        const givenUp = readFileSync(join(cwd, FILES[0]), "utf8").split('"code":"crashed"').length - 1;
        if (givenUp === 0) {
          for (const file of FILES) checkEqual(join(cwd, file), join(like, file), depth.length > 0);
        }
        await wild.check(cwd);
        rmSync(cwd, { recursive: true });
        return { seed, troubles: wild.troubles, givenUp, ms: performance.now() - begun };
      } catch (error) {
        const told = [...wild.troubles].map(([what, times]) => `${times} × ${what}`).join(", ");
        const why = error instanceof Error ? error.message : String(error);
        throw new Error(`seed ${seed} (${pages} pages, ${depth.join(" ") || "no depth"}, fsync ${fsync}; ${told}; ${cwd}): ${why}`, { cause: error });
      } finally {
        await wild.close();
        await redis.stop();
      }
    },
    async [Symbol.asyncDispose]() {
      await site[Symbol.asyncDispose]();
      rmSync(root, { recursive: true, force: true });
    },
  };
}

/** What must be equal, without times, what a repeated request changes, and, unless levels make it exact, by which way a page was found. */
function linesOf(file: string, depthCounts: boolean): string[] {
  const text = readFileSync(file, "utf8");
  assert.ok(text === "" || text.endsWith("\n"), `${file}: the last line is torn`);
  const left: ReadonlySet<string> = new Set(["fetchedAt", "durationMs", "attempts", "referrer", "redirects", ...(depthCounts ? [] : ["depth"])]);
  return text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.stringify(JSON.parse(line), (name, value: unknown) => (left.has(name) ? undefined : value)));
}

function checkEqual(file: string, like: string, depthCounts: boolean): void {
  const found = linesOf(file, depthCounts);
  const lines = new Set(found);
  const twice = found.filter((line, at) => found.indexOf(line) !== at);
  const right = new Set(linesOf(like, depthCounts));
  const missing = [...right].filter((line) => !lines.has(line));
  const wrong = [...lines].filter((line) => !right.has(line));
  if (twice.length + missing.length + wrong.length === 0) return;
  const some = (of: readonly string[]) => `${of.length}${of.length === 0 ? "" : ` (${of.slice(0, 3).join(" ").slice(0, 500)})`}`;
  throw new Error(`${file}: of ${right.size} lines ${some(missing)} missing, ${some(wrong)} that should not be there, ${some(twice)} there twice`);
}

interface WildInput {
  readonly redis: TestServer;
  readonly site: Served;
  /** Shut until the first trouble has come, so that the crawl is not over before, however fast the machine is. */
  readonly gate: Gate;
  readonly cwd: string;
  readonly random: () => number;
  readonly depth: readonly string[];
  readonly most: number;
  readonly only: Trouble | null;
}

async function openWild({ redis, site, gate, cwd, random, depth, most, only }: WildInput) {
  const proxy: TestProxy = await startProxy(redis.port);
  const direct: Link = await connectRedis(redis.url, { log: silentLog });
  const url = `redis://127.0.0.1:${proxy.port}`;
  const troubles = new Map<Trouble, number>();
  const crawlArgs = ["crawl", site.origin, ...depth, "--store", url, "-c", "6", "--per-host", "16", ...OUTPUTS];
  const startCreator = (): Running => startCommand(crawlArgs, cwd);
  const startWorker = (): Running => startCommand(["work", "--store", url, "--allow-address", "127.0.0.1", "-c", "6"], cwd);
  const workers = Array.from({ length: 2 + Math.floor(random() * 2) }, startWorker);
  let creator = startCreator();
  /** Of the append-only file, when the crawl was set up: what a power cut may take away is its last second, not its beginning. */
  let whole = Infinity;

  async function shortenLeases(): Promise<boolean> {
    if ((await direct.command("HEXISTS", "{skein}:1:m", "seed")) !== 1) return false;
    await direct.command("HSET", "{skein}:1:m", "lease", LEASE_MS);
    return true;
  }

  const logFile = (): string => {
    const folder = join(redis.dir, "appendonlydir");
    // While a rewrite is on its way there are two: only the end of the newer one can be torn.
    const generation = (name: string) => Number(/\.(\d+)\.incr\.aof$/.exec(name)?.[1] ?? 0);
    return join(
      folder,
      readdirSync(folder).reduce((last, name) => (generation(name) > generation(last) ? name : last), ""),
    );
  };

  /** What a power cut leaves: a prefix, the last step of it perhaps half there. */
  function tearOff(): void {
    const path = logFile();
    const { size } = statSync(path);
    const least = path.includes(".1.incr") ? whole : 0;
    truncateSync(path, Math.max(Math.min(size, least), size - Math.floor(random() * Math.min(20_000, size / 3))));
  }

  /** Redis 7.0 refuses to start when it is killed again while it rewrites a log whose end was torn off: redis-check-aof is for that. */
  async function isRewritten(): Promise<boolean> {
    const info = String(await direct.command("INFO"));
    const runId = /run_id:(\w+)/.exec(info)?.[1];
    return /aof_rewrite_in_progress:0/.test(info) && String(await direct.command("GET", "{skein}:run")) === runId;
  }

  async function restartRedis(meanwhile: () => void): Promise<void> {
    while (!(await isRewritten())) await sleep(20);
    await redis.kill();
    meanwhile();
    if (random() < 0.4) await sleep(random() * 2_000);
    await redis.start();
    await shortenLeases();
  }

  async function freeze(one: Running): Promise<void> {
    one.signal("SIGSTOP");
    await sleep(FROZEN_MS);
    one.signal("SIGCONT");
  }

  const deadCreators = new Set<number | undefined>();
  /** The creator was killed after it had noted the end of its crawl: all is written, and the same command would begin another. */
  let finished = false;

  /** The outputs are the dead one's for another 15 s, unless its hold is ended. */
  async function restartCreator(): Promise<void> {
    await creator.kill();
    deadCreators.add(creator.child.pid);
    finished = (await direct.command("HEXISTS", "{skein}:1:info", "finished")) === 1;
    if (finished) return;
    await direct.command("DEL", "{skein}:1:own");
    creator = startCreator();
  }

  function draw(): Trouble {
    if (only !== null) return only;
    let at = random() * 100;
    return TROUBLES.find(([, share]) => (at -= share) < 0)?.[0] ?? "worker killed";
  }

  async function make(trouble: Trouble): Promise<void> {
    const at = Math.floor(random() * workers.length);
    const worker = workers[at]!; // at < length
    switch (trouble) {
      case "worker killed":
        await worker.kill();
        workers[at] = startWorker();
        return;
      case "worker frozen beyond its lease":
        return freeze(worker);
      case "worker sent away":
        worker.signal("SIGTERM");
        workers[at] = startWorker();
        leaving.push(worker);
        return;
      case "Redis killed":
        return restartRedis(() => undefined);
      case "end of the log torn off":
        return restartRedis(tearOff);
      case "connections cut": {
        const outages = proxy.cutAtRandom(random, 0.02 + random() * 0.1);
        await sleep(300 + random() * 1_500);
        outages();
        return;
      }
      case "creator killed":
        return restartCreator();
      case "creator frozen beyond its lease":
        return freeze(creator);
      default:
        throw new Error(trouble satisfies never);
    }
  }
  const leaving: Running[] = [];

  /** A drain lets nothing pass twice, so that its files alone do not show a store that sends something twice: its counters do. */
  async function checkCounts(folder: string): Promise<void> {
    const tally = await tallyOf(direct, 1);
    const at = await glance(direct, 1);
    assert.ok(at !== null);
    const lines = (file: string) => readFileSync(join(folder, file), "utf8").split("\n").length - 1;
    const sum = (prefix: string) => [...tally].reduce((all, [name, n]) => all + (name.startsWith(prefix) ? n : 0), 0);
    const crashed = readFileSync(join(folder, FILES[0]), "utf8").split('"code":"crashed"').length - 1;
    const torn = troubles.has("end of the log torn off");
    if (!torn) assert.equal(at.waiting, 0, "outputs that nobody has taken");
    // A page whose record was written, and that was given up after a power cut undid it, is counted by nobody: then the record stands.
    if (torn && crashed > 0) assert.ok(sum("outcome:") + crashed <= lines(FILES[0]), "pages that the store has counted, and their records");
    else assert.equal(sum("outcome:") + crashed, lines(FILES[0]), "pages that the store has counted, and their records");
    assert.equal(sum("skip:"), lines(FILES[2]), "skipped URLs that the store has counted, and their lines");
    assert.equal(tally.get("items") ?? 0, lines(FILES[1]), "items that the store has counted, and their lines");
  }

  /** Resolves with true when the creator has ended. */
  const creatorEnds = (ms: number): Promise<boolean> => Promise.race([creator.ended.then(() => true), sleep(ms, false, { ref: false })]);

  return {
    troubles,
    async run() {
      while (!(await shortenLeases())) {
        if (creator.over) break;
        await sleep(20);
      }
      while ((await direct.command("HGET", "{skein}:1:m", "sc"))?.toString() !== "1" && !creator.over) await sleep(20);
      whole = statSync(logFile()).size;
      for (let made = 0; made < most && !finished; made++) {
        if ((await creatorEnds(150 + random() * 700)) && (await creator.ended) !== 5) break;
        const trouble = draw();
        troubles.set(trouble, (troubles.get(trouble) ?? 0) + 1);
        await make(trouble);
        gate.open();
      }
      gate.open();
      const until = performance.now() + LONGEST_MS;
      while (!finished) {
        if (!(await creatorEnds(Math.max(0, until - performance.now())))) {
          throw new Error(`it does not end: ${JSON.stringify(await scanInvariants(direct, 1))}\n${creator.stderr()}`);
        }
        const code = await creator.ended;
        if (code === 0) return;
        // A power cut soon after a creator had died: what the dead one wrote its follower cannot know.
        if (code === 5 && /the same command again goes on from there/.test(creator.stderr())) {
          await restartCreator();
          continue;
        }
        // A power cut has undone the end of a dead one's hold.
        const holder = /are being written by skein crawl \(process (\d+) /.exec(creator.stderr())?.[1];
        if (code === 7 && troubles.has("end of the log torn off") && deadCreators.has(Number(holder))) {
          await restartCreator();
          continue;
        }
        throw new Error(`exit status ${code}: ${creator.stderr()}`);
      }
    },
    /** With nobody at it any more: one crawl, ended once, and sound; and written as often as the store itself has counted. */
    async check(folder: string) {
      const crawls = createCrawls(direct);
      // A power cut may have undone the end that the creator has seen: then it is for the workers to come to it again.
      const until = performance.now() + LONGEST_MS;
      while ((await crawls.ends("0-0")).length === 0 && performance.now() < until) await sleep(50);
      for (const one of workers) {
        assert.ok(!one.over, `a worker ended: ${one.stderr()}`);
        await one.kill();
      }
      // Sent away while it started, the signal itself ended it.
      for (const one of leaving) assert.ok(!one.over || ((await one.ended) ?? 0) === 0, `a worker left in bad order: ${one.stderr()}`);
      assert.deepEqual((await scanInvariants(direct, 1)).faults, []);
      assert.deepEqual(await crawls.list(10), [1], "there is another crawl");
      assert.equal((await crawls.ends("0-0")).length, 1, "completions");
      await checkCounts(folder);
    },
    async close() {
      await Promise.all([creator, ...workers, ...leaving].map((one) => one.kill()));
      await direct.close();
      await proxy.close();
    },
  };
}
